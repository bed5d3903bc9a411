"""What a message holds, as a page can show it: text as a tree, data as a table or as JSON."""

from __future__ import annotations

import json
import re
from collections.abc import Collection
from typing import Any

from aios_nb import richtext
from aios_nb.people.values import is_table, says_nothing, says_the_same
from aios_nb.richtext import one_line, plain

Blocks = list[Any]
"""Nodes ``[tag, attributes, children]`` and texts, as ``common.js`` draws them."""
ROWS_MAX = 50
COLUMNS_MAX = 40
CELL_CHARS = 200
JSON_CHARS = 20_000
MENTION = re.compile(r"(?<![^\s(\[{,;:!?\"'])@([a-z0-9][a-z0-9_-]{0,47}(?:@[a-z2-7]{12,32})?)")
"""As the node reads it: at a word's start."""


def said_by_agent(text: str) -> Blocks:
    """Markdown as a tree."""
    return richtext.to_data(richtext.parse(text))


def said_by_person(text: str, names: Collection[str] = ()) -> Blocks:
    """What was typed, line by line as it was typed; Markdown only where there is code.

    ``names``: of those that it went to. Another word with an @ is a word.
    """
    if "```" in text:
        return said_by_agent(text)
    pieces: list[Any] = []
    done = 0
    for found in MENTION.finditer(text):
        name = found[1].partition("@")[0]
        if name in names:
            pieces += [text[done : found.start()], ["at", {}, [f"@{name}"]]]
            done = found.end()
    pieces.append(text[done:])
    return [["lines", {}, [piece for piece in pieces if piece]]] if text else []


def data_view(text: str, data: Any) -> tuple[dict[str, Any] | None, bool]:
    """The data beside a text, ready to be shown; and whether the text only repeats it."""
    if data is None:
        return None, False
    repeats = says_the_same(text, data)
    if is_table(data):
        return (None, False) if says_nothing(data) else (_table(data), repeats)
    if says_nothing(data) or (text and not isinstance(data, dict | list)):
        return None, False
    whole = plain(json.dumps(data, indent=2, ensure_ascii=False))
    view: dict[str, Any] = {"json": whole[:JSON_CHARS]}
    if len(whole) > JSON_CHARS:
        view["of"] = len(whole)
    if repeats or not text:
        view["open"] = True
    return view, repeats


def _table(data: dict[str, Any]) -> dict[str, Any]:
    rows, columns = data["rows"], data["columns"]
    shown = [row[:COLUMNS_MAX] for row in rows[:ROWS_MAX]]
    return {
        "columns": [_cell(name) for name in columns[:COLUMNS_MAX]],
        "rows": [[_cell(cell) for cell in row] for row in shown],
        "numbers": [
            number
            for number in range(min(len(columns), COLUMNS_MAX))
            if all(_is_number(row[number]) for row in shown)
        ],
        "of_rows": len(rows),
        "of_columns": len(columns),
    }


def _cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, dict | list):
        value = json.dumps(value, ensure_ascii=False)
    said = one_line(str(value))
    return said if len(said) <= CELL_CHARS else said[: CELL_CHARS - 1] + "…"


def _is_number(value: Any) -> bool:
    return value is None or (isinstance(value, int | float) and not isinstance(value, bool))
