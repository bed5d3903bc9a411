"""Rich text as an app shows it: one text, and spans that say how its stretches look.

Text with spans needs no escaping, so nothing an agent writes can break it. Apps refuse some
nestings, so these are never made: a style, a link or code within code, a quote within a quote.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import NamedTuple, TypeAlias

from aios_bots.core.model import Rich, Span, SpanKind
from aios_nb.richtext import Node, Tree, flat, parse, to_text

_BLOCKS = frozenset({"p", "h", "pre", "quote", "ul", "ol", "hr", "table"})
_STYLES = {"b": SpanKind.BOLD, "i": SpanKind.ITALIC, "s": SpanKind.STRIKE, "a": SpanKind.LINK}
_RULE = "─" * 12


class _Style(NamedTuple):
    """One element of the tree; ``number`` tells it from its twin right beside it."""

    number: int
    kind: SpanKind
    arg: str = ""


class _Run(NamedTuple):
    text: str
    styles: tuple[_Style, ...]


_Line: TypeAlias = list[_Run]


def units(text: str) -> int:
    """How long the text is for an app: in UTF-16 units."""
    return len(text) if text.isascii() else len(text.encode("utf-16-le", "surrogatepass")) // 2


def from_markdown(text: str) -> Rich:
    """The text that an agent wrote, as an app shows it."""
    return rich(parse(text))


def rich(tree: Iterable[Node | str]) -> Rich:
    """The tree as text and spans. Tables are code: only that keeps their columns."""
    return _joined(_Layout().lines(tree, ()))


class _Layout:
    """Lines of runs, from the blocks of a tree."""

    def __init__(self) -> None:
        self._number = 0

    def _style(
        self, around: tuple[_Style, ...], kind: SpanKind, arg: str = ""
    ) -> tuple[_Style, ...]:
        """The styles within this element: the same twice is once."""
        if any(style.kind is kind for style in around):
            return around
        self._number += 1
        return (*around, _Style(self._number, kind, arg))

    def lines(
        self, nodes: Iterable[Node | str], around: tuple[_Style, ...], *, apart: bool = True
    ) -> list[_Line]:
        """``apart``: with an empty line between blocks."""
        found: list[_Line] = []
        inline: Tree = []

        def put(block: list[_Line]) -> None:
            if block and found and apart:
                found.append([])
            found.extend(block)

        for node in nodes:
            if isinstance(node, str) or node.tag not in _BLOCKS:
                inline.append(node)
                continue
            put(self._words(inline, around) if inline else [])
            inline = []
            put(self._block(node, around))
        put(self._words(inline, around) if inline else [])
        return found

    def _block(self, node: Node, around: tuple[_Style, ...]) -> list[_Line]:
        match node.tag:
            case "hr":
                return [[_Run(_RULE, around)]]
            case "pre":
                return self._code(flat(node.children), around, str(node.attrs.get("lang", "")))
            case "table":
                return self._code(to_text([node]), around)
            case "quote":
                return self.lines(node.children, self._style(around, SpanKind.QUOTE))
            case "ul" | "ol":
                return list(self._items(node, around))
        styles = self._style(around, SpanKind.BOLD) if node.tag == "h" else around
        return self._words(node.children, styles)

    def _code(self, text: str, around: tuple[_Style, ...], lang: str = "") -> list[_Line]:
        styles = self._style(around, SpanKind.PRE, lang)
        return [[_Run(line, styles)] for line in text.split("\n")]

    def _items(self, node: Node, around: tuple[_Style, ...]) -> Iterator[_Line]:
        items = [item for item in node.children if isinstance(item, Node)]
        loose = any(
            isinstance(one, Node) and one.tag == "p" for item in items for one in item.children
        )
        number = int(node.attrs.get("start", 1))
        for index, item in enumerate(items):
            mark = "• " if node.tag == "ul" else f"{number + index}. "
            if index and loose:
                yield []
            lines = self.lines(item.children, around, apart=loose) or [[]]
            if _is_pre(lines[0]):
                lines.insert(0, [])
            for line in lines:
                # An app sets code apart by itself, and whoever copies it wants it as it was.
                yield line if _is_pre(line) else [_Run(mark, around), *line]
                mark = " " * len(mark)

    def _words(self, nodes: Iterable[Node | str], around: tuple[_Style, ...]) -> list[_Line]:
        lines: list[_Line] = [[]]
        for run in self._runs(nodes, around):
            first, *rest = run.text.split("\n")
            lines[-1].append(_Run(first, run.styles))
            lines += [[_Run(text, run.styles)] for text in rest]
        return lines

    def _runs(self, nodes: Iterable[Node | str], around: tuple[_Style, ...]) -> Iterator[_Run]:
        for node in nodes:
            if isinstance(node, str):
                yield _Run(node, around)
            elif node.tag == "br":
                yield _Run("\n", around)
            elif node.tag == "code":
                yield _Run(flat(node.children), self._within_line(around))
            elif node.tag in _STYLES:
                href = str(node.attrs.get("href", ""))
                styles = self._style(around, _STYLES[node.tag], href)
                yield from self._runs(node.children, styles)
            else:
                yield from self._runs(node.children, around)

    def _within_line(self, around: tuple[_Style, ...]) -> tuple[_Style, ...]:
        """Code takes no other style; in a link it is the link that people need."""
        if any(style.kind is SpanKind.LINK for style in around):
            return around
        return self._style(_quote_of(around), SpanKind.CODE)


def _is_pre(line: _Line) -> bool:
    return bool(line) and any(style.kind is SpanKind.PRE for style in line[0].styles)


def _quote_of(styles: Iterable[_Style]) -> tuple[_Style, ...]:
    return tuple(style for style in styles if style.kind is SpanKind.QUOTE)


def _joined(lines: list[_Line]) -> Rich:
    """One text. A line end belongs to what is on both sides of it."""
    writer = _Writer()
    while lines and not "".join(run.text for run in lines[-1]).strip():
        lines.pop()
    ends: list[tuple[_Style, ...] | None] = [line[-1].styles if line else None for line in lines]
    starts: list[tuple[_Style, ...] | None] = [line[0].styles if line else None for line in lines]
    for number in range(len(lines) - 2, -1, -1):  # an empty line looks like its neighbours
        starts[number] = starts[number] if lines[number] else starts[number + 1]
    before: tuple[_Style, ...] = ()
    for number, line in enumerate(lines):
        if number:
            after = starts[number] or ()
            writer.put("\n", tuple(style for style in before if style in after))
        for run in line:
            writer.put(run.text, run.styles)
        before = ends[number] or () if line else before
    return writer.done()


class _Writer:
    def __init__(self) -> None:
        self._texts: list[str] = []
        self._at = 0
        self._open: dict[_Style, int] = {}
        self._spans: list[tuple[int, int, int, _Style]] = []

    def put(self, text: str, styles: tuple[_Style, ...]) -> None:
        if not text:
            return
        now = set(styles)
        for style in [style for style in self._open if style not in now]:
            self._close(style)
        for style in styles:
            self._open.setdefault(style, self._at)
        self._texts.append(text)
        self._at += units(text)

    def _close(self, style: _Style) -> None:
        start = self._open.pop(style)
        self._spans.append((start, -(self._at - start), style.number, style))

    def done(self) -> Rich:
        for style in list(self._open):
            self._close(style)
        spans = (
            Span(style.kind, start, -minus, style.arg)
            for start, minus, _, style in sorted(self._spans)
        )
        return Rich("".join(self._texts), tuple(spans))
