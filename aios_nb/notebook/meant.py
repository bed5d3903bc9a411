"""What was meant by a word that is not there."""

from __future__ import annotations

import difflib
from collections.abc import Container, Iterable

SAME = {
    "quit": "down", "exit": "down", "stop": "down", "start": "up", "join": "up --join URL",
    "list": "agents", "ls": "agents", "find": "search", "call": "ask", "talk": "ask",
    "remove": "withdraw", "unregister": "withdraw",
}  # fmt: skip
"""Other words for a command. By its letters `join` would be `down`, which ends the node."""


def command_like(wrong: str, commands: Iterable[str], agents: Container[str]) -> str:
    """A hint for what stands where a command should."""
    name = wrong.removeprefix("@")
    if name in agents:
        return f"did you mean %aios ask {name} …?"
    same = SAME.get(wrong.lower())
    return f"did you mean {same}?" if same else near(wrong, commands)


def near(wrong: str, right: Iterable[str]) -> str:
    """A hint: what is spelled like it, or all there is."""
    names = list(right)
    close = difflib.get_close_matches(wrong.lower(), names, n=3, cutoff=0.5)
    if close:
        return f"did you mean {' or '.join(close)}?"
    return "%aios? lists all" if len(names) > 12 else f"one of {', '.join(names)}"  # noqa: PLR2004
