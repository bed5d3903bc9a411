"""The words of the documents in plain Python, for when tantivy cannot be loaded."""

from __future__ import annotations

import heapq
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from aios_nb.index.spelling import slips_in
from aios_nb.index.terms import (
    BOOSTS,
    JOINED,
    JOINED_BOOST,
    NAME,
    TAGS,
    TEXT,
    Entry,
    Term,
    WordsOf,
    rarity,
)

_SATURATION = 1.2
_LENGTH_SHARE = 0.75
"""The usual two numbers of BM25."""
_ENDINGS = ("ations", "ation", "ings", "ing", "ers", "ies", "es", "er", "ed", "e", "s", "y")
_STEM_LETTERS = 3


class PlainWords:
    """Is a ``terms.Words``."""

    def __init__(self, words_of: WordsOf) -> None:
        del words_of  # it keeps them all itself
        self._rows: dict[str, dict[str, dict[int, int]]] = {
            field: defaultdict(dict) for field in (*BOOSTS, JOINED)
        }
        """How often a document has a stem, by field and stem."""
        self._stems_of: dict[int, list[tuple[str, str]]] = {}
        self._length: dict[int, int] = {}
        self._total_length = 0
        self._spelt: Counter[str] = Counter()
        self._spellings: dict[int, set[str]] = {}

    def __len__(self) -> int:
        return len(self._length)

    def put(self, row: int, entry: Entry) -> None:
        every = [*entry.names, *entry.tags, *entry.rest]
        texts = {NAME: entry.names, TAGS: entry.tags, TEXT: every}
        counts = [
            (field, stem, often)
            for field, found in texts.items()
            for stem, often in Counter(self.stems(found)).items()
        ]
        counts.append((JOINED, entry.joined, 1))
        for field, stem, often in counts:
            self._rows[field][stem][row] = often
        self._stems_of[row] = [(field, stem) for field, stem, _ in counts]
        self._length[row] = len(every)
        self._total_length += len(every)
        self._spelt.update(set(every))
        self._spellings[row] = set(every)

    def drop(self, row: int) -> None:
        for field, stem in self._stems_of.pop(row):
            rows = self._rows[field][stem]
            del rows[row]
            if not rows:
                del self._rows[field][stem]
        self._total_length -= self._length.pop(row)
        for word in self._spellings.pop(row):
            self._spelt[word] -= 1
            if not self._spelt[word]:
                del self._spelt[word]

    def commit(self) -> None:
        """Nothing waits here."""

    def stems(self, found: Sequence[str]) -> list[str]:
        return [_stem(word) for word in found]

    def having(self, stem: str) -> int:
        return len(self._rows[TEXT].get(stem, ()))

    def alike(self, typed: str, stem: str) -> Iterable[str]:
        del stem
        most = slips_in(typed)
        return [
            word
            for word in self._spelt
            if word.startswith(typed) or abs(len(word) - len(typed)) <= most
        ]

    def named(self, name: str) -> list[int]:
        return list(self._rows[JOINED].get(name, ()))

    def search(self, terms: Sequence[Term], names: Sequence[str], limit: int) -> dict[int, float]:
        scores: dict[int, float] = defaultdict(float)
        usual = max(1.0, self._total_length / max(1, len(self)))
        for term in terms:
            for field, boost in BOOSTS.items():
                for row, often in self._rows[field].get(term.stem, {}).items():
                    long = 1 - _LENGTH_SHARE + _LENGTH_SHARE * self._length[row] / usual
                    count = often * (_SATURATION + 1) / (often + _SATURATION * long)
                    scores[row] += boost * term.weight * count
        for name in names:
            rows = self._rows[JOINED].get(name, {})
            for row in rows:
                scores[row] += JOINED_BOOST * rarity(len(rows), len(self))
        return dict(heapq.nsmallest(limit, scores.items(), key=lambda item: (-item[1], item[0])))


def _stem(word: str) -> str:
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= _STEM_LETTERS:
            return word[: -len(ending)]
    return word
