"""What commands print: tables that fit, JSON for programs, colour where it can be seen."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterable, Sequence
from typing import Any, TextIO

from aios_nb.people.layout import table_lines
from aios_nb.richtext import one_line, plain

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
    room = shutil.get_terminal_size().columns if is_tty(sys.stdout) else None
    for line in table_lines(head, rows, below, room=room, paint=Paint(sys.stdout)):
        print(line)


def note(text: str) -> None:
    """A word to the person, not part of the output."""
    print(Paint(sys.stderr)(one_line(text), "dim"), file=sys.stderr)
