"""What becomes of a call that did not succeed: decided here, done by the postman."""

from __future__ import annotations

from enum import StrEnum

import msgspec

from aios_bots.core.adapter import (
    Absent,
    BadStyle,
    CallError,
    Flooded,
    Impossible,
    Moved,
    NotTaken,
    Unreachable,
    Unsure,
)
from aios_bots.core.model import Op, Outgoing
from aios_nb.richtext import one_line

REPEATS_OTHER_MAX = 10
"""An edit of unknown fate is made again so often; then it would hold its chat up for ever."""
NAME_CHARS = 80


class Unread(CallError):
    """A file that goes out cannot be read. ``later``: its node may give it another time."""

    def __init__(self, name: str, *, later: bool) -> None:
        super().__init__(f"{one_line(name, NAME_CHARS) or 'a file'} cannot be read")
        self.later = later


class After(StrEnum):
    AGAIN = "again"
    """Once more, as it is: the app surely does not have it."""
    UNSURE = "unsure"
    """Nobody knows whether the app has it."""
    INSTEAD = "instead"
    """Something else goes in its place."""
    SHUT = "shut"
    """The chat is closed for some time; it waits."""
    GONE = "gone"
    """The chat is closed until somebody lets us in; it waits."""
    MOVED = "moved"
    DEAD = "dead"


class Verdict(msgspec.Struct, frozen=True):
    after: After
    out: Outgoing | None = None
    """What goes instead."""


def judged(out: Outgoing, repeats: int, error: CallError) -> Verdict:
    """What becomes of ``out``, which had an unknown fate ``repeats`` times before."""
    match error:
        case NotTaken() | Unread(later=True):
            return Verdict(After.AGAIN)
        case Flooded():
            return Verdict(After.SHUT)
        case Unreachable():
            return Verdict(After.GONE)
        case Moved(chat=chat) if chat not in {"", out.place.chat}:
            return Verdict(After.MOVED)
        case Unsure() if out.op is Op.SEND or repeats < REPEATS_OTHER_MAX:
            return Verdict(After.UNSURE)
    other = _other(out, error)
    return Verdict(After.DEAD) if other is None else Verdict(After.INSTEAD, other)


def as_send(out: Outgoing) -> Outgoing:
    """What an edit says, as a message of its own; later edits (``target_key``) are of that one."""
    return msgspec.structs.replace(out, op=Op.SEND, target="")


def _other(out: Outgoing, error: CallError) -> Outgoing | None:
    match error:
        case BadStyle() if out.spans:
            return msgspec.structs.replace(out, spans=())
        case Impossible() if out.op is Op.EDIT and out.event_id:
            return as_send(out)  # somebody deleted the message: what was said must not be lost
        case Absent() if out.op is Op.EDIT and (out.event_id or out.buttons):
            return as_send(out)
        case Absent() if out.op is Op.REACT and out.text:
            return _in_words(out)
        case Absent() | Unread() | Impossible() if out.op is Op.SEND and (out.files or out.as_file):
            return _without_files(out, error)
    return None


def _in_words(reaction: Outgoing) -> Outgoing:
    """A reaction where the app has none."""
    return msgspec.structs.replace(
        reaction,
        op=Op.SEND,
        text=f"{reaction.data}\n{reaction.text}",
        reply_to=reaction.target,
        target="",
        target_key="",
        data="",
    )


def _without_files(out: Outgoing, error: CallError) -> Outgoing:
    """What was said, and a line for each file that is not there."""
    why = "could not be read" if isinstance(error, Unread) else "cannot be sent here"
    names = [out.as_file] if out.as_file else [file.name for file in out.files]
    lines = [f"[{one_line(name, NAME_CHARS) or 'file'}: {why}]" for name in names]
    said = [] if out.as_file or not out.text else [out.text, ""]
    return msgspec.structs.replace(out, text="\n".join((*said, *lines)), files=(), as_file="")
