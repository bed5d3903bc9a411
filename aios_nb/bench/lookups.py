"""What a swarm is told to measure, and what it saw. JSON in both directions."""

from __future__ import annotations

import gc
import time
from collections.abc import Awaitable, Callable, Sequence

import msgspec

now = time.perf_counter


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """What is measured."""

    nodes: int
    rounds: int
    gets: int
    """In each round, and after each kill."""
    sets: int
    """Of the stock package, in all; ours publishes every node."""
    stock_after_kill: int


class Timed(msgspec.Struct):
    """Milliseconds of each call, by round, and how many found what is there."""

    rounds: list[list[float]] = []
    found: int = 0
    tried: int = 0

    async def take(self, calls: Sequence[Callable[[], Awaitable[bool]]]) -> None:
        """One round more, one call after the other."""
        took: list[float] = []
        gc.collect()
        gc.disable()
        try:
            for call in calls:
                begun = now()
                found = await call()
                took.append((now() - begun) * 1e3)
                self.found += found
                self.tried += 1
        finally:
            gc.enable()
        self.rounds.append(took)


class Seen(msgspec.Struct):
    """What the parent is told."""

    raw: Timed
    build_s: float
    set: Timed
    get: Timed
    get_questions: float
    set_questions: float
    stock_set: Timed
    stock_get: Timed
    after: dict[str, Timed]
    questions_after: dict[str, float]
    stock_after_ms: list[float]
    hedge_ms: float
    contacts: float
