"""One lookup among the nodes of an overlay, on a clock of its own.

Either as the hub's DHT asks: no barriers, a question that is late frees its place at once, and
"not found" only when nothing is open. Or in batches that wait for their slowest, which is how
Kademlia is mostly written and what dead nodes are so expensive for.
"""

from __future__ import annotations

import heapq
import math
import random
from bisect import insort
from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import IntEnum
from operator import attrgetter
from typing import Self

from aios_nb.hub.dht.tuning import Tuning
from aios_nb.sim.overlay import ID_BITS, Overlay

RTT_S = 0.08
"""A round trip across a continent."""
_HUB = Tuning()


@dataclass(frozen=True, slots=True)
class Manner:
    """How a lookup asks; as the hub's DHT does, unless something else is said."""

    alpha: int = _HUB.lanes
    """Questions that are open at a time."""
    paths: int = _HUB.paths
    """Searches side by side that share no node: one that Sybils caught does not catch the rest."""
    quorum: int | None = _HUB.quorum
    """Holders that must answer with the record; None: find the nearest nodes, as a publisher."""
    slow_s: float = _HUB.hedge_rtts * RTT_S
    """A question open so long frees its place for two others; its answer still counts."""
    late_s: float = _HUB.late_hedges * _HUB.hedge_rtts * RTT_S
    """A node silent so long is waited for only by who has found nothing."""
    timeout_s: float = _HUB.hard_timeout_s
    barriers: bool = False
    """Ask in batches, on one path, wait for the whole of each and believe the first record."""

    @classmethod
    def at(cls, rtt_s: float, *, publishing: bool = False) -> Self:
        """As the hub's DHT asks where round trips take that long, to read or to publish."""
        timeout_s = _HUB.hard_timeout_s
        slow_s = min(timeout_s, max(_HUB.hedge_floor_s, _HUB.hedge_rtts * rtt_s))
        return cls(
            quorum=None if publishing else _HUB.quorum,
            slow_s=slow_s,
            late_s=min(timeout_s, _HUB.late_hedges * slow_s),
        )


@dataclass(frozen=True, slots=True)
class Roads:
    """Round trip times: log-normal."""

    median_s: float = RTT_S
    sigma: float = 0.6

    def draw(self, rng: random.Random) -> float:
        return rng.lognormvariate(math.log(self.median_s), self.sigma)


@dataclass(frozen=True, slots=True)
class Lookup:
    """How one went."""

    seconds: float
    messages: int
    found: bool
    """A get: an honest holder gave the record. Without a quorum: most of the nearest were met."""


class Question:
    """A key, who looks for it, and what the nodes on the way answer."""

    def __init__(self, overlay: Overlay, asker: int, key: int) -> None:
        self.overlay = overlay
        self.asker = asker
        self.key = key
        holders = overlay.holders(key)
        self._crowd = holders[: overlay.population.crowding]
        self._holders = frozenset(holders)
        self.first = [node for node in overlay.contacts(asker, key) if node != asker]

    def has_record(self, node: int) -> bool:
        return node in self._holders and not self._lies(node)

    def _lies(self, node: int) -> bool:
        return self.overlay.is_sybil(node) or node in self._crowd

    def names(self, node: int) -> list[int]:
        """The nodes that this one names as nearer to the key."""
        if self._lies(node):
            size = self.overlay.population.bucket
            return [*self._crowd, *self.overlay.colluders(self.key)][:size]
        return self.overlay.contacts(node, self.key)

    def takes(self, node: int, roads: Roads, rng: random.Random) -> float:
        """Seconds until its answer is here; infinity if it is dead."""
        return math.inf if self.overlay.is_dead(node) else roads.draw(rng)

    def met_most(self, met: set[int]) -> bool:
        """Whether these are most of the honest and live nodes nearest to the key."""
        there = [
            node
            for node in self._holders
            if not (node == self.asker or self.overlay.is_dead(node) or self._lies(node))
        ]
        return 2 * len(met.intersection(there)) > len(there)


def in_batches(question: Question, manner: Manner, roads: Roads, rng: random.Random) -> Lookup:
    """The lookup as the kademlia package makes it; one path, and the first record is believed."""
    size = question.overlay.population.bucket
    known, asked, gone = {*question.first}, set[int](), {question.asker}
    seconds, last = 0.0, [question.asker]
    while True:
        near = _nearest(known - gone, question.key, size)
        new = [node for node in near if node not in asked]
        if not new:
            break
        batch = new if near == last else new[: manner.alpha]
        last = near
        takes = {node: question.takes(node, roads, rng) for node in batch}
        seconds += min(manner.timeout_s, max(takes.values()))
        asked.update(batch)
        answered = [node for node in batch if takes[node] < manner.timeout_s]
        gone.update(set(batch).difference(answered))
        for node in answered:
            known.update(question.names(node))
        if manner.quorum is not None and any(map(question.has_record, answered)):
            return Lookup(seconds, len(asked), found=True)
    met = asked - gone
    return Lookup(seconds, len(asked), manner.quorum is None and question.met_most(met))


