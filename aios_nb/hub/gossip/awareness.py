"""How well this node itself is, so that a slow node doubts itself before it doubts others.

Lifeguard (arXiv 1707.00788): a node that misses answers it should have got is more likely busy than
surrounded by the dead. The worse it is, the longer it waits and the less often it asks.
"""

from __future__ import annotations

WORST = 8


class Awareness:
    """A score from 0, well, to 8."""

    def __init__(self) -> None:
        self.score = 0

    def better(self) -> None:
        self.score = max(0, self.score - 1)

    def worse(self) -> None:
        self.score = min(WORST, self.score + 1)

    def scale(self, seconds: float) -> float:
        """So much longer for a node that is not well."""
        return seconds * (self.score + 1)
