"""Questions that ask for two things, and answers that have something for each."""

from __future__ import annotations

import re
from collections.abc import Sequence

from aios_nb.index.text import COMMON, words

NEEDS_MAX = 4
"""A text with more parts is a story, not a list of needs."""
COVER = 0.8
"""What it is worth to meet a need that nothing before it meets, next to the question as a whole."""
TURNS = 3
"""How many places are given out with an eye on each need; the rest follow the whole question."""
PROMISING = 20
"""Candidates that are looked at for such a place: the best for the whole and for each need."""

_BREAK = re.compile(
    r"[.;:!?\n\u3001\u3002]+|(?:,\s+|(?<=[^\x00-\x7f]),)(?:(?:and|then|also)\s+)*"
    r"|\s+(?:&|\+|and(?:\s+then|\s+also)?|then|also|as\s+well\s+as|plus|und|et)\s+",
    re.IGNORECASE,
)


def parts(question: str) -> list[str]:
    """The needs in a question, if there are several."""
    found = [part.strip() for part in _BREAK.split(question)]
    telling = [part for part in found if set(words(part, asked=True)) - COMMON]
    return telling if 1 < len(telling) <= NEEDS_MAX else []


def in_order(scores: Sequence[Sequence[float]], limit: int) -> list[tuple[int, float]]:
    """The places of the best, with a score that never rises.

    ``scores[0]`` has one number for each candidate, for the question as a whole; the others have
    them for its needs. A candidate gains by what it adds for a need to those chosen before it.
    """
    whole, needs = scores[0], scores[1:]
    chosen = _for_each(whole, needs, min(limit, TURNS * len(needs)))
    taken = dict(chosen)
    ceiling = chosen[-1][1] if chosen else max(whole, default=0.0)
    for place in _best(whole, limit + len(chosen)):
        if place not in taken and len(chosen) < limit:
            chosen.append((place, min(whole[place], ceiling)))
    return chosen


def _for_each(
    whole: Sequence[float], needs: Sequence[Sequence[float]], count: int
) -> list[tuple[int, float]]:
    met = [0.0] * len(needs)
    left = {place for scores in (whole, *needs) for place in _best(scores, PROMISING)}
    chosen: list[tuple[int, float]] = []
    ceiling = max(whole, default=0.0)
    while left and len(chosen) < count:
        values = {
            place: whole[place]
            + COVER * max(max(0.0, need[place] - had) for need, had in zip(needs, met, strict=True))
            for place in left
        }
        place = min(left, key=lambda place: (-values[place], place))
        ceiling = min(ceiling, values[place])
        chosen.append((place, ceiling))
        left.remove(place)
        met = [max(had, need[place]) for need, had in zip(needs, met, strict=True)]
    return chosen


def _best(scores: Sequence[float], count: int) -> list[int]:
    return sorted(range(len(scores)), key=scores.__getitem__, reverse=True)[:count]
