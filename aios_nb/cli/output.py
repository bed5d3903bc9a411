"""What commands print: tables that fit, JSON for programs, colour where it can be seen."""

from __future__ import annotations

import json
import os
import shutil
import sys
import unicodedata
from collections.abc import Iterable, Sequence
from typing import Any, TextIO

from aios_nb.richtext import one_line, plain

_COLUMN_MIN = 8
"""A column is not squeezed below this many cells."""
_GAP = "  "
_SGR = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36"}


def is_tty(stream: TextIO) -> bool:
    try:
        return stream.isatty()
    except ValueError:  # closed
        return False


class Paint:
    """Colours for one stream; leaves text as it is where colours would be noise."""

    def __init__(self, stream: TextIO) -> None:
        self.on = (
            is_tty(stream)
            and not os.environ.get("NO_COLOR")
            and os.environ.get("TERM", "") != "dumb"
        )

    def __call__(self, text: str, *styles: str) -> str:
        if not self.on or not styles:
            return text
        return f"\x1b[{';'.join(_SGR[style] for style in styles)}m{text}\x1b[0m"


def show_json(value: Any) -> None:
    """One line for programs; indented for a person. Escaped, so no terminal obeys it."""
    print(json.dumps(value, indent=2 if is_tty(sys.stdout) else None))


def show_text(text: str) -> None:
    """Text of others, made safe, with one line end after it."""
    print(plain(text).rstrip("\n"))


def table(head: Sequence[str], rows: Iterable[Sequence[object]], below: Sequence[str] = ()) -> None:
    """Aligned columns, cut to the terminal; the last column gives way first.

    ``below`` has a line for under each row, or an empty one for none.
    """
    cells = [[one_line(str(cell)) for cell in row] for row in rows]
    paint = Paint(sys.stdout)
    widths = [max(map(cells_wide, column)) for column in zip(head, *cells, strict=True)]
    room = shutil.get_terminal_size().columns if is_tty(sys.stdout) else None
    if room is not None:
        _squeeze(widths, room - len(_GAP) * (len(widths) - 1))
    print(paint(_row(head, widths), "dim"))
    for row, under in zip(cells, below or ("",) * len(cells), strict=True):
        print(_row(row, widths))
        line = one_line(under)
        if line:
            wide = cells_wide(line) if room is None else max(_COLUMN_MIN, room - len(_GAP))
            print(_GAP + paint(fit(line, wide).rstrip(), "dim"))


def _squeeze(widths: list[int], room: int) -> None:
    for index in reversed(range(len(widths))):
        over = sum(widths) - room
        if over <= 0:
            return
        widths[index] = max(min(widths[index], _COLUMN_MIN), widths[index] - over)


def _row(row: Sequence[str], widths: Sequence[int]) -> str:
    fitted = [fit(cell, width) for cell, width in zip(row, widths, strict=True)]
    return _GAP.join(fitted).rstrip()


def fit(text: str, width: int) -> str:
    """Exactly ``width`` cells: padded, or cut with an ellipsis."""
    wide = cells_wide(text)
    if wide <= width:
        return text + " " * (width - wide)
    kept, used = [], 0
    for char in text:
        step = _cells(char)
        if used + step > width - 1:
            break
        kept.append(char)
        used += step
    return "".join(kept) + "…" + " " * (width - 1 - used)


def cells_wide(text: str) -> int:
    """How many cells of a terminal the text takes."""
    return len(text) if text.isascii() else sum(map(_cells, text))


def _cells(char: str) -> int:
    if unicodedata.combining(char) or unicodedata.category(char) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def seconds(value: float) -> str:
    """A duration for people."""
    whole = int(value)
    days, whole = divmod(whole, 86_400)
    hours, whole = divmod(whole, 3600)
    minutes, whole = divmod(whole, 60)
    if days:
        return f"{days} d {hours} h"
    if hours:
        return f"{hours} h {minutes} min"
    return f"{minutes} min {whole} s" if minutes else f"{whole} s"


def size(count: int) -> str:
    """A number of bytes for people."""
    value = float(count)
    for unit in ("bytes", "KB", "MB"):
        if value < 1024:  # noqa: PLR2004
            return f"{value:.0f} {unit}" if unit == "bytes" else f"{value:.1f} {unit}"
        value /= 1024
    return f"{value:.1f} GB"


def moment(stamp: str) -> str:
    """An ISO time as a short local one."""
    from datetime import datetime

    try:
        return f"{datetime.fromisoformat(stamp).astimezone():%Y-%m-%d %H:%M}"
    except ValueError:
        return stamp


def note(text: str) -> None:
    """A word to the person, not part of the output."""
    print(Paint(sys.stderr)(one_line(text), "dim"), file=sys.stderr)
