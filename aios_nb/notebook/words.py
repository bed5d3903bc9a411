"""How a typed line is made of words: blanks, quotes, and a remark behind them."""

from __future__ import annotations

import re

_SPACE = re.compile(r"\s*")
_BARE = re.compile(r"\S+")
_QUOTED = re.compile(r"'([^']*)'(?=\s|\Z)|\"((?:[^\"\\]|\\.)*)\"(?=\s|\Z)", re.DOTALL)
_REMARK = re.compile(r"#(?:\s|\Z)")
_SET = re.compile(r"--?[A-Za-z][A-Za-z-]*=")
_ESCAPED = re.compile(r"\\([\"\\])")
_TO_ESCAPE = re.compile(r"[\"\\]")
_NEEDS_QUOTES = re.compile(r"\A-|[\s'\"]")
"""A bare word may have a quote in it; behind a question only one without is an option's value."""


def skip(text: str, at: int) -> int:
    """Where the next word begins."""
    found = _SPACE.match(text, at)
    return found.end() if found else at


def word_at(text: str, at: int) -> tuple[str, int]:
    """The word that begins here, without its quotes, and where it ends."""
    found = _QUOTED.match(text, at)
    if found:
        return _inside(found), found.end()
    bare = _BARE.match(text, at)
    return (bare[0], bare.end()) if bare else ("", at)


def begins_remark(text: str, at: int) -> bool:
    """Whether ``# `` stands here: ``#1`` is a word."""
    return _REMARK.match(text, at) is not None


def without_remark(text: str, gap: int, stop: str = "") -> str:
    """What stands before a remark.

    A remark begins where a word would, ``gap`` blanks behind the last one. ``stop``: the word
    behind which there are none.
    """
    end, at = 0, skip(text, 0)
    while at < len(text):
        if begins_remark(text, at) and (end == 0 or at - end >= gap):
            return text[:end]
        given = _SET.match(text, at)  # --name='a # b'
        word, end = word_at(text, given.end() if given else at)
        if word == stop:
            return text
        at = skip(text, end)
    return text


def typed(fragment: str) -> str:
    """What a word says so far: its quotes, if it begins with one, may be open."""
    if fragment.startswith("'"):
        return fragment[1:].removesuffix("'")
    if not fragment.startswith('"'):
        return fragment
    whole = _QUOTED.fullmatch(fragment)
    return _inside(whole) if whole else _ESCAPED.sub(r"\1", fragment[1:])


def quoted(text: str, mark: str = "") -> str:
    """A word that says this. ``mark``: the quote that stands before it already."""
    if not mark and not _NEEDS_QUOTES.search(text):
        return text
    if "'" not in text and mark != '"':
        return f"'{text}'"
    return '"' + _TO_ESCAPE.sub(r"\\\g<0>", text) + '"'


def unquoted(text: str) -> str:
    """Without the quotes around all of it, if that is where they are."""
    found = _QUOTED.fullmatch(text)
    return _inside(found) if found else text


def _inside(found: re.Match[str]) -> str:
    return found[1] if found[1] is not None else _ESCAPED.sub(r"\1", found[2])
