"""Text set for people: aligned columns, sizes, durations, moments."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence

from aios_nb.richtext import cells_wide, one_line

_COLUMN_MIN = 8
"""A column is not squeezed below this many cells."""
_GAP = "  "
_WIDE = 160
"""Cells of a line where no terminal says how many it has."""
Paint = Callable[..., str]
"""``paint(text, *styles)``: the text in colours, or as it is."""


def unpainted(text: str, *_: str) -> str:
    """The text as it is."""
    return text


def table_lines(
    head: Sequence[str],
    rows: Iterable[Sequence[object]],
    below: Sequence[str] = (),
    *,
    room: int | None = None,
    paint: Paint = unpainted,
) -> Iterator[str]:
    """Aligned columns, cut to ``room`` cells; the last column gives way first.

    ``below`` has a line for under each row, or an empty one for none.
    """
    cells = [[one_line(str(cell)) for cell in row] for row in rows]
    widths = [max(map(cells_wide, column)) for column in zip(head, *cells, strict=True)]
    if room is not None:
        _squeeze(widths, room - len(_GAP) * (len(widths) - 1))
    yield paint(_row(head, widths), "dim")
    for row, under in zip(cells, below or ("",) * len(cells), strict=True):
        yield _row(row, widths)
        line = one_line(under)
        if line:
            wide = cells_wide(line) if room is None else max(_COLUMN_MIN, room - len(_GAP))
            yield _GAP + paint(fit(line, wide).rstrip(), "dim")


def _squeeze(widths: list[int], room: int) -> None:
    for index in reversed(range(len(widths))):
        over = sum(widths) - room
        if over <= 0:
            return
        widths[index] = max(min(widths[index], _COLUMN_MIN), widths[index] - over)


def _row(row: Sequence[str], widths: Sequence[int]) -> str:
    fitted = [fit(cell, width) for cell, width in zip(row, widths, strict=True)]
    return _GAP.join(fitted).rstrip()


def line_room() -> int:
    """How many cells a line of standard output may have."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else _WIDE


def hanging(text: str, indent: int, room: int | None = None) -> str:
    """Text behind something ``indent`` cells wide, its further lines below itself.

    It is broken between words, where the terminal ends; without a terminal it is one line.
    """
    if room is None and not sys.stdout.isatty():
        return text
    wide = max(_COLUMN_MIN, (line_room() if room is None else room) - indent)
    lines, used = [""], 0
    for word in text.split(" "):
        step = cells_wide(word)
        if used and used + 1 + step > wide:
            lines.append(word)
            used = step
        else:
            lines[-1] += f" {word}" if used else word
            used += step + bool(used)
    return ("\n" + " " * indent).join(lines)


def fit(text: str, width: int) -> str:
    """Exactly ``width`` cells: padded, or cut with an ellipsis."""
    wide = cells_wide(text)
    if wide <= width:
        return text + " " * (width - wide)
    kept, used = [], 0
    for char in text:
        step = cells_wide(char)
        if used + step > width - 1:
            break
        kept.append(char)
        used += step
    return "".join(kept) + "…" + " " * (width - 1 - used)


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
    except ValueError:  # then it is anybody's text
        return one_line(stamp)
