"""DataFrames as JSON and as text. pandas is never imported: who returns a frame has it loaded."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from aios_nb.envelope import DATA_LIMIT_BYTES
from aios_nb.errors import TooLarge

SHOWN_ROWS = 10
SHOWN_COLUMNS = 10
SHOWN_CELL = 40
"""What the text of a table shows; the data has everything."""
_BYTES_PER_CELL = 2
"""The least a cell takes in JSON: a digit and a comma."""


def is_frame(value: Any) -> bool:
    return _is_pandas(value, "DataFrame")


def is_series(value: Any) -> bool:
    return _is_pandas(value, "Series")


def frame_data(frame: Any) -> dict[str, Any]:
    """``{columns, rows}`` with plain values; an index that says something comes first.

    NaN, NaT and NA become None, times ISO 8601, numbers of numpy numbers of Python.
    """
    rows, width = frame.shape
    if rows * width * _BYTES_PER_CELL > DATA_LIMIT_BYTES:
        raise TooLarge(
            f"the table has {rows} rows and {width} columns; a reply carries 1 MB of data",
            hint="send the first rows, or a file: aios.File(frame.to_csv().encode(), name=…)",
        )
    names: list[str] = []
    columns: list[list[Any]] = []
    index = frame.index
    if not _is_plain_count(index):
        for level in range(index.nlevels):
            values = index.get_level_values(level)
            names.append(_column_name(values.name) if values.name is not None else "index")
            columns.append([plain_cell(value) for value in values.tolist()])
    for position, name in enumerate(frame.columns):
        names.append(_column_name(name))
        columns.append([plain_cell(value) for value in frame.iloc[:, position].tolist()])
    body = [list(row) for row in zip(*columns, strict=True)] if columns else []
    return {"columns": names, "rows": body}


def table_text(columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """The first rows as a Markdown table that also reads well in a terminal."""
    shown = columns[:SHOWN_COLUMNS]
    cells = [[_cell_text(name) for name in shown]]
    cells += [[_cell_text(value) for value in row[: len(shown)]] for row in rows[:SHOWN_ROWS]]
    if not shown:
        return f"(a table without columns, {len(rows)} rows)"
    widths = [max(3, *(len(line[at]) for line in cells)) for at in range(len(shown))]
    lines = [
        "| "
        + " | ".join(text.ljust(width) for text, width in zip(line, widths, strict=True))
        + " |"
        for line in cells
    ]
    lines.insert(1, "| " + " | ".join("-" * width for width in widths) + " |")
    more = []
    if len(rows) > SHOWN_ROWS:
        more.append(f"{len(rows) - SHOWN_ROWS} more rows")
    if len(columns) > len(shown):
        more.append(f"{len(columns) - len(shown)} more columns")
    return "\n".join(lines) + (f"\n\n… {', '.join(more)}" if more else "")


def plain_cell(value: Any) -> Any:  # noqa: PLR0911 - one line per kind of value
    """One cell as JSON can carry it."""
    if value is None or isinstance(value, (bool, str)):
        return value
    kind = type(value)
    if kind is float:
        return value if math.isfinite(value) else None
    if kind is int:
        return value
    if kind.__name__ in ("NaTType", "NAType"):
        return None
    if kind.__module__.partition(".")[0] == "numpy":
        return plain_cell(value.tolist())
    if isinstance(value, dict):
        return {str(key): plain_cell(inner) for key, inner in value.items()}
    if isinstance(value, (list, tuple, set, frozenset)):
        return [plain_cell(inner) for inner in value]
    if isinstance(value, float):
        return plain_cell(float(value))
    if hasattr(value, "isoformat"):
        return value.isoformat()
    return str(value)


def _is_pandas(value: Any, name: str) -> bool:
    return any(
        base.__name__ == name and base.__module__.partition(".")[0] == "pandas"
        for base in type(value).__mro__
    )


def _is_plain_count(index: Any) -> bool:
    """Row numbers without a name say nothing; also what filtering and sorting leave of them."""
    kind = getattr(getattr(index, "dtype", None), "kind", "")
    return index.nlevels == 1 and index.name is None and kind in "iu"


def _column_name(name: Any) -> str:
    return " ".join(str(part) for part in name) if isinstance(name, tuple) else str(name)


def _cell_text(value: Any) -> str:
    if value is None:
        return ""
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    text = " ".join(text.split()).replace("|", "\\|")
    return text if len(text) <= SHOWN_CELL else text[: SHOWN_CELL - 1] + "…"
