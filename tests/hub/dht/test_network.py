"""Fifty nodes on real sockets: all is found, also when many of them are gone at once."""

from __future__ import annotations

import asyncio

import msgspec
import pytest

from aios_nb.hub.dht.interface import Stored
from aios_nb.hub.dht.keys import key_of, number
from aios_nb.hub.presence import State, declare
from aios_nb.records import Scope
from tests.hub.dht.village import NET, House, Village, presence_of, record_of, run

pytestmark = pytest.mark.timeout(600)  # many nodes in one process, on any machine

HOUSES = 50


async def _found(askers: list[House], wanted: list[House]) -> int:
    found = 0
    for asker in askers:
        for house in wanted:
            signed = await asker.dht.get(house.node_id)
            found += signed is not None and signed.record.node == house.node_id
    return found


def test_every_node_is_found_from_everywhere() -> None:
    async def story() -> None:
        async with Village() as village:
            await village.build(HOUSES)
            for house in village.houses:
                stored = await house.dht.put(house.record())
                assert stored.holders >= 8
            askers = village.houses[::5]
            assert await _found(askers, village.houses) == len(askers) * HOUSES

    run(story)


def test_what_was_published_is_found_when_many_are_killed_at_once() -> None:
    async def story() -> None:
        async with Village() as village:
            await village.build(HOUSES)
            await village.publish()
            left = await village.kill(int(0.3 * HOUSES))
            askers = left[:6]
            assert await _found(askers, village.houses) == len(askers) * HOUSES

    run(story)


def test_a_record_is_kept_by_the_nodes_nearest_to_its_key() -> None:
    async def story() -> None:
        async with Village() as village:
            await village.build(HOUSES)
            house = village.houses[0]
            stored = await house.dht.put(house.record())
            key = key_of(house.node_id)
            near = sorted(village.houses, key=lambda each: each.dht.node.long_id ^ number(key))
            holding = [each for each in village.houses if each.dht.storage.get(key)]
            assert set(near[:8]) <= set(holding)
            assert stored == Stored(
                holders=len([each for each in holding if each is not house]), here=house in holding
            )

    run(story)


def test_the_newest_of_what_holders_have_is_returned_whoever_missed_it() -> None:
    async def story() -> None:
        async with Village() as village:
            await village.build(20)
            house, asker = village.houses[0], village.houses[5]
            old = house.record()
            await house.dht.put(old)
            new = house.record(seq=old.record.seq + 1)
            key = key_of(house.node_id)
            holders = [each for each in village.houses if each.dht.storage.get(key)]
            near = sorted(holders, key=lambda each: each.dht.node.long_id ^ number(key))
            for holder in near[len(near) // 2 :]:
                assert holder.dht.storage.offer(key, new.to_bytes())
            assert await asker.dht.get(house.node_id) == new

    run(story)


def test_a_node_that_comes_back_elsewhere_is_asked_there() -> None:
    async def story() -> None:
        async with Village() as village:
            await village.build(5)
            first, other = village.houses[0], village.houses[1]
            await other.dht.put(other.record())
            await other.post.close()
            port = await other.post.open("127.0.0.1", 0)
            other.presence = presence_of(other.identity, port=port, incarnation=1)
            first.dht.meet(other.presence)
            contact = first.dht._contacts.get(other.dht.node.id)
            assert contact is not None
            assert contact.port == port

    run(story)


def test_a_node_that_says_it_leaves_is_not_asked_any_more() -> None:
    async def story() -> None:
        async with Village() as village:
            await village.build(5)
            first, other = village.houses[0], village.houses[1]
            table = first.dht.protocol.router
            assert other.dht.node.id in {each.id for each in table}
            address = other.presence.address
            assert address is not None
            last = declare(
                other.identity,
                NET,
                epoch=1,
                incarnation=0,
                scope=Scope.LOOPBACK,
                address=address,
                state=State.LEFT,
            )
            first.dht.meet(msgspec.structs.replace(last, sig=bytes(64)))
            assert other.dht.node.id in {each.id for each in table}
            first.dht.meet(last)
            assert other.dht.node.id not in {each.id for each in table}

    run(story)


def test_nobody_is_found_who_never_published() -> None:
    async def story() -> None:
        async with Village() as village:
            await village.build(12)
            stranger = House("stranger")
            assert await village.houses[3].dht.get(stranger.node_id) is None

    run(story)


def test_a_node_without_peers_keeps_its_own_record_and_finds_nothing_else() -> None:
    async def story() -> None:
        house = await House("alone").open()
        signed = house.record()
        assert await house.dht.put(signed) == Stored(0, here=True)
        assert await house.dht.get(house.node_id) == signed
        assert await house.dht.get(House("other").node_id) is None
        await house.close()

    run(story)


def test_closing_ends_lookups_and_leaves_no_task_and_no_timer() -> None:
    async def story() -> None:
        async with Village() as village:
            await village.build(6)
            house = village.houses[0]
            for other in village.houses[1:]:
                await other.close()
            under_way = asyncio.create_task(house.dht.get(village.houses[1].node_id))
            publishing = asyncio.create_task(house.dht.put(record_of(house.identity)))
            await asyncio.sleep(0)
            assert house.dht.protocol._outstanding
            await house.dht.close()
            assert await under_way is None
            assert (await publishing).holders == 0
            assert not house.dht.protocol._outstanding
            house.dht.meet(village.houses[1].presence)
            await house.dht.close()

    run(story)
