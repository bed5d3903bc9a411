"""How many nodes there are, told from how densely they lie; and how far a key's region reaches."""

from __future__ import annotations

import statistics
from collections import deque
from collections.abc import Sequence

from aios_nb.hub.dht.keys import SPACE

_SAMPLES = 15
CROWD = 8
_CROWD_EXPECTED = 2.0
"""Eight where two are expected is chance once in a thousand, or somebody's work."""


class Size:
    """The median over several places, so that a crowd at one of them changes little."""

    def __init__(self) -> None:
        self._samples: deque[float] = deque(maxlen=_SAMPLES)

    def sample(self, distances: Sequence[int]) -> None:
        """So far are the nearest nodes from some point, in order; all of them are known."""
        if distances:
            self._samples.append(density(distances))

    def clear(self) -> None:
        """Those samples are old."""
        self._samples.clear()

    def estimate(self, around_here: Sequence[int], known: int) -> float:
        """How many nodes there are besides this one; never fewer than are known.

        ``around_here`` are the distances of the nearest, in order. If the nearer half of them lie
        closer together than all of them, somebody may have crowded in: the lesser density counts.
        """
        half = around_here[: -(-len(around_here) // 2)]
        here = min((density(each) for each in (half, around_here) if each), default=0.0)
        return max(float(known), statistics.median([here, *self._samples]))


def density(distances: Sequence[int]) -> float:
    """How many nodes there are if they are everywhere as near to each other as these."""
    return len(distances) * SPACE / (distances[-1] + 1)


def radius(nodes: float, wanted: int) -> int:
    """The distance within which ``wanted`` of that many nodes are expected."""
    return SPACE if nodes <= wanted else int(SPACE / nodes * wanted)


def is_crowd(distances: Sequence[int], nodes: float) -> bool:
    """Whether so many nodes lie so near to a point that somebody put them there."""
    near = SPACE / nodes * _CROWD_EXPECTED if nodes else 0.0
    return sum(distance < near for distance in distances) >= CROWD
