"""Conversations as things: marked, joined, renamed, listed, read, watched, exported, deleted."""

from __future__ import annotations

from typing import Any

from aios_nb import params as p
from aios_nb.access import Principal
from aios_nb.chat.calls import check_size
from aios_nb.chat.conversation import Conversation
from aios_nb.chat.export import export
from aios_nb.chat.listening import LogWatch
from aios_nb.chat.log import Draft
from aios_nb.chat.room import Room
from aios_nb.envelope import SENDER_ID, Event, Kind, Sender, new_id
from aios_nb.errors import Cancelled, InvalidParams, NotAllowed
from aios_nb.ports import Notices
from aios_nb.richtext import one_line


class Keeping(Room):
    """What can be done with a conversation besides talking in it."""

    # Marks on messages ---------------------------------------------------------------------

    async def edit(self, principal: Principal, params: p.Edit) -> dict[str, Any]:
        check_size(params.text)
        conversation = self._with_message(principal, params.conversation, params.message_id)
        writer = self.reader.sender_of(conversation, params.message_id)
        if writer != principal.id and (principal.is_owner or not principal.speaks_for(writer)):
            raise NotAllowed("only who wrote a message may edit it")
        draft = _mark(Kind.EDIT, self.voice(principal, writer), params, params.text)
        return await self._marked(conversation, draft, again=params.event_id is not None)

    async def react(self, principal: Principal, params: p.React) -> dict[str, Any]:
        conversation = self._with_message(principal, params.conversation, params.message_id)
        sender = self.voice(principal, params.sender)
        draft = _mark(Kind.REACTION, sender, params, params.reaction)
        return await self._marked(conversation, draft, again=params.event_id is not None)

    def _with_message(self, principal: Principal, name: str, message_id: str) -> Conversation:
        conversation = self.log.visible(name, principal)
        if message_id not in conversation.ids:
            raise InvalidParams(f"no such message in this conversation: {message_id}")
        return conversation

    async def _marked(
        self, conversation: Conversation, draft: Draft, *, again: bool
    ) -> dict[str, Any]:
        """Put it into the log. ``again``: its id was chosen by who calls, and may be there."""
        if not again:
            return await self._append(conversation, draft)
        async with conversation.changing():
            if draft.message_id not in conversation.ids:
                return await self._append(conversation, draft)
            there = self.reader.event(conversation, draft.message_id)
            said = (draft.kind, draft.sender, draft.ref, draft.text)
            if there is None or (there.kind, there.sender, there.ref, there.text) != said:
                raise InvalidParams(f"the id {draft.message_id} was used for something else")
            return _placed(conversation, draft, there.seq)

    async def _append(self, conversation: Conversation, draft: Draft) -> dict[str, Any]:
        seq, _ = await self.log.append(conversation, draft)
        return _placed(conversation, draft, seq)

    # Members ---------------------------------------------------------------------------------

    async def join(self, principal: Principal, params: p.Join) -> dict[str, Any]:
        """Bring an agent or a person in. An agent is shown what is said from now on."""
        conversation = self.log.visible(params.conversation, principal)
        who = await self._member(params.who, principal)
        async with conversation.changing():
            agents, members = list(conversation.agents), set(conversation.members)
            if who in agents or who in members:
                raise InvalidParams(f"{params.who} is in this conversation already")
            if _is_agent(who):
                agents.append(who)
            else:
                members.add(who)
            await self.log.change(conversation, agents=agents, members=members)
            name = "" if _is_agent(who) else one_line(params.name)
            draft = Draft(new_id("e"), Kind.JOIN, self.voice(principal), name, ref=who)
            return await self._append(conversation, draft)

    async def leave(self, principal: Principal, params: p.Member) -> dict[str, Any]:
        conversation = self.log.visible(params.conversation, principal)
        async with conversation.changing():
            who = await self._member(params.who, principal, conversation)
            if who not in conversation.agents and who not in conversation.members:
                raise InvalidParams(f"{params.who} is not in this conversation")
            await self.log.change(
                conversation,
                agents=[agent for agent in conversation.agents if agent != who],
                members=conversation.members - {who},
            )
            draft = Draft(new_id("e"), Kind.LEAVE, self.voice(principal), ref=who)
            return await self._append(conversation, draft)

    async def _member(
        self, who: str, principal: Principal, conversation: Conversation | None = None
    ) -> str:
        if ":" in who or who.startswith("owner@"):
            if not SENDER_ID.fullmatch(who):
                raise InvalidParams(f"not a sender id: {who[:80]}")
            if not principal.is_owner and not principal.speaks_for(who):
                raise NotAllowed("you bring in and take out only people you speak for")
            return who
        if conversation is not None:
            names = {agent.partition("@")[0]: agent for agent in reversed(conversation.agents)}
            who = names.get(who, who)
            opened = principal.is_owner or principal.id == conversation.opener
            if opened and who in conversation.agents:
                return who  # also when it is offered no more
            return self.finder.resolve(who, principal).id
        return (await self.finder.check(who, principal)).id

    # The whole of it -------------------------------------------------------------------------

    async def rename(self, principal: Principal, params: p.Rename) -> dict[str, Any]:
        conversation = self.log.visible(params.conversation, principal)
        async with conversation.changing():
            await self.log.change(conversation, title=params.title)
        return {"conversation": conversation.id, "title": params.title}

    async def delete(self, principal: Principal, params: p.Conversation) -> dict[str, Any]:
        """Stop what runs in it, then remove it and everything said in it."""
        conversation = self.log.visible(params.conversation, principal)
        if not principal.is_owner and principal.id != conversation.opener:
            raise NotAllowed("only who opened a conversation may delete it")
        conversation.gone = True  # nothing new begins in it from here on
        try:
            while runs := self.exchange.runs_in(conversation):
                for run in runs:
                    run.stop(Cancelled("the conversation was deleted"))
                await runs[0].changed()
            await self.retention.delete(conversation)
        except BaseException:
            conversation.gone = conversation.n < 0  # it stays, unless it was deleted all the same
            raise
        return {"conversation": conversation.id, "deleted": True}

    async def list(self, principal: Principal, params: p.List) -> dict[str, Any]:
        await self.log.save_touched()
        return {"conversations": self.reader.listing(principal, params.limit, params.before)}

    def history(self, principal: Principal, params: p.History) -> dict[str, Any]:
        """A page of it; ``more`` says that there is another one behind the last row.

        ``running`` is what is under way, whoever asked for it.
        """
        conversation = self.log.visible(params.conversation, principal)
        events, more = self.reader.history(conversation, params.after, params.limit)
        running = [
            {
                "message_id": run.task.message_id,
                "reply_id": run.task.reply_id,
                "agent": run.task.agent,
                "status": run.status,
            }
            for run in self.exchange.runs_in(conversation)
        ]
        return {
            "conversation": conversation.id,
            "title": conversation.title,
            "agents": conversation.agents,
            "members": sorted(conversation.members),
            "messages": events,
            "more": more,
            "running": running,
        }

    def watch(self, principal: Principal, params: p.Watch) -> Notices:
        conversation = None
        if params.conversation is not None:
            conversation = self.log.visible(params.conversation, principal)
        after = self.log.cursor if params.after is None else min(params.after, self.log.cursor)
        if conversation is not None and params.after is not None:
            after = self.reader.cursor_of(conversation, params.after)
        return LogWatch(self.log, self.reader, conversation, principal, after)

    def export(self, principal: Principal, params: p.Export) -> dict[str, Any]:
        conversation = self.log.visible(params.conversation, principal)
        events: list[Event] = []
        more = True
        while more:
            page, more = self.reader.history(conversation, events[-1].seq if events else 0)
            events += page
        return export(conversation, events, params.format, principal.id)


def _mark(kind: Kind, sender: Sender, params: p.Edit | p.React, text: str) -> Draft:
    return Draft(params.event_id or new_id("e"), kind, sender, text, ref=params.message_id)


def _placed(conversation: Conversation, draft: Draft, seq: int) -> dict[str, Any]:
    return {"conversation": conversation.id, "message_id": draft.message_id, "seq": seq}


def _is_agent(who: str) -> bool:
    """And not a person of another node: ``owner@NODEID``, ``tg:1:2@NODEID``."""
    return "@" in who and ":" not in who and not who.startswith("owner@")
