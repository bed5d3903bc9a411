"""How long a lookup takes when many nodes died a moment ago: counted in hedge delays, not in time.

The nodes are real, the hall carries at once, and the clock leaps from timer to timer: all that a
lookup takes is what it waited for the dead.
"""

from __future__ import annotations

import asyncio
import random
from typing import Any

import pytest

from aios_nb.hub.dht.codec import Find
from aios_nb.hub.dht.engine import KademliaDht
from aios_nb.hub.dht.keys import key_of, number, point_of_node
from aios_nb.hub.dht.lookup import Lookup
from aios_nb.identity import Identity
from tests.hub.dht.village import STILL, Hall, TimelessLoop, identity, record_of, run
from tests.hub.dht.visitors import Liar, Visitor, contact, dht_in

pytestmark = pytest.mark.timeout(600)  # many nodes in one process, on any machine

HEDGE_S = STILL.hedge_floor_loopback_s
HOUSES = 40


def _by_distance(key: bytes, count: int) -> list[Identity]:
    """So many nodes from everywhere, the nearest to this key first."""
    made = [identity(f"anywhere {place}") for place in range(count)]
    made.sort(key=lambda who: number(point_of_node(who.node_id)) ^ number(key))
    return made


async def _hedges(asker: KademliaDht, node_id: str) -> float:
    """The delays it took to find that node."""
    loop = asyncio.get_running_loop()
    begun = loop.time()
    assert await asker.get(node_id)
    return (loop.time() - begun) / HEDGE_S


def _knows(dht: KademliaDht, *visitors: Visitor) -> None:
    """They answered before, whatever became of them."""
    for visitor in visitors:
        dht.meet(visitor.presence, proven=True)
        known = dht._contacts.get(point_of_node(visitor.node_id))
        assert known is not None
        known.confirmed = known.seen = True


def test_each_silent_round_asks_twice_as_many_as_the_one_before() -> None:
    start = [contact(point=place.to_bytes(20, "big")) for place in range(1, 61)]
    lookup = Lookup(
        bytes(20), b"me", start, radius=0, nodes=60.0, tuning=STILL, rng=random.Random(1)
    )
    rounds = []
    for _ in range(3):
        silent = list(iter(lookup.next, None))
        rounds.append(len(silent))
        for candidate in silent:
            lookup.slow(candidate)
    assert rounds == [3, 6, 12]


def test_lookups_among_answering_nodes_have_no_more_open_than_before() -> None:
    start = [contact(point=place.to_bytes(20, "big")) for place in range(1, 61)]
    lookup = Lookup(
        bytes(20), b"me", start, radius=0, nodes=60.0, tuning=STILL, rng=random.Random(1)
    )
    while (candidate := lookup.next()) is not None:
        assert lookup.pending <= STILL.lanes
        if lookup.pending == STILL.lanes:
            lookup.answered(candidate, [], token=b"", more=False)
    # Those that are nearest of all, and no others in their stead.
    assert lookup.asked <= STILL.k + STILL.paths


