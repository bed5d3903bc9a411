"""Settles what the last life of a node left open.

A run without an end was cut. If it had begun, nobody knows how far it came: it becomes
``interrupted``. If it had not begun, or its agent is declared ``idempotent``, it goes on as soon
as its agent is hosted again, within its deadline.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

from aios_nb.access import Principal
from aios_nb.chat.calls import Call, CallNote, PlannedRun, read_note
from aios_nb.chat.conversation import Conversation
from aios_nb.chat.endings import failure_drafts, interrupted
from aios_nb.chat.exchange import Exchange
from aios_nb.chat.log import Log
from aios_nb.chat.reading import Reader
from aios_nb.chat.runs import Run
from aios_nb.envelope import Event, Status, Task
from aios_nb.errors import Cancelled

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
            run.started = not plan.queued or plan.reply_id in states
            run.patient = True  # whoever asked has gone
            run.context = note.context
            if principal is None:
                gone = Cancelled("whoever asked may not any more", ran="unknown")
                await log.append(conversation, *failure_drafts(run, gone))
            elif plan.remote:
                run.started = False  # its host says how far it came
                call.runs.append(run)
            elif run.started and not plan.idempotent:
                await log.append(conversation, *failure_drafts(run, interrupted()))
            else:
                call.runs.append(run)
        if call.runs:
            exchange.resume(call, event)


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
    left_s = max(0.0, note.deadline_ms / 1000 - time.time())
    deadline = asyncio.get_running_loop().time() + left_s
    return Run(task, None, conversation, principal, deadline, exchange.backstage)
