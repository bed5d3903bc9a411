"""``aios.message``: the paper's envelope, from programs and from other nodes.

From another node the session says who asks; an envelope can only lower its rights. Its
conversation has its home there, and is a side log here.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence

import msgspec

from aios_nb import params as p
from aios_nb.access import Principal
from aios_nb.blobs import SHA256, safe_name
from aios_nb.chat import results
from aios_nb.chat.calls import MAX_HOPS, Call, Request, check_route, check_said
from aios_nb.chat.conversation import Conversation, side_id
from aios_nb.chat.endings import Ended, outcome_of
from aios_nb.chat.reading import CONTEXT_BYTES
from aios_nb.chat.runs import Run
from aios_nb.chat.talking import Talking
from aios_nb.envelope import (
    DEADLINE_DEFAULT_S,
    DEADLINE_MAX_S,
    FILES_PER_MESSAGE,
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
    Status,
    Task,
    now_iso,
)
from aios_nb.errors import InvalidParams, NoSuchAgent, RpcError, TooLarge
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

    async def message(self, principal: Principal, params: p.Message) -> Envelope | EnvelopeStream:
        asked = params.envelope
        _task(asked)
        routing = asked.routing or Routing()
        if principal.is_node:
            _check_path(routing.path, principal.id)
        try:
            target, request = await self._request(principal, asked, routing)
        except NoSuchAgent:
            # The agent may be gone since: what was asked before is still known.
            message_id = asked.message_id
            repeats = self._talking.exchange.repeats
            if message_id is None or not repeats.knows(principal, message_id):
                raise
            taken = repeats.find(principal, message_id)
            check_said(taken, _ref(asked.recipient), asked.content.task or "")
        else:
            taken = await self._take(target, request)
        found = taken.runs[0] if isinstance(taken, Call) else taken[0]
        answer = _Answer(found, asked, self._talking.node_id)
        if params.stream:
            return EnvelopeStream(answer)
        return await answer.envelope()

    async def _take(self, target: Target, request: Request) -> Call | list[Ended]:
        talking = self._talking
        check_route(request.path, target.id, request.max_hops)
        try:
            return await talking.committed(await talking.exchange.take(request), request)
        except RpcError:
            if request.conversation is not None:
                talking.log.forget_unstored(request.conversation)
            raise

    async def _request(
        self, principal: Principal, asked: Envelope, routing: Routing
    ) -> tuple[Target, Request]:
        talking = self._talking
        content, far = asked.content, principal.is_node
        path = tuple(routing.path)
        if far:
            path = path or (principal.id,)
            lowered = self._lowered(principal, path)
            if lowered is None:
                raise NoSuchAgent(f"no such agent: {_ref(asked.recipient)}")
            principal = lowered
        target = await self._recipient(asked.recipient, principal)
        request = Request(
            principal,
            talking.voice_of_node(principal, asked.sender.id, asked.sender.type)
            if far
            else talking.voice(principal),
            (target,),
            content.task or "",
            content.parameters if content.data is None else content.data,
            _theirs(content.files or (), talking.file_bytes)
            if far
            else talking.blobs.check(content.files or [], principal),
            self._conversation(principal, target, asked.conversation_id),
            None if asked.message_id is None else p.check_id(asked.message_id),
            _deadline_s(routing),
            path,
            min(routing.max_hops, MAX_HOPS),
            context=_context(content.context) if far else None,
        )
        return target, request

    async def _recipient(self, party: Party, principal: Principal) -> Target:
        if party.type != "agent":
            raise InvalidParams("the recipient of a task is an agent")
        finder = self._talking.finder
        ref = _ref(party)
        if principal.is_node:
            target = finder.local(ref, principal)  # this node passes nothing on
        else:
            target = await self._talking.find(ref, principal)
        if party.node_id is not None and not target.id.endswith(f"@{party.node_id}"):
            raise NoSuchAgent(f"no such agent: {party.id} on node {party.node_id[:40]}")
        return target

    def _conversation(
        self, principal: Principal, target: Target, conversation_id: str | None
    ) -> Conversation | None:
        """Their conversation ids are chosen by the sender: a new one opens a conversation."""
        if conversation_id is None:
            return None
        p.check_id(conversation_id)
        log = self._talking.log
        theirs = ""
        if principal.is_node:
            theirs = conversation_id
            conversation_id = side_id(principal.id, theirs)
        if log.get(conversation_id) is None:
            return log.new(
                principal.id, [target.id], conversation_id=conversation_id, theirs=theirs
            )
        return log.visible(conversation_id, principal)


class _Answer:
    """The response envelope of a run, under way or over."""

    def __init__(self, found: Run | Ended, asked: Envelope, node_id: str) -> None:
        self.found = found
        self._asked = asked
        self._node_id = node_id

    async def envelope(self) -> Envelope:
        found, asked = self.found, self._asked
        question = None
        about: Task | Ended
        if isinstance(found, Run):
            await found.settled()
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
        return await self._answer.envelope()

    def close(self) -> None:
        """Nothing to let go of: a run does not depend on who listens."""


def _task(asked: Envelope) -> None:
    if asked.protocol_version not in {"", PROTOCOL_VERSION}:
        raise InvalidParams(
            f"protocol_version {asked.protocol_version[:20]} is not spoken here",
            hint=f"use {PROTOCOL_VERSION}",
        )
    if asked.message_type != "request":
        raise InvalidParams("aios.message takes a request")
    if asked.content.task is None:
        raise InvalidParams("content.task is missing")


def _ref(party: Party) -> str:
    if party.node_id is not None and "@" not in party.id:
        return f"{party.id}@{party.node_id}"[:96]
    return party.id[:96]


def _check_path(path: Sequence[str], node_id: str) -> None:
    """Its end must be who asks: a node cannot leave itself out of what it passes on."""
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


def _theirs(files: Sequence[FileRef], file_bytes: int) -> tuple[FileRef, ...]:
    """References to files that are still at the sender's node."""
    if len(files) > FILES_PER_MESSAGE:
        raise TooLarge(f"a message may carry {FILES_PER_MESSAGE} files at most")
    for file in files:
        if not SHA256.fullmatch(file.sha256):
            raise InvalidParams("a file is named by the lower-case hex SHA-256 of its bytes")
        if not 0 <= file.size <= file_bytes:
            raise TooLarge(f"a file may have {file_bytes >> 20} MB at most")
    return tuple(FileRef(safe_name(f.name), f.mime[:100], f.size, f.sha256) for f in files)


def _context(events: Sequence[Event] | None) -> tuple[Event, ...]:
    if not events:
        return ()
    if len(_encode(events)) > CONTEXT_JSON_BYTES:
        raise TooLarge(f"content.context may have {CONTEXT_BYTES >> 10} KB of text at most")
    return tuple(events)


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
