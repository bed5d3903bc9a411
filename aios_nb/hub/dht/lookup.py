"""One lookup: whom to ask next, and when there is nobody left. No I/O and no clock.

Several paths walk towards the target at once and share no node: what a liar tells leads only his
own path astray. Nobody waits for the slowest: each answer frees its lane, and so does a question
that is overdue. That one also opens a lane more and gives up its place among the nearest: where
many have died at once, each hedge delay asks twice as many as the one before. A lookup is over when
its caller has enough, or when nothing is left to ask and no answer is outstanding.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Sequence
from enum import IntEnum

from aios_nb.hub.dht.contacts import Contact, point_in
from aios_nb.hub.dht.keys import ID_BYTES, number
from aios_nb.hub.dht.size import is_crowd
from aios_nb.hub.dht.tuning import Tuning

READERS, READERS_IN_A_CROWD = 1, 6
"""Nodes of each path whose further pages are read; near the target most say the same."""
PAGES_MAX = 8
_INNER = 2
"""Within half the region's radius one node is as good as another."""


class Step(IntEnum):
    """How far it has come with one node. The first ones may still become an answer."""

    NEW = 0
    ASKED = 1
    SLOW = 2
    LATE = 3
    ANSWERED = 4
    LOST = 5


class Candidate:
    """A node that was named, or is known; it is read and proven only if it is to be asked."""

    __slots__ = (
        "beyond", "contact", "content", "distance", "doubted", "ended_at", "more", "pages", "path",
        "point", "step", "token", "turn",
    )  # fmt: skip

    def __init__(self, point: bytes, distance: int, path: Path, turn: float) -> None:
        self.point = point
        self.distance = distance
        self.path = path
        self.turn = turn
        self.step = Step.NEW
        self.contact: Contact | None = None
        self.doubted = False
        """It did not answer lately: it is asked when nobody else is left."""
        self.content = b""
        self.token = b""
        self.beyond = b""
        """It has told of everyone it knows up to this distance."""
        self.ended_at = -1
        """The same, as a number."""
        self.more = False
        self.pages = 0

    @property
    def counts(self) -> bool:
        """Whether it has a place among the nearest: nobody silent has, though it may answer yet."""
        if self.step is Step.NEW:
            return not self.doubted
        return self.step is Step.ASKED or self.step is Step.ANSWERED


class Path:
    """The candidates of one path, the nearest first."""

    __slots__ = ("active", "candidates", "readers", "sorted")

    def __init__(self) -> None:
        self.candidates: list[Candidate] = []
        self.sorted = True
        self.active = 0
        self.readers: set[bytes] = set()

    def add(self, candidate: Candidate) -> None:
        self.candidates.append(candidate)
        self.sorted = False

    def ordered(self) -> list[Candidate]:
        if not self.sorted:
            self.candidates.sort(key=_distance)
            self.sorted = True
        return self.candidates


