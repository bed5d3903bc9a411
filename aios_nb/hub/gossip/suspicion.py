"""From the first unanswered probe of a node to calling it dead, and what others' word counts.

Everyone decides for itself: what others claim makes us look sooner and wait less long, by bounded
amounts, but a node is dead for us only after our own probes failed, direct and through others.
"""

from __future__ import annotations

import math
from collections.abc import Collection

CONFIRMATIONS = 3
"""So many others who say the same make the shortest doubt."""
_LONGEST_FACTOR = 2.0
"""Without any of them the doubt is so much longer."""
_EARLIER_SHARE = 0.4
"""By so much of the doubt another's claim can put its beginning before our own first probe."""
_CHECKS = (0.15, 0.4, 0.7)
"""Of the doubt: when the suspect is probed again; first soon, for most doubts are lost packets."""
_ROUNDS_LEAST = 2
"""Own probes that failed before anyone is dead."""
_ROUNDS_LASTING = 3
"""Own probes that failed before the suspect is told. Its answer goes to everyone, so with many
nodes and many lost packets two would make a stream of answers that grows with the network."""
_TRUSTED_DOUBTS, _TRUSTED_TIMES = 2.0, 3
"""How long, in times of doubt, and how often hearsay counts."""
_ACCUSERS_MAX = 16
_ACCUSED_MAX = 512
_CLAIM_LIFE_S = 60.0


class Suspicion:
    """Our own doubt about one node, begun when its first failed probe was sent."""

    __slots__ = ("rounds", "since", "vouched")

    def __init__(self, since: float, *, vouched: bool) -> None:
        self.since = since
        self.vouched = vouched
        """Whether someone says that it answers, against the word of several others: then we take
        our time, as if nobody had said anything."""
        self.rounds = 1
        """Own probes that failed."""

    @property
    def lasts(self) -> bool:
        """Whether it is more than a few lost packets."""
        return self.rounds >= _ROUNDS_LASTING

    def origin(self, doubt_s: float, claimed: Collection[float]) -> float:
        """When it was first silent, as far as others may tell us."""
        if self.vouched:
            return self.since
        earliest = min(claimed, default=self.since)
        return max(min(earliest, self.since), self.since - _EARLIER_SHARE * doubt_s)

    def check_at(self, doubt_s: float, claimed: Collection[float]) -> float | None:
        """When to probe it again; None if that was done."""
        if self.rounds > len(_CHECKS):
            return None
        return self.origin(doubt_s, claimed) + _CHECKS[self.rounds - 1] * doubt_s

    def dead_at(self, doubt_s: float, claimed: Collection[float], others: int) -> float | None:
        """When it is dead if nothing is heard of it; None if we have not looked enough.

        ``others`` is how many could agree: where nobody else is, nobody is waited for.
        """
        if self.rounds < _ROUNDS_LEAST:
            return None
        possible = min(CONFIRMATIONS, others)
        agreed = 0 if self.vouched else min(len(claimed), possible)
        share = math.log(agreed + 1) / math.log(possible + 1) if possible else 1.0
        factor = _LONGEST_FACTOR - (_LONGEST_FACTOR - 1.0) * share
        return self.origin(doubt_s, claimed) + factor * doubt_s


class Hearsay:
    """Who answers through others only. For a while, and a few times, their word is enough.

    Then the node must sign something: a few who lie together could otherwise keep a dead one alive
    for ever. What it signs goes to everyone, so a few lost packets must not make it sign.
    """

    def __init__(self) -> None:
        self._of: dict[str, tuple[float, int]] = {}

    def note(self, now: float, node_id: str) -> None:
        since, times = self._of.get(node_id, (now, 0))
        self._of[node_id] = (since, times + 1)

    def drop(self, node_id: str) -> None:
        """It spoke for itself."""
        self._of.pop(node_id, None)

    def is_worn(self, now: float, node_id: str, doubt_s: float) -> bool:
        since, times = self._of.get(node_id, (now, 0))
        return times >= _TRUSTED_TIMES and now - since > _TRUSTED_DOUBTS * doubt_s


class Claims:
    """Who says since when that it cannot reach whom. First-hand only, and bounded."""

    def __init__(self) -> None:
        self._of: dict[str, dict[str, float]] = {}

    def note(self, node_id: str, accuser: str, since: float) -> None:
        accusers = self._of.get(node_id)
        if accusers is None:
            if len(self._of) >= _ACCUSED_MAX:
                del self._of[next(iter(self._of))]
            accusers = self._of[node_id] = {}
        if accuser in accusers or len(accusers) < _ACCUSERS_MAX:
            accusers[accuser] = since

    def of(self, node_id: str) -> Collection[float]:
        accusers = self._of.get(node_id)
        return accusers.values() if accusers else ()

    def drop(self, node_id: str) -> None:
        self._of.pop(node_id, None)

    def clear(self) -> None:
        self._of.clear()

    def expire(self, now: float) -> None:
        """Forget what was claimed long ago and came to nothing."""
        old = [
            node_id
            for node_id, accusers in self._of.items()
            if max(accusers.values()) < now - _CLAIM_LIFE_S
        ]
        for node_id in old:
            del self._of[node_id]
