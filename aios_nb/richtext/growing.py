"""Text read as Markdown, whole or while it grows."""

from __future__ import annotations

from collections.abc import Iterable

from aios_nb.richtext.inline import as_written
from aios_nb.richtext.markdown import read
from aios_nb.richtext.passages import Cutter, Passage, effort
from aios_nb.richtext.safe import PlainStream
from aios_nb.richtext.tree import Node, Tree

NODES_MAX = 50_000
"""From the passage on that has more, the text is plain: a page has to hold them."""
READ_AT_ONCE_EFFORT = 8_000
"""An unfinished passage up to that is read again with every piece: about 4 KB of prose."""
REREAD_GROWTH = 1.25
"""A longer one is read when it has grown by so much; what is new since is shown as written."""
SHOWN_MAX_CHARS = 32_000
"""Of an unfinished passage beyond that only the end is shown, until it is finished."""
SHOWN_END_CHARS = 4_000
_UNDECIDED = frozenset("-=*+_~`#>|: \t")
"""A last line of these alone says nothing yet: a dash may become a list, a line, or a heading."""
_UNDECIDED_IN_CODE = frozenset("~` ")


def parse(text: str) -> Tree:
    """The text as a tree: a list of blocks."""
    growing = Growing()
    growing.add(text)
    return [*growing.end()[1]]


class Growing:
    """A tree of a text that comes in pieces.

    ``feed`` gives ``(keep, blocks)``: the first ``keep`` blocks shown so far are final, and
    ``blocks`` replace the rest. ``end`` gives the same when no more comes; then everything is as
    ``parse`` would have made it of the whole text. Between two looks at it, ``add`` costs little.
    """

    def __init__(self) -> None:
        self._clean = PlainStream()
        self._cutter = Cutter()
        self._kept = 0
        self._final: list[Node] = []
        self._nodes = 0
        self._read: tuple[int, list[Node]] = (0, [])
        """Of the unfinished passage: how much was read, as what."""

    def feed(self, piece: str) -> tuple[int, list[Node]]:
        """Take the next piece, and say what changed since ``feed`` or ``look`` last did."""
        self.add(piece)
        return self.look()

    def add(self, piece: str) -> None:
        """Take the next piece."""
        self._cutter.add(self._clean.feed(piece))
        while (passage := self._cutter.next()) is not None:
            self._finish(passage)

    def look(self) -> tuple[int, list[Node]]:
        """What changed since ``feed`` or ``look`` last said so."""
        keep, blocks = self._kept, self._final
        self._kept += len(blocks)
        self._final = []
        return keep, blocks + self._unfinished()

    def end(self) -> tuple[int, list[Node]]:
        """The text has ended: what changed since ``feed`` or ``look`` last said so; all final."""
        self._cutter.add(self._clean.end())
        while (passage := self._cutter.next() or self._cutter.end()) is not None:
            self._finish(passage)
        return self.look()

    def _finish(self, passage: Passage) -> None:
        blocks = _as_it_is(passage.text) if passage.plain else read(passage.text)
        self._nodes += _count(blocks)
        if self._nodes > NODES_MAX:
            self._cutter.fill()
            blocks = _as_it_is(passage.text)
        self._final += blocks
        self._read = (0, [])

    def _unfinished(self) -> list[Node]:
        passage, rest = self._cutter.open, self._cutter.rest
        if passage.plain:
            return _as_it_is(rest)
        if passage.size + len(rest) > SHOWN_MAX_CHARS:
            return _its_end(passage, rest)
        if passage.parts:
            undecided = _UNDECIDED_IN_CODE if passage.code else _UNDECIDED
            rest = "" if undecided.issuperset(rest) else rest
        text = passage.text
        if passage.effort + effort(rest, code=passage.code) <= READ_AT_ONCE_EFFORT:
            return read(text + rest)
        done, blocks = self._read
        if len(text) > done * REREAD_GROWTH:
            done, blocks = self._read = (len(text), read(text))
        new = (text + rest)[done:].rstrip("\n")
        if not new:
            return blocks
        if passage.code and blocks:
            last = blocks[-1]
            return [*blocks[:-1], Node(last.tag, last.attrs, [*last.children, "\n" + new])]
        return [*blocks, _as_written(new)]


def _as_written(text: str) -> Node:
    return Node("p", {}, as_written(text))


def _as_it_is(text: str) -> list[Node]:
    text = text.strip("\n")
    return [Node("pre", {}, [text])] if text else []


def _its_end(passage: Passage, rest: str) -> list[Node]:
    parts, size = [rest[-SHOWN_END_CHARS:]], len(rest)
    for part in reversed(passage.parts):
        if size >= SHOWN_END_CHARS:
            break
        parts.append(part)
        size += len(part)
    text = "".join(reversed(parts))[-SHOWN_END_CHARS:]
    text = "…\n" + text
    return _as_it_is(text) if passage.code else [_as_written(text)]


def _count(nodes: Iterable[Node | str]) -> int:
    return sum(1 + _count(node.children) for node in nodes if isinstance(node, Node))
