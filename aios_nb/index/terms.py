"""Documents and questions as lists of words, for the engines that count them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Protocol

import msgspec

from aios_nb.index.documents import Document
from aios_nb.index.spelling import meant
from aios_nb.index.text import clean, content, doings, joined, squeezed, words

TEXT, NAME, TAGS, JOINED = "text", "name", "tags", "joined"
BOOSTS = {TEXT: 1.0, NAME: 0.6, TAGS: 0.3}
"""All words of a document are in its text; one in the name counts once more."""
JOINED_BOOST = 1.0
TERMS_MAX = 48
"""Words of one question that are looked up: the most telling."""
GUESSED = 0.7
"""What a guessed word counts of one that was typed right."""
UNSURE_LETTERS_MIN = 6
"""Where nobody says what is a word, shorter ones are taken as typed."""


IsWord = Callable[[str], bool]
"""Whether a folded word is one, and no slip of the keyboard."""


class Entry(msgspec.Struct, frozen=True):
    """The words of a document, by where they stand."""

    names: list[str]
    tags: list[str]
    rest: list[str]
    joined: str
    """The name written as one word."""


def entry_of(document: Document) -> Entry:
    names = words(clean(f"{document.name} {document.title}"))
    names += [doing for word in names for doing in doings(word)]
    return Entry(
        names,
        words(clean(" ".join(document.tags))),
        words(clean(document.about)) + words(clean(document.extra)),
        squeezed(clean(document.name)),
    )


class Term(msgspec.Struct, frozen=True):
    """A word of a question as the index knows it."""

    stem: str
    typed: str
    meant: str
    """Another spelling where no document has the one that was typed."""
    rarity: float
    """How much it says: few documents have it."""

    @property
    def sureness(self) -> float:
        return 1.0 if self.typed == self.meant else GUESSED

    @property
    def weight(self) -> float:
        return self.rarity * self.sureness


WordsOf = Callable[[int], Iterable[str]]
"""The words of a document by its number, to guess from what was meant."""


class Words(Protocol):
    """Counts the words of numbered documents."""

    def put(self, row: int, entry: Entry) -> None:
        """Add a document under a number that has none."""

    def drop(self, row: int) -> None: ...

    def commit(self) -> None:
        """Let searches see what was put and dropped."""

    def stems(self, found: Sequence[str]) -> list[str]:
        """Each word without its endings."""

    def having(self, stem: str) -> int:
        """How many documents have a word."""

    def alike(self, typed: str, stem: str) -> Iterable[str]:
        """Words of the documents that are spelt nearly so, and maybe others."""

    def named(self, name: str) -> list[int]:
        """The documents whose name, written as one word, is this."""

    def search(
        self, terms: Sequence[Term], names: Sequence[str], limit: int
    ) -> Mapping[int, float]:
        """The best documents by their numbers, with BM25 scores."""

    def __len__(self) -> int: ...


class Asked(msgspec.Struct, frozen=True):
    """A question, or one of the needs in it."""

    text: str
    """With spellings as they were meant."""
    terms: Sequence[Term]
    """The most telling first."""
    joined: str
    """All of it written as one word."""
    names: Sequence[str]
    """What could be an agent's name written as one word."""
    sensible: bool = False
    """Has a word whose meaning is known; without one, nearness says nothing."""

    @property
    def weight(self) -> float:
        return sum(term.rarity for term in self.terms)


def read(question: str, known: Words, is_word: IsWord | None = None) -> Asked:
    """A clean question in the words of the documents."""
    found = words(question, asked=True)
    telling = content(found)
    terms: dict[str, Term] = {}
    for stem, typed in zip(known.stems(telling), telling, strict=True):
        if stem not in terms:
            terms[stem] = _term(stem, typed, known, is_word)
    ordered = sorted(terms.values(), key=lambda term: (-term.weight, term.stem))[:TERMS_MAX]
    names = joined(found[:TERMS_MAX])
    sensible = is_word is not None and any(is_word(term.meant) for term in ordered)
    text = _as_meant(question, ordered)
    return Asked(text, ordered, squeezed(text), names, sensible)


def _term(stem: str, typed: str, known: Words, is_word: IsWord | None) -> Term:
    having = known.having(stem)
    slipped = len(typed) >= UNSURE_LETTERS_MIN if is_word is None else not is_word(typed)
    if not having and slipped:
        guess = meant(typed, known.alike(typed, stem))
        if guess is not None:
            stem = known.stems([guess])[0]
            return Term(stem, typed, guess, rarity(known.having(stem), len(known)))
    return Term(stem, typed, typed, rarity(having, len(known)))


def rarity(having: int, count: int) -> float:
    """The inverse document frequency of BM25; dropped documents may still be among the first."""
    return math.log(1 + (max(count, having) - having + 0.5) / (having + 0.5))


def _as_meant(question: str, terms: Iterable[Term]) -> str:
    if len(question.casefold()) != len(question):  # with ß and a few others, places would differ
        question = question.casefold()
    for term in terms:
        if term.meant != term.typed:
            at = question.casefold().find(term.typed)
            if at >= 0:
                question = question[:at] + term.meant + question[at + len(term.typed) :]
    return question
