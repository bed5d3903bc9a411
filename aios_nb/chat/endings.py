"""How a run ends, as it is written into the log and as it is read back."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from aios_nb.chat.log import Draft
from aios_nb.chat.runs import Run
from aios_nb.envelope import Event, Kind, Outcome, Status, Task, new_id
from aios_nb.errors import AgentFailed, Cancelled, RpcError, Unreachable, from_wire


class Ended(msgspec.Struct, frozen=True):
    """A run that ended earlier, as the log tells it."""

    conversation: str
    message_id: str
    reply_id: str
    agent: str
    outcome: Outcome | None
    error: RpcError | None
    asked: str = ""
    """The text of the request."""

    @property
    def status(self) -> Status:
        return Status.DONE if self.error is None else status_of(self.error)


def reply_draft(run: Run, outcome: Outcome) -> Draft:
    """A run that ended well: the reply says it all."""
    task = run.task
    return Draft(
        task.reply_id,
        Kind.MESSAGE,
        run.sender,
        outcome.text,
        outcome.data,
        outcome.files,
        task.message_id,
        Status.DONE,
    )


def failure_drafts(run: Run, error: RpcError) -> list[Draft]:
    """A run that ended otherwise: what was said before, if anything, and why it ended."""
    status = status_of(error)
    end = status_draft(run, status, error.message, error=error.to_wire())
    if not run.length:
        return [end]
    said = Draft(
        run.task.reply_id,
        Kind.MESSAGE,
        run.sender,
        run.text,
        ref=run.task.message_id,
        status=status,
    )
    return [said, end]


def status_draft(run: Run, status: Status, text: str = "", **data: Any) -> Draft:
    """A row that tells what became of a message; ``reply_id`` says which run it speaks of."""
    return Draft(
        new_id("s"),
        Kind.STATUS,
        run.sender,
        text,
        {"reply_id": run.task.reply_id, **data},
        ref=run.task.message_id,
        status=status,
    )


def read_end(
    request: Event, known_as: str, reply_id: str, agent: str, rows: Sequence[Event]
) -> Ended:
    """The end of a run from the rows that speak of it."""
    outcome: Outcome | None = None
    error: RpcError | None = None
    for row in rows:
        if row.kind is Kind.STATUS and row.status is not None and row.status.is_final:
            error = from_wire(row.data["error"])
        elif row.kind is Kind.MESSAGE and row.status is Status.DONE:
            outcome = Outcome(row.text, row.data, row.files)
    if outcome is None and error is None:
        # Its end could not be written (a full disk); the next start will put it into the log.
        error = interrupted()
    return Ended(known_as, request.message_id, reply_id, agent, outcome, error, request.text)


def status_of(error: RpcError) -> Status:
    if isinstance(error, Cancelled):
        return Status.CANCELLED
    if error.data.get("status") == Status.INTERRUPTED:
        return Status.INTERRUPTED
    return Status.FAILED


def interrupted(why: str = "the node stopped while the agent was at work") -> AgentFailed:
    return AgentFailed(
        why,
        hint="it may have done part of its work; send it again with a new id if that is safe",
        status=Status.INTERRUPTED.value,
        ran="unknown",
    )


def unreachable(agent: str, reason: str) -> Unreachable:
    """No attempt reached the agent's node: nothing ran."""
    return Unreachable.node_of(agent, reason, ran="no")


def outcome_of(run: Run) -> Outcome:
    """What the agent answered; raises what the run ended with instead."""
    if run.outcome is None:
        raise with_ids(run.error or interrupted(), run.task)
    return run.outcome


def with_ids(error: RpcError, about: Task | Ended) -> RpcError:
    """A fresh copy of an error that names what it is about."""
    fresh = type(error)(error.message, hint=error.hint)
    fresh.data = {
        **error.data,
        "conversation": about.conversation,
        "message_id": about.message_id,
        "reply_id": about.reply_id,
        "status": status_of(error).value,
    }
    return fresh
