"""Errors in the words of who reads them, where the node's own are for programs."""

from __future__ import annotations

import re
from typing import NamedTuple

from aios_nb.errors import (
    AgentFailed,
    AiosError,
    Cancelled,
    DeadlinePassed,
    RpcError,
    Unreachable,
)

_INTERRUPTED = "interrupted"
_AGENT_ID = re.compile(r"@([a-z2-7]{8})[a-z2-7]{24}\b")
_COMMAND = re.compile(r"\baios-nb (?=[a-z])")


class Face(NamedTuple):
    """Where people type, and what they type there."""

    command: str
    """Stands before the name of a command."""
    more_time: str
    """How to wait longer for an answer."""


TERMINAL = Face("aios-nb ", "--deadline SECONDS")
NOTEBOOK = Face("%aios ", "deadline_s=…, or %aios ask --deadline SECONDS")


def in_words(error: AiosError, face: Face = TERMINAL) -> str:
    """One line: what happened, and what to type."""
    hint = _hint(error, face)
    said = what(error)
    return said if hint is None else f"{said} ({typed(hint, face)})"


def typed(hint: str, face: Face) -> str:
    """A hint with its commands as they are typed there."""
    return _COMMAND.sub(face.command, hint)


def what(error: AiosError) -> str:
    """What happened. Where nobody has to type it, the start of a node's id says enough."""
    if isinstance(error, Unreachable):
        return _AGENT_ID.sub(r"@\1", error.message)
    return error.message


def _hint(error: AiosError, face: Face) -> str | None:
    if isinstance(error, DeadlinePassed):
        return f"give it more time: {face.more_time}"
    if isinstance(error, Cancelled):
        return "ask again if it is still wanted"
    if isinstance(error, AgentFailed) and error.data.get("status") == _INTERRUPTED:
        return "it may have done part of its work; ask again if that is safe"
    return error.hint or (error.what_to_do if isinstance(error, RpcError) else None)
