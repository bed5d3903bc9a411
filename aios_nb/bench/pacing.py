"""When the next call goes out: at once after the last answer, or at its due time."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from typing import Protocol

from aios_nb.bench.spec import Broken, Load

SPIN_S = 0.002
"""Timers are good to a millisecond; the last two before an open-loop send are polled."""

now = time.perf_counter


class Sender(Protocol):
    """What sends the calls: a session."""

    slots: int

    def fire(self, slot: int, since: float) -> None:
        """Send on this slot, and count its latency from then."""


class Pace:
    """Decides when a slot sends again; ``over`` is set when nothing is left in flight."""

    def __init__(self, session: Sender, load: Load) -> None:
        self.session = session
        self.load = load
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.lags: list[float] = []
        self.in_flight = 0

    def start(self, started: float) -> None:
        raise NotImplementedError

    def free(self, slot: int, at: float) -> None:
        raise NotImplementedError

    def drop(self, slot: int) -> None:
        raise NotImplementedError

    def end(self) -> None:
        if not self.over.done():
            self.over.set_result(None)


class ClosedLoop(Pace):
    """Every slot sends as soon as it has its answer, for a time or up to a count."""

    def start(self, started: float) -> None:
        self._until = started + self.load.seconds if self.load.seconds else float("inf")
        self._left = self.load.count if self.load.count is not None else float("inf")
        for slot in range(self.session.slots):
            if self._left <= 0:
                break
            self._left -= 1
            self.in_flight += 1
            self.session.fire(slot, now())

    def free(self, slot: int, at: float) -> None:
        if at < self._until and self._left > 0:
            self._left -= 1
            self.session.fire(slot, at)
        else:
            self.drop(slot)

    def drop(self, slot: int) -> None:
        del slot
        self.in_flight -= 1
        if not self.in_flight:
            self.end()


class OpenLoop(Pace):
    """Calls go out at a fixed rate, answered or not; a late one is counted from its due time."""

    def start(self, started: float) -> None:
        per_s, seconds = self.load.rate, self.load.seconds
        if not per_s or not seconds:
            raise Broken("an open loop needs a rate and a time")
        self._clock = asyncio.get_running_loop()
        self._step = 1 / per_s
        self._started = started
        self._number = 0
        self._count = int(per_s * seconds)
        self._free = list(range(self.session.slots))
        self._slots = self.session.slots
        self._queue: deque[float] = deque()
        self._tick()

    def _tick(self) -> None:
        if self.over.done():
            return
        while self._number < self._count:
            due = self._started + self._number * self._step
            left = due - now()
            if left > SPIN_S:
                self._clock.call_later(left - SPIN_S, self._tick)
                return
            if left > 0:
                self._clock.call_soon(self._tick)
                return
            self.lags.append(-left)
            self._number += 1
            if self._free:
                self.in_flight += 1
                self.session.fire(self._free.pop(), due)
            else:
                self._queue.append(due)
        self._maybe_end()

    def free(self, slot: int, at: float) -> None:
        del at
        if self._queue:
            self.session.fire(slot, self._queue.popleft())
            return
        self.in_flight -= 1
        self._free.append(slot)
        self._maybe_end()

    def drop(self, slot: int) -> None:
        del slot
        self.in_flight -= 1
        self._slots -= 1
        if not self._slots:
            self.end()
        else:
            self._maybe_end()

    def _maybe_end(self) -> None:
        if self._number >= self._count and not self.in_flight and not self._queue:
            self.end()


def pace_for(session: Sender, load: Load) -> Pace:
    """The loop this load asks for."""
    return OpenLoop(session, load) if load.rate else ClosedLoop(session, load)
