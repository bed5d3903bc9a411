"""A text taken apart into the words it can be found by.

Both sides go through here, documents and questions, so what is odd in a text is odd in the same
way in both. Nothing of a text reaches an engine's query language.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator

from aios_nb.richtext import one_line

TEXT_MAX_CHARS = 4000
"""Of one field of a document, and of a question."""
WORD_MAX_CHARS = 40
"""The rest of a longer word is not looked at."""
JOINED_MAX_WORDS = 4

_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff"  # Thai, Lao, Burmese, Khmer
    "\u3005-\u3007\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uac00-\ud7af\uf900-\ufaff"
    "\U00020000-\U0003ffff"
)
"""Scripts that do not set words apart; they are cut into pairs of characters."""
_MARKS = "\u0900-\u0dff"
"""Indic scripts, whose vowel signs do not count as letters."""
_TOKEN = re.compile(rf"[{_UNSPACED}]+|(?:[^\W_{_UNSPACED}]|[{_MARKS}])+")
_ASCII_TOKEN = re.compile(r"[A-Za-z0-9]+")
_IS_UNSPACED = re.compile(f"[{_UNSPACED}]")
_POSSESSIVE = re.compile(r"['\u2019]s\b")
_HUMP = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_ACCENT = re.compile("[\u0300-\u036f]")

COMMON = frozenset(
    re.split(
        " ",
        "a about all also am an and any are as at be because been but by can cannot could d did do"
        " does doing don for from get gets give had has have he her here him his how i if in into"
        " is it its just know let like ll m make may me might more most much must my need of off"
        " on one or our out over own please re s shall she should so some such t tell than that"
        " the their them then there these they this those to too under up us use using ve very"
        " want was we were what when where which while who whom why will with would you your",
    )
)
"""Words of any question, which say nothing about what is wanted."""


def clean(text: str) -> str:
    """One line without anything unseen, not longer than a field may be."""
    text = one_line(text[:TEXT_MAX_CHARS])
    return text if text.isascii() else unicodedata.normalize("NFKC", text)


def words(text: str, *, asked: bool = False) -> list[str]:
    """The words of a ``clean`` text in their order, folded; ``asked`` for those of a question."""
    if text.isascii():
        return list(_plain_words(text))
    return list(_words(text, asked=asked))


def _plain_words(text: str) -> Iterator[str]:
    """The same for the letters that most texts are made of, four times as fast."""
    for token in _ASCII_TOKEN.findall(_POSSESSIVE.sub("", text)):
        word = token[:WORD_MAX_CHARS].lower()
        yield word
        if token not in (word, word.capitalize(), word.upper()):
            humps = _HUMP.findall(token)
            if len(humps) > 1:
                yield from (hump[:WORD_MAX_CHARS].lower() for hump in humps)


def _words(text: str, *, asked: bool) -> Iterator[str]:
    for token in _TOKEN.findall(_POSSESSIVE.sub("", text)):
        if _IS_UNSPACED.match(token):
            yield from _pairs(token, asked=asked)
            continue
        if token.isascii():
            yield from _plain_words(token)
        else:
            yield _folded(token)


def _pairs(token: str, *, asked: bool) -> Iterator[str]:
    """Neighbouring characters; single ones too where a question might be a single one."""
    if not asked or len(token) == 1:
        yield from token
    for at in range(len(token) - 1):
        yield token[at : at + 2]


def _folded(word: str) -> str:
    word = word[:WORD_MAX_CHARS].casefold()
    if word.isascii():
        return word
    bare = _ACCENT.sub("", unicodedata.normalize("NFD", word))
    return unicodedata.normalize("NFC", bare)[:WORD_MAX_CHARS]


def content(found: Iterable[str]) -> list[str]:
    """The different words that say something, or all if none does."""
    different = list(dict.fromkeys(found))
    return [word for word in different if word not in COMMON] or different


def squeezed(name: str) -> str:
    """A name without what separates its parts: ``PDF reader`` and ``pdf-reader`` are one."""
    return _folded("".join(_TOKEN.findall(name)))


def doings(word: str) -> tuple[str, ...]:
    """What someone called so does: a ``maker`` makes, a ``planner`` plans, an ``editor`` edits.

    Names of agents are full of these, and a stemmer leaves most of them alone.
    """
    base = word[:-2]
    if not word.endswith(("er", "or")) or len(base) < 3:  # noqa: PLR2004
        return ()
    if base[-1] == base[-2]:
        return (base, base[:-1])
    return (base, base + "e")


def joined(found: Iterable[str]) -> list[str]:
    """Neighbouring words written as one, as names often have them."""
    line = list(found)
    return [
        "".join(line[at : at + count])
        for count in range(1, JOINED_MAX_WORDS + 1)
        for at in range(len(line) - count + 1)
    ]


def is_telling(question: str) -> bool:
    """Whether it has a word that not every other text has too."""
    return bool(set(words(question, asked=True)) - COMMON)
