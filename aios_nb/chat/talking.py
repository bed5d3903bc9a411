"""Talking to agents: ``chat.open send stream post answer cancel``.

Each method takes the authenticated caller and its parameters, and gives the result's fields.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import Any

from aios_nb import params as p
from aios_nb.access import Principal
from aios_nb.chat import results
from aios_nb.chat.calls import Call, Request, check_said
from aios_nb.chat.conversation import Conversation
from aios_nb.chat.endings import Ended
from aios_nb.chat.log import DuplicateCall
from aios_nb.chat.reading import fold
from aios_nb.chat.room import Room
from aios_nb.chat.runs import Run
from aios_nb.envelope import Sender
from aios_nb.errors import Cancelled, InvalidParams, NoSuchAgent, NotAllowed
from aios_nb.ports import Notices, Target

_MENTION = re.compile(r"(?<![^\s(\[{,;:!?\"'])@([a-z0-9][a-z0-9_-]{0,47}(?:@[a-z2-7]{12,32})?)")
_HOW_TO_STREAM = "chat.stream takes agent and text, or a message_id to go on"


class Talking(Room):
    """Asking, answering, stopping."""

    async def open(self, principal: Principal, params: p.Open) -> dict[str, Any]:
        agents = [(await self.finder.check(ref, principal)).id for ref in params.agents]
        conversation = self.log.new(principal.id, agents, title=params.title or "")
        await self.log.save(conversation)
        return {"conversation": conversation.id}

    async def send(self, principal: Principal, params: p.Send) -> dict[str, Any]:
        taken = await self._take(principal, params, wait=params.wait)
        if isinstance(taken, list):
            return results.ended(taken[0])
        run = taken.runs[0]
        return results.settled(run) if params.wait else results.accepted(run)

    async def stream(self, principal: Principal, params: p.Stream) -> Notices:
        if params.agent is not None and params.text is not None:
            if principal.is_node:
                raise NotAllowed("a node asks by aios.message", hint="chat.stream goes on with it")
            return results.stream(await self._take(principal, params), params.offset)
        if params.agent is not None or params.text is not None or params.message_id is None:
            raise InvalidParams(_HOW_TO_STREAM)
        found = self._find(principal, params.message_id)
        return results.stream(found, params.offset, params.question or "")

    async def post(self, principal: Principal, params: p.Post) -> dict[str, Any]:
        conversation = self.log.visible(params.conversation, principal)
        request = Request(
            principal,
            self.voice(principal, params.sender),
            await self._addressed(conversation, params.text, principal),
            params.text,
            None,
            self.blobs.check(params.files, principal),
            conversation,
            params.message_id,
            params.deadline_s,
            patient=True,
        )
        taken = await self.committed(await self.exchange.take(request), request)
        if isinstance(taken, Call):
            replies = [(plan.agent, plan.reply_id) for plan in taken.plans]
            message_id, seq = taken.message_id, taken.seq
        else:
            replies = [(end.agent, end.reply_id) for end in taken]
            message_id = params.message_id or ""
            seq = self.reader.seq_of(conversation, message_id)
        return {
            "conversation": conversation.id,
            "message_id": message_id,
            "seq": seq,
            "replies": [{"agent": agent, "reply_id": reply_id} for agent, reply_id in replies],
        }

    async def _addressed(
        self, conversation: Conversation, text: str, principal: Principal
    ) -> Sequence[Target]:
        """The agents a message is for: those it mentions, else the conversation's default."""
        found: dict[str, Target] = {}
        for name in _MENTION.findall(text):
            # A conversation's own agents first: one of them may live elsewhere.
            ref = next((a for a in conversation.agents if a.partition("@")[0] == name), name)
            try:
                target = self.finder.resolve(ref, principal)
            except NoSuchAgent:
                continue  # an @ that is just text
            found[target.id] = target
        if not found and conversation.agents:
            target = await self.find(conversation.agents[0], principal)
            found[target.id] = target
        return list(found.values())

    async def answer(self, principal: Principal, params: p.Answer) -> dict[str, Any]:
        run = self._waiting(principal, params.message_id, params.question)
        if params.question is None or params.question not in run.answered:
            sender = self._answerer(run, principal, params.sender)
            await self.exchange.backstage.answer(run, params.text, sender, params.event_id)
        if not params.wait:
            return results.accepted(run)
        await run.settled()
        return results.settled(run)

    async def cancel(self, principal: Principal, params: p.MessageRef) -> dict[str, Any]:
        """Stop what is under way; what is over stays as it ended."""
        found = self._find(principal, params.message_id)
        if isinstance(found, list):
            status = fold(end.status for end in found)
        else:
            runs = [found] if isinstance(found, Run) else found.runs
            for run in runs:
                run.stop(Cancelled("cancelled"))
            for run in runs:
                while not run.is_over:
                    await run.changed()
            status = fold(run.status for run in runs)
        return {"message_id": params.message_id, "status": status}

    # Taking and finding -------------------------------------------------------------------

    async def _take(
        self, principal: Principal, params: p.Send | p.Stream, *, wait: bool = False
    ) -> Call | list[Ended]:
        """The call, in the log; or, if the same was sent before, what became of it."""
        request: Request | None = None
        try:
            request = await self._request(principal, params)
        except NoSuchAgent:
            # The agent may be gone since: what was asked before is still known.
            if params.message_id is None or not self.exchange.repeats.knows(
                principal, params.message_id
            ):
                raise
            taken = self.exchange.repeats.find(principal, params.message_id)
            check_said(taken, params.agent or "", params.text or "")
        else:
            taken = await self.exchange.take(request)
        if wait and isinstance(taken, Call):
            await taken.runs[0].settled()
        return taken if request is None else await self.committed(taken, request)

    async def committed(self, taken: Call | list[Ended], request: Request) -> Call | list[Ended]:
        """The same call when it is in the log; or, if its id was used before, how that ended."""
        if isinstance(taken, Call):
            try:
                await taken.committed()
            except DuplicateCall:
                return self.exchange.repeats.repeat_of(taken, request)
        return taken

    async def _request(self, principal: Principal, params: p.Send | p.Stream) -> Request:
        if params.agent is None or params.text is None:
            raise InvalidParams(_HOW_TO_STREAM)
        conversation = None
        if params.conversation is not None:
            conversation = self.log.visible(params.conversation, principal)
        return Request(
            principal,
            self.voice(principal, params.sender if isinstance(params, p.Send) else None),
            (await self.find(params.agent, principal),),
            params.text,
            params.data,
            self.blobs.check(params.files, principal) if params.files else (),
            conversation,
            params.message_id,
            params.deadline_s,
            patient=not params.wait,
        )

    async def find(self, ref: str, principal: Principal) -> Target:
        """The agent, on this node or another one."""
        return await self.finder.seek(ref, principal)

    def _find(self, principal: Principal, message_id: str) -> Call | Run | list[Ended]:
        """An earlier call, by its id; or one of its runs, by its reply's."""
        found = self.exchange.repeats.by_reply(principal, message_id) or self.exchange.repeats.find(
            principal, message_id
        )
        if not found or (isinstance(found, Call) and not found.runs):
            raise InvalidParams(f"message {message_id} asked nobody: nobody is at work on it")
        if isinstance(found, Call):
            self.exchange.orphans.found(found)
        elif isinstance(found, Run):
            self.exchange.orphans.found_run(found)
        return found

    def _answerer(self, run: Run, principal: Principal, sender: str | None) -> Sender:
        """Who answers: at a remote home, whoever asked."""
        return run.task.sender if principal.is_node else self.voice(principal, sender)

    def _waiting(self, principal: Principal, message_id: str, question: str | None) -> Run:
        """The run that asks; or, if that very question was answered before, the one that did."""
        found = self._find(principal, message_id)
        runs = [] if isinstance(found, list) else [found] if isinstance(found, Run) else found.runs
        for run in runs:
            if question is not None and question in run.answered:
                return run
            if run.question is not None and question in {None, run.question_id}:
                return run
        raise InvalidParams(
            f"message {message_id} waits for no answer", hint="chat.history shows what waits"
        )
