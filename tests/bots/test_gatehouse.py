"""Calls whose turn it is while the disk or the app stands still."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aios_bots.core.gatehouse import REFUSED_IN_A_ROW, Gatehouse, nothing
from aios_bots.core.pacing import Rank, Rates
from tests.clock import Clock

RATES = Rates(all_per_s=3, private_per_s=1e6, private_burst=1000)


class Gates:
    """A gatehouse, and the chats in which calls were made."""

    def __init__(self, clock: Clock) -> None:
        self.clock, self.made = clock, list[str]()
        self.disk = asyncio.Event()
        self.disk.set()
        self.house = Gatehouse(clock, RATES, lambda _: False, nothing)

    def enter(self, chat: str) -> None:
        async def work() -> None:
            await self.disk.wait()
            await self.house.out()
            self.made.append(chat)

        self.house.enter(chat, chat, Rank.FINAL, work)

    async def go_on(self, seconds: float = 0.0) -> None:
        """Time passes, and everything that can go on does."""
        self.clock.now += seconds
        self.house.soon()
        for _ in range(20):
            await asyncio.sleep(0)


@asynccontextmanager
async def gates(clock: Clock) -> AsyncIterator[Gates]:
    made = Gates(clock)
    made.house.running = True
    try:
        yield made
    finally:
        await made.house.stop()


async def test_what_a_slow_disk_held_up_does_not_go_all_at_once(clock: Clock) -> None:
    async with gates(clock) as here:
        here.disk.clear()
        for chat in "abcdef":
            here.enter(chat)
        await here.go_on()
        await here.go_on(1.0)
        here.disk.set()
        await here.go_on()
        assert len(here.made) == RATES.all_per_s
        here.clock.now += 1.0
        while len(here.made) < 6:  # noqa: ASYNC110 - it waits for real time, of a second
            await asyncio.sleep(0.01)


async def test_one_chat_that_wants_a_pause_stops_no_other(clock: Clock) -> None:
    async with gates(clock) as here:
        for _ in range(REFUSED_IN_A_ROW):
            here.house.refused("a", 30)
        here.enter("b")
        await here.go_on()
        assert here.made == ["b"]


async def test_chats_that_want_a_pause_stop_no_other_while_the_app_takes_calls(
    clock: Clock,
) -> None:
    async with gates(clock) as here:
        for chat in "acde":
            here.house.refused(chat, 30)
            here.house.went()
        here.enter("b")
        await here.go_on()
        assert here.made == ["b"]


async def test_an_app_that_takes_nothing_from_any_chat_is_left_alone_for_so_long(
    clock: Clock,
) -> None:
    async with gates(clock) as here:
        for chat in "acd":
            here.house.refused(chat, 30)
        here.enter("b")
        await here.go_on(29)
        assert here.made == []
        await here.go_on(1.1)
        assert here.made == ["b"]
