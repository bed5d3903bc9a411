"""What was meant by a word that is not there."""

from __future__ import annotations

import argparse
import difflib
from collections.abc import Container, Iterable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from aios_nb.notebook.parser import Option

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


def flag_for(word: str, options: Iterable[Option]) -> str:
    """The option that a word may be the value of, where it stands without one; empty for none."""
    return next((option.flags[0] for option in options if _fits(word, option)), "")


def _fits(word: str, option: Option) -> bool:
    if option.choices or not option.value:
        return word in option.choices
    if option.value.startswith("URL"):
        return "://" in word
    if option.value == "NAME":
        return word.replace("-", "_").isidentifier()
    try:
        return not isinstance(option.read(word), str)
    except argparse.ArgumentTypeError:
        return False


def near(wrong: str, right: Iterable[str]) -> str:
    """A hint: what is spelled like it, or all there is."""
    names = list(right)
    close = difflib.get_close_matches(wrong.lower(), names, n=3, cutoff=0.5)
    if close:
        return f"did you mean {' or '.join(close)}?"
    return "%aios? lists all" if len(names) > 12 else f"one of {', '.join(names)}"  # noqa: PLR2004
