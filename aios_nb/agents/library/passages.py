"""Texts cut into passages: short enough to be quoted, long enough to be understood."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

import msgspec

PASSAGE_CHARS = 1000
"""The longest passage; its meaning is one point, so it should be about one thing."""
PAUSE_CHARS = 400
"""From this length on, an empty line ends a passage."""
TABLE_LINES = 5
"""Of a table, its header and some rows to know it by."""
_TITLE_CHARS = 120
_TITLES_SHOWN = 2

_HASHED = re.compile(r" {0,3}(#{1,6})\s+(.*?)\s*#*\s*")
_FENCE = re.compile(r" {0,3}(`{3,}|~{3,})")
_UNDERLINE = re.compile(r"(=|-){3,}\s*")
_ADORNED = re.compile(r"([=\-~^\"'`#*+.:_])\1{2,}\s*")
_DEFINED = re.compile(r"(?:async\s+def|def|class)\s+(\w+)")


class Passage(msgspec.Struct, frozen=True):
    text: str
    """Whole lines, as they stand in the file."""
    line: int
    """Where it begins, from 1: in the file, or in the cell."""
    title: str = ""
    """The headings it stands under, or what it defines."""
    cell: int | None = None
    """Which cell of a notebook, from 1."""
    cell_id: str = ""
    is_output: bool = False


class Outline:
    """The headings that hold at some place of a text."""

    def __init__(self) -> None:
        self._open: list[tuple[int, str]] = []

    def enter(self, level: int, heading: str) -> None:
        self._open = [(above, text) for above, text in self._open if above < level]
        self._open.append((level, heading.strip()[:_TITLE_CHARS]))

    @property
    def title(self) -> str:
        return " / ".join(text for _, text in self._open[-_TITLES_SHOWN:] if text)


Cutter = Callable[[Sequence[str]], Iterable[Passage]]


def cut(lines: Sequence[str], first: int = 1, title: str = "") -> Iterator[Passage]:
    """Passages of whole lines, ended at empty lines where there are some."""
    held: list[str] = []
    size = 0
    for number, line in enumerate(lines, first):
        if held and (size + len(line) > PASSAGE_CHARS or (not line.strip() and size > PAUSE_CHARS)):
            yield _passage(held, number - len(held), title)
            held, size = [], 0
        if len(line) > PASSAGE_CHARS:
            for at in range(0, len(line), PASSAGE_CHARS):
                yield Passage(line[at : at + PASSAGE_CHARS], number, title)
        elif held or line.strip():
            held.append(line)
            size += len(line) + 1
    if held:
        yield _passage(held, first + len(lines) - len(held), title)


def _passage(held: Sequence[str], number: int, title: str) -> Passage:
    return Passage("\n".join(held).rstrip(), number, title)


def prose(lines: Sequence[str]) -> Iterator[Passage]:
    return cut(lines)


def table(lines: Sequence[str]) -> Iterator[Passage]:
    return cut([line[:PASSAGE_CHARS] for line in lines[:TABLE_LINES]], title="columns")


def markdown(lines: Sequence[str], outline: Outline | None = None) -> Iterator[Passage]:
    outline = outline if outline is not None else Outline()
    return _sections(lines, _markdown_headings(lines), outline)


def structured(lines: Sequence[str]) -> Iterator[Passage]:
    """ReStructuredText, whose headings are underlined."""
    return _sections(lines, _adorned_headings(lines), Outline())


def python(lines: Sequence[str]) -> Iterator[Passage]:
    """Code, parted where a function or class of the module begins."""
    starts = [(at, _DEFINED.match(line)) for at, line in enumerate(lines)]
    marks = [(0, ""), *((at, found[1]) for at, found in starts if found)]
    ends = [*(at for at, _ in marks[1:]), len(lines)]
    for (at, name), end in zip(marks, ends, strict=True):
        yield from cut(lines[at:end], at + 1, name)


Heading = tuple[int, int, int, str]
"""The line it begins at, from 0; where its text begins; its level; its words."""


def _sections(
    lines: Sequence[str], headings: Iterable[Heading], outline: Outline
) -> Iterator[Passage]:
    """Passages under their headings. One that is a heading only is kept if nothing else is."""
    bare: list[Passage] = []
    some = False
    begin = body = 0
    for at, after, level, heading in (*headings, (len(lines), len(lines), 0, "")):
        found = list(cut(lines[begin:at], begin + 1, outline.title))
        if any(line.strip() for line in lines[body:at]):
            some = True
            yield from found
        else:
            bare += found
        if level:
            outline.enter(level, heading)
        begin, body = at, after
    if not some:
        yield from bare


def _markdown_headings(lines: Sequence[str]) -> Iterator[Heading]:
    fence = ""
    for at, line in enumerate(lines):
        mark = _FENCE.match(line)
        if mark and (not fence or mark[1].startswith(fence)):
            fence = "" if fence else mark[1]
        elif fence:
            continue
        elif hashed := _HASHED.fullmatch(line):
            yield at, at + 1, len(hashed[1]), hashed[2]
        elif (under := _underline(lines, at)) and _UNDERLINE.fullmatch(under):
            yield at, at + 2, 1 if under[0] == "=" else 2, line


def _adorned_headings(lines: Sequence[str]) -> Iterator[Heading]:
    levels: dict[str, int] = {}
    for at, line in enumerate(lines):
        under = _underline(lines, at)
        if _ADORNED.fullmatch(under) and len(under.rstrip()) >= len(line.strip()):
            yield at, at + 2, levels.setdefault(under[0], len(levels) + 1), line


def _underline(lines: Sequence[str], at: int) -> str:
    """The next line, if this one has words and begins a paragraph."""
    begins = at == 0 or not lines[at - 1].strip() or _ADORNED.fullmatch(lines[at - 1]) is not None
    words = any(char.isalnum() for char in lines[at])
    return lines[at + 1] if begins and words and at + 1 < len(lines) else ""
