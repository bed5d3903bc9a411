"""An answer on a terminal, as it is written."""

from __future__ import annotations

import sys
from collections.abc import Callable

from aios_nb.people.values import may_be_table
from aios_nb.richtext import PlainStream, plain

_ERASE_LINE = "\r\x1b[K"


class Written:
    """What has been put on the screen of one answer."""

    def __init__(self, *, on: bool) -> None:
        self.on = on
        self.raw = ""
        self._clean = PlainStream()
        self._held = ""
        self._at_line_start = True

    def holds(self, text: str) -> bool:
        """Whether this is kept back: what may be a table is shown as one, when it is whole."""
        return self.is_blank and may_be_table(self.raw + text)

    @property
    def is_blank(self) -> bool:
        """Nothing has been shown yet."""
        return self._held == self.raw

    def add(self, text: str) -> None:
        holds = self.holds(text)
        self.raw += text
        self._held += text
        if not holds:
            self._release()

    def finish(self, whole: str) -> None:
        """The end of the answer, whatever of ``whole`` was not streamed."""
        self._release()
        if whole.startswith(self.raw):
            self.add(whole[len(self.raw) :])
            self._release()
        elif whole:
            self.end_line()
            self._put(plain(whole))
        self.end_line()

    def interject(self, text: str, note: Callable[[str], None]) -> None:
        """A word to the person between two pieces, on a line of its own."""
        sys.stdout.write(_ERASE_LINE if self._at_line_start else "\n")
        sys.stdout.flush()
        self._at_line_start = True
        note(text)

    def end_line(self) -> None:
        self._release()
        self._put(self._clean.end())
        if not self._at_line_start:
            self._put("\n")

    def _release(self) -> None:
        held, self._held = self._held, ""
        self._put(self._clean.feed(held))

    def _put(self, text: str) -> None:
        if self.on and text:
            sys.stdout.write(text)
            sys.stdout.flush()
            self._at_line_start = text.endswith("\n")