def test_a_third_dead_at_once_costs_few_lookups_more_than_a_hedge_delay() -> None:
    async def story() -> None:
        rng = random.Random(1)
        hall = Hall()
        clock = asyncio.get_running_loop().time
        houses: list[tuple[str, KademliaDht]] = []
        for place in range(HOUSES):
            name = f"tail {place}"
            dht = dht_in(hall, name, clock=clock)
            if houses:
                dht.meet(hall.presences[rng.choice(houses)[0]], proven=True)
                await dht.settle()
            houses.append((identity(name).node_id, dht))
            await asyncio.sleep(1)  # an estimate of the size is good for that long
        for place, (_, dht) in enumerate(houses):
            await dht.put(record_of(identity(f"tail {place}")))
        rng.shuffle(houses)
        for node_id, dht in houses[: HOUSES * 3 // 10]:
            await dht.close()
            del hall.receivers[node_id]
        left = [dht for _, dht in houses[HOUSES * 3 // 10 :]]
        # All of them at once: nobody has heard yet who died.
        took = sorted(
            await asyncio.gather(
                *(_hedges(dht, rng.choice(houses)[0]) for dht in left for _ in range(8))
            )
        )
        assert took[len(took) // 2] <= 1
        assert took[len(took) * 99 // 100] <= 2
        assert took[-1] <= 2 * STILL.late_hedges
        for dht in left:
            await dht.close()

    run(story, TimelessLoop)


@pytest.mark.parametrize("dead", [6, 18, 40])
def test_too_few_holders_are_believed_when_everyone_else_was_given_his_time(dead: int) -> None:
    async def story() -> None:
        hall = Hall()
        asker = dht_in(hall, "asker", clock=asyncio.get_running_loop().time)
        wanted = identity("wanted")
        record = record_of(wanted).to_bytes()
        near = _by_distance(key_of(wanted.node_id), dead + 2)
        last = min(dead, STILL.k - 2)  # of those that a lookup begins with
        holders = [Liar(hall, "", record, who=who) for who in near[last : last + 2]]
        gone = [Visitor(hall, "", who=who) for who in near[:last] + near[last + 2 :]]
        _knows(asker, *gone, *holders)
        assert await _hedges(asker, wanted.node_id) <= STILL.late_hedges + 4
        heard = sum(bool(each.heard) for each in [*gone, *holders])
        assert heard >= min(dead + 2, STILL.k)
        await asker.close()

    run(story, TimelessLoop)


def test_a_crowd_of_silent_nodes_around_a_key_does_not_hold_up_its_record() -> None:
    async def story() -> None:
        hall = Hall()
        asker = dht_in(hall, "asker", clock=asyncio.get_running_loop().time)
        wanted = identity("wanted")
        near = _by_distance(key_of(wanted.node_id), 1000)[:12]
        crowd = [Visitor(hall, "", who=who) for who in near]
        record = record_of(wanted).to_bytes()
        holders = [Liar(hall, f"holder {place}", record) for place in range(STILL.quorum)]
        _knows(asker, *crowd, *holders)
        assert await _hedges(asker, wanted.node_id) <= STILL.late_hedges + 4
        assert all(visitor.heard for visitor in [*crowd, *holders])
        await asker.close()

    run(story, TimelessLoop)


def test_who_was_silent_just_now_is_asked_last_by_the_next_lookup() -> None:
    async def story() -> None:
        hall = Hall()
        asker = dht_in(hall, "asker", clock=asyncio.get_running_loop().time)
        wanted = identity("wanted")
        # On each of the three ways one is silent, and three answer.
        near = _by_distance(key_of(wanted.node_id), 12)
        silent = [Visitor(hall, "", who=who) for who in near[:3]]
        record = record_of(wanted).to_bytes()  # once: a millisecond later it is another one
        holders = [Liar(hall, "", record, who=who) for who in near[3:]]
        for holder in holders:
            holder.names = [visitor.presence.to_bytes() for visitor in silent]
        _knows(asker, *silent)
        first = asyncio.create_task(asker.get(wanted.node_id))
        await asyncio.sleep(1.5 * HEDGE_S)
        _knows(asker, *holders)
        before = [len(visitor.heard) for visitor in silent]
        assert before == [2, 2, 2]  # asked, and asked again
        assert await _hedges(asker, wanted.node_id) == 0
        assert [len(visitor.heard) for visitor in silent] == before
        await asker.close()
        await first

    run(story, TimelessLoop)


def test_the_second_asking_gets_its_time_although_this_process_was_late() -> None:
    class Asking:
        """Writes down what became of a question."""

        def __init__(self) -> None:
            self.told: list[str] = []

        def __getattr__(self, name: str) -> Any:
            return lambda *_: self.told.append(name)

    async def story() -> None:
        hall = Hall()
        asker = dht_in(hall, "asker", clock=asyncio.get_running_loop().time)
        deaf = Liar(hall, "deaf at first", b"")
        _knows(asker, deaf)
        hear = hall.receivers.pop(deaf.node_id)
        asking = Asking()
        known = asker._contacts.get(point_of_node(deaf.node_id))
        assert known is not None
        asker.protocol.ask(known, Find, asking, None, bytes(20), b"")  # type: ignore[arg-type]
        await asyncio.sleep(0)
        hall.receivers[deaf.node_id] = hear
        loop = asyncio.get_running_loop()
        loop._leaping.now += 2 * STILL.late_hedges * HEDGE_S  # type: ignore[attr-defined]
        await asyncio.sleep(HEDGE_S)
        assert asking.told == ["slow", "answered"]
        await asker.close()

    run(story, TimelessLoop)
