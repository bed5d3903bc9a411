"""What a failed call means for the bridge: made again, later, plainly, or never."""

from __future__ import annotations

from collections.abc import Callable

from aios_bots.adapters.telegram.answers import Lost, Refused
from aios_bots.core.adapter import (
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

_GONE = (
    "chat not found",
    "user not found",
    "peer_id_invalid",
    "bot was blocked",
    "bot was kicked",
    "bot is not a member",
    "user is deactivated",
    "group chat was deactivated",
    "can't initiate conversation",
    "can't send messages to",
)
_MAY_NOT_WRITE = (
    "have no rights to send",
    "not enough rights to send",
    "chat_write_forbidden",
    "chat_restricted",
    "user_is_blocked",
)
_STYLE = ("entit", "parse mode", "parse_mode")
_SOMETHING_ELSE = (
    "too long",
    "too_long",
    "too big",
    "empty",
    "not found",
    "not modified",
    "can't be edited",
    "message_id",
    "topic",
    "thread",
    "button",
    "photo",
    "file",
)
BAD_REQUEST, UNAUTHORIZED, FORBIDDEN = 400, 401, 403


def call_error(failure: Lost | Refused, out: Outgoing) -> CallError:
    """The error for the core. What it says is the server's word: one line, no token."""
    if isinstance(failure, Lost):
        return Unsure(f"no answer: {failure}") if failure.sent else NotTaken(str(failure))
    says = failure.words or f"the server answered {failure.code}"
    talks = out.op in {Op.SEND, Op.EDIT}
    is_file = bool(out.files or out.as_file)
    table: tuple[tuple[bool, Callable[[], CallError]], ...] = (
        (failure.pause_s > 0, lambda: Flooded(failure.pause_s)),
        (bool(failure.moved_to), lambda: Moved(failure.moved_to)),
        (failure.broke, lambda: Unsure(says)),
        (failure.code == UNAUTHORIZED, lambda: NotTaken("the bot's token is not known any more")),
        (failure.says(*_GONE), lambda: Unreachable(says)),
        (talks and not is_file and _is_shut(failure), lambda: Unreachable(says)),
        (talks and bool(out.spans) and _is_style(failure), lambda: BadStyle(says)),
        (True, lambda: Impossible(says)),
    )
    return next(error() for holds, error in table if holds)


def _is_shut(failure: Refused) -> bool:
    """The bot may not write there. A right that is missing for less, or for files, is not that."""
    return failure.code == FORBIDDEN or failure.says(*_MAY_NOT_WRITE)


def _is_style(failure: Refused) -> bool:
    """It may be how the text looks: unless it says that it is something else."""
    return failure.code == BAD_REQUEST and (
        failure.says(*_STYLE) or not failure.says(*_SOMETHING_ELSE)
    )


def is_same(failure: Refused) -> bool:
    """An edit to what is there already."""
    return failure.says("message is not modified", "message_not_modified")


def is_gone_already(failure: Refused) -> bool:
    """A message to delete that nobody can see any more."""
    return failure.says("message to delete not found", "message_id_invalid")


def is_caption(failure: Refused) -> bool:
    """The message is a file, whose text is its caption."""
    return failure.says("there is no text in the message")


def is_reply_gone(failure: Refused) -> bool:
    return failure.says("message to be replied not found", "reply message not found", "reply_to")


def is_no_photo(failure: Refused) -> bool:
    """It is a picture, but not one that this server shows as one."""
    return failure.says("photo", "image", "dimensions", "wrong type", "wrong file")
