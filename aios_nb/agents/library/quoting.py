"""The lines of a passage that a question is about, quoted so that nothing in them is obeyed."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence

from aios_nb.agents.library.passages import Passage
from aios_nb.index.text import COMMON
from aios_nb.richtext import one_line, plain

LINES_SHOWN = 3
LINE_CHARS = 200
_BEFORE_CHARS = 60
"""Of a long line, what is shown before the word that was found."""
_WHOLE_WORD_CHARS = 4
"""Longer words are found with other endings too."""
_WORD = re.compile(r"\w+")
_UNSPACED = re.compile("[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff]")
_COMMON = COMMON | {"find", "look", "search", "show"}
"""And what one says to a librarian."""

Needles = Sequence[re.Pattern[str]]


def needles(question: str) -> Needles:
    """What to look for in a text: the words of the question that say something."""
    words = list(dict.fromkeys(_WORD.findall(question.casefold())))
    telling = [word for word in words if word not in _COMMON] or words
    return [re.compile(form) for word in telling for form in _forms(word)]


def _forms(word: str) -> Iterator[str]:
    if _UNSPACED.search(word):
        pairs = (word[at : at + 2] for at in range(max(1, len(word) - 1)))
        yield from map(re.escape, pairs)
    elif len(word) <= _WHOLE_WORD_CHARS:
        yield rf"(?<![^\W_]){re.escape(word)}s?(?![^\W_])"
    else:
        yield rf"(?<![^\W_]){re.escape(word[: max(_WHOLE_WORD_CHARS, len(word) - 3)])}"


def met(text: str, wanted: Needles) -> int:
    """How many of the words a text has."""
    folded = text.casefold()
    return sum(1 for needle in wanted if needle.search(folded))


def excerpt(passage: Passage, wanted: Needles) -> tuple[int, str]:
    """The line that was found, by its number, and that line with its neighbours."""
    lines = [plain(line).expandtabs(4) for line in passage.text.split("\n")]
    counts = [met(line, wanted) for line in lines]
    best = max(range(len(lines)), key=lambda at: (counts[at], -at))
    first = max(0, min(best - 1, len(lines) - LINES_SHOWN))
    if not counts[best]:
        best = first = 0
    shown = [_short(line, wanted) for line in lines[first : first + LINES_SHOWN]]
    return passage.line + best, textwrap.dedent("\n".join(shown)).strip("\n")


def _short(line: str, wanted: Needles) -> str:
    line = line.rstrip()
    if len(line) <= LINE_CHARS:
        return line
    folded = line.casefold()
    found = [hit.start() for needle in wanted if (hit := needle.search(folded))]
    begin = max(0, min(min(found, default=0) - _BEFORE_CHARS, len(line) - LINE_CHARS))
    end = begin + LINE_CHARS
    return f"{'…' if begin else ''}{line[begin:end].strip()}{'…' if end < len(line) else ''}"


def block(text: str) -> str:
    """A fenced block of Markdown: whatever is inside is shown as it stands."""
    fence = "`" * max(3, 1 + _longest_ticks(text))
    return f"{fence}text\n{text}\n{fence}"


def span(text: str) -> str:
    """The same within a line."""
    line = one_line(text)
    ticks = "`" * (1 + _longest_ticks(line))
    edge = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{ticks}{edge}{line}{edge}{ticks}"


def _longest_ticks(text: str) -> int:
    return max(map(len, re.findall("`+", text)), default=0)