def without_barriers(
    question: Question, manner: Manner, roads: Roads, rng: random.Random
) -> Lookup:
    """The lookup as the hub's DHT makes it."""
    return _Free(question, manner, roads, rng).go()


class _Step(IntEnum):
    """How far it has come with one node; up to LATE it may still answer."""

    NEW = 0
    OPEN = 1
    SLOW = 2
    LATE = 3
    ANSWERED = 4
    LOST = 5


@dataclass(slots=True)
class _Candidate:
    """A node that was named, on the path where it was named first."""

    node: int
    distance: int
    lot: float
    path: _Path
    step: _Step = _Step.NEW


@dataclass(slots=True)
class _Path:
    """One of the searches side by side."""

    candidates: list[_Candidate] = field(default_factory=list)
    open: int = 0

    def best(self, share: int, radius: int) -> _Candidate | None:
        """The new one to ask: of the path's nearest, or of all in the region of the key."""
        new: list[_Candidate] = []
        places = 0
        for candidate in self.candidates:
            if places >= share and candidate.distance > radius:
                break
            if candidate.step is _Step.NEW:
                new.append(candidate)
            places += candidate.step in {_Step.NEW, _Step.OPEN, _Step.ANSWERED}
        # In the heart of the region by lot: lying nearest to a key gains nothing.
        heart = radius // 2
        return min(new, key=lambda each: (max(each.distance, heart), each.lot), default=None)


class _Free:
    """A lookup under way. Events are what became of a question, in the order of time."""

    def __init__(
        self, question: Question, manner: Manner, roads: Roads, rng: random.Random
    ) -> None:
        self._question = question
        self._manner = manner
        self._roads = roads
        self._rng = rng
        size = question.overlay.population.bucket
        self._share = math.ceil(size / manner.paths)
        self._radius = (size << ID_BITS) // question.overlay.population.nodes
        self._known: dict[int, _Candidate] = {}
        self._paths = [_Path() for _ in range(manner.paths)]
        for number, node in enumerate(question.first):
            self._hear_of([node], self._paths[number % manner.paths])
        self._records = int(question.has_record(question.asker))
        self._events: list[tuple[float, int, _Step, _Candidate]] = []
        self._messages = 0

    def _hear_of(self, nodes: Iterable[int], path: _Path) -> None:
        for node in nodes:
            if node not in self._known and node != self._question.asker:
                distance = node ^ self._question.key
                candidate = _Candidate(node, distance, self._rng.random(), path)
                self._known[node] = candidate
                insort(path.candidates, candidate, key=attrgetter("distance"))

    def go(self) -> Lookup:
        now = 0.0
        self._ask(now)
        while not self._is_done():
            now, _, step, candidate = heapq.heappop(self._events)
            if candidate.step >= step:  # it has answered meanwhile
                continue
            candidate.path.open -= candidate.step is _Step.OPEN
            candidate.step = step
            if step is _Step.ANSWERED:
                self._records += self._question.has_record(candidate.node)
                self._hear_of(self._question.names(candidate.node), candidate.path)
            self._ask(now)
        return Lookup(now, self._messages, self._found())

    def _is_done(self) -> bool:
        """Enough records; or nothing left to ask, and nobody who may still answer.

        Only who has found nothing waits for those who probably will not.
        """
        quorum = self._manner.quorum
        if quorum is not None and self._records >= quorum:
            return True
        patient = quorum is not None and not self._records
        waits_for = {_Step.OPEN, _Step.SLOW} | ({_Step.LATE} if patient else set())
        return not any(each.step in waits_for for each in self._known.values())

    def _found(self) -> bool:
        if self._manner.quorum is not None:
            return self._records > 0
        met = {each.node for each in self._known.values() if each.step is _Step.ANSWERED}
        return self._question.met_most(met)

    def _ask(self, now: float) -> None:
        """As many questions as may be open, the path with the fewest first."""
        silent = sum(each.step in {_Step.SLOW, _Step.LATE} for each in self._known.values())
        while sum(path.open for path in self._paths) < self._manner.alpha + silent:
            chosen = (
                path.best(self._share, self._radius)
                for path in sorted(self._paths, key=attrgetter("open"))
            )
            candidate = next(filter(None, chosen), None)
            if candidate is None:
                return
            candidate.step = _Step.OPEN
            candidate.path.open += 1
            self._expect(now, candidate)

    def _expect(self, now: float, candidate: _Candidate) -> None:
        self._messages += 1
        manner = self._manner
        takes = self._question.takes(candidate.node, self._roads, self._rng)
        ends = (
            (takes, _Step.ANSWERED) if takes < manner.timeout_s else (manner.timeout_s, _Step.LOST)
        )
        for after, step in ((manner.slow_s, _Step.SLOW), (manner.late_s, _Step.LATE), ends):
            if after <= ends[0]:
                tie = 10 * self._messages + step
                heapq.heappush(self._events, (now + after, tie, step, candidate))


def _nearest(nodes: Iterable[int], key: int, count: int) -> list[int]:
    return heapq.nsmallest(count, nodes, key=lambda node: node ^ key)
