"""Code in colours.

Five colours need no grammar, and the code may come from a stranger. Lexers made for editors can be
held up by it, and the node's loop with them: Pygments takes 0.7 s for 6 KB of nearly empty lines as
Python, and minutes for some Scala.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache

from aios_nb.richtext.languages import DEFINING, LANGUAGES, MARKUP, NUMBER
from aios_nb.richtext.tree import Node, Tree

CODE_MAX_CHARS = 50_000
"""Longer code stays plain: its colours would weigh more than itself."""

_NAMES = {name: names for names in LANGUAGES for name in names.split()}


def highlight(code: str, lang: str) -> Tree:
    """The code as texts and ``tok`` nodes; as it is if the language is not known."""
    if len(code) > CODE_MAX_CHARS:
        return [code]
    if lang in {"diff", "patch"}:
        return _merged(_changes(code))
    if lang not in _NAMES:
        return [code]
    return _merged(_tokens(code, _NAMES[lang], markup=lang in MARKUP))


def _merged(tokens: Iterator[tuple[str, str]]) -> Tree:
    nodes: Tree = []
    colour, run = "", ""
    for now, text in tokens:
        if now != colour and not text.isspace():
            if run:
                nodes.append(Node("tok", {"c": colour}, [run]) if colour else run)
            colour, run = now, ""
        run += text
    if run:
        nodes.append(Node("tok", {"c": colour}, [run]) if colour else run)
    return nodes


def _changes(code: str) -> Iterator[tuple[str, str]]:
    colours = {"+": "s", "-": "c", "@": "k"}
    for line in code.splitlines(keepends=True):
        yield colours.get(line[:1], ""), line


def _tokens(code: str, names: str, *, markup: bool) -> Iterator[tuple[str, str]]:
    language = LANGUAGES[names]
    words = _words(names)
    at, defining = 0, False
    for found in _pattern(names).finditer(code):
        if found.start() > at:
            yield "", code[at : found.start()]
        at, text, colour = found.end(), found.group(), found.lastgroup or ""
        following = code[at : at + 4].lstrip(" ")[:1] if language.keys else ""
        if colour in {"s", "w"} and following and following == language.keys:
            colour = "f"
        elif colour == "w":
            known = (text.lower() if language.any_case else text) in words
            colour = "k" if known else "f" if defining else ""
            if markup and code[found.start() - 1 : found.start()] in {"<", "/"}:
                colour = "k"
        defining = text in DEFINING and colour == "k"
        yield colour, text
    if at < len(code):
        yield "", code[at:]


@cache
def _words(names: str) -> frozenset[str]:
    language = LANGUAGES[names]
    words = frozenset(language.words.split())
    return frozenset(word.lower() for word in words) if language.any_case else words


@cache
def _pattern(names: str) -> re.Pattern[str]:
    language = LANGUAGES[names]
    return re.compile(
        f"(?P<c>{language.comments})|(?P<s>{language.strings})|(?P<f>{language.names})"
        f"|(?P<n>{NUMBER})|(?P<w>{language.word})"
    )
