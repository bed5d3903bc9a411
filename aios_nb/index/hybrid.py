"""Finding by words and by meaning at once."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING

from aios_nb.index.documents import Arrange, Document, Hit, Keep, Scored
from aios_nb.index.fusion import Sight, Weights, fused
from aios_nb.index.needs import in_order, parts
from aios_nb.index.reasons import why
from aios_nb.index.terms import Asked, Words, WordsOf, entry_of, read
from aios_nb.index.text import clean, is_telling, squeezed

if TYPE_CHECKING:
    from aios_nb.index.meaning import Meaning, Near

POOL = 64
"""Candidates from the words, and as many from the meaning."""
WIDER = 8
"""How many times more are looked at when too few may be shown."""
ARRANGED = 3
"""Of how many times the wanted hits an ``arrange`` may choose."""
WEAK = 0.1
"""What has less than this share of the best score is not a hit."""


class HybridIndex:
    """Is a ``documents.Index``. Without ``meaning`` the words alone answer."""

    def __init__(
        self,
        counting: Callable[[WordsOf], Words],
        meaning: Meaning | None = None,
        weights: Weights | None = None,
    ) -> None:
        self._words = counting(self._words_of)
        self._meaning = meaning
        self._weights = weights or Weights()
        self._rows: dict[str, int] = {}
        self._keys: list[str] = []
        self._documents: list[Document | None] = []
        self._free: list[int] = []
        self._waiting = False

    def __len__(self) -> int:
        return len(self._rows)

    def put(self, key: str, document: Document) -> None:
        self.drop(key)
        row = heapq.heappop(self._free) if self._free else len(self._keys)
        if row == len(self._keys):
            self._keys.append(key)
            self._documents.append(document)
        else:
            self._keys[row], self._documents[row] = key, document
        self._rows[key] = row
        self._words.put(row, entry_of(document))
        if self._meaning is not None:
            self._meaning.put(row, document)
        self._waiting = True

    def drop(self, key: str) -> None:
        row = self._rows.pop(key, None)
        if row is None:
            return
        self._documents[row] = None
        heapq.heappush(self._free, row)
        self._words.drop(row)
        if self._meaning is not None:
            self._meaning.drop(row)
        self._waiting = True

    def refresh(self) -> None:
        if self._waiting:
            self._words.commit()
            self._waiting = False

    def _words_of(self, row: int) -> Iterable[str]:
        document = self._documents[row]
        if document is not None:
            entry = entry_of(document)
            yield from (*entry.names, *entry.tags, *entry.rest)

    # Searching -----------------------------------------------------------------------------

    def search(
        self,
        query: str,
        limit: int = 10,
        keep: Keep | None = None,
        arrange: Arrange | None = None,
    ) -> list[Hit]:
        question = clean(query)
        if not question or not self._rows or limit < 1:
            return []
        if not is_telling(question) and not self._words.named(squeezed(question)):
            return []
        is_word = self._meaning.knows if self._meaning is not None else None
        asked = [read(text, self._words, is_word) for text in (question, *parts(question))]
        wanted = limit if arrange is None else limit * ARRANGED
        ranked = self._ranked(asked, wanted, keep, max(POOL, wanted))
        if arrange is not None:
            ranked = list(arrange(ranked))
        return [self._hit(key, score, asked[0]) for key, score in ranked[:limit]]

    def _hit(self, key: str, score: float, asked: Asked) -> Hit:
        document = self._documents[self._rows[key]]
        reason = "" if document is None else why(document, asked, self._words.stems)
        return Hit(key, round(min(1.0, score), 4), reason)

    def _ranked(
        self, asked: Sequence[Asked], limit: int, keep: Keep | None, pool: int
    ) -> list[Scored]:
        found = [self._words.search(each.terms, each.names, pool) for each in asked]
        candidates: set[int] = set().union(*found)
        near = [self._near(each, pool) for each in asked]
        candidates.update(*(each.rows for each in near if each is not None))
        rows = [row for row in candidates if self._may_show(row, keep)]
        if len(rows) < min(limit, len(candidates)) and pool < len(self._keys):
            return self._ranked(asked, limit, keep, pool * WIDER)
        rows.sort(key=self._keys.__getitem__)  # of equal scores, always the same comes first
        scores = []
        for need, lexical, meant in zip(asked, found, near, strict=True):
            sight = Sight(lexical, need.weight)
            if meant is not None:
                sight = Sight(lexical, need.weight, meant.cosines(rows), meant.usual)
            scores.append(fused(rows, sight, self._weights))
        named = set(self._words.named(asked[0].joined))
        scores[0] = [score + (row in named) for row, score in zip(rows, scores[0], strict=True)]
        best = min(1.0, max(scores[0], default=0.0))
        return [
            (self._keys[rows[place]], score)
            for place, score in in_order(scores, limit)
            if score > WEAK * best
        ]

    def _near(self, asked: Asked, count: int) -> Near | None:
        if self._meaning is None or not asked.sensible:
            return None
        return self._meaning.near(asked.text, count)

    def _may_show(self, row: int, keep: Keep | None) -> bool:
        return self._documents[row] is not None and (keep is None or keep(self._keys[row]))
