"""Slots: first come first served, strangers last; lent while waiting, never lost."""

from __future__ import annotations

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

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


# Strangers ----------------------------------------------------------------------------------


async def in_turn(slots, order, name, **how):
    await slots.take(**how)
    order.append(name)


async def line_up(slots, order, *waiting):
    """Let these wait, one behind another: (name, how)."""
    tasks = []
    for name, how in waiting:
        tasks.append(asyncio.create_task(in_turn(slots, order, name, **how)))
        await asyncio.sleep(0)
    return tasks


def test_strangers_wait_behind_everyone_else():
    async def scene():
        slots = Slots(1)
        slots.take_now()
        order = []
        stranger, ours = {"stranger": True}, {"stranger": False}
        tasks = await line_up(
            slots, order, ("s1", stranger), ("a", ours), ("s2", stranger),
            ("s half done", {"stranger": True, "first": True}), ("b", ours),
            ("half done", {"first": True}),
        )  # fmt: skip
        assert slots.waiting == 6
        slots.give()
        for name in ("half done", "a", "b"):
            await asyncio.sleep(0)
            assert order[-1] == name
            slots.give()
        for name in ("s half done", "s1", "s2"):
            await asyncio.sleep(0)
            assert order[-1] == name
            slots.give(stranger=True)
        await asyncio.gather(*tasks)
        assert (slots.free, slots.strangers, slots.waiting) == (1, 0, 0)

    asyncio.run(scene())


@pytest.mark.parametrize(
    ("limit", "for_strangers", "most"), [(1, None, 1), (2, None, 1), (16, None, 15), (8, 4, 4)]
)
def test_strangers_leave_a_slot_free(limit, for_strangers, most):
    slots = Slots(limit, for_strangers)
    taken = sum(slots.take_now(stranger=True) for _ in range(2 * limit))
    assert taken == most
    assert sum(slots.take_now() for _ in range(2 * limit)) == limit - most


def test_the_owner_takes_the_free_slot_although_strangers_wait():
    async def scene():
        slots = Slots(2)
        assert slots.take_now(stranger=True)
        order = []
        tasks = await line_up(slots, order, ("s", {"stranger": True}))
        assert (order, slots.waiting) == ([], 1)
        assert slots.take_now()
        slots.give()  # the owner's: still not for a second stranger
        await asyncio.sleep(0)
        assert order == []
        slots.give(stranger=True)
        await asyncio.gather(*tasks)
        assert (order, slots.strangers, slots.free) == (["s"], 1, 1)

    asyncio.run(scene())


def test_a_strangers_cancelled_wait_loses_no_slot():
    async def scene():
        slots = Slots(2)
        slots.take_now(stranger=True)
        for served in (False, True):
            waiting = asyncio.create_task(slots.take(stranger=True))
            await asyncio.sleep(0)
            if served:
                slots.give(stranger=True)
            waiting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await waiting
        assert (slots.free, slots.strangers, slots.waiting) == (2, 0, 0)

    asyncio.run(scene())


def test_a_strangers_lease_is_counted_as_one_all_the_way():
    async def scene():
        agent, threads = Slots(3), Slots(4, 2)
        agent.take_now(stranger=True)
        lease = Lease(agent, stranger=True)
        assert await lease.also(threads)
        assert (agent.strangers, threads.strangers) == (1, 1)
        asked = asyncio.Event()
        lent = asyncio.create_task(lease.lend(asked.wait()))
        await asyncio.sleep(0)
        assert (agent.strangers, threads.strangers, agent.free, threads.free) == (0, 0, 3, 4)
        asked.set()
        await lent
        assert (agent.strangers, threads.strangers) == (1, 1)
        cut = asyncio.create_task(lease.lend(asyncio.Event().wait()))
        await asyncio.sleep(0)
        cut.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cut
        assert (agent.strangers, threads.strangers) == (1, 1)
        lease.drop()
        assert (agent.strangers, threads.strangers, agent.free, threads.free) == (0, 0, 3, 4)

    asyncio.run(scene())


def test_who_resumes_at_closed_slots_leaves_the_count_right():
    async def scene():
        slots = Slots(1)
        slots.take_now()
        lease = Lease(slots)
        asked = asyncio.Event()
        lent = asyncio.create_task(lease.lend(asked.wait()))
        await asyncio.sleep(0)
        slots.close()
        asked.set()
        await lent
        assert slots.free == 0
        lease.drop()
        assert slots.free == 1

    asyncio.run(scene())


def is_in_order(slots, held):
    """What must be true at any moment; ``held`` says of each run whether it is a stranger's."""
    full, strangers = len(held) == slots.limit, sum(held)
    yield len(held) == slots.limit - slots.free <= slots.limit
    yield strangers == slots.strangers <= slots.for_strangers
    if slots._ours:
        yield full
        yield slots.limit == 1 or strangers < slots.limit
    if slots._theirs:
        yield full or strangers == slots.for_strangers


steps = st.lists(
    st.tuples(st.sampled_from(["ours", "theirs", "end", "cancel"]), st.integers(0, 30)),
    max_size=60,
)


@given(st.integers(1, 4), steps)
def test_whatever_comes_no_slot_is_lost_and_the_owner_waits_for_no_stranger(limit, what):
    async def scene():
        slots = Slots(limit)
        runs = []

        async def run(over, *, stranger):
            assert await slots.take(stranger=stranger)
            held.append(stranger)
            try:
                await over.wait()
            finally:
                held.remove(stranger)
                slots.give(stranger=stranger)

        held = []
        for step, n in what:
            if step in {"ours", "theirs"}:
                over = asyncio.Event()
                task = asyncio.create_task(run(over, stranger=step == "theirs"))
                runs.append((task, over, step))
            elif runs:
                task, over, _ = runs[n % len(runs)]
                over.set() if step == "end" else task.cancel()
            for _ in range(4):
                await asyncio.sleep(0)
            assert all(is_in_order(slots, held))
        for _ in runs:
            for task, _, _ in runs:
                task.cancel()
            await asyncio.gather(*(task for task, _, _ in runs), return_exceptions=True)
        assert (slots.free, slots.strangers, slots.waiting) == (limit, 0, 0)

    asyncio.run(scene())
