"""One display that changes while a cell runs, and what can be said where there is none.

A page (a kernel's, or what captures output) takes a display with an id and updates of it, from any
thread. A terminal takes a line that is written over, if it is one.
"""

from __future__ import annotations

import secrets
import sys
from typing import Any

from aios_nb.notebook.show.page import Bundle
from aios_nb.people.layout import fit, line_room
from aios_nb.richtext import one_line

_EMPTY: Bundle = {"text/plain": "", "text/html": ""}
_ERASE = "\r\x1b[K"


def has_page(shell: Any) -> bool:
    """Whether what is shown can change afterwards, and be more than text."""
    from IPython.core.displaypub import DisplayPublisher

    return type(shell.display_pub) is not DisplayPublisher


class Display:
    """A place in the output of the cell that runs now."""

    def __init__(self, shell: Any) -> None:
        self._pub = shell.display_pub  # the one of this cell, should something capture it
        self._id = secrets.token_hex(8)
        self.shown = False

    def show(self, bundle: Bundle) -> None:
        """Put this there, instead of what was there."""
        transient = {"display_id": self._id}
        self._pub.publish(data=bundle, metadata={}, transient=transient, update=self.shown)
        self.shown = True

    def clear(self) -> None:
        """Leave nothing."""
        if self.shown:
            self.show(_EMPTY)


class TerminalLine:
    """The line at the bottom of a terminal; nothing where stderr is none."""

    def __init__(self) -> None:
        self._on = sys.stderr.isatty()
        self._shown = False

    def show(self, text: str) -> None:
        if self._on:
            self._shown = True
            line = fit(one_line(text), line_room() - 1).rstrip()
            sys.stderr.write(f"{_ERASE}{line}")
            sys.stderr.flush()

    def clear(self) -> None:
        if self._shown:
            self._shown = False
            sys.stderr.write(_ERASE)
            sys.stderr.flush()


def take_back_prompt() -> bool:
    """Erase the ``Out[3]: `` that a terminal has written already; False where that cannot be."""
    if sys.stdout.isatty():
        sys.stdout.write(_ERASE)
        sys.stdout.flush()
        return True
    return False
