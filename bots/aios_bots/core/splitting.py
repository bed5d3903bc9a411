"""A long text as several messages, cut where a reader would.

At a paragraph, else a line, a sentence, a word, else anywhere, but never within a character. A span
that is cut goes on in the next part: code that was opened is closed, and opened again. An app takes
only so many spans; where there are more, the least important are left out, because a text that fits
into one message should be one.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate, islice

import msgspec

from aios_bots.core.model import Rich, Span, SpanKind
from aios_bots.core.spans import from_markdown, units

TEXT_UNITS = 4096
"""Longest text of a message on Telegram; other apps say their own."""
SPANS_MAX = 100
"""Telegram drops the rest without a word."""
NUMBERED_FROM = 4
"""So many parts say which they are; fewer are read one after the other anyway."""
PARTS_MAX = 5
"""A text with more is a file, with its beginning as a message."""
NUMBER_UNITS = 12
"""Room for a part's number, or for the sign that there is more."""
MORE = "\n\n…"
READ_PER_LIMIT = 4
"""Of a text that will be a file, only so many times what can be shown is read as Markdown: a
megabyte takes half a second, in which nobody else is served."""
LIMIT_LEAST = 2
"""Room for any character: some are two units."""

_IMPORTANT = {
    kind: rank
    for rank, kind in enumerate(
        (
            SpanKind.PRE,
            SpanKind.LINK,
            SpanKind.QUOTE,
            SpanKind.STRIKE,
            SpanKind.CODE,
            SpanKind.BOLD,
            SpanKind.ITALIC,
        )
    )
}
"""Without the first ones a text says something else, without the last it only looks plainer."""
_LEAST_FILLED = 0.5
"""A better place to cut is not taken if it leaves more than that of a part empty."""
_SENTENCE = re.compile(r"[.!?…][\"')\]»”]*\s+|[。！？]+\s*")  # noqa: RUF001 - Chinese full stops
_WORD = re.compile(r"\s+")
_BASE = 0x10000
_GLYPH_MAX_CHARS = 16


class Parts(msgspec.Struct, frozen=True):
    """The messages that a text becomes."""

    messages: tuple[Rich, ...]
    file: bool = False
    """These are the beginning; the whole goes as a file."""


def parts_of(
    markdown: str,
    *,
    limit: int = TEXT_UNITS,
    max_spans: int = SPANS_MAX,
    least: int = 1,
    head: str = "",
) -> Parts:
    """What to send for what an agent wrote.

    ``least``: so many parts are shown already, and stay, even if there is a file.
    ``head``: a line above it, who says that.
    """
    most = READ_PER_LIMIT * PARTS_MAX * limit
    rich = headed(head, from_markdown(markdown[:most]))
    more = len(markdown) > most
    return parts(rich, limit=limit, max_spans=max_spans, least=least, more=more)


def headed(head: str, rich: Rich) -> Rich:
    """The text below a bold line; a blank one stays blank. Nothing in it can undo that line."""
    if not head or not rich.text.strip():
        return rich
    size = units(head)
    below = (Span(one.kind, one.offset + size + 1, one.length, one.arg) for one in rich.spans)
    return Rich(f"{head}\n{rich.text}", (Span(SpanKind.BOLD, 0, size), *below))


def parts(
    rich: Rich,
    *,
    limit: int = TEXT_UNITS,
    max_spans: int = SPANS_MAX,
    least: int = 1,
    more: bool = False,
) -> Parts:
    """The same for a text that was read already; ``more``: it is only the beginning."""
    found = beginning(rich, limit=limit, max_spans=max_spans, most=PARTS_MAX + 1)
    if len(found) > PARTS_MAX or (more and found):
        kept = found[: max(1, min(least, PARTS_MAX))]
        return Parts((*kept[:-1], Rich(kept[-1].text + MORE, kept[-1].spans)), file=True)
    if len(found) < NUMBERED_FROM:
        return Parts(tuple(found))
    return Parts(
        tuple(
            Rich(f"{one.text}\n\n{number}/{len(found)}", one.spans)
            for number, one in enumerate(found, 1)
        )
    )


def beginning(rich: Rich, *, limit: int, max_spans: int, most: int) -> list[Rich]:
    """The first messages of a text, without numbers; one if it fits, none if it is blank.

    They have room for a number, and no white space around them: an app would take it away.
    """
    found = _shown(rich, limit, max_spans, 2)
    return found if len(found) <= 1 else _shown(rich, limit - NUMBER_UNITS, max_spans, most)


