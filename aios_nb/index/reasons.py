"""Why a document was found, in one short line."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence

from aios_nb.index.documents import Document
from aios_nb.index.terms import Asked, Term
from aios_nb.index.text import clean, doings, squeezed, words

WORDS_SHOWN = 3
QUOTED_CHARS = 40
ENOUGH = 0.25
"""The share of a question's weight that words of the text must meet to be the reason."""

_CLAUSE = re.compile(r"[.,;:!?()\u3001\u3002]+")

Stems = Callable[[Sequence[str]], Sequence[str]]


def why(document: Document, asked: Asked, stems: Stems) -> str:
    """The words that were met and where they stand, or else the phrase that means the same."""
    name = clean(document.name)
    joined = squeezed(name)
    if joined == asked.joined:
        return "exact name"
    names = words(f"{name} {clean(document.title)}")
    names += [doing for word in names for doing in doings(word)]
    in_name = set(stems(names))
    in_tags = set(stems(words(clean(" ".join(document.tags)))))
    met = [term for term in asked.terms if term.stem in in_name or term.stem in in_tags]
    if met:
        shown = met[:WORDS_SHOWN]
        places = (("name", in_name), ("tag", in_tags))
        where = [place for place, has in places if any(term.stem in has for term in shown)]
        return f"{' and '.join(where)} match: {_listed(shown)}"
    if joined in asked.names:
        return f"name match: {_cut(name)}"
    in_text = set(stems(words(clean(f"{document.about} {document.extra}"))))
    met = [term for term in asked.terms if term.stem in in_text]
    if met and (not asked.sensible or sum(term.rarity for term in met) >= ENOUGH * asked.weight):
        return f"text match: {_listed(met[:WORDS_SHOWN])}"
    return f"close in meaning to '{_phrase(document, joined)}'"


def _listed(terms: Iterable[Term]) -> str:
    return ", ".join(
        term.typed if term.typed == term.meant else f"{term.meant} (for {term.typed})"
        for term in terms
    )


def _phrase(document: Document, joined: str) -> str:
    """What can stand for a document: its title, or how it begins where that only repeats its name.

    To measure which phrase is the nearest would cost more than the search itself.
    """
    title = clean(document.title)
    if title and squeezed(title) != joined:
        return _cut(title)
    clauses = (clause.strip(" '\"-") for clause in _CLAUSE.split(clean(document.about)))
    return _cut(next((clause for clause in clauses if clause), title or clean(document.name)))


def _cut(phrase: str) -> str:
    if len(phrase) <= QUOTED_CHARS:
        return phrase
    short = phrase[: QUOTED_CHARS - 1]
    return (short.rpartition(" ")[0] or short) + "…"
