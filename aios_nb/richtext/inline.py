"""What is within a paragraph: styles, links, code, and lines."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from aios_nb.richtext.links import addresses, allowed, pretended, target
from aios_nb.richtext.safe import plain
from aios_nb.richtext.tree import Node, Tree, flat

if TYPE_CHECKING:
    from markdown_it.token import Token

_STYLES = {"strong": "b", "em": "i", "s": "s", "link": "a"}
_BREAK = re.compile(r"<br\s{0,5}/?>", re.IGNORECASE)
_SHOWN_TARGET_MAX_CHARS = 200


def as_written(text: str) -> Tree:
    """The text with its line ends, nothing of it read as Markdown."""
    nodes: Tree = []
    for index, line in enumerate(text.split("\n")):
        if index:
            nodes.append(Node("br"))
        if line:
            nodes.append(line)
    return nodes


def styled(tokens: list[Token], *, depth_max: int, in_cell: bool = False) -> Tree:
    """The tree of these tokens; styles that are deeper than that are left out, not their text.

    ``<br>`` is read in a table's cell, where it is the only way to write a line end.
    """
    root: Tree = []
    stack: list[tuple[Node | None, Tree]] = [(None, root)]
    links = 0
    for token in tokens:
        children = stack[-1][1]
        if token.nesting > 0:
            node = _opened(token) if len(stack) <= depth_max or token.type == "link_open" else None
            links += token.type == "link_open"
            stack.append((node, children if node is None else node.children))
        elif token.nesting < 0:
            node, _ = stack.pop()
            links -= token.type == "link_close"
            if node is not None:
                stack[-1][1].extend(_closed(node))
        else:
            children += _leaf(token, linked=links > 0, in_cell=in_cell)
    return _joined(root)


def _opened(token: Token) -> Node:
    tag = _STYLES[token.type.removesuffix("_open")]
    return Node(tag, {"href": str(token.attrGet("href") or "")} if tag == "a" else {}, [])


def _closed(node: Node) -> Tree:
    inside = _joined(node.children)
    if node.tag == "a":
        return _link(str(node.attrs["href"]), inside)
    return [Node(node.tag, {}, inside)] if inside else []


def _leaf(token: Token, *, linked: bool, in_cell: bool) -> Tree:
    if token.type in {"softbreak", "hardbreak"}:
        return [Node("br")]
    if token.type == "code_inline":
        return [Node("code", {}, [plain(token.content)])]
    if token.type == "image":
        label = flat(styled(token.children or [], depth_max=0)) or "image"
        href = str(token.attrGet("src") or "")
        return _link(href, [label]) if allowed(href) and not linked else [label]
    text = plain(token.content)
    if in_cell and "<" in text:
        lines = _BREAK.sub("\n", text).split("\n")
        nodes = _with_links(lines[0], linked=linked)
        for line in lines[1:]:
            nodes += [Node("br"), *_with_links(line, linked=linked)]
        return nodes
    return _with_links(text, linked=linked)


def _joined(nodes: Tree) -> Tree:
    """Texts beside each other as one."""
    joined: Tree = []
    for node in nodes:
        if isinstance(node, str) and joined and isinstance(joined[-1], str):
            joined[-1] += node
        elif node != "":
            joined.append(node)
    return joined


def _link(href: str, label: Tree) -> Tree:
    """A link that goes where it says; where that cannot be, its text and its target."""
    text = flat(label)
    if not allowed(href):
        if not href or text == href or len(href) > _SHOWN_TARGET_MAX_CHARS:
            return label
        return [*label, f" ({plain(href)})"]
    link = Node("a", {"href": href}, label if text.strip() else [href])
    return [link, f" ({target(href)})"] if pretended(text, href) else [link]


def _with_links(text: str, *, linked: bool) -> Tree:
    nodes: Tree = []
    at = 0
    for start, end in [] if linked else addresses(text):
        href = _normal(text[start:end])
        if allowed(href):
            nodes += [text[at:start], *_link(href, [text[start:end]])]
            at = end
    nodes.append(text[at:])
    return nodes


def _normal(address: str) -> str:
    from markdown_it.common.normalize_url import normalizeLink

    return normalizeLink(address)
