"""Calls whose turn it is while the line or the app stands still."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from aios_bots.core.gatehouse import REFUSED_IN_A_ROW, SPARE, Gatehouse, nothing
from aios_bots.core.pacing import Rank, Rates
from tests.clock import Clock

RATES = Rates(all_per_s=3, private_per_s=1e6, private_burst=1000)


class Gates:
    """A gatehouse, and the chats in which calls were made."""

    def __init__(self, clock: Clock) -> None:
        self.clock, self.made = clock, list[str]()
        self.line = asyncio.Event()
        self.line.set()
        self.house = Gatehouse(clock, RATES, lambda _: False, nothing)

    def enter(self, chat: str) -> None:
        async def work() -> None:
            await self.line.wait()
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


async def test_what_a_slow_line_held_up_does_not_arrive_together_with_what_comes_after(
    clock: Clock,
) -> None:
    most = RATES.all_per_s + SPARE
    async with gates(clock) as here:
        here.line.clear()
        for number in range(2 * most):
            here.enter(str(number))
        for _ in range(5):
            await here.go_on(1.0)
        here.line.set()
        await here.go_on()
        assert len(here.made) == most
        await here.go_on(0.9)
        assert len(here.made) == most
        for _ in range(5):
            await here.go_on(1.0)
        assert len(here.made) == 2 * most


async def test_calls_keep_their_rate_when_nothing_holds_them_up(clock: Clock) -> None:
    async with gates(clock) as here:
        for number in range(5 * RATES.all_per_s):
            here.enter(str(number))
        for second in range(1, 6):
            await here.go_on()
            assert len(here.made) == second * RATES.all_per_s
            await here.go_on(1.0)


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
