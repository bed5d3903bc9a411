"""Stops what is late."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import Callable

from aios_nb.chat.runs import Run

TICK_S = 0.05


class Deadlines:
    """One timer for all runs: a timer each would cost as much as the agent's whole call."""

    def __init__(self, late: Callable[[Run], None]) -> None:
        self._late = late
        self._loop = asyncio.get_running_loop()
        self._buckets: dict[int, set[Run]] = {}
        self._order: list[int] = []
        self._timer: asyncio.TimerHandle | None = None

    def add(self, run: Run) -> None:
        bucket = run.bucket = int(run.deadline / TICK_S) + 1
        members = self._buckets.get(bucket)
        if members is None:
            members = self._buckets[bucket] = set()
            heapq.heappush(self._order, bucket)
            if self._order[0] == bucket:
                self._arm()
        members.add(run)

    def remove(self, run: Run) -> None:
        members = self._buckets.get(run.bucket)
        if members is not None:
            members.discard(run)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = (
            self._loop.call_at(self._order[0] * TICK_S, self._sweep) if self._order else None
        )

    def _sweep(self) -> None:
        now = self._loop.time()
        while self._order and self._order[0] * TICK_S <= now:
            for run in self._buckets.pop(heapq.heappop(self._order), ()):
                self._late(run)
        self._arm()
