"""``aios.message``: the envelope of *Planet as a Brain*, through the very same exchange."""

from __future__ import annotations

from aios_nb import params as p
from aios_nb.access import Principal
from aios_nb.chat import results
from aios_nb.chat.calls import Request, check_route
from aios_nb.chat.conversation import Conversation
from aios_nb.chat.endings import outcome_of
from aios_nb.chat.talking import Talking
from aios_nb.envelope import (
    DEADLINE_DEFAULT_S,
    DEADLINE_MAX_S,
    Content,
    Envelope,
    Outcome,
    Party,
    Routing,
    Status,
    now_iso,
)
from aios_nb.errors import InvalidParams, NoSuchAgent, RpcError
from aios_nb.ports import Target

PROTOCOL_VERSION = "1.0"


class Paper:
    """Their request in, their response out."""

    def __init__(self, talking: Talking) -> None:
        self._talking = talking

    async def message(self, principal: Principal, params: p.Message) -> Envelope:
        asked = params.envelope
        task = _task(asked)
        target = self._recipient(asked.recipient, principal)
        routing = asked.routing or Routing()
        check_route(routing.path, target.id, routing.max_hops)
        message_id = None if asked.message_id is None else p.check_id(asked.message_id)
        deadline_s = _deadline_s(routing)
        talking = self._talking
        files = talking.blobs.check(asked.content.files or [], principal)
        conversation = self._conversation(principal, target, asked.conversation_id)
        request = Request(
            principal,
            talking.voice(principal),
            (target,),
            task,
            asked.content.parameters,
            files,
            conversation,
            message_id,
            deadline_s,
            tuple(routing.path),
            routing.max_hops,
        )
        try:
            taken = await talking.committed(await talking.exchange.take(request), request)
        except RpcError:
            if conversation is not None:
                talking.log.forget_unstored(conversation)
            raise
        if isinstance(taken, list):
            result = results.ended(taken[0])
            outcome = Outcome(result["text"], result["data"], result["files"])
            conversation_id, reply_id = taken[0].conversation, taken[0].reply_id
        else:
            run = taken.runs[0]
            await run.settled()
            outcome = (
                Outcome(run.question, status=Status.INPUT_REQUIRED)
                if run.question is not None
                else outcome_of(run)
            )
            conversation_id, reply_id = run.conversation.id, run.task.reply_id
        return Envelope(
            sender=Party(target.id, "agent", node_id=talking.node_id),
            recipient=asked.sender,
            message_type="response",
            content=_content(outcome),
            message_id=reply_id,
            conversation_id=conversation_id,
            protocol_version=PROTOCOL_VERSION,
            timestamp=now_iso(),
            routing=Routing(
                path=[*(routing.path or [talking.node_id]), target.id], max_hops=routing.max_hops
            ),
        )

    def _recipient(self, party: Party, principal: Principal) -> Target:
        if party.type != "agent":
            raise InvalidParams("the recipient of a task is an agent")
        if party.node_id is not None and "@" not in party.id:
            return self._talking.finder.resolve(f"{party.id}@{party.node_id}", principal)
        target = self._talking.finder.resolve(party.id, principal)
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
        if log.get(conversation_id) is None:
            return log.new(principal.id, [target.id], conversation_id=conversation_id)
        return log.visible(conversation_id, principal)


def _task(asked: Envelope) -> str:
    if asked.protocol_version not in {"", PROTOCOL_VERSION}:
        raise InvalidParams(
            f"protocol_version {asked.protocol_version[:20]} is not spoken here",
            hint=f"use {PROTOCOL_VERSION}",
        )
    if asked.message_type != "request":
        raise InvalidParams("aios.message takes a request")
    if asked.content.task is None:
        raise InvalidParams("content.task is missing")
    return asked.content.task


def _content(outcome: Outcome) -> Content:
    return Content(
        result=outcome.text,
        status="success" if outcome.status is Status.DONE else outcome.status.value,
        data=outcome.data,
        files=list(outcome.files) or None,
    )


def _deadline_s(routing: Routing) -> float:
    if not isinstance(routing.deadline_ms, int):
        return DEADLINE_DEFAULT_S
    if not 0 < routing.deadline_ms <= DEADLINE_MAX_S * 1000:
        raise InvalidParams("routing.deadline_ms is between 1 and 86,400,000")
    return routing.deadline_ms / 1000
