"""A text cut into passages that can be read as Markdown one by one.

A passage ends where a block of Markdown at the outermost level has surely ended, which is seen from
its lines alone: so a long text need not be read again when it grows, and one passage cannot change
how another is read.

Reading costs time, and a stranger can make it cost much. A text has room for ``EFFORT_MAX``; from
the passage on that would exceed it, the rest is cut by length and left plain.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, field
from typing import NamedTuple

EFFORT_MAX = 500_000
"""One for a character, ten for a mark or a line: some 250 KB of prose, or 45,000 brackets."""
MARK_EFFORT = 10
PASSAGE_EFFORT = 30
LINE_MAX_CHARS = 16_000
"""A longer line opens no code and closes none."""
PLAIN_CHARS = 16_000
"""Plain rests are cut at the last line end before twice that, else right there."""

_MARKS = "\n[]!*_`<&~|\\>-+.)"
_FENCE = re.compile(r"( {0,3})(`{3,}(?=[^`]*\Z)|~{3,})(.*)")
_ITEM = re.compile(r" {0,3}(?:[-*+]|\d{1,9}[.)])(?:[ \t]|\Z)")


class _Fence(NamedTuple):
    character: str
    length: int
    indent: int
    """It belongs to a list item, and ends with what is indented less; 0 if it belongs to none."""

    def ends(self, fence: re.Match[str]) -> bool:
        _, marks, info = fence.groups()
        return marks[0] == self.character and len(marks) >= self.length and not info.strip()

    def leaves(self, head: str) -> bool:
        """Whether the list item, with the code in it, has ended before this line."""
        bare = head.lstrip(" ")
        return len(head) - len(bare) < self.indent and bool(bare.strip(" \t"))


def effort(text: str, *, code: bool = False) -> int:
    """What it costs to read."""
    return len(text) + (0 if code else MARK_EFFORT * sum(map(text.count, _MARKS)))


@dataclass
class Passage:
    parts: list[str] = field(default_factory=list)
    """Lines with their ends; the last one may be growing."""
    size: int = 0
    effort: int = 0
    code: bool = False
    """It is one block of fenced code, and nothing else."""
    plain: bool = False
    """It is not read as Markdown."""

    @property
    def text(self) -> str:
        return "".join(self.parts)

    def add(self, part: str) -> None:
        self.parts.append(part)
        self.size += len(part)
        self.effort += effort(part, code=self.code)


class Cutter:
    """Takes a text piece by piece and gives passages; how the text came makes no difference."""

    def __init__(self) -> None:
        self.open = Passage()
        """The passage that is still growing, without ``rest``."""
        self.rest = ""
        """The last line, as long as it has no end."""
        self._lines: deque[str] = deque()
        self._room = EFFORT_MAX
        self._fence: _Fence | None = None
        self._listed = 0  # how far its items are indented if there is a list in this passage
        self._blank = False  # the line before was empty
        self._within = False  # the growing line is long, and its beginning is in the passage
        self._full = False

    def add(self, text: str) -> None:
        """Take the next piece; then ask for ``next`` until there is none."""
        if self._full:
            self.rest += text
            return
        *lines, self.rest = (self.rest + text).split("\n")
        self._lines.extend(line + "\n" for line in lines)

    def next(self) -> Passage | None:
        """The next passage that will not change any more."""
        while not self._full:
            if self._lines:
                line = self._lines.popleft()
            elif len(self.rest) > LINE_MAX_CHARS:
                line, self.rest = self.rest, ""
            else:
                return self._early()
            closed = self._line(line)
            if closed is not None:
                return closed
        if len(self.rest) < 2 * PLAIN_CHARS:
            return None
        return self._plain(self.rest.rfind("\n", PLAIN_CHARS, 2 * PLAIN_CHARS) + 1)

    def end(self) -> Passage | None:
        """The next of the last passages: after ``next`` gave none, until this gives none."""
        if self._full:
            return self.next() or self._plain(len(self.rest))
        line, self.rest = self.rest, ""
        closed = self._line(line) if line else None
        if self._full:
            return closed or self.end()
        return closed or self._close()

    def fill(self) -> None:
        """There is no more room: what is open and all that comes is plain."""
        if not self._full:
            self._full = True
            self.rest = self.open.text + "".join(self._lines) + self.rest
            self.open = Passage(plain=True)
            self._lines.clear()

    # Lines ---------------------------------------------------------------------------------

    def _line(self, line: str) -> Passage | None:
        """Put the line where it belongs; the passage that ended with it or before it."""
        closed = None if self._within else self._before(line[: LINE_MAX_CHARS + 1])
        self.open.add(line)
        self._within = not line.endswith("\n")
        if self.open.code and self._fence is None:
            closed = self._close()
        elif self.open.effort > self._room:
            self.fill()
        return closed

    def _before(self, line: str) -> Passage | None:
        """The passage that ends before this line; notes what the line opens and closes."""
        head = line.rstrip("\n")
        fence = _FENCE.fullmatch(head) if len(head) <= LINE_MAX_CHARS else None
        blank = not head.strip(" \t")
        closed = None
        if self._fence is not None and not self._fence.leaves(head):
            if fence is not None and self._fence.ends(fence):
                self._fence = None
        else:
            self._fence = None
            if fence is not None:
                belongs = self._listed and len(fence[1]) >= self._listed
                self._fence = _Fence(fence[2][0], len(fence[2]), self._listed if belongs else 0)
            on_its_own = self._fence is not None and not self._fence.indent
            if on_its_own or self._starts(head):
                closed = self._close()
                self.open.code = on_its_own
            if item := _ITEM.match(head):
                self._listed = min(self._listed or item.end(), item.end())
        self._blank = blank
        return closed

    def _early(self) -> Passage | None:
        """The passage that has ended because a letter begins the next; most answers are that."""
        begins = self.rest[:1].isalpha() and not self._within
        return self._close() if begins and self._blank and self._fence is None else None

    def _starts(self, head: str) -> bool:
        """Whether nothing of what came before goes on in this line."""
        if not self._blank or not head or head[0] in " \t":
            return False
        return not (self._listed and _ITEM.match(head))

    def _close(self) -> Passage | None:
        self._listed, self._blank = 0, False
        if not self.open.parts:
            return None
        closed, self.open = self.open, Passage()
        self._room -= closed.effort + PASSAGE_EFFORT
        return closed

    # The plain rest ------------------------------------------------------------------------

    def _plain(self, length: int) -> Passage | None:
        text = self.rest[: length or 2 * PLAIN_CHARS]
        self.rest = self.rest[len(text) :]
        return Passage([text], len(text), plain=True) if text else None
