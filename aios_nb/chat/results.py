"""What ``chat.send`` and its kin give back: the fields of the contract."""

from __future__ import annotations

from typing import Any

from aios_nb.chat.calls import Call
from aios_nb.chat.endings import Ended, interrupted, outcome_of, with_ids
from aios_nb.chat.listening import ReplyStream, StoredStream
from aios_nb.chat.runs import Run
from aios_nb.envelope import Delta, Outcome, Status, Task
from aios_nb.ports import Notices


def accepted(run: Run) -> dict[str, Any]:
    """It is in the log; the answer comes later."""
    return _fields(run.task, Status.ACCEPTED, Outcome())


def settled(run: Run) -> dict[str, Any]:
    """The result of a run that is over or asks something; raises its error."""
    if run.question is not None:
        fields = _fields(run.task, Status.INPUT_REQUIRED, Outcome(run.question))
        return {**fields, "question": run.question_id}
    return _fields(run.task, Status.DONE, outcome_of(run))


def ended(end: Ended) -> dict[str, Any]:
    """The result of a run that ended earlier; raises its error."""
    if end.outcome is None:
        raise with_ids(end.error or interrupted(), end)
    return _fields(end, Status.DONE, end.outcome)


def stream(found: Call | Run | list[Ended], offset: int, beyond: str = "") -> Notices:
    """A reply as it is written, or as it was."""
    if isinstance(found, Run):
        return ReplyStream(found, offset, settled, beyond)
    if isinstance(found, Call):
        return ReplyStream(found.runs[0], offset, settled, beyond)
    end = found[0]
    delta = None
    if end.outcome is not None:
        start = min(offset, len(end.outcome.text))
        delta = Delta(end.message_id, end.reply_id, start, end.outcome.text[start:], done=True)
    return StoredStream(delta, lambda: ended(end))


def _fields(about: Task | Ended, status: Status, outcome: Outcome) -> dict[str, Any]:
    return {
        "conversation": about.conversation,
        "message_id": about.message_id,
        "reply_id": about.reply_id,
        "status": status,
        "text": outcome.text,
        "data": outcome.data,
        "files": outcome.files,
    }
