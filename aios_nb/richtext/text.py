"""A rich-text tree as plain text for terminals and ``text/plain``."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from aios_nb.richtext.growing import parse
from aios_nb.richtext.safe import one_line
from aios_nb.richtext.tree import Node, flat
from aios_nb.richtext.width import cells_wide

CELL_MAX_CELLS = 60
"""A table's column is padded up to that; a longer text pushes the rest of its row aside."""
_BLOCKS = {"p", "h", "pre", "quote", "ul", "ol", "hr", "table"}
_RULE = "─" * 20


def to_text(nodes: Iterable[Node | str]) -> str:
    """Lists with bullets, tables in columns, links as ``label (address)``."""
    return "\n".join(_lines(nodes))


def gist(text: str) -> str:
    """What a text says, in one line and without its Markdown: for lists of texts."""
    return one_line(to_text(parse(text)).replace("─", " "))


def _lines(nodes: Iterable[Node | str], *, apart: bool = True) -> list[str]:
    """The lines of blocks and of text between them; ``apart``: with empty lines between."""
    lines: list[str] = []
    inline: list[Node | str] = []

    def put(block: list[str]) -> None:
        if block:
            if lines and apart:
                lines.append("")
            lines.extend(block)

    for node in nodes:
        if isinstance(node, str) or node.tag not in _BLOCKS:
            inline.append(node)
            continue
        put(_words(inline).split("\n") if inline else [])
        inline = []
        put(_block(node))
    put(_words(inline).split("\n") if inline else [])
    return lines


def _block(node: Node) -> list[str]:
    match node.tag:
        case "hr":
            return [_RULE]
        case "pre":
            return ["    " + line if line else "" for line in flat(node.children).split("\n")]
        case "quote":
            return [f"> {line}".rstrip() for line in _lines(node.children)]
        case "ul" | "ol":
            return list(_items(node))
        case "table":
            return list(_table(node))
    return _words(node.children).split("\n")


def _items(node: Node) -> Iterator[str]:
    items = [item for item in node.children if isinstance(item, Node)]
    loose = any(isinstance(one, Node) and one.tag == "p" for item in items for one in item.children)
    number = int(node.attrs.get("start", 1))
    for index, item in enumerate(items):
        mark = "• " if node.tag == "ul" else f"{number + index}. "
        if index and loose:
            yield ""
        for line in _lines(item.children, apart=loose) or [""]:
            yield f"{mark}{line}".rstrip()
            mark = " " * len(mark)


def _table(node: Node) -> Iterator[str]:
    rows = [row for row in node.children if isinstance(row, Node)]
    cells = [[cell for cell in row.children if isinstance(cell, Node)] for row in rows]
    texts = [[" ".join(_words(cell.children).split()) for cell in row] for row in cells]
    columns = max(map(len, texts), default=0)
    widths = [0] * columns
    for row in texts:
        for index, text in enumerate(row):
            widths[index] = max(widths[index], min(cells_wide(text), CELL_MAX_CELLS))
    for number, (row, source) in enumerate(zip(texts, cells, strict=True)):
        padded = [
            _padded(text, width, str(cell.attrs.get("align", "")))
            for text, width, cell in zip(row, widths, source, strict=False)
        ]
        yield "  ".join(padded).rstrip()
        if number == 0 and source and source[0].tag == "th":
            yield "  ".join("─" * width for width in widths)


def _padded(text: str, width: int, align: str) -> str:
    room = max(0, width - cells_wide(text))
    before = {"right": room, "center": room // 2}.get(align, 0)
    return " " * before + text + " " * (room - before)


def _words(nodes: Iterable[Node | str]) -> str:
    """The text of what is within a line."""
    found: list[str] = []
    for node in nodes:
        if isinstance(node, str):
            found.append(node)
        elif node.tag == "br":
            found.append("\n")
        elif node.tag == "a":
            label, href = _words(node.children), str(node.attrs.get("href", ""))
            address = href.removeprefix("mailto:")
            found.append(label if label in {href, address} else f"{label} ({address})")
        elif node.tag == "code":
            found.append(f"`{flat(node.children)}`")
        else:
            found.append(_words(node.children))
    return "".join(found)
