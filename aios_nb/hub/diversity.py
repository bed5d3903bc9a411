"""A page of hits that no single node fills."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from aios_nb.index.documents import Scored

FREE = 2
"""Hits of one node that stand where their score puts them."""
DISCOUNT = 0.7
"""What each further one counts of the one before."""


def diverse(ranked: Iterable[Scored], publisher: Callable[[str], str]) -> list[Scored]:
    """The same hits, best first, when each further one of the same node counts for less.

    Nothing is left out, and hits of one node keep their order among themselves.
    """
    seen: dict[str, int] = {}
    found = []
    for place, (key, score) in enumerate(ranked):
        whose = publisher(key)
        many = seen[whose] = seen.get(whose, 0) + 1
        found.append((-score * DISCOUNT ** max(0, many - FREE), place, key))
    return [(key, -worth) for worth, _, key in sorted(found)]
