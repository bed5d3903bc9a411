"""Text from agents and strangers: made safe, read as Markdown, shown anywhere.

::

    text ── plain, one_line, PlainStream ──> text for terminals and logs
    text ── parse, Growing ──> tree ── to_data ──> the elements of a page
                                    ── to_html ──> saved notebooks
                                    ── to_text ──> terminals
    text ── gist ──> one line of a list

The tree knows no HTML, no pictures, and no links but web and mail; a page makes elements and text
of it, and never reads it as HTML. What needs the tree is loaded on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from aios_nb.richtext.safe import HELD_MAX_CHARS, PlainStream, one_line, plain

if TYPE_CHECKING:
    from aios_nb.richtext.growing import Growing, parse
    from aios_nb.richtext.html import NO_MATH, to_html
    from aios_nb.richtext.text import gist, to_text
    from aios_nb.richtext.tree import TAGS, Node, Tree, flat, to_data
    from aios_nb.richtext.width import cells_wide

__all__ = [
    "HELD_MAX_CHARS",
    "NO_MATH",
    "TAGS",
    "Growing",
    "Node",
    "PlainStream",
    "Tree",
    "cells_wide",
    "flat",
    "gist",
    "one_line",
    "parse",
    "plain",
    "to_data",
    "to_html",
    "to_text",
]

_LATE = {
    "growing": ("Growing", "parse"),
    "html": ("NO_MATH", "to_html"),
    "text": ("gist", "to_text"),
    "tree": ("TAGS", "Node", "Tree", "flat", "to_data"),
    "width": ("cells_wide",),
}


def __getattr__(name: str) -> Any:
    for module, names in _LATE.items():
        if name in names:
            return getattr(import_module(f"{__name__}.{module}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
