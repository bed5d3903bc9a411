"""Words and meaning as one score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec


class Weights(msgspec.Struct, frozen=True):
    """How much words count against meaning; chosen on one half of the labelled questions."""

    words_low: float = 0.2
    """When hardly anything of the question is met by words."""
    words_high: float = 0.7
    """When some document has all its words."""
    met_at: float = 1.5
    """The best BM25 score for each unit of a question's weight that counts as all."""


class Sight(msgspec.Struct, frozen=True):
    """What words and meaning say about the candidates for one need."""

    lexical: Mapping[int, float]
    asked_weight: float
    cosines: Sequence[float] = ()
    """In the order of the candidates; empty where meaning says nothing."""
    usual: float = 0.0
    """The mean over all documents."""


def fused(rows: Sequence[int], sight: Sight, weights: Weights) -> list[float]:
    """One score for each candidate, 0 to 1."""
    top = max(sight.lexical.values(), default=0.0)
    by_words = [sight.lexical.get(row, 0.0) / top if top else 0.0 for row in rows]
    if not sight.cosines:
        return by_words
    full = sight.asked_weight * weights.met_at
    evidence = min(1.0, top / full) if full else 0.0
    share = weights.words_low + (weights.words_high - weights.words_low) * evidence
    if not top:
        share = 0.0
    reach = max(max(sight.cosines) - sight.usual, 1e-6)
    return [
        share * word + (1 - share) * max(0.0, cosine - sight.usual) / reach
        for word, cosine in zip(by_words, sight.cosines, strict=True)
    ]
