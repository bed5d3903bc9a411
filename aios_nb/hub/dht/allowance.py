"""How many questions a peer may ask: so many a second, and a burst now and then."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable

PEERS_MAX = 4096


class Allowance:
    """A bucket of questions for each peer; those not heard for longest are forgotten."""

    def __init__(
        self, clock: Callable[[], float], per_s: float, burst: float, peers_max: int = PEERS_MAX
    ) -> None:
        self._clock = clock
        self._per_s = per_s
        self._burst = burst
        self._peers_max = peers_max
        self._left: OrderedDict[Hashable, tuple[float, float]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._left)

    def take(self, peer: Hashable) -> bool:
        """Whether this peer may ask now."""
        now = self._clock()
        left, at = self._left.pop(peer, (self._burst, now))
        left = min(self._burst, left + (now - at) * self._per_s)
        allowed = left >= 1.0
        self._left[peer] = (left - 1.0 if allowed else left, now)
        if len(self._left) > self._peers_max:
            self._left.popitem(last=False)
        return allowed
