"""Settles what the last life of a node left open.

A run without an end was cut. If it had begun, nobody knows how far it came: it becomes
``interrupted``. If it had not begun, or its agent is declared ``idempotent``, it goes on as soon
as its agent is hosted again, within its deadline. What an agent asked of another one does not: who
waited for the answer has gone.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence
from datetime import datetime

from aios_nb.access import Principal
from aios_nb.chat.backstage import ASK_USER_S
from aios_nb.chat.calls import Call, CallNote, PlannedRun, read_note
from aios_nb.chat.conversation import Conversation
from aios_nb.chat.endings import failure_drafts, interrupted
from aios_nb.chat.exchange import Exchange
from aios_nb.chat.log import Log
from aios_nb.chat.reading import Reader
from aios_nb.chat.runs import Run
from aios_nb.envelope import Event, Status, Task
from aios_nb.errors import Cancelled, RpcError

Again = Callable[[Principal, Sequence[str]], Principal | None]
"""A caller of before with the rights it has now; ``None`` if it has none any more."""


async def recover(exchange: Exchange, log: Log, reader: Reader, again: Again) -> None:
    """Settle every call that is not known to be over."""
    settled = int(log.meta("settled_upto") or 0)
    states = reader.run_states(settled)
    for cursor, number, blob in reader.unsettled(settled):
        note = read_note(blob)
        open_runs = [plan for plan in note.runs if not _is_over(states.get(plan.reply_id))]
        if not open_runs:
            continue
        event = reader.at(cursor)
        conversation = None if event is None else log.get(event.conversation)
        if event is None or conversation is None:
            continue
        call = Call((number, event.message_id), conversation)
        call.plans = note.runs
        before = Principal(note.kind, note.caller)
        principal = again(before, note.path)
        for plan in open_runs:
            run = _run(exchange, note, plan, event, conversation, principal or before)
            if plan.reply_id in states:
                run.deadline += _thought_s(reader.outcome(conversation.n, event.seq, plan.reply_id))
            # Of one that was to go elsewhere, only its host knows whether it was brought there.
            run.started = plan.remote or not plan.queued or plan.reply_id in states
            run.patient = True  # whoever asked has gone
            run.context = note.context
            end = _end(run, plan, note, allowed=principal is not None)
            if end is None:
                call.runs.append(run)
            else:
                await log.append(conversation, *failure_drafts(run, end))
        if call.runs:
            exchange.resume(call, event)


def _end(run: Run, plan: PlannedRun, note: CallNote, *, allowed: bool) -> RpcError | None:
    """How a run that was cut ends now; ``None`` if it goes on."""
    if not allowed:
        return Cancelled("whoever asked may not any more", ran="unknown")
    if run.conversation.parent is not None and note.path:
        return interrupted("the node stopped, and with it the agent that asked")
    cut = run.started and not plan.remote and not plan.idempotent
    return interrupted() if cut else None


def _is_over(status: Status | None) -> bool:
    return status is not None and status.is_final


def _run(
    exchange: Exchange,
    note: CallNote,
    plan: PlannedRun,
    event: Event,
    conversation: Conversation,
    principal: Principal,
) -> Run:
    task = Task(
        plan.agent,
        event.text,
        event.message_id,
        plan.reply_id,
        conversation.known_as,
        event.sender,
        note.caller,
        event.data,
        event.files,
        note.path or (exchange.node_id,),
        note.max_hops,
    )
    left_s = note.deadline_ms / 1000 - time.time()
    deadline = asyncio.get_running_loop().time() + left_s
    return Run(task, None, conversation, principal, deadline, exchange.backstage)


def _thought_s(rows: Sequence[Event]) -> float:
    """How long a person was asked something: the deadline waited meanwhile."""
    total_s, asked_s = 0.0, None
    for row in rows:
        at_s = datetime.fromisoformat(row.at).timestamp()
        if asked_s is not None:
            total_s += min(at_s - asked_s, ASK_USER_S)
        asked_s = at_s if row.status is Status.INPUT_REQUIRED else None
    if asked_s is not None:
        total_s += min(time.time() - asked_s, ASK_USER_S)
    return total_s
