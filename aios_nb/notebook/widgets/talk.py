"""A conversation as a chat window sees it: opened or gone on with, followed, and spoken in.

Lives on the node's loop and knows nothing but a ``SiteClient``. What is shown is in
``here.transcript`` and ``head()``; ``changed`` is called whenever there is more of it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from aios_nb.client import SiteClient
from aios_nb.envelope import new_id
from aios_nb.errors import AiosError, InvalidParams, NoSuchAgent, UsageError
from aios_nb.notebook.widgets.company import Company
from aios_nb.notebook.widgets.contents import MENTION
from aios_nb.notebook.widgets.errands import Errands
from aios_nb.notebook.widgets.following import Following
from aios_nb.notebook.widgets.titles import TO_ONE, first_words, untitled
from aios_nb.notebook.widgets.transcript import RESENT
from aios_nb.people.conversations import opened_in, recent, yours
from aios_nb.people.wording import NOTEBOOK, typed, what
from aios_nb.richtext import gist, one_line

DEFAULT_AGENT = "concierge"
LISTED = 200
"""Conversations among which the one to go on with is looked for."""
DEADLINE_S = 600.0
"""Somebody looks on and can stop it: an agent may take its time, and a node may come back."""
EXAMPLES_MAX = 4
_FIRST = re.compile(MENTION.pattern + r"[,:]?(?=\s|$)", re.IGNORECASE)
_DECORATED = re.compile(r"@\w+\s*\n\s*(?:@|def |async |class )")


class Talk:
    """One window's side of a conversation."""

    def __init__(
        self,
        client: SiteClient,
        agent: str | None = None,
        *,
        conversation: str | None = None,
        new: bool = False,
        place: int = 0,
        changed: Callable[[], None] = lambda: None,
    ) -> None:
        self.client = client
        self.me = f"owner@{client.node_id}"
        self.company = Company(client, self._agent_changed)
        self.here = Following(client, self.me, self.company.node_name, changed)
        self.wanted = agent or DEFAULT_AGENT
        self.agent = ""
        """The id of the agent that answers by default; empty while it is not found."""
        self.problem: AiosError | None = None
        """Why there is no such agent, or no such conversation."""
        self.ready = asyncio.Event()
        self._conversation = conversation
        self._new = new
        self.place = place
        """Counts where a person has turned to: what was written elsewhere is not for here."""
        self._opening = asyncio.Lock()
        self._turns = asyncio.Lock()
        """What comes is logged in that order, even if somebody has to be looked for."""
        self._errands = Errands()
        self.speakers = 0
        """Who says something right now, and needs it until that is done."""

    async def start(self) -> None:
        """Find the agent and the conversation, and follow both."""
        try:
            await self.company.start()
            if self._conversation is not None:
                await self._enter(self._conversation)
            else:
                await self._find()
        except InvalidParams as error:
            self.problem = error
        finally:
            self.ready.set()
            self.here.changed()
        self._errands.run(self._learn())

    async def close(self) -> None:
        """Stop following. What runs, runs on."""
        await self._errands.close()
        await self.here.close()
        await self.company.close()

    def stands(self) -> tuple[str | None, bool]:
        """How another one goes on here: with this conversation, or with a new one."""
        if not self.ready.is_set():
            return self._conversation, self._new
        return self.here.conversation, self._new

    # Which agent, which conversation -----------------------------------------------------------

    async def _find(self) -> None:
        """The agent, and the conversation with it that goes on; neither need be there."""
        self.problem = None
        try:
            self.agent = await self.company.identify(self.wanted)
        except AiosError as error:
            self.problem = error
        latest = None if self._new else await self._latest()
        if latest is not None:
            await self._enter(latest)

    async def _learn(self) -> None:
        """What the agent says about itself, for whoever looks at an empty window."""
        if self.agent:
            await self.company.card(self.agent)
            self.here.changed()

    def _agent_changed(self, agent: str) -> None:
        if not self.agent and agent.partition("@")[0] == self.wanted.partition("@")[0]:
            self._errands.run(self._came())
        elif agent == self.agent:
            self.here.changed()  # its card may take its time
            self._errands.run(self._learn())
        elif agent in self.members():
            self.here.changed()

    async def _came(self) -> None:
        """An agent of the wanted name is there now."""
        await self._find()
        await self._learn()

    async def _latest(self) -> str | None:
        """The conversation of a chat with this agent that was used last.

        One that began with a question asked by other means has no title of its own.
        """
        name = self.wanted.partition("@")[0]
        async for row in yours(self.client):
            first = (row["agents"] or [""])[0]
            with_it = first == self.agent if self.agent else first.partition("@")[0] == name
            if with_it and row["opener"] == self.me:
                found: str = row["conversation"]
                page = await self.client.call(
                    "chat.history", conversation=found, after=row["messages"], limit=1
                )
                if page["title"]:
                    return found
        return None

    async def _enter(self, conversation: str) -> None:
        await self.here.enter(conversation)
        if self.here.agents:
            self.agent = self.wanted = self.here.agents[0]
            self.problem = None

    async def _ensure(self, text: str = "") -> str:
        """The conversation; opened with this message, if nothing was said yet."""
        async with self._opening:
            if self.here.conversation is None and not self._new:
                await self._find()  # another window may have begun it meanwhile
            if self.here.conversation is None:
                if not self.agent:
                    raise self.problem or UsageError("there is nobody to talk to")
                title = first_words(text) or untitled(self.agent)
                opened = await self.client.call("chat.open", agents=[self.agent], title=title)
                self._new = False
                await self._enter(opened["conversation"])
            if self.here.conversation is None:
                raise UsageError("this conversation was closed meanwhile", hint="send it again")
            return self.here.conversation

    async def open(self, conversation: str) -> None:
        """Turn to another conversation."""
        await self._enter(conversation)
        self.place += 1
        await self._learn()

    async def fresh(self) -> None:
        """A new conversation with the same agent; it begins with the first message."""
        self._new = True
        self.place += 1
        self.here.leave()
        if not self.agent:
            await self._find()

    # What is said ------------------------------------------------------------------------------

    async def send(
        self,
        text: str,
        *,
        message_id: str | None = None,
        files: Sequence[Mapping[str, Any]] = (),
        mentioned: Mapping[str, str] | None = None,
        agent: str | None = None,
        place: int | None = None,
        deadline_s: float = DEADLINE_S,
    ) -> list[dict[str, str]]:
        """Say it to the agents it names, else to the default one; gives the ids of their replies.

        ``mentioned``: ids by name, as they were picked from a list. ``agent``: to that one alone.
        ``place``: where it was written, if that was not just now.
        """
        place = self.place if place is None else place
        async with self._turns:
            if agent is None:
                mentioned = {**(mentioned or {}), **await self._first_named(text, mentioned or {})}
            with self._in_words():
                self._check_is_at(place)  # others had their turn
                conversation = await self._ensure(text)
                self._check_is_at(place)
                message_id = message_id or new_id("m")
                if agent is None:
                    agent, text = await self._addressee(conversation, text, mentioned or {})
                given: dict[str, Any] = {
                    "conversation": conversation,
                    "text": text,
                    "message_id": message_id,
                    "files": list(files),
                    "deadline_s": deadline_s,
                }
                # It stays among ours: the log may tell of it only after the call has been answered.
                self.here.sent.add(message_id)
                try:
                    replies = await self._given(agent, given)
                except InvalidParams as error:
                    if await self._was_deleted(conversation):
                        said = "this conversation was deleted elsewhere"
                        raise UsageError(said, hint="send it again: a new one begins") from error
                    raise
            if self.here.conversation == conversation:
                for reply in replies:
                    self.here.listen(message_id, reply["agent"], reply["reply_id"])
            return [{**reply, "message_id": message_id} for reply in replies]

    def _check_is_at(self, place: int) -> None:
        if place != self.place:
            said = "another conversation was opened meanwhile"
            raise UsageError(said, hint="send it again, if it is meant for this one")

    async def _given(self, agent: str | None, given: dict[str, Any]) -> list[dict[str, str]]:
        """To that agent, or to those whom the text names: who replies, and under which id."""
        if agent is None:
            posted: list[dict[str, str]] = (await self.client.call("chat.post", **given))["replies"]
            return posted
        sent = await self.client.call("chat.send", agent=agent, wait=False, **given)
        return [{"agent": agent, "reply_id": sent["reply_id"]}]

    async def _was_deleted(self, conversation: str) -> bool:
        """Whether it is gone; a new one begins here then."""
        try:
            await self.client.call("chat.history", conversation=conversation, limit=1)
        except InvalidParams:
            if self.here.conversation == conversation:
                await self.fresh()
            return True
        return False

    @contextmanager
    def _in_words(self) -> Iterator[None]:
        """For who talks to an agent that is gone, its id and names like it are no help."""
        try:
            yield
        except NoSuchAgent as error:
            if self.company.standing(self.agent) != "gone":
                raise
            name = self.agent.partition("@")[0]
            again = ", or run its cell again" if self.company.is_ours(self.agent) else ""
            raise UsageError(f"nobody offers {name} now", hint=f"@ another agent{again}") from error

    async def _first_named(self, text: str, mentioned: Mapping[str, str]) -> dict[str, str]:
        """Whom a message begins with, where only the node knows; raises where nobody does.

        It must not go to somebody else. An @ further on, or one of pasted code, is just a word.
        """
        first = _FIRST.match(text)
        if first is None or _DECORATED.match(text) or self.knows(first[1], mentioned):
            return {}
        name = first[1]
        try:
            return {name: await self.company.identify(name)}
        except NoSuchAgent as error:
            near = error.data.get("near", [])
            hint = error.hint if near else "@ shows who is there"
            raise NoSuchAgent(f"nobody is called {name}", hint=hint, near=near) from error

    def knows(self, name: str, mentioned: Mapping[str, str] | None = None) -> bool:
        """Whether somebody is called so, as far as one knows here without asking."""
        told = self.company.named(name.partition("@")[0])
        if name in (mentioned or {}) or any(agent.startswith(name) for agent in told):
            return True
        return any(name in {agent, agent.partition("@")[0]} for agent in self.members())

    async def _addressee(
        self, conversation: str, text: str, mentioned: Mapping[str, str]
    ) -> tuple[str | None, str]:
        """The one agent a message begins with and its text without that name; else nobody.

        A name is an address, not a part of the question: ``@calc 2+2`` asks 2+2. Of several, those
        elsewhere are joined, so that the node knows them by their bare name too.
        """
        names = list(dict.fromkeys(MENTION.findall(text)))
        found = {name: agent for name in names if (agent := self._named(name, mentioned))}
        first = TO_ONE.match(text)
        if len(names) == 1 and first is not None and names[0] in found:
            return found[names[0]], text[first.end() :]
        for name, agent in found.items():
            here = [one for one in self.here.agents if one.partition("@")[0] == name]
            if here and agent not in here:  # two of that name: say which
                text = re.sub(rf"(?<!\S)@{name}(?![\w@-])", f"@{agent}", text)
            elif "@" not in name and not here and not self.company.is_ours(agent):
                await self.client.call("chat.join", conversation=conversation, who=agent)
        return None, text

    def _named(self, name: str, mentioned: Mapping[str, str]) -> str | None:
        """Whom a mention means: the one that was picked, one of the conversation, the only one."""
        if name in mentioned:
            return mentioned[name]
        for agent in self.here.agents:
            if name in {agent, agent.partition("@")[0]}:
                return agent
        known = [one for one in self.company.named(name.partition("@")[0]) if one.startswith(name)]
        ours = [agent for agent in known if self.company.is_ours(agent)]
        if len(known) > 1 and not ours:
            raise UsageError(
                f"several agents are called {name}", hint="pick one from the list that @ shows"
            )
        return ours[0] if ours else known[0] if known else None

    async def again(
        self,
        item_id: str,
        *,
        message_id: str | None = None,
        text: str | None = None,
        files: Sequence[Mapping[str, Any]] = (),
        mentioned: Mapping[str, str] | None = None,
        place: int | None = None,
    ) -> list[dict[str, str]]:
        """Send a message once more, in the same words or others; the first one is marked.

        ``item_id``: the message, or a reply to it that failed. Of a message to several, only that
        agent gets it again. ``files``: beside those it had.
        """
        transcript = self.here.transcript
        request = transcript.request_of(item_id)
        if request is None:
            raise UsageError("that message is not here any more", hint="type it again")
        message_id = message_id or new_id("m")
        asked = request["message_id"]
        replies = transcript.replies_to(asked)
        one_of_several = item_id != asked and len(replies) > 1
        agent = None
        if one_of_several:
            agent = transcript.items[item_id].who.id
        elif transcript.items[asked].to and replies and not MENTION.search(text or ""):
            agent = replies[0].who.id  # its name was taken off the text
        sent = await self.send(
            request["text"] if text is None else text,
            message_id=message_id,
            files=[*request["files"], *files],
            mentioned=mentioned,
            agent=agent,
            place=place,
        )
        await self.client.call(
            "chat.react",
            conversation=request["conversation"],
            message_id=transcript.row_of(item_id) if one_of_several else asked,
            reaction=f"{RESENT}{message_id}",
        )
        return sent

    async def answer(self, reply_id: str, question: str, text: str) -> None:
        """What an agent asked for; it goes on."""
        await self.client.call(
            "chat.answer", message_id=reply_id, text=text, question=question, wait=False
        )

    async def stop(self, reply_id: str = "") -> None:
        """Stop that reply, or all that are at work here, as far as they were asked by who may."""
        refused: InvalidParams | None = None
        at_work = [one for one in self.here.transcript.writing if reply_id in {"", one}]
        stopped = 0
        for one in at_work:
            try:
                await self.client.call("chat.cancel", message_id=one)
                stopped += 1
            except InvalidParams as error:
                refused = error
        if refused is not None and not stopped:
            raise UsageError("only who asked can stop this") from refused

    # The conversation as a thing ---------------------------------------------------------------

    async def chats(self) -> list[dict[str, Any]]:
        """Conversations to turn to, last used first."""
        return [
            {
                "conversation": row["conversation"],
                "title": one_line(row["title"]) or "nothing said yet",
                "agents": [agent.partition("@")[0] for agent in row["agents"]],
                "app": opened_in(row),
                "last": gist(row["last"]),
                "at": row["updated_at"],
                "current": row["conversation"] == self.here.conversation,
            }
            for row in await recent(self.client, LISTED)
        ]

    def called(self) -> str:
        """How a person called it; empty if its title only repeats how it begins."""
        title = self.here.title
        return "" if title in {self.here.begins, untitled(self.agent)} else title

    def heading(self) -> str:
        return self.called() or untitled(self.agent or self.wanted)

    async def rename(self, title: str) -> None:
        conversation = await self._ensure()
        await self.client.call("chat.rename", conversation=conversation, title=title)
        self.here.title = title
        self.here.changed()

    async def delete(self, conversation: str) -> None:
        """Remove it with everything said in it; a window that shows it turns to a new one."""
        if conversation == self.here.conversation:
            await self.fresh()
        await self.client.call("chat.delete", conversation=conversation)

    async def export(self, form: str) -> dict[str, Any]:
        """``{name, mime, text}``."""
        if self.here.conversation is None:
            raise UsageError("nothing has been said yet")
        exported: dict[str, Any] = await self.client.call(
            "chat.export", conversation=self.here.conversation, format=form
        )
        return exported

    def members(self) -> list[str]:
        """Every agent that is part of the conversation or has spoken in it, the default first."""
        spoke = [item.who.id for item in self.here.transcript.items.values() if item.who.agent]
        return list(dict.fromkeys([*filter(None, [self.agent]), *self.here.agents, *spoke]))

    def _away(self) -> list[str]:
        """Of the agents at work, those whose node does not answer: one cannot tell what they do."""
        at_work = {writing.item.who.id for writing in self.here.transcript.writing.values()}
        elsewhere = (agent for agent in at_work if not self.company.is_ours(agent))
        return sorted(one for one in elsewhere if self.company.standing(one) in {"suspect", "gone"})

    def head(self) -> dict[str, Any]:
        """What stands above the messages and below them."""
        here, agent = self.here, self.agent or self.wanted
        row, card = self.company.row(agent), self.company.known_card(agent)
        head: dict[str, Any] = {
            "agent": {
                **row,
                "node": self.company.node_name(agent.partition("@")[2]) if self.agent else "",
                "ours": self.company.is_ours(agent),
                "signed": bool(card.get("verified")),
                "about": one_line(str(card.get("about") or row["about"])),
                "examples": [one_line(one) for one in card.get("examples", ())][:EXAMPLES_MAX],
            },
            "also": [one.partition("@")[0] for one in self.members() if one != self.agent],
            "home": self.client.node_id,
            "conversation": here.conversation,
            "place": self.place,
            "title": one_line(here.title),
            "called": one_line(self.called()),
            "earlier": here.has_earlier,
            "busy": [writing.item.who.name for writing in here.transcript.writing.values()],
            "away": self._away(),
            "ready": self.ready.is_set(),
        }
        asks = here.transcript.question()
        if asks is not None:
            head["asks"] = {"reply": asks.reply, "question": asks.question, "who": asks.who.name}
        if self.problem is not None:
            said = one_line(what(self.problem))
            hint = one_line(typed(self.problem.hint or "", NOTEBOOK))
            head["problem"] = {"text": said, "hint": hint}
        return head
