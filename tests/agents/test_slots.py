"""Slots: first come first served, lent while waiting, never lost."""

from __future__ import annotations

import asyncio

import pytest

from aios_nb.agents.slots import Lease, Slots


def test_who_waits_is_served_in_order():
    async def scene():
        slots = Slots(1)
        assert slots.take_now()
        order = []

        async def wait(name, *, first=False):
            await slots.take(first=first)
            order.append(name)
            slots.give()

        tasks = [asyncio.create_task(wait("a")), asyncio.create_task(wait("b"))]
        await asyncio.sleep(0)
        tasks.append(asyncio.create_task(wait("resumed", first=True)))
        await asyncio.sleep(0)
        assert not slots.take_now()
        slots.give()
        await asyncio.gather(*tasks)
        assert order == ["resumed", "a", "b"]
        assert slots.free == 1

    asyncio.run(scene())


@pytest.mark.parametrize("when", ["while waiting", "just served"])
def test_a_cancelled_wait_loses_no_slot(when):
    async def scene():
        slots = Slots(1)
        slots.take_now()
        waiting = asyncio.create_task(slots.take())
        await asyncio.sleep(0)
        if when == "just served":
            slots.give()
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        if when == "while waiting":
            slots.give()
        assert (slots.free, slots.waiting) == (1, 0)

    asyncio.run(scene())


@pytest.mark.parametrize("then", ["give", "close"])
def test_a_cancel_and_a_change_in_the_same_turn_lose_no_slot(then):
    async def scene():
        slots = Slots(1)
        slots.take_now()
        waiting = asyncio.create_task(slots.take())
        await asyncio.sleep(0)
        waiting.cancel()
        getattr(slots, then)()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert (slots.free, slots.waiting) == (1 if then == "give" else 0, 0)

    asyncio.run(scene())


def test_closing_sends_those_who_wait_away():
    async def scene():
        slots = Slots(1)
        slots.take_now()
        waiting = asyncio.create_task(slots.take())
        await asyncio.sleep(0)
        slots.close()
        assert await waiting is False
        assert await slots.take() is False

    asyncio.run(scene())


def test_with_two_waits_at_once_the_slot_comes_back_after_the_last():
    async def scene():
        slots = Slots(1)
        slots.take_now()
        lease = Lease(slots)
        first, second = asyncio.Event(), asyncio.Event()
        one = asyncio.create_task(lease.lend(first.wait()))
        two = asyncio.create_task(lease.lend(second.wait()))
        await asyncio.sleep(0)
        assert (lease.held, slots.free) == (False, 1)
        assert slots.take_now()  # someone else works meanwhile
        first.set()
        async with asyncio.timeout(30):
            await one
        assert not lease.held
        slots.give()
        second.set()
        await two
        assert (lease.held, slots.free) == (True, 0)
        lease.drop()
        assert slots.free == 1

    asyncio.run(scene())


def test_a_failed_wait_takes_the_slot_back_too():
    async def scene():
        slots = Slots(1)
        slots.take_now()
        lease = Lease(slots)

        async def fail():
            raise LookupError

        with pytest.raises(LookupError):
            await lease.lend(fail())
        assert lease.held
        lease.drop()
        assert slots.free == 1

    asyncio.run(scene())


def test_a_cancelled_wait_goes_on_at_once_and_the_count_recovers():
    async def scene():
        slots = Slots(1)
        slots.take_now()
        lease = Lease(slots)
        lent = asyncio.create_task(lease.lend(asyncio.Event().wait()))
        await asyncio.sleep(0)
        assert slots.take_now()  # someone else works meanwhile
        lent.cancel()
        with pytest.raises(asyncio.CancelledError):
            await lent
        assert (lease.held, slots.free) == (True, -1)
        slots.give()
        assert not slots.take_now()
        lease.drop()
        assert slots.free == 1

    asyncio.run(scene())


def test_a_lease_is_given_back_by_its_last_holder():
    slots = Slots(2)
    slots.take_now()
    lease = Lease(slots)
    lease.share()
    lease.drop()
    assert slots.free == 1
    lease.drop()
    assert slots.free == 2
