"""The data of an answer, for people: tables, JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from aios_nb.people.layout import fit
from aios_nb.richtext import cells_wide, one_line, plain

ROWS_MAX = 50
"""Rows of a table that are shown; --json has all of them."""
_CELL_MAX = 40
_JSON_TABLE = '{"columns":'


def data_lines(data: Any) -> list[str]:
    """A table as a table, all else as JSON."""
    if is_table(data):
        return _table_lines(data["columns"], data["rows"])
    return plain(json.dumps(data, indent=2, ensure_ascii=False)).split("\n")


def says_nothing(data: Any) -> bool:
    """Whether there is nothing in it to show: ``{"agents": []}``, a table without rows."""
    if is_table(data):
        return not data["rows"]
    if isinstance(data, dict):
        return all(value in ([], {}) for value in data.values())
    return data is None or data == []


def says_the_same(text: str, data: Any) -> bool:
    """Whether the text is only the data written out, as it is for an agent that returns data."""
    try:
        return bool(json.loads(text) == data)
    except (ValueError, RecursionError):
        return is_table(data) and _begins_table(text, data)


def is_table_alone(text: str, data: Any) -> bool:
    """Whether the text repeats a table, which is shown instead if there is anything in it."""
    return is_table(data) and not says_nothing(data) and says_the_same(text, data)


def _begins_table(text: str, data: Any) -> bool:
    """Whether the text is the start of this table, as Markdown or as JSON."""
    from aios_nb.agents.tables import table_text

    if text == table_text([str(name) for name in data["columns"]], data["rows"]):
        return True
    whole = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return len(text) > 1 and text.endswith("…") and whole.startswith(text[:-1])


def may_be_table(text: str) -> bool:
    """Whether an answer that begins so may turn out to be a table and nothing else."""
    if _JSON_TABLE.startswith(text[: len(_JSON_TABLE)]):
        return "\n" not in text
    return all(line[:1] in ("", "|", "…") for line in text.split("\n"))


def is_table(data: Any) -> bool:
    return (
        isinstance(data, dict)
        and data.keys() >= {"columns", "rows"}
        and isinstance(data["columns"], list)
        and isinstance(data["rows"], list)
        and all(isinstance(row, list) and len(row) == len(data["columns"]) for row in data["rows"])
    )


def _table_lines(columns: Sequence[Any], rows: Sequence[Sequence[Any]]) -> list[str]:
    shown = [[one_line(str(cell)) for cell in row] for row in (columns, *rows[:ROWS_MAX])]
    widths = [min(_CELL_MAX, max(map(cells_wide, column))) for column in zip(*shown, strict=True)]
    lines = [
        "  ".join(fit(cell, width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in shown
    ]
    if len(rows) > ROWS_MAX:
        lines.append(f"… {len(rows) - ROWS_MAX} more rows")
    return lines