class Lookup:
    """The way to ``target``; its holders are within ``radius``, and there are ``nodes`` in all."""

    def __init__(
        self,
        target: bytes,
        own_point: bytes,
        start: Iterable[Contact],
        *,
        radius: int,
        nodes: float,
        tuning: Tuning,
        rng: random.Random,
        known: Callable[[bytes], Contact | None] = lambda _: None,
        wanted: int | None = None,
        asks_max: int | None = None,
    ) -> None:
        self.target = number(target)
        self.radius = radius
        self.nodes = nodes
        self._inner = radius // _INNER
        self._lanes = tuning.lanes
        self._asks_max = asks_max or tuning.asks_max
        self._share = -(-(wanted or tuning.k) // tuning.paths)
        self._rng = rng
        self._contact_of = known
        self._own = own_point
        self.paths = [Path() for _ in range(tuning.paths)]
        self.known: dict[bytes, Candidate] = {}
        self.asked = 0
        self.pending = 0
        """Questions that may still be answered."""
        self._overdue = 0
        self._late = 0
        for place, contact in enumerate(start):
            candidate = self._add(contact.id, self.paths[place % len(self.paths)])
            if candidate is not None:
                candidate.contact = contact
                candidate.doubted = contact.is_doubtful

    # What happened -----------------------------------------------------------------------

    def learn(self, contents: Iterable[bytes], path: Path) -> None:
        """Somebody on this path named these."""
        for content in contents:
            point = point_in(content)
            if point is not None:
                candidate = self._add(point, path)
                if candidate is not None:
                    candidate.content = content
                    contact = self._contact_of(point)
                    if contact is not None and contact.is_doubtful:
                        candidate.doubted = True
                    elif contact is not None and contact.confirmed:
                        candidate.contact = contact

    def _add(self, point: bytes, path: Path) -> Candidate | None:
        if point in self.known or point == self._own:
            return None
        candidate = Candidate(point, number(point) ^ self.target, path, self._rng.random())
        self.known[point] = candidate
        path.add(candidate)
        return candidate

    def answered(
        self, candidate: Candidate, contents: Sequence[bytes], *, token: bytes, more: bool
    ) -> None:
        self._settle(candidate, Step.ANSWERED)
        candidate.token = token
        candidate.pages += 1
        candidate.more = False
        self.learn(contents, candidate.path)
        last = point_in(contents[-1]) if contents else None
        if last is not None:
            ended_at = self.target ^ number(last)
            candidate.more = more and ended_at > candidate.ended_at and candidate.pages < PAGES_MAX
            candidate.ended_at = ended_at

    def slow(self, candidate: Candidate) -> None:
        """It should have answered by now: its lane and its place are given to others."""
        if candidate.step is Step.ASKED:
            candidate.step = Step.SLOW
            candidate.path.active -= 1
            self._overdue += 1

    def late(self, candidate: Candidate) -> None:
        """It is probably gone."""
        self.slow(candidate)
        if candidate.step is Step.SLOW:
            candidate.step = Step.LATE
            self._late += 1

    def lost(self, candidate: Candidate) -> None:
        """It will not answer."""
        self._settle(candidate, Step.LOST)

    def _settle(self, candidate: Candidate, step: Step) -> None:
        if candidate.step is Step.ASKED:
            candidate.path.active -= 1
        else:
            self._overdue -= 1
            self._late -= candidate.step is Step.LATE
        self.pending -= 1
        candidate.step = step

    # What to do --------------------------------------------------------------------------

    def next(self) -> Candidate | None:
        """The node to ask now, or to ask for its next page; None if lanes or nodes are out."""
        awaited = self.pending - self._overdue
        if awaited >= self._lanes + self._overdue or self.asked >= self._asks_max:
            return None
        for path in sorted(self.paths, key=_active):
            chosen = self._best(path) or self._reader(path)
            if chosen is not None:
                chosen.step = Step.ASKED
                path.active += 1
                self.pending += 1
                self.asked += 1
                return chosen
        return None

    @property
    def over(self) -> bool:
        """Nothing is left to ask, and no answer is outstanding. Ask after ``next`` gave None."""
        return self.pending == 0

    @property
    def settled(self) -> bool:
        """The same, but for answers that are probably not coming."""
        return self.pending == self._late

    def _best(self, path: Path) -> Candidate | None:
        """The new one to ask: of the path's nearest, or of all in the region."""
        best: Candidate | None = None
        best_order = (False, 0, False, 0.0)
        place = 0
        for candidate in path.ordered():
            if place >= self._share and candidate.distance > self.radius:
                break
            if candidate.step is Step.NEW:
                # In the heart of the region by lot, so that lying nearest to a key gains nothing;
                # but those we know before those we were told of.
                distance = max(candidate.distance, self._inner)
                unknown = candidate.contact is None
                order = (candidate.doubted, distance, unknown, candidate.turn)
                if best is None or order < best_order:
                    best, best_order = candidate, order
            place += candidate.counts
        return best

    def _reader(self, path: Path) -> Candidate | None:
        """Someone who knows more nodes that may matter than fitted into one answer."""
        ready = [each for each in path.candidates if each.more and each.step is Step.ANSWERED]
        if not ready:
            return None
        reach = self._reach(path)
        most = READERS_IN_A_CROWD if self.is_crowded() else READERS
        for candidate in sorted(ready, key=_turn):
            if candidate.ended_at <= reach and (
                candidate.point in path.readers or len(path.readers) < most
            ):
                path.readers.add(candidate.point)
                candidate.more = False
                candidate.beyond = candidate.ended_at.to_bytes(ID_BYTES, "big")
                return candidate
        return None

    def _reach(self, path: Path) -> int:
        """How far away a node may be and still be asked on this path."""
        living = [each.distance for each in path.ordered() if each.counts]
        return max(self.radius, living[: self._share][-1] if living else 0)

    # What is known -----------------------------------------------------------------------

    def nearest(self, *steps: Step) -> list[Candidate]:
        """Those this far, the nearest first."""
        found = [each for each in self.known.values() if each.step in steps]
        return sorted(found, key=_distance)

    def is_crowded(self) -> bool:
        """Whether more nodes were named near the target than chance would put there."""
        known = self.known.values()
        return is_crowd([each.distance for each in known if each.step is not Step.LOST], self.nodes)


def _distance(candidate: Candidate) -> int:
    return candidate.distance


def _turn(candidate: Candidate) -> float:
    return candidate.turn


def _active(path: Path) -> int:
    return path.active
