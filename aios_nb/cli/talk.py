"""A conversation at a prompt: what a typed line means, whatever it was typed into."""

from __future__ import annotations

import asyncio
import re
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

from aios_nb.cli import output
from aios_nb.cli.reply import Asking
from aios_nb.client import SiteClient
from aios_nb.errors import AiosError, Unreachable, UsageError
from aios_nb.people.conversations import find, form_of, read, write
from aios_nb.people.messages import Messages
from aios_nb.people.wording import in_words
from aios_nb.richtext import one_line

DEFAULT_AGENT = "concierge"
SHOWN_AT_START = 10
"""Messages of a resumed conversation that are shown."""
_MENTION = re.compile(r"@([a-z0-9][a-z0-9_-]{0,47}(?:@[a-z2-7]{4,32})?)(?:\s+|\Z)")

COMMANDS = {
    "/help": "this list",
    "/agents": "whom you can talk to",
    "/search": "/search WORDS: find an agent for a job",
    "/new": "/new [AGENT]: start a new conversation",
    "/title": "/title TEXT: name this conversation",
    "/history": "all of this conversation",
    "/save": "/save FILE: write it to FILE (.md, .json or .ipynb)",
    "/quit": "leave (or Ctrl-D)",
}
_TIPS = """\
@name TEXT asks another agent in the same conversation.
Alt-Enter makes a new line; Ctrl-C stops an answer; a line that starts with // begins with /."""


class Left(Exception):
    """The person wants to leave."""


class Talk:
    """One person's side of a conversation, and the commands around it."""

    def __init__(
        self,
        client: SiteClient,
        asking: Asking,
        *,
        agent: str | None = None,
        deadline_s: float | None = None,
    ) -> None:
        self._client = client
        self._asking = asking
        self._chosen = agent
        self._deadline_s = deadline_s
        self.agent = agent or DEFAULT_AGENT
        self.conversation: str | None = None
        self.names: list[str] = []
        """For completion."""
        self._paint = output.Paint(sys.stdout)
        self._show = Messages(client.node_id, self._paint)

    async def start(self, resume: str | None) -> None:
        """Know who is there; with ``resume``, go on in that conversation and show its end."""
        rows = (await self._client.call("agents.list"))["agents"]
        self.names = [row["name"] for row in rows]
        if resume is None:
            # A mistyped name is found here, not after the first question was written.
            await self._look_for(self.agent)
            return
        self.conversation = await find(self._client, resume)
        whole = await read(self._client, self.conversation)
        if self._chosen is None and whole.get("agents"):
            self.agent = self._short(whole["agents"][0])
        for line in self._show.heading(whole):
            print(line)
        messages = whole["messages"]
        if len(messages) > SHOWN_AT_START:
            print(self._paint(f"… {len(messages) - SHOWN_AT_START} earlier: /history", "dim"))
        self._print(messages[-SHOWN_AT_START:])
        print()

    async def line(self, text: str) -> None:
        """Do what the line says. Raises ``Left``, or an ``AiosError`` to be shown."""
        text = text.strip()
        if not text:
            return
        if text.startswith("/") and not text.startswith("//"):
            await self._command(text)
            return
        await self._ask(text.removeprefix("/") if text.startswith("//") else text)

    async def _ask(self, text: str) -> None:
        agents, rest = [], text
        while found := _MENTION.match(rest):
            agents.append(found[1])
            rest = rest[found.end() :]
        if agents and not rest.strip():
            if len(agents) > 1:
                raise UsageError("one at a time", hint="@name alone turns to that agent")
            await self._turn_to(agents[0])
            return
        for agent in agents or [self.agent]:
            if len(agents) > 1:
                print(self._paint(agent, "bold", "cyan"))
            result = await self._asking(
                agent, rest, conversation=self.conversation, deadline_s=self._deadline_s
            )
            self.conversation = result["conversation"]
            if agent not in self.names:
                self.names.append(agent)  # of another node

    async def _look_for(self, agent: str) -> None:
        """Raises ``NoSuchAgent``; one whose node is away may be back for the first question."""
        try:
            await self._client.call("agents.card", agent=agent)
        except Unreachable as error:
            complain(error)

    async def _turn_to(self, agent: str) -> None:
        await self._look_for(agent)
        self.agent = agent
        output.note(f"now talking to {agent}")

    async def _command(self, text: str) -> None:
        word, _, rest = text.partition(" ")
        does = self._commands().get(word)
        if does is None:
            near = [name for name in COMMANDS if name.startswith(word[:2])]
            hint = f"did you mean {near[0]}?" if near else "/help lists them"
            raise UsageError(f"there is no {word}", hint=hint)
        await does(rest.strip())

    def _commands(self) -> dict[str, Callable[[str], Awaitable[None]]]:
        return {
            "/help": self._help,
            "/agents": self._agents,
            "/search": self._search,
            "/new": self._new,
            "/title": self._title,
            "/history": self._history,
            "/save": self._save,
            "/quit": self._quit,
            "/exit": self._quit,
            "/q": self._quit,
        }

    async def _help(self, _: str) -> None:
        for name, about in COMMANDS.items():
            print(f"{self._paint(f'{name:9}', 'bold')} {about}")
        print(self._paint(_TIPS, "dim"))

    async def _agents(self, _: str) -> None:
        rows = (await self._client.call("agents.list"))["agents"]
        self.names = [row["name"] for row in rows]
        output.table(("NAME", "ABOUT"), ((row["name"], row["about"]) for row in rows))

    async def _search(self, words: str) -> None:
        if not words:
            raise UsageError("search for what?", hint="/search sum up numbers")
        rows = (await self._client.call("agents.search", query=words))["agents"]
        if not rows:
            output.note("nothing found; try other words")
            return
        output.table(("NAME", "ABOUT"), ((row["name"], row["about"]) for row in rows))

    async def _new(self, agent: str) -> None:
        if agent:
            await self._turn_to(agent.removeprefix("@"))
        self.conversation = None
        output.note("a new conversation")

    async def _title(self, title: str) -> None:
        if not title:
            raise UsageError("which title?", hint="/title TEXT")
        await self._client.call("chat.rename", conversation=self._begun(), title=title)

    async def _history(self, _: str) -> None:
        whole = await read(self._client, self._begun())
        self._print(whole["messages"])

    async def _save(self, name: str) -> None:
        path = Path(name)
        form = form_of(path, replace=False)
        answer = await self._client.call("chat.export", conversation=self._begun(), format=form)
        await asyncio.to_thread(write, path, answer["text"].encode())
        output.note(f"written to {path}")

    async def _quit(self, _: str) -> None:
        raise Left

    def _begun(self) -> str:
        if self.conversation is None:
            raise UsageError("nothing has been said yet")
        return self.conversation

    def _print(self, messages: list[dict[str, Any]]) -> None:
        for event in messages:
            for line in self._show.lines(event):
                print(line)

    def _short(self, agent: str) -> str:
        name, _, node = agent.partition("@")
        return name if node == self._client.node_id else agent


def complain(error: AiosError) -> None:
    """One line, and the conversation goes on."""
    line = f"! {one_line(in_words(error))}"
    print(output.Paint(sys.stderr)(line, "red"), file=sys.stderr, flush=True)
