"""What another node says of a task, read as data: its answer, its pieces, its errors.

Nothing of it is believed to have the right form, and nothing unknown is passed on.
"""

from __future__ import annotations

from typing import Any

import msgspec

from aios_nb.envelope import DEADLINE_MAX_S, ID, Content, FileRef, Status
from aios_nb.errors import (
    AgentFailed,
    Busy,
    Cancelled,
    DeadlinePassed,
    InvalidParams,
    NoSuchAgent,
    NotAllowed,
    RpcError,
    TooLarge,
)

SAID_CHARS = 1000
"""Of another node's errors and notes that are passed on."""
BUSY_MAX_S = 30.0
"""It may want us to wait longer; it is asked again after this."""
_encode = msgspec.json.Encoder().encode
_READ = frozenset({"status", "reason"})
_THEIRS = frozenset(
    {AgentFailed, Busy, Cancelled, DeadlinePassed, InvalidParams, NoSuchAgent, NotAllowed, TooLarge}
)
"""What a host may say of a task. Anything else is its own trouble."""


class Answer(msgspec.Struct):
    """What a host answers, by either method."""

    status: Status
    text: str = ""
    data: Any = None
    files: list[FileRef] = []
    question: str | None = None


class _Fields(msgspec.Struct):
    """The part of an answer that is read, of an envelope or of ``chat.stream``."""

    content: Content | None = None
    status: str = ""
    text: str = ""
    data: Any = None
    files: list[FileRef] | None = None
    question: str | None = None


class Heard(msgspec.Struct, gc=False):
    """The part of a delta that is read."""

    offset: int
    text: str
    progress: str | None = None


_STATUSES = {
    "success": Status.DONE,
    "done": Status.DONE,
    "input_required": Status.INPUT_REQUIRED,
}
"""How a result may end a call; everything else comes as an error."""


def read_answer(result: Any) -> Answer:
    """How it ended, or what it asks. Raises ``AgentFailed`` for what is neither."""
    try:
        fields = msgspec.convert(result, _Fields)
        content = fields.content
        if content is None:
            text, said, files = fields.text, fields.status, fields.files
            data, question = fields.data, fields.question
        else:
            text, said, files = _as_text(content.result), content.status or "", content.files
            data, question = content.data, content.question
    except (msgspec.MsgspecError, RecursionError):
        raise _not_understood() from None
    status = _STATUSES.get(said)
    asks = status is Status.INPUT_REQUIRED
    if status is None or (asks and (question is None or not ID.fullmatch(question))):
        raise _not_understood()
    return Answer(status, text, data, files or [], question)


def read_delta(delta: Any) -> Heard:
    """A piece of its reply. Raises ``AgentFailed`` for what is none."""
    try:
        return msgspec.convert(delta, Heard)
    except msgspec.ValidationError:
        raise _not_understood() from None


def _as_text(result: Any) -> str:
    if isinstance(result, str):
        return result
    return "" if result is None else _encode(result).decode()


def _not_understood() -> AgentFailed:
    return AgentFailed(
        "its node answers in a way that is not understood",
        hint="it may run another version of this program",
    )


def is_end(error: RpcError) -> bool:
    """Whether it tells how the run ended, and not that it cannot be talked about just now."""
    return "status" in error.data


def told_by(error: RpcError) -> RpcError:
    """Another node's error as ours: its kind, its words in short, and what we know how to read."""
    said = error.message[:SAID_CHARS]
    hint = None if error.hint is None else str(error.hint)[:SAID_CHARS]
    data = {key: value for key, value in error.data.items() if _is_readable(key, value)}
    if type(error) not in _THEIRS:
        return AgentFailed(f"its node answered: {said}", hint=hint, **data)
    return type(error)(said, hint=hint, **data)


def _is_readable(key: str, value: Any) -> bool:
    if key == "ran":
        return value in ("no", "yes", "unknown")
    if key == "retry_after_s":
        return type(value) in {int, float} and 0 <= value < DEADLINE_MAX_S
    return key in _READ and isinstance(value, str) and len(value) < SAID_CHARS


def retry_after_s(busy: Busy) -> float:
    """When it wants to be asked again; 0 if it does not say."""
    wait_s = busy.data.get("retry_after_s")
    if not isinstance(wait_s, (int, float)):
        return 0.0
    return float(min(max(wait_s, 0), BUSY_MAX_S))
