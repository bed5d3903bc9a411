"""What a person is told when something is not done: one line, and what to do."""

from __future__ import annotations

from typing import Any

from aios_bots.core.desk.visit import cut
from aios_bots.core.policy import Reason
from aios_bots.core.secret import scrubbed
from aios_nb.errors import (
    Busy,
    InvalidParams,
    NoSuchAgent,
    NotAllowed,
    RpcError,
    TooLarge,
    Unreachable,
)

HELLO = "This bot is private. If you were given a code, send /pair CODE."
WRONG_CODE = (
    "That code is not good, or not any more: codes work once, for ten minutes. Ask for a new one."
)
USED_CODE = "You are in already: a code works once. /chats lists your conversations."
SAID_MAX_CHARS = 300
NAMES_SHOWN = 3

REFUSALS: dict[Reason, str] = {
    Reason.READ_ONLY: "You can read here, not write. Ask the owner for a code that lets you write.",
    Reason.OWNER_ONLY: "Only the owner can do that.",
    Reason.PRIVATE_ONLY: "Please say that to me in a private chat.",
    Reason.TOO_FAST: "Slow down, please: that was too fast for me, and I did not take it.",
    Reason.TOO_LONG: "That is too long for one message: send it as a file, or in parts.",
    Reason.TOO_LARGE: "That file is too large: 20 MB is the most.",
}


def no_agent(ref: str, near: list[Any]) -> str:
    """Nobody is called so; perhaps one of these is meant."""
    names = [cut(str(one), 60) for one in near[:NAMES_SHOWN]]
    hint = f"Did you mean {' or '.join(names)}? " if names else ""
    return (
        f"No agent is called {cut(ref, 60)}. {hint}/agents lists yours, /search WORDS finds more."
    )


_LINES: dict[type[RpcError], str] = {
    Busy: "It is still busy with what you sent before: wait for an answer, or /stop.",
    TooLarge: "That is too large: send less, or send it as a file of 20 MB at most.",
    NotAllowed: "You may not do that here; the owner of the node may.",
}
_GONE = "That conversation is not there any more. /chats lists yours, /chat NAME begins one."


def told(error: RpcError) -> str:
    """What the node refused, in one line for the person."""
    line = _LINES.get(type(error))
    if line is not None:
        return line
    if isinstance(error, NoSuchAgent) and not error.message.startswith("several"):
        near = error.data.get("near")
        said = error.message.partition(": ")[2] or "that"
        return no_agent(said, near if isinstance(near, list) else [])
    if isinstance(error, InvalidParams) and error.message.startswith("no such conversation"):
        return _GONE
    plainly = isinstance(error, NoSuchAgent | Unreachable)
    return _line(error) if plainly else f"That did not work: {_line(error)}"


def _line(error: RpcError) -> str:
    return cut(scrubbed(error.message[: 4 * SAID_MAX_CHARS]), SAID_MAX_CHARS)
