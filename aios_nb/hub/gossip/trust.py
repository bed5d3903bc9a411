"""How often others may make us do something dear. Bounded, with the clock given."""

from __future__ import annotations

FORGERIES = 5
"""From one sender; what it tells of nodes is not looked at any more for a while."""
_SHUNNED_S = 60.0
_FORGERS_MAX = 256


class Allowance:
    """So many at once, and one more every so many seconds."""

    def __init__(self, burst: int, every_s: float, now: float) -> None:
        self._burst, self._every_s = burst, every_s
        self._left, self._at = float(burst), now

    def take(self, now: float) -> bool:
        self._left = min(self._burst, self._left + (now - self._at) / self._every_s)
        self._at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True


class Forgers:
    """Who sent us words with wrong signatures: each of them costs a check."""

    def __init__(self) -> None:
        self._of: dict[str, tuple[int, float]] = {}

    def note(self, now: float, node_id: str) -> None:
        count = self._of.pop(node_id, (0, now))[0]
        if len(self._of) >= _FORGERS_MAX:
            del self._of[next(iter(self._of))]
        self._of[node_id] = (count + 1, now + _SHUNNED_S)

    def shunned(self, now: float, node_id: str) -> bool:
        found = self._of.get(node_id)
        if found is None:
            return False
        count, until = found
        if until < now:
            del self._of[node_id]
        return count >= FORGERIES and until >= now
