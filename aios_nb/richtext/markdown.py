"""Markdown, read as a tree: CommonMark with tables and strike-through, without HTML.

What differs from CommonMark, and why: a line end in a paragraph stays one, because agents answer
in lines; there are no reference links, because a definition at the end of a text would change its
beginning; pictures are links, because loading one tells its owner who reads.
"""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from aios_nb.richtext.highlight import highlight
from aios_nb.richtext.inline import as_written, styled
from aios_nb.richtext.safe import plain
from aios_nb.richtext.tree import Node, Tree

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.rules_core import StateCore
    from markdown_it.token import Token

INLINE_MAX_CHARS = 16_000
"""A longer paragraph or cell is shown as it is written."""
DEPTH_MAX = 20
"""Quotes and lists within each other, and styles within each other; more is shown as written."""
SPARE_CELLS_MAX = 2_000
"""A table may need so many cells that nobody wrote; 6 KB can ask for 65,000."""

_UNDER_HEAD = frozenset("|:- \t>*+.)0123456789")
_BLOCKS = {
    "blockquote": "quote",
    "bullet_list": "ul",
    "heading": "h",
    "list_item": "li",
    "ordered_list": "ol",
    "paragraph": "p",
    "table": "table",
    "tbody": "",
    "td": "td",
    "th": "th",
    "thead": "",
    "tr": "tr",
}
_TASK = re.compile(r"\[([ xX])\](?=\s)")
_LANG = re.compile(r"[a-z0-9][a-z0-9+#.-]{0,19}")


def read(text: str) -> list[Node]:
    """The blocks of the text."""
    if not text.strip():
        return []
    tokens = [] if _blows_up(text) else _parser().parse(text)
    too_deep = any(token.nesting == 1 and token.level >= DEPTH_MAX - 1 for token in tokens)
    if too_deep or not tokens:  # the parser drops what is deeper
        return [Node("pre", {}, [text.strip("\n")])]
    return [block for block in _blocks(tokens) if isinstance(block, Node)]


def _blows_up(text: str) -> bool:
    """Whether it has a table whose short rows would be filled up with very many cells."""
    lines = text.split("\n")
    widest = max((line.count("|") for line in lines if _UNDER_HEAD.issuperset(line)), default=0)
    return widest * len(lines) > 2 * text.count("|") + SPARE_CELLS_MAX


@cache
def _parser() -> MarkdownIt:
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark", {"html": False, "maxNesting": DEPTH_MAX})
    parser.enable(["table", "strikethrough"])
    parser.disable(["reference", "html_block", "html_inline"])
    parser.core.ruler.at("inline", _bounded_inline)
    return parser


def _bounded_inline(state: StateCore) -> None:
    for token in state.tokens:
        if token.type == "inline":
            token.children = []
            if len(token.content) <= INLINE_MAX_CHARS:
                state.md.inline.parse(token.content, state.md, state.env, token.children)


def _blocks(tokens: list[Token]) -> Tree:
    root: Tree = []
    stack: list[tuple[Node | None, Tree]] = [(None, root)]
    for token in tokens:
        children = stack[-1][1]
        if token.nesting == 1:
            node = _opened(token)
            stack.append((node, children if node is None else node.children))
        elif token.nesting == -1:
            node, _ = stack.pop()
            if node is not None and (node.children or node.tag in {"th", "td", "li"}):
                stack[-1][1].append(node)
        elif token.type == "inline":
            children += _inline(token, stack[-1][0])
        elif token.type == "hr":
            children.append(Node("hr"))
        elif token.type in {"fence", "code_block"}:
            children += _code(token)
    _mark_tasks(root)
    return root


def _opened(token: Token) -> Node | None:
    """The node that begins here; None where its children belong to what is around it."""
    tag = _BLOCKS[token.type.removesuffix("_open")]
    if not tag or token.hidden:
        return None
    attrs: dict[str, str | int] = {}
    if tag == "h":
        attrs["level"] = int(token.tag[1:])
    elif tag == "ol":
        attrs["start"] = int(token.attrGet("start") or 1)
    elif tag in {"th", "td"}:
        align = str(token.attrGet("style") or "").removeprefix("text-align:")
        if align in {"left", "right", "center"}:
            attrs["align"] = align
    return Node(tag, attrs, [])


def _inline(token: Token, block: Node | None) -> Tree:
    if not token.children:
        return as_written(plain(token.content))
    in_cell = block is not None and block.tag in {"th", "td"}
    return styled(token.children, depth_max=DEPTH_MAX, in_cell=in_cell)


def _code(token: Token) -> Tree:
    code = plain(token.content).removesuffix("\n")
    if not code:
        return []
    word = (token.info.split() or [""])[0].strip("{}.").lower()
    lang = word if _LANG.fullmatch(word) else ""
    return [Node("pre", {"lang": lang} if lang else {}, highlight(code, lang))]


def _mark_tasks(nodes: Tree) -> None:
    """``[ ]`` and ``[x]`` at the beginning of a list item become boxes."""
    for node in nodes:
        if isinstance(node, str):
            continue
        _mark_tasks(node.children)
        if node.tag == "li" and node.children:
            first = node.children[0]
            inside = first.children if isinstance(first, Node) and first.tag == "p" else None
            texts = node.children if inside is None else inside
            if texts and isinstance(texts[0], str) and (task := _TASK.match(texts[0])):
                box = "☐" if task[1] == " " else "☑"
                texts[0] = box + texts[0][task.end() :]
