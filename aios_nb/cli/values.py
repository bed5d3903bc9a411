"""The data and files of an answer, for people: tables, JSON, files on disk."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from aios_nb.cli.output import cells_wide, fit
from aios_nb.client import SiteClient, get_file
from aios_nb.errors import UsageError
from aios_nb.richtext import one_line, plain

ROWS_MAX = 50
"""Rows of a table that are shown; --json has all of them."""
_CELL_MAX = 40
_NAMES_MAX = 1000
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


async def save_files(
    client: SiteClient, files: Sequence[Mapping[str, Any]], folder: Path
) -> list[Path]:
    """Download into ``folder``; a file that is there already is never replaced."""
    from aios_nb.blobs import safe_name

    return [
        _write_new(folder / safe_name(file["name"]), await get_file(client, file)) for file in files
    ]


def _write_new(path: Path, content: bytes) -> Path:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        return _write_beside(path, content)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error.strerror}") from error


def _write_beside(path: Path, content: bytes) -> Path:
    for number in range(1, _NAMES_MAX):
        name = path if number == 1 else path.with_stem(f"{path.stem}-{number}")
        try:
            with name.open("xb") as out:
                out.write(content)
        except FileExistsError:
            continue
        return name
    raise UsageError(f"there are too many files like {path}", hint="choose another --save DIR")
