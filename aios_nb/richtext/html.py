"""A rich-text tree as HTML for notebooks that are saved, sent and published."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape
from typing import TypeAlias

from aios_nb.richtext.links import allowed
from aios_nb.richtext.tree import Node

NO_MATH = "mathjax_ignore tex2jax_ignore"
"""Classes that keep MathJax away: it would set "$5 or $6" as a formula."""

# The page's own colours where it has some; else grey that can be read on white and on black.
_EDGE = "var(--jp-border-color2,rgba(127,127,127,.4))"
_SHADE = "rgba(127,127,127,.12)"
_MONO = "var(--jp-code-font-family,ui-monospace,Menlo,Consolas,monospace)"
_CODE = f"font-family:{_MONO};font-size:92%;background:{_SHADE};border-radius:4px;padding:1px 4px"
_BLOCK = (
    f"margin:6px 0;padding:8px 10px;overflow:auto;border:1px solid {_EDGE};border-radius:7px;"
    f"background:{_SHADE};color:inherit;font:12px/1.5 {_MONO};white-space:pre"
)
# Jupyter shades it once more, and breaks its lines.
_BARE = "background:none;padding:0;color:inherit;font:inherit;white-space:inherit"
_CELL = f"border:1px solid {_EDGE};padding:3px 8px;vertical-align:top;text-align:"
_LIST = "margin:2px 0 6px;padding-left:22px"
_COLOURS = {
    "k": "color:var(--jp-mirror-editor-keyword-color,#2f7fd0)",
    "s": "color:var(--jp-mirror-editor-string-color,#3b9a5b)",
    "c": "color:var(--jp-mirror-editor-comment-color,#7f8b93);font-style:italic",
    "n": "color:var(--jp-mirror-editor-number-color,#9070d0)",
    "f": "color:var(--jp-mirror-editor-def-color,#2f7fd0)",
}

_Element: TypeAlias = tuple[str, dict[str, str]]
_ALWAYS: dict[str, list[_Element]] = {
    "p": [("p", {"style": "margin:2px 0 6px"})],
    "b": [("strong", {})],
    "i": [("em", {})],
    "s": [("del", {})],
    "code": [("code", {"style": _CODE})],
    "pre": [
        ("pre", {"class": "aios-code", "style": _BLOCK, "tabindex": "0"}),
        ("code", {"style": _BARE}),
    ],
    "quote": [
        (
            "blockquote",
            {"style": f"margin:4px 0;padding:0 10px;border-left:3px solid {_EDGE}"},
        )
    ],
    "ul": [("ul", {"style": _LIST})],
    "li": [("li", {})],
    "table": [
        ("div", {"class": "aios-scroll", "style": "overflow:auto;max-width:100%", "tabindex": "0"}),
        ("table", {"class": "aios-table", "style": "border-collapse:collapse;margin:6px 0"}),
    ],
    "tr": [("tr", {})],
}


def to_html(nodes: Iterable[Node | str]) -> str:
    """One ``div``, every text in it escaped; it needs no style sheet and runs no script."""
    inside = "".join(map(_html, nodes))
    return f'<div class="aios-rich {NO_MATH}" style="overflow-wrap:anywhere">{inside}</div>'


def _html(node: Node | str) -> str:
    if isinstance(node, str):
        return escape(node)
    if node.tag in {"br", "hr"}:
        return f"<{node.tag}>"
    inside = "".join(map(_html, node.children))
    elements = _ALWAYS.get(node.tag)
    for tag, attrs in reversed(_by_attributes(node) if elements is None else elements):
        written = "".join(f' {name}="{escape(value)}"' for name, value in attrs.items())
        inside = f"<{tag}{written}>{inside}</{tag}>"
    return inside


def _by_attributes(node: Node) -> list[_Element]:
    """The elements around the children, outermost first; none for what is not known."""
    if node.tag in {"th", "td"}:
        align = str(node.attrs.get("align"))
        return [(node.tag, {"style": _CELL + (align if align in {"right", "center"} else "left")})]
    if node.tag == "h":
        level = min(6, max(1, int(node.attrs.get("level", 1))) + 2)
        return [(f"h{level}", {"style": "margin:8px 0 4px"})]
    if node.tag == "ol":
        return [("ol", {"start": str(int(node.attrs.get("start", 1))), "style": _LIST})]
    if node.tag == "tok" and (colour := _COLOURS.get(str(node.attrs.get("c")))):
        return [("span", {"class": f"aios-tok-{node.attrs['c']}", "style": colour})]
    if node.tag == "a" and allowed(href := str(node.attrs.get("href"))):
        return [("a", {"href": href, "target": "_blank", "rel": "noopener noreferrer"})]
    return []
