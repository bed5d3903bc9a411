"""Errors in the words of who reads them, where the node's own are for programs."""

from __future__ import annotations

import re
from typing import NamedTuple

from aios_nb.errors import (
    AgentFailed,
    AiosError,
    Cancelled,
    DeadlinePassed,
    InvalidParams,
    RpcError,
    Unreachable,
)

_INTERRUPTED = "interrupted"
_AGENT_ID = re.compile(r"@([a-z2-7]{8})[a-z2-7]{24}\b")
_CALLS = {
    "aios.up(join=URL)": "aios-nb up --join URL",
    "aios.down()": "aios-nb down",
    "aios.node().hub_add(URL)": "aios-nb hub add URL",
}
"""What programs write, as people type it."""
_COMMAND = re.compile(r"\baios-nb (?=[a-z])")


class Face(NamedTuple):
    """Where people type, and what they type there."""

    command: str
    """Stands before the name of a command."""
    more_time: str
    """How to wait longer for an answer."""
    log: str
    """Where it says why an agent failed."""


TERMINAL = Face("aios-nb ", "--deadline SECONDS", "the log of its node")
NOTEBOOK = Face(
    "%aios ", "deadline_s=…, or %aios ask --deadline SECONDS", "if it is yours, %aios log"
)


def in_words(error: AiosError, face: Face = TERMINAL) -> str:
    """One line: what happened, and what to type."""
    hint = to_do(error, face)
    said = what(error)
    return f"{said} ({hint})" if hint else said


def typed(hint: str, face: Face) -> str:
    """A hint with its commands as they are typed there."""
    for call, command in _CALLS.items():
        hint = hint.replace(call, command)
    return _COMMAND.sub(face.command, hint)


def what(error: AiosError) -> str:
    """What happened. Where nobody has to type it, the start of a node's id says enough."""
    if isinstance(error, Unreachable):
        return _AGENT_ID.sub(r"@\1", error.message)
    return error.message


def to_do(error: AiosError, face: Face) -> str:
    """What a person can do about it; empty if nobody knows."""
    if isinstance(error, DeadlinePassed) and error.hint in (None, DeadlinePassed.what_to_do):
        return f"give it more time: {face.more_time}"
    if isinstance(error, Cancelled):
        return "ask again if it is still wanted"
    if isinstance(error, AgentFailed) and error.data.get("status") == _INTERRUPTED:
        return "it may have done part of its work; ask again if that is safe"
    if isinstance(error, AgentFailed) and error.hint in (None, AgentFailed.what_to_do):
        return f"{face.log} has the details"
    if isinstance(error, InvalidParams) and error.hint in (None, InvalidParams.what_to_do):
        return ""  # that is for who writes programs
    general = error.what_to_do if isinstance(error, RpcError) else ""
    return typed(error.hint or general or "", face)
