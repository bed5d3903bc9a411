"""What a conversation is called while nobody has given it a name."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from aios_nb.notebook.widgets.contents import MENTION
from aios_nb.richtext import gist

TITLE_CHARS = 60
TO_ONE = re.compile(MENTION.pattern + r"[,:]?\s+(?=\S)")
"""To whom a message is said that goes on after that."""


def untitled(agent: str) -> str:
    """Where the first message has no words."""
    return f"Chat with {agent.partition('@')[0]}"


def first_words(text: str) -> str:
    """Of what is said, not to whom."""
    begin = 0
    while to_one := TO_ONE.match(text, begin):
        begin = to_one.end()
    words = gist(text[begin : begin + 4 * TITLE_CHARS])
    return words if len(words) <= TITLE_CHARS else f"{words[: TITLE_CHARS - 1]}…"


def begins(rows: Iterable[Mapping[str, Any]]) -> str:
    """How the first message among these rows begins."""
    return next((first_words(row["text"]) for row in rows if row["kind"] == "message"), "")
