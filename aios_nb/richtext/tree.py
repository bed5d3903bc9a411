"""Rich text as a tree: what Markdown becomes, and what every face of it is made from."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, TypeAlias

import msgspec

TAGS = frozenset(
    {"p", "h", "b", "i", "s", "code", "pre", "quote", "ul", "ol", "li", "a", "br", "hr", "tok"}
    | {"table", "tr", "th", "td"}
)
"""Attributes: ``h`` level, ``pre`` lang, ``ol`` start, ``a`` href, ``th`` and ``td`` align,
``tok`` c: k keyword, s string, c comment, n number, f name of a function or class."""


class Node(msgspec.Struct, array_like=True, frozen=True):
    """One element; in JSON ``[tag, attributes, children]``."""

    tag: str
    attrs: dict[str, str | int] = {}
    children: list[Node | str] = []


Tree: TypeAlias = list[Node | str]


def flat(nodes: Iterable[Node | str]) -> str:
    """The bare text of a tree; a line break is a new line."""
    found: list[str] = []
    for node in nodes:
        if isinstance(node, str):
            found.append(node)
        elif node.tag == "br":
            found.append("\n")
        else:
            found.append(flat(node.children))
    return "".join(found)


def to_data(nodes: Iterable[Node | str]) -> list[Any]:
    """Lists, dicts and texts, as a page gets them."""
    return [msgspec.to_builtins(node) for node in nodes]