def _shown(rich: Rich, limit: int, max_spans: int, most: int) -> list[Rich]:
    found = map(trimmed, _pieces(rich, limit, max_spans))
    return list(islice((one for one in found if one.text), most))


def trimmed(rich: Rich) -> Rich:
    """Without empty lines before it and white space after it. Indents stay: code has them."""
    text = rich.text.rstrip()
    bare = text.lstrip("\n")
    if bare == rich.text:
        return rich
    return _slice(rich.spans, bare, units(text) - units(bare))


def pieces(rich: Rich, limit: int, max_spans: int) -> list[Rich]:
    """Parts that joined give the text again, each with so many units and spans at most."""
    return list(_pieces(rich, limit, max_spans))


def _pieces(rich: Rich, limit: int, max_spans: int) -> Iterator[Rich]:
    cuts = _Cuts(rich, limit)
    start = 0
    while start < len(rich.text):
        end = cuts.after(start)
        yield _slice(rich.spans, rich.text[start:end], cuts.units_at(start), max_spans)
        start = end


def _slice(spans: Sequence[Span], text: str, offset: int, most: int | None = None) -> Rich:
    """This text, which begins at ``offset``, with what of the spans is within it."""
    end = offset + units(text)
    kept: list[Span] = []
    for span in spans:
        start, stop = max(span.offset, offset), min(span.end, end)
        if start < stop:
            kept.append(Span(span.kind, start - offset, stop - start, span.arg))
    if most is not None and len(kept) > most:
        first = sorted(range(len(kept)), key=lambda n: (_IMPORTANT[kept[n].kind], n))[:most]
        kept = [kept[n] for n in sorted(first)]
    return Rich(text, tuple(kept))


class _Cuts:
    """Where a text may end as a message."""

    def __init__(self, rich: Rich, limit: int) -> None:
        if limit < LIMIT_LEAST:
            raise ValueError("a message has room for a character")
        self._text, self._limit = rich.text, limit
        self._offsets: list[int] | None = None
        """Units before each character; None where every character is one."""
        if not rich.text.isascii():
            sizes = (2 if ord(char) >= _BASE else 1 for char in rich.text)
            self._offsets = list(accumulate(sizes, initial=0))
        self._pre = [span for span in rich.spans if span.kind is SpanKind.PRE]
        self._pre_starts = [span.offset for span in self._pre]

    def units_at(self, index: int) -> int:
        return index if self._offsets is None else self._offsets[index]

    def _index(self, offset: int) -> int:
        """The last character border at or before that many units."""
        if self._offsets is None:
            return min(offset, len(self._text))
        return bisect_right(self._offsets, offset) - 1

    def after(self, start: int) -> int:
        """The end of the part that begins here."""
        end = max(self._index(self.units_at(start) + self._limit), start + 1)
        if end == len(self._text):
            return end
        least = start + max(1, int((end - start) * _LEAST_FILLED))
        for border in (self._paragraph, self._line, self._sentence, self._word):
            if (cut := border(least, end)) is not None:
                return cut
        return self._hard(start, end)

    def _paragraph(self, least: int, end: int) -> int | None:
        while (at := self._text.rfind("\n\n", least - 1, end)) >= 0:
            if not self._in_code(at):
                return at + 2
            end = at + 1
        return None

    def _line(self, least: int, end: int) -> int | None:
        at = self._text.rfind("\n", least - 1, end)
        return at + 1 if at >= 0 else None

    def _sentence(self, least: int, end: int) -> int | None:
        return self._last(_SENTENCE, least, end)

    def _word(self, least: int, end: int) -> int | None:
        return self._last(_WORD, least, end)

    def _last(self, border: re.Pattern[str], least: int, end: int) -> int | None:
        found = None
        for match in border.finditer(self._text, max(0, least - 1), end):
            found = match.end()
        return found

    def _hard(self, start: int, end: int) -> int:
        """Not between a letter and its accent, nor within a composed emoji, if that can be."""
        for cut in range(end, max(start, end - _GLYPH_MAX_CHARS), -1):
            if not _joins(self._text[cut - 1], self._text[cut]):
                return cut
        return end

    def _in_code(self, index: int) -> bool:
        offset = self.units_at(index)
        at = bisect_left(self._pre_starts, offset + 1) - 1
        return at >= 0 and self._pre[at].end > offset


def _joins(before: str, after: str) -> bool:
    return (
        before == "\u200d"
        or after in "\u200d\ufe0e\ufe0f"
        or unicodedata.combining(after) > 0
        or 0x1F3FB <= ord(after) <= 0x1F3FF  # noqa: PLR2004 - skin tones
    )
