"""An agent's card for a reader: its facts, and what is different since it was last used."""

from __future__ import annotations

import difflib
import re
import shlex
from typing import Any

from aios_nb.richtext import one_line, plain

ABOUT_MAX = 4000
EXAMPLES_MAX = 8
EXAMPLE_MAX = 300
PLACE_MAX = 300
TOOLS_MAX = 24
DIFFERENCE_MAX_WORDS = 400
"""Of longer texts the old one and the new one are shown, without looking for what they share."""

EDITED = 0.4
"""The share of words that an old and a new text have in common, if one came of the other."""

_FIELDS = {
    "title": "Title",
    "about": "What it does",
    "tags": "Tags",
    "version": "Version",
    "access": "Who may call it",
}
_WORDS = re.compile(r"\s+|\S+")


def facts(card: dict[str, Any]) -> dict[str, Any]:
    """What a card says, safe to read and in bounds."""
    examples = [one_line(str(example))[:EXAMPLE_MAX] for example in card.get("examples") or ()]
    return {
        "title": one_line(str(card.get("title") or ""))[:200],
        "about": plain(str(card.get("about") or ""))[:ABOUT_MAX],
        "tags": [one_line(str(tag))[:60] for tag in card.get("tags") or ()],
        "examples": examples[:EXAMPLES_MAX],
        "version": one_line(str(card.get("version") or ""))[:40],
        "access": one_line(str(card.get("access") or "")),
        "engine": one_line(str(card.get("engine") or ""))[:40],
        "streams": bool(card.get("streams")),
        "idempotent": bool(card.get("idempotent")),
        "timeout_s": card.get("timeout_s") or 0,
    }


def outside(row: dict[str, Any] | None) -> dict[str, Any] | None:
    """What there is to know of a program of others: where it is, and what it says otherwise."""
    if row is None:
        return None
    place = row["address"] if isinstance(row["address"], str) else shlex.join(row["address"])
    return {
        "place": one_line(place)[:PLACE_MAX],
        "pin": row["pin"],
        "note": one_line(row["note"]),
        "tools": [one_line(tool)[:60] for tool in row["tools"][:TOOLS_MAX]],
        "more_tools": max(0, len(row["tools"]) - TOOLS_MAX),
        "signature": row["signature"],
        "key": one_line(row["key"]),
        "differences": [one_line(line) for line in row["differences"]],
    }


def changes(used: dict[str, Any] | None, row: dict[str, Any]) -> list[dict[str, Any]]:
    """What an agent says otherwise than when it was last used; nothing if its card is the same.

    ``used`` is that of ``agents.card``, ``row`` its row as it is now: both are of its record.
    Each change has a ``field`` and its ``parts``: texts with ``-`` gone, ``+`` new or ``=`` kept.
    """
    if used is None or not used.get("changed"):
        return []
    then = used.get("said") or {}
    found = []
    for field, label in _FIELDS.items() if then else ():
        before, now = _text(then.get(field)), _text(row.get(field))
        if before != now:
            found.append({"field": label, "parts": _parts(before, now)})
    if not found:
        rest = "its examples or how it runs; what it says it does is the same"
        found.append({"field": "Other parts of its card", "parts": [["=", rest]]})
    return found


def _text(value: Any) -> str:
    if isinstance(value, (list, tuple)):
        return ", ".join(one_line(str(each)) for each in value)
    return one_line(str(value or ""))


def _parts(before: str, now: str) -> list[list[str]]:
    old, new = _WORDS.findall(before), _WORDS.findall(now)
    if max(len(old), len(new)) > DIFFERENCE_MAX_WORDS:
        return [["-", before], ["+", now]]
    matcher = difflib.SequenceMatcher(None, old, new, autojunk=False)
    if matcher.ratio() < EDITED:
        return [[mark, text] for mark, text in (("-", before), ("+", now)) if text]
    parts: list[list[str]] = []
    for kind, a, b, c, d in matcher.get_opcodes():
        if kind == "equal":
            parts.append(["=", "".join(old[a:b])])
            continue
        parts += [
            [mark, text]
            for mark, text in (("-", "".join(old[a:b])), ("+", "".join(new[c:d])))
            if text
        ]
    return parts
