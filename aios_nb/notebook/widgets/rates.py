"""Bytes a second, out of counters that only grow. No I/O; the clock is the caller's."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Mapping

KEPT = 60
"""Moments that are remembered of the sum."""
GAP_S = 10.0
"""After a longer pause nothing is known of what went on meanwhile."""
_SHARE = 0.4
"""Of the newest measure in the average."""


class Rates:
    """How fast each counter grows, smoothed over a few seconds."""

    def __init__(self) -> None:
        self._counters: dict[str, int] = {}
        self._rates: dict[str, float] = {}
        self._at = -math.inf
        self.past: deque[float] = deque(maxlen=KEPT)
        """The sum of all rates, as it was from moment to moment."""

    def look(self, now: float, counters: Mapping[str, int]) -> Mapping[str, float]:
        """The rate of each, now that they stand so; of one that is new, nothing yet."""
        passed = now - self._at
        if passed > GAP_S:
            self._counters, self._rates = {}, {}
            self.past.clear()
        elif passed > 0:
            self._rates = {
                name: self._rate(name, count, passed) for name, count in counters.items()
            }
            self.past.append(sum(self._rates.values()))
        self._counters, self._at = dict(counters), now
        return self._rates

    def _rate(self, name: str, count: int, passed: float) -> float:
        before = self._counters.get(name)
        if before is None:
            return 0.0
        grown = max(0, count - before) / passed
        rate = self._rates.get(name)
        return grown if rate is None else rate + _SHARE * (grown - rate)


def rounded(rate: float) -> int:
    """With two digits that count: a page is not told of less."""
    return int(float(f"{rate:.2g}"))
