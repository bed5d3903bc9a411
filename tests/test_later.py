"""A result that comes later."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from aios_nb.errors import Busy
from aios_nb.later import Later


def test_who_listens_is_told_in_the_moment_it_comes() -> None:
    later: Later[str] = Later()
    told: list[Any] = []
    later.then(lambda value, error: told.append((value, error)))
    assert told == []
    later.come("there")
    assert told == [("there", None)]


def test_who_comes_late_is_told_at_once() -> None:
    later: Later[str] = Later()
    problem = Busy("not now")
    later.come(None, problem)
    told: list[Any] = []
    later.then(lambda value, error: told.append((value, error)))
    assert told == [(None, problem)]


def test_only_the_first_result_counts() -> None:
    later: Later[int] = Later()
    told: list[Any] = []
    later.then(lambda value, _: told.append(value))
    later.come(1)
    later.come(2)
    assert told == [1]


def test_it_can_be_awaited() -> None:
    async def main() -> None:
        later: Later[str] = Later()
        asyncio.get_running_loop().call_soon(later.come, "there")
        assert await later == "there"
        refused: Later[str] = Later()
        refused.come(None, Busy("not now"))
        with pytest.raises(Busy, match="not now"):
            await refused

    asyncio.run(main())


def test_who_stops_waiting_is_told_nothing_and_hurts_nobody() -> None:
    async def main() -> None:
        later: Later[str] = Later()

        async def waits() -> str:
            return await later

        waiter = asyncio.create_task(waits())
        await asyncio.sleep(0)
        waiter.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiter
        later.come("too late")

    asyncio.run(main())
