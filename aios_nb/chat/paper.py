"""``aios.message``: the paper's envelope, from programs and from other nodes.

From another node the session says who asks; an envelope can only lower its rights. Its
conversation has its home there, and is a side log here.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Sequence

import msgspec

from aios_nb import params as p
from aios_nb.access import Principal
from aios_nb.chat import results
from aios_nb.chat.calls import MAX_HOPS, Call, Request, check_route, check_said
from aios_nb.chat.conversation import Conversation
from aios_nb.chat.couriers import checked
from aios_nb.chat.endings import Ended, outcome_of
from aios_nb.chat.log import no_such
from aios_nb.chat.reading import CONTEXT_BYTES
from aios_nb.chat.room import voice_of_node
from aios_nb.chat.runs import Run
from aios_nb.chat.talking import Talking
from aios_nb.envelope import (
    DEADLINE_DEFAULT_S,
    DEADLINE_MAX_S,
    NAME,
    NODE_ID,
    Content,
    Delta,
    Envelope,
    Event,
    FileRef,
    Outcome,
    Party,
    Routing,
    Sender,
    Status,
    Task,
    now_iso,
)
from aios_nb.errors import InvalidParams, NoSuchAgent, RpcError, TooLarge
from aios_nb.later import Later
from aios_nb.ports import Target

PROTOCOL_VERSION = "1.0"
CONTEXT_JSON_BYTES = 4 * CONTEXT_BYTES
"""What the context of an envelope may take with everything around its texts."""
_encode = msgspec.json.Encoder().encode

Lowered = Callable[[Principal, Sequence[str]], Principal | None]
"""The caller with the least rights of all nodes on the way; ``None`` if one is shut out."""


class Paper:
    """Their request in, their response out."""

    def __init__(self, talking: Talking, lowered: Lowered) -> None:
        self._talking = talking
        self._lowered = lowered

    def message(
        self, principal: Principal, params: p.Message
    ) -> Awaitable[Envelope | EnvelopeStream]:
        _check_task(params.envelope)
        if principal.is_node and not params.stream:
            answer = self._at_once(principal, params.envelope)
            if answer is not None:
                return answer
        return self._message(principal, params)

    def _at_once(self, principal: Principal, asked: Envelope) -> Later[Envelope] | None:
        """The straight road between nodes: no task waits for the answer.

        ``None`` for what takes the long one: first calls, repeats, and agents that are not there.
        """
        routing = asked.routing or Routing()
        _check_path(routing.path, principal.id)
        try:
            request = self._request_of_node(principal, asked, routing)
        except NoSuchAgent:
            return None
        try:
            call = self._talking.exchange.take_now(request)
        except RpcError:
            self._refused(request)
            raise
        if not isinstance(call, Call):
            return None
        answer = _Answer(call.runs[0], asked, self._talking.node_id)
        later: Later[Envelope] = Later()

        def settled() -> None:
            try:
                if call.refusal is not None:
                    answer.found = self._talking.exchange.repeats.repeat_of(call, request)[0]
                envelope = answer.envelope()
            except Exception as error:  # noqa: BLE001 - for who asked
                later.come(None, error)
            else:
                later.come(envelope)

        call.runs[0].when_settled(settled)
        return later

    async def _message(self, principal: Principal, params: p.Message) -> Envelope | EnvelopeStream:
        asked = params.envelope
        routing = asked.routing or Routing()
        try:
            if principal.is_node:
                _check_path(routing.path, principal.id)
                request = self._request_of_node(principal, asked, routing)
            else:
                request = await self._request_of_program(principal, asked, routing)
        except NoSuchAgent:
            # The agent may be gone since: what was asked before is still known.
            message_id = asked.message_id
            repeats = self._talking.exchange.repeats
            if message_id is None or not repeats.knows(principal, message_id):
                raise
            taken = repeats.find(principal, message_id)
            check_said(taken, _ref(asked.recipient), asked.content.task or "")
        else:
            talking = self._talking
            try:
                taken = await talking.committed(await talking.exchange.take(request), request)
            except RpcError:
                self._refused(request)
                raise
        found = taken.runs[0] if isinstance(taken, Call) else taken[0]
        answer = _Answer(found, asked, self._talking.node_id)
        if params.stream:
            return EnvelopeStream(answer)
        return await answer.settled()

    def _refused(self, request: Request) -> None:
        """A conversation that was begun for this goes with it."""
        if request.conversation is not None:
            self._talking.log.forget_unstored(request.conversation)

    def _request_of_node(self, principal: Principal, asked: Envelope, routing: Routing) -> Request:
        talking, content = self._talking, asked.content
        path = tuple(routing.path) or (principal.id,)
        lowered = self._lowered(principal, path)
        if lowered is None:
            raise NoSuchAgent(f"no such agent: {_ref(asked.recipient)}")
        # This node passes nothing on.
        target = talking.finder.local(_ref(asked.recipient), lowered)
        return self._request(
            lowered,
            voice_of_node(lowered, asked.sender.id, asked.sender.type),
            target,
            asked,
            routing,
            path,
            checked(content.files, talking.file_bytes) if content.files else (),
            self._context(lowered, content.context) if content.context else (),
        )

    def _context(self, caller: Principal, events: Sequence[Event]) -> tuple[Event, ...]:
        """What was said before, with the files that this node may read here.

        Others are left out: an agent that reads what it is shown must not read ours for them.
        """
        if len(_encode(events)) > CONTEXT_JSON_BYTES:
            raise TooLarge(f"content.context may have {CONTEXT_BYTES >> 10} KB of text at most")
        may_read = self._talking.blobs.may_read
        return tuple(
            msgspec.structs.replace(
                event, files=tuple(file for file in event.files if may_read(file.sha256, caller))
            )
            if event.files
            else event
            for event in events
        )

    async def _request_of_program(
        self, principal: Principal, asked: Envelope, routing: Routing
    ) -> Request:
        talking = self._talking
        if routing.path and not principal.is_owner:
            raise InvalidParams(
                "routing.path is not for a token to say", hint="leave it out: the way begins here"
            )
        return self._request(
            principal,
            talking.voice(principal),
            await talking.find(_ref(asked.recipient), principal),
            asked,
            routing,
            tuple(routing.path),
            talking.blobs.check(asked.content.files or [], principal),
            None,
        )

    def _request(
        self,
        principal: Principal,
        sender: Sender,
        target: Target,
        asked: Envelope,
        routing: Routing,
        path: tuple[str, ...],
        files: tuple[FileRef, ...],
        context: tuple[Event, ...] | None,
    ) -> Request:
        content, node_id = asked.content, asked.recipient.node_id
        if node_id is not None and not target.id.endswith(f"@{node_id}"):
            raise NoSuchAgent(f"no such agent: {asked.recipient.id} on node {node_id[:40]}")
        max_hops = min(routing.max_hops, MAX_HOPS)
        check_route(path, target.id, max_hops)
        message_id = None if asked.message_id is None else p.check_id(asked.message_id)
        deadline_s = _deadline_s(routing)
        return Request(
            principal,
            sender,
            (target,),
            content.task or "",
            content.parameters if content.data is None else content.data,
            files,
            self._conversation(principal, target, asked.conversation_id),
            message_id,
            deadline_s,
            path,
            max_hops,
            context=context,
        )

    def _conversation(
        self, principal: Principal, target: Target, conversation_id: str | None
    ) -> Conversation | None:
        """Their conversation ids are chosen by the sender: a new one opens a conversation.

        Not for a token. Its owner may choose the same later, and would then be heard by it.
        """
        if conversation_id is None:
            return None
        p.check_id(conversation_id)
        log = self._talking.log
        theirs = ""
        if principal.is_node:
            theirs = conversation_id
            conversation_id, found = log.side(principal.id, theirs)
        else:
            found = log.get(conversation_id)
        if found is None and (principal.is_node or principal.is_owner):
            return log.new(
                principal.id, [target.id], conversation_id=conversation_id, theirs=theirs
            )
        if found is None or not found.visible_to(principal):
            raise no_such(conversation_id)
        return found


class _Answer:
    """The response envelope of a run, under way or over."""

    def __init__(self, found: Run | Ended, asked: Envelope, node_id: str) -> None:
        self.found = found
        self._asked = asked
        self._node_id = node_id

    async def settled(self) -> Envelope:
        """It when there is one; raises what the run ended with instead."""
        if isinstance(self.found, Run):
            await self.found.settled()
        return self.envelope()

    def envelope(self) -> Envelope:
        """The same when a caller need not wait any longer."""
        found, asked = self.found, self._asked
        question = None
        about: Task | Ended
        if isinstance(found, Run):
            if found.question is not None:
                outcome = Outcome(found.question, status=Status.INPUT_REQUIRED)
                question = found.question_id
            else:
                outcome = outcome_of(found)
            agent, about = found.task.agent, found.task
        else:
            result = results.ended(found)
            outcome = Outcome(result["text"], result["data"], result["files"])
            agent, about = found.agent, found
        routing = asked.routing or Routing()
        return Envelope(
            sender=Party(agent, "agent", node_id=self._node_id),
            recipient=asked.sender,
            message_type="response",
            content=_content(outcome, question),
            message_id=about.reply_id,
            conversation_id=about.conversation,
            protocol_version=PROTOCOL_VERSION,
            timestamp=now_iso(),
            routing=Routing(
                path=[*(routing.path or [self._node_id]), agent], max_hops=routing.max_hops
            ),
        )


class EnvelopeStream:
    """The reply as it is written, then the response envelope. Is a ``ports.Notices``."""

    notification = "chat.delta"
    result_first = False

    def __init__(self, answer: _Answer) -> None:
        self._answer = answer

    async def __aiter__(self) -> AsyncIterator[Delta]:
        found = self._answer.found
        if isinstance(found, Run):
            async for delta in found.deltas():
                if delta.done:
                    return  # the response says the rest
                yield delta

    async def result(self) -> Envelope:
        return await self._answer.settled()

    def close(self) -> None:
        """Nothing to let go of: a run does not depend on who listens."""


def _check_task(asked: Envelope) -> None:
    if asked.protocol_version not in {"", PROTOCOL_VERSION}:
        raise InvalidParams(
            f"protocol_version {asked.protocol_version[:20]} is not spoken here",
            hint=f"use {PROTOCOL_VERSION}",
        )
    if asked.message_type != "request":
        raise InvalidParams("aios.message takes a request")
    if asked.content.task is None:
        raise InvalidParams("content.task is missing")
    if asked.recipient.type != "agent":
        raise InvalidParams("the recipient of a task is an agent")


def _ref(party: Party) -> str:
    if party.node_id is not None and "@" not in party.id:
        return f"{party.id}@{party.node_id}"[:96]
    return party.id[:96]


def _check_path(path: Sequence[str], node_id: str) -> None:
    """Its end must be who asks: a node cannot leave itself out of what it passes on."""
    if len(path) == 1 and path[0] == node_id:
        return
    for place, step in enumerate(path):
        name, at, node = step.rpartition("@")
        if not NODE_ID.fullmatch(node) or (bool(at) == (place == 0)):
            raise InvalidParams(
                "routing.path is the opener's node id, then ids of agents (name@nodeid)"
            )
        if at and not NAME.fullmatch(name):
            raise InvalidParams(f"not an agent id: {step[:100]}")
    if path and path[-1].rpartition("@")[2] != node_id:
        raise InvalidParams("routing.path must end at the node that sends it")


def _content(outcome: Outcome, question: str | None) -> Content:
    return Content(
        result=outcome.text,
        status="success" if outcome.status is Status.DONE else outcome.status.value,
        data=outcome.data,
        files=list(outcome.files) or None,
        question=question,
    )


def _deadline_s(routing: Routing) -> float:
    if not isinstance(routing.deadline_ms, int):
        return DEADLINE_DEFAULT_S
    if not 0 < routing.deadline_ms <= DEADLINE_MAX_S * 1000:
        raise InvalidParams("routing.deadline_ms is between 1 and 86,400,000")
    return routing.deadline_ms / 1000
