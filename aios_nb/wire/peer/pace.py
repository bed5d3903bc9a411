"""How much of the node's time goes to what strangers send. No I/O; the clock is given.

A search takes longer than the packet that asks for it. Whoever sends such packets without end must
not have the loop to itself: the owner and known nodes would stand in a queue behind strangers.
"""

from __future__ import annotations

from collections.abc import Callable

STRANGERS_SHARE = 0.5
"""Of the loop, for all strangers together."""
BURST_S = 0.02
"""Work in one piece before it is worth a rest."""


class Pace:
    """Says how long to read nothing more from strangers."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._rested_at = clock()
        """When all that was done for them is made up for."""

    def rest_s(self, worked_s: float) -> float:
        """How long to rest now, after so much work for one of them."""
        now = self._clock()
        self._rested_at = max(self._rested_at, now - worked_s) + worked_s / STRANGERS_SHARE
        rest = self._rested_at - now
        return rest if rest > BURST_S else 0.0
