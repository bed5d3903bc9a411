"""The known faults of the package, each with what ours does instead.

Where it is cheap, the package itself stands beside ours and shows the fault.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import random
from itertools import pairwise
from pathlib import Path
from typing import Any

import kademlia.network
import msgspec
import pytest
from kademlia.network import Server
from kademlia.node import Node
from kademlia.routing import KBucket, RoutingTable
from kademlia.storage import ForgetfulStorage

from aios_nb.errors import RecordError
from aios_nb.hub.dht import codec, engine
from aios_nb.hub.dht.codec import Find, Found, Get, Kept, Put
from aios_nb.hub.dht.contacts import point_in
from aios_nb.hub.dht.interface import Stored
from aios_nb.hub.dht.keys import key_of, point_of_node
from aios_nb.hub.dht.lookup import Lookup
from aios_nb.hub.dht.routing import Bucket, Routes
from aios_nb.hub.dht.storage import NodeRecords
from aios_nb.hub.dht.tuning import Tuning
from aios_nb.hub.post import Kind, Post
from aios_nb.records import Scope
from tests.clock import Clock
from tests.hub.dht.village import (
    NET,
    STILL,
    Hall,
    House,
    Village,
    identity,
    now_ms,
    presence_of,
    record_of,
    run,
    until,
)
from tests.hub.dht.visitors import Liar, Visitor, contact, dht_in

RNG = random.Random(7)


def _table(tuning: Tuning = STILL, clock: Clock | None = None) -> Routes:
    return Routes(None, Node(bytes(20)), tuning, clock or Clock(), lambda _: None)


def _points(count: int) -> list[bytes]:
    return [RNG.randbytes(20) for _ in range(count)]


# Time --------------------------------------------------------------------------------------


def test_a_lookup_does_not_wait_for_a_dead_peer() -> None:
    async def story() -> None:
        async with Village() as village:
            await village.build(12)
            await village.publish()
            asker, dead, wanted = village.houses[0], village.houses[1], village.houses[2]
            await dead.close()
            protocol = asker.dht.protocol
            # Whoever is asked, the dead one is asked first: it holds the nearest place.
            contact = asker.dht._contacts.get(point_of_node(dead.node_id))
            assert contact is not None
            contact.id = key_of(wanted.node_id)
            contact.long_id = int.from_bytes(contact.id)
            contact.routed = False
            protocol.router.add_contact(contact)
            assert await asker.dht.get(wanted.node_id)
            waiting = [pending.contact for pending in protocol._outstanding.values()]
            assert contact in waiting

    run(story)


def test_a_peer_gets_the_time_it_usually_takes_but_never_more_than_the_hard_limit() -> None:
    async def story() -> None:
        house = House("h")
        hedge_s = house.dht.protocol._hedge_s
        near, far = contact("near"), contact("far", "8.8.8.8", scope=Scope.GLOBAL)
        assert (hedge_s(near), hedge_s(far)) == (0.020, 0.150)
        far.timed(0.1)
        assert hedge_s(far) == pytest.approx(0.3)
        for _ in range(20):
            far.timed(3.0)
        assert hedge_s(far) == 1.5
        assert house.dht.protocol._wait_timeout == 1.5

    run(story)


def test_a_question_into_the_void_is_asked_twice_and_ends_by_itself() -> None:
    async def story() -> None:
        tuning = Tuning(first_refresh_s=3600.0, hard_timeout_s=0.2)
        hall = Hall()
        dht = dht_in(hall, "asker", tuning)
        silent = Visitor(hall, "silent")
        dht.meet(silent.presence)
        contact = dht._contacts.get(point_of_node(silent.node_id))
        assert contact is not None
        contact.confirmed = True
        assert await dht.get(identity("nobody").node_id) is None
        assert len(silent.heard) >= 2
        assert silent.heard[0] == silent.heard[1]
        await dht.close()

    run(story)


def test_one_answer_is_enough_to_go_on_while_the_others_are_awaited() -> None:
    start = [contact(f"c{number}") for number in range(9)]
    lookup = Lookup(bytes(20), b"me", start, radius=0, nodes=9.0, tuning=STILL, rng=RNG)
    first = [lookup.next() for _ in range(3)]
    assert all(first)
    assert lookup.next() is None
    assert first[0] is not None
    lookup.answered(first[0], [], token=b"", more=False)
    assert lookup.next() is not None
    assert lookup.pending == 3


def test_nothing_is_called_missing_while_an_answer_may_still_come() -> None:
    start = [contact(f"c{number}") for number in range(3)]
    lookup = Lookup(bytes(20), b"me", start, radius=0, nodes=9.0, tuning=STILL, rng=RNG)
    asked = [lookup.next() for _ in range(3)]
    for candidate in asked[:2]:
        assert candidate is not None
        lookup.lost(candidate)
    last = asked[2]
    assert last is not None
    lookup.slow(last)
    lookup.late(last)
    assert lookup.next() is None
    assert lookup.settled
    assert not lookup.over
    lookup.lost(last)
    assert lookup.over


# The table ---------------------------------------------------------------------------------


def test_neighbours_are_the_nearest_of_all_even_if_more_are_wanted_than_a_bucket_holds() -> None:
    ours, theirs = _table(), RoutingTable(_Pings(), 20, Node(bytes(20)))
    for point in _points(400):
        made = contact(point=point)
        made.confirmed = True
        ours.add_contact(made)
    for known in ours:
        theirs.add_contact(Node(known.id, "127.0.0.1", known.long_id % 60000 + 1))
    wrong = 0
    for point in _points(50):
        target = Node(point)
        for k in (20, 50):
            right = sorted((each.id for each in ours), key=lambda each: _far(each, point))[:k]
            assert [each.id for each in ours.find_neighbors(target, k)] == right
            wrong += [each.id for each in theirs.find_neighbors(target, k)] != right
    assert wrong, "the package has been repaired"


class _Pings:
    async def call_ping(self, node: Node) -> None:
        raise AssertionError("not in this test")


def _far(one: bytes, other: bytes) -> int:
    return int.from_bytes(one) ^ int.from_bytes(other)


def test_the_depth_of_a_bucket_is_that_of_its_range() -> None:
    lone = contact(point=b"\xff" * 20)
    ours, theirs = Bucket(0, 2**160 - 1, 20), KBucket(0, 2**160, 20)
    for bucket in (ours, theirs):
        bucket.add_node(lone)
    assert ours.depth() == 0
    assert theirs.depth() == 160, "the package has been repaired"
    assert [half.depth() for half in ours.split()] == [1, 1]


@pytest.mark.parametrize("bits", [1, 3])
def test_how_deep_far_buckets_are_split_is_a_setting(bits: int) -> None:
    table = _table(Tuning(split_bits=bits))
    for point in _points(4000):
        table.add_contact(contact(point=point))
    far = [bucket for bucket in table.buckets if bucket.range[0] >= 2**159]
    assert len(far) == 2 ** (bits - 1)
    assert {bucket.depth() for bucket in far} == {bits}
    assert all(len(bucket) <= 20 for bucket in table.buckets)


def test_buckets_cover_the_space_without_gap_or_overlap() -> None:
    table = _table()
    for point in _points(2000):
        table.add_contact(contact(point=point))
    edges = [bucket.range for bucket in table.buckets]
    assert edges[0][0] == 0
    assert edges[-1][1] == 2**160 - 1
    assert all(one[1] + 1 == other[0] for one, other in pairwise(edges))
    for known in table:
        bucket = table.buckets[table.get_bucket_for(known)]
        assert bucket.has_in_range(known)


def test_one_that_waits_for_a_place_is_known_and_not_new_each_time() -> None:
    theirs, ours = KBucket(0, 2**160 - 1, 1), Bucket(0, 2**160 - 1, 1)
    for bucket in (theirs, ours):
        for name in ("a", "b"):
            bucket.add_node(contact(name))
    assert theirs.is_new_node(contact("b")), "the package has been repaired"
    assert not ours.is_new_node(contact("b"))


# What is kept ------------------------------------------------------------------------------


def _records(tuning: Tuning = STILL, scope: Scope = Scope.LOOPBACK) -> NodeRecords:
    return NodeRecords(NET, bytes(20), now_ms, tuning, lambda: scope)


def test_only_the_owner_writes_under_a_key_and_newer_wins() -> None:
    owner, other = identity("owner"), identity("other")
    key = key_of(owner.node_id)
    old = record_of(owner)
    new = record_of(owner, seq=old.record.seq + 1)
    theirs = ForgetfulStorage()
    theirs[key] = b"anyone's"
    assert theirs.get(key), "the package keeps whatever comes last"
    kept = _records()
    assert kept.offer(key, new.to_bytes())
    assert not kept.offer(key, record_of(other).to_bytes())
    assert not kept.offer(key, b"anyone's")
    forged = bytearray(record_of(owner, seq=old.record.seq + 2).to_bytes())
    forged[40] ^= 1
    assert not kept.offer(key, bytes(forged))
    assert kept.offer(key, old.to_bytes()), "there is a newer one"
    assert kept.record(key) == new


def test_records_of_another_net_or_time_or_kind_are_not_kept() -> None:
    from aios_nb.access import Access
    from aios_nb.records import agent_record, sign_record

    owner = identity("owner")
    key = key_of(owner.node_id)
    day_ms = 24 * 3_600_000
    kept = _records()
    agent = agent_record(
        net=NET, node=owner.node_id, name="a", access=Access.PUBLIC, card=bytes(32), seq=now_ms(),
        epoch=1, now_ms=now_ms(),
    )  # fmt: skip
    for bad in (
        record_of(owner, net="elsewhere"),
        record_of(owner, at=now_ms() - 2 * day_ms),
        record_of(owner, at=now_ms() + day_ms),
        sign_record(owner, agent),
    ):
        assert not kept.offer(key, bad.to_bytes())
    assert _records(scope=Scope.LOOPBACK).offer(key, record_of(owner).to_bytes())
    assert not _records(scope=Scope.PRIVATE).offer(key, record_of(owner).to_bytes())


def test_the_store_is_bounded_in_keys_and_bytes_and_keeps_what_is_near() -> None:
    owners = [identity(f"owner {number}") for number in range(40)]
    kept = _records(Tuning(keys_max=10))
    small = _records(Tuning(bytes_max=5000))
    for owner in owners:
        kept.offer(key_of(owner.node_id), record_of(owner).to_bytes())
        small.offer(key_of(owner.node_id), record_of(owner).to_bytes())
    near = sorted(key_of(owner.node_id) for owner in owners)
    assert sorted(key for key, _ in kept) == near[:10]
    assert 0 < small.size_bytes <= 5000
    assert (Tuning().keys_max, Tuning().bytes_max) == (20_000, 64 << 20)


def test_a_record_is_gone_when_its_time_is_over() -> None:
    clock = Clock()
    clock.now = now_ms() / 1000
    kept = NodeRecords(NET, bytes(20), lambda: int(clock.now * 1000), STILL, lambda: Scope.LOOPBACK)
    owner = identity("owner")
    key = key_of(owner.node_id)
    kept.offer(key, record_of(owner).to_bytes())
    clock.now += 23 * 3600
    assert kept.record(key)
    clock.now += 3 * 3600
    kept.expire()
    assert len(kept) == 0
    assert kept.size_bytes == 0


def test_what_is_no_record_is_refused_on_receipt_and_does_not_end_a_lookup() -> None:
    async def story() -> None:
        hall = Hall()
        dht = dht_in(hall, "asker")
        wanted = identity("wanted")
        odd: list[Any] = [{"value": 1}, [1, [2]], 7, "text", None, b"", b"x" * 900, b"x" * 1200]
        for number, value in enumerate(odd):

            def answer(question: Find | Get | Put, value: Any = value) -> bytes:
                content = [3, question.number, bytes(8), False, value, []]
                return msgspec.msgpack.encode(content)

            dht.meet(Visitor(hall, f"odd {number}", answer).presence)
        assert await dht.get(wanted.node_id) is None
        visitor = Visitor(hall, "writer")
        for value in odd:
            body = msgspec.msgpack.encode([2, 5, key_of(wanted.node_id), bytes(8), value])
            visitor.say(dht, body)
        assert len(dht.storage) == 0
        assert dht.stats["malformed"] >= 10
        assert not dht.stats["failed"]
        await dht.close()

    run(story)


def test_a_stale_copy_here_is_not_what_is_found() -> None:
    async def story() -> None:
        async with Village() as village:
            await village.build(10)
            owner, asker = village.houses[0], village.houses[1]
            old = owner.record()
            asker.dht.storage.offer(key_of(owner.node_id), old.to_bytes())
            new = owner.record(seq=old.record.seq + 1)
            for house in village.houses[2:]:
                house.dht.storage.offer(key_of(owner.node_id), new.to_bytes())
            assert await asker.dht.get(owner.node_id) == new

    run(story)


def test_several_holders_are_read_and_nothing_is_stored_on_the_way_back() -> None:
    async def story() -> None:
        hall = Hall()
        dht = dht_in(hall, "asker")
        owner = identity("owner")
        old = record_of(owner)
        new = record_of(owner, seq=old.record.seq + 1)
        holders = [Liar(hall, f"holder {number}", old.to_bytes()) for number in range(3)]
        holders.append(Liar(hall, "holder 3", new.to_bytes()))
        for holder in holders:
            dht.meet(holder.presence)
        assert await dht.get(owner.node_id) == new
        assert all(holder.heard for holder in holders)
        kinds = {type(codec.read(body)) for holder in holders for body in holder.heard}
        assert kinds == {Get}
        assert dht.storage.get(key_of(owner.node_id)) is None
        await dht.close()

    run(story)


# Who speaks --------------------------------------------------------------------------------


def test_an_answer_counts_only_from_whom_was_asked() -> None:
    async def story() -> None:
        hall = Hall()
        dht = dht_in(hall, "asker")
        owner = identity("owner")
        asked, other = Visitor(hall, "asked"), Visitor(hall, "other")
        dht.meet(asked.presence)
        looking = asyncio.create_task(dht.get(owner.node_id))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        question = codec.read(asked.heard[0])
        assert isinstance(question, Get)
        found = Found(question.number, bytes(8), False, record_of(owner).to_bytes(), [])
        other.say(dht, codec.write(found))
        assert dht.stats["unasked"] == 1
        asked.say(dht, codec.write(Found(question.number + 1, *msgspec.structs.astuple(found)[1:])))
        asked.say(dht, codec.write(Kept(question.number, kept=True)))
        assert dht.stats["unasked"] == 2
        assert not looking.done()
        asked.say(dht, codec.write(found))
        signed = await looking
        assert signed is not None
        await dht.close()

    run(story)


def test_two_thousand_made_up_nodes_from_one_place_do_not_fill_the_table() -> None:
    async def story() -> None:
        hall = Hall()
        dht = dht_in(hall, "victim", host="8.8.4.4", scope=Scope.GLOBAL)
        real = identity("real")
        for number in range(2000):
            # Made up: each is signed by a key that is not the one it names.
            presence = presence_of(real, "9.9.9.9", number + 1, scope=Scope.GLOBAL)
            forged = msgspec.structs.replace(presence, pk=RNG.randbytes(32))
            body = codec.write(Find(1, bytes(20), b""))
            dht.protocol.datagram_received(body, forged.node_id)
        assert len(dht.protocol.router) == 0
        for number in range(500):
            presence = presence_of(
                identity(f"sybil {number}"), "9.9.9.9", number + 1, scope=Scope.GLOBAL
            )
            dht.meet(presence, proven=True)
        assert len(dht.protocol.router) <= 10
        assert all(len(bucket) <= 2 for bucket in dht.protocol.router.buckets)
        await dht.close()

    run(story)


def test_a_forged_word_does_not_take_the_place_of_a_true_one() -> None:
    async def story() -> None:
        hall = Hall()
        dht = dht_in(hall, "asker")
        true = Visitor(hall, "true")
        later = presence_of(true.identity, port=666, incarnation=99)
        forged = msgspec.structs.replace(later, sig=bytes(64))
        for first, second in ((true.presence, forged), (forged, true.presence)):
            dht._contacts._known.clear()
            dht.meet(first)
            dht.meet(second)
            known = dht._contacts.get(point_of_node(true.node_id))
            assert known is not None
            assert known.port == true.presence.said.port
        await dht.close()

    run(story)


def test_a_newcomer_is_handed_nothing_it_did_not_ask_for() -> None:
    async def story() -> None:
        hall = Hall()
        dht = dht_in(hall, "keeper")
        for number in range(30):
            owner = identity(f"owner {number}")
            dht.storage.offer(key_of(owner.node_id), record_of(owner).to_bytes())
        newcomer = Visitor(hall, "newcomer")
        dht.meet(newcomer.presence, proven=True)
        for _ in range(3):
            newcomer.say(dht, codec.write(Find(1, bytes(20), b"")))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert [type(codec.read(body)) for body in newcomer.heard] == [Found] * 3
        await dht.close()

    run(story)


def test_a_write_needs_the_token_that_this_sender_got_for_this_key() -> None:
    async def story() -> None:
        clock = Clock()
        hall = Hall()
        dht = dht_in(hall, "keeper", clock=clock)
        owner = identity("owner")
        key, content = key_of(owner.node_id), record_of(owner).to_bytes()
        writer, thief = Visitor(hall, "writer"), Visitor(hall, "thief")

        async def told(visitor: Visitor, message: Find | Put) -> Any:
            visitor.say(dht, codec.write(message))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            return codec.read(visitor.heard[-1])

        token = (await told(writer, Find(1, key, b""))).token
        elsewhere = (await told(writer, Find(2, bytes(20), b""))).token
        assert not (await told(writer, Put(3, key, bytes(8), content))).kept
        assert not (await told(writer, Put(4, key, elsewhere, content))).kept
        assert not (await told(thief, Put(5, key, token, content))).kept
        clock.now += 299
        assert (await told(writer, Put(6, key, token, content))).kept
        clock.now += 600
        assert not (await told(writer, Put(7, key, token, content))).kept
        await dht.close()

    run(story)


def test_a_peer_that_asks_too_much_is_not_answered() -> None:
    async def story() -> None:
        clock = Clock()
        hall = Hall()
        dht = dht_in(hall, "keeper", clock=clock)
        greedy, other = Visitor(hall, "greedy"), Visitor(hall, "other")
        for number in range(500):
            greedy.say(dht, codec.write(Find(number, bytes(20), b"")))
        other.say(dht, codec.write(Find(1, bytes(20), b"")))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert len(greedy.heard) == 100
        assert len(other.heard) == 1
        clock.now += 1
        for number in range(500):
            greedy.say(dht, codec.write(Find(number, bytes(20), b"")))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert len(greedy.heard) == 150
        await dht.close()

    run(story)


# Publishing --------------------------------------------------------------------------------


def test_publishing_among_the_dead_says_so_and_raises_nothing() -> None:
    async def story() -> None:
        tuning = Tuning(first_refresh_s=3600.0, hard_timeout_s=0.3)
        async with Village() as village:
            await village.build(5, tuning)
            house = village.houses[0]
            for other in village.houses[1:]:
                await other.close()
            assert await house.dht.put(house.record()) == Stored(0, here=True)

    run(story)


def test_publishing_tells_how_many_keep_it_and_whether_this_node_does() -> None:
    async def story() -> None:
        async with Village() as village:
            await village.build(4)
            house = village.houses[0]
            assert await house.dht.put(house.record()) == Stored(3, here=True)

    run(story)


def test_what_is_not_this_networks_node_record_is_not_published() -> None:
    async def story() -> None:
        house = await House("h").open()
        with pytest.raises(RecordError):
            await house.dht.put(record_of(house.identity, net="elsewhere"))
        with pytest.raises(RecordError):
            await house.dht.set_digest(bytes(20), house.record().to_bytes())
        await house.close()

    run(story)


def test_an_owner_publishes_again_by_itself() -> None:
    async def story() -> None:
        async with Village() as village:
            await village.build(4)
            tuning = Tuning(first_refresh_s=3600.0, republish_s=0.1)
            owner = await village.add(tuning)
            await owner.dht.put(owner.record())
            key = key_of(owner.node_id)
            for house in village.houses:
                house.dht.storage._drop([key])
            await until(lambda: all(house.dht.storage.record(key) for house in village.houses[:4]))

    run(story)
    assert Tuning().republish_s == 6 * 3600
    assert Tuning().republish_jitter > 0


def test_a_lookup_that_is_cancelled_leaves_nothing_and_breaks_nothing() -> None:
    async def story() -> None:
        tuning = Tuning(first_refresh_s=3600.0, hard_timeout_s=0.2)
        async with Village() as village:
            await village.build(6, tuning)
            asker, other = village.houses[0], village.houses[1]
            for _ in range(20):
                task = asyncio.create_task(asker.dht.get(other.node_id))
                await asyncio.sleep(0)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
            assert not asker.dht._walks
            await until(lambda: not asker.dht.protocol._outstanding)
            assert not asker.dht.stats["failed"]

    run(story)


# Sizes -------------------------------------------------------------------------------------


class _Stranger(asyncio.DatagramProtocol):
    """A socket that has proven nothing."""

    def __init__(self) -> None:
        self.heard: list[bytes] = []

    def datagram_received(self, data: bytes, addr: Any) -> None:
        self.heard.append(data)


def test_who_has_proven_nothing_gets_little_back_and_nothing_else_ever() -> None:
    async def story() -> None:
        async with Village() as village:
            await village.build(10)
            await village.publish()
            house = village.houses[0]
            stranger = _Stranger()
            loop = asyncio.get_running_loop()
            transport, _ = await loop.create_datagram_endpoint(
                lambda: stranger, remote_addr=house.presence.address
            )
            from aios_nb.hub.post.datagram import head_of, mark_of, raw_of

            spoofed = raw_of(village.houses[3].node_id)
            sent = 0
            for question in (Find, Get):
                for key in (key_of(each.node_id) for each in village.houses):
                    head = head_of(Kind.DHT, mark_of(NET), spoofed, bytes(8))
                    datagram = head + codec.write(question(1, key, b""))
                    transport.sendto(datagram)
                    sent += len(datagram)
            before = house.dht.stats["asked"]
            # A question of a proven one, sent after, is answered after.
            await village.houses[1].dht.get(house.node_id)
            assert house.dht.stats["asked"] <= before + 5
            assert sum(map(len, stranger.heard)) <= 3 * sent
            transport.close()

    run(story)


def test_no_answer_is_longer_than_a_datagram_and_the_rest_comes_by_page() -> None:
    async def story() -> None:
        hall = Hall()
        dht = dht_in(hall, "keeper")
        owner = identity("owner")
        dht.storage.offer(key_of(owner.node_id), record_of(owner).to_bytes())
        known = set()
        for number in range(20):
            visitor = Visitor(hall, f"known {number}")
            dht.meet(visitor.presence, proven=True)
            visitor.say(dht, codec.write(Find(0, bytes(20), b"")))
            known.add(visitor.presence.to_bytes())
        asker = Visitor(hall, "asker")
        dht.meet(asker.presence, proven=True)
        told: list[bytes] = []
        more, beyond = True, b""
        while more:
            asker.say(dht, codec.write(Get(len(told), key_of(owner.node_id), beyond)))
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            body = asker.heard[-1]
            assert len(body) <= codec.MESSAGE_LIMIT_BYTES
            found = codec.read(body)
            assert isinstance(found, Found)
            assert bool(found.record) is (not told)
            told += found.contacts
            last = point_in(told[-1])
            assert last is not None
            beyond = _far(last, key_of(owner.node_id)).to_bytes(20)
            more = found.more
        assert len(told) > len(found.contacts)
        assert set(told) == known
        await dht.close()

    run(story)


# Garbage -----------------------------------------------------------------------------------


def _garbage(rng: random.Random) -> bytes:
    good: list[Any] = [rng.randrange(6), rng.getrandbits(63), rng.randbytes(20), b""]
    kind = rng.randrange(10)
    if kind == 0:
        return rng.randbytes(rng.randrange(0, 1366))
    if kind == 1:
        return b"\x91" * 1300
    if kind == 2:
        return msgspec.msgpack.encode(good)[: rng.randrange(30)]
    if kind == 3:
        good[rng.randrange(4)] = rng.choice([None, {}, [], "x", -1, 2**64 - 1, 1.5, b"", True])
    elif kind == 4:
        good[2] = rng.randbytes(rng.randrange(40))
    elif kind == 5:
        good = [3, 1, bytes(8), True, b"", [rng.randbytes(rng.randrange(240)) for _ in range(5)]]
    elif kind == 6:
        good = [3, 1, bytes(8), True, {"value": {"a": 1}}, [[1], {}]]
    elif kind == 7:
        return msgspec.msgpack.encode({"a": good})
    elif kind == 8:
        mutated = bytearray(msgspec.msgpack.encode(good))
        mutated[rng.randrange(len(mutated))] ^= 1 << rng.randrange(8)
        return bytes(mutated)
    return msgspec.msgpack.encode(good)


def test_ten_thousand_bad_datagrams_are_dropped_and_counted() -> None:
    async def story() -> None:
        rng = random.Random(3)
        async with Village() as village:
            await village.build(4)
            await village.publish()
            victim, attacker = village.houses[:2]
            before = len(victim.dht.protocol.router)
            # Proven, and so let through to the DHT by the post.
            await attacker.dht.get(victim.node_id)
            for count in range(10_000):
                attacker.post.send(victim.node_id, Kind.DHT, _garbage(rng))
                if count % 50 == 0:
                    await asyncio.sleep(0)
            assert await village.houses[2].dht.get(victim.node_id)
            assert victim.dht.stats["malformed"] > 1000
            assert not victim.dht.stats["failed"]
            assert not victim.post.counts["receiver"]
            assert not victim.post.counts["error"]
            assert len(victim.dht.protocol.router) == before

    run(story)


# Habits ------------------------------------------------------------------------------------


def test_a_misspelt_attribute_is_an_error_and_not_a_remote_call() -> None:
    protocol = House("h").dht.protocol
    with pytest.raises(AttributeError):
        _ = protocol.droped
    with pytest.raises(AttributeError):
        _ = protocol._nothing
    assert callable(Server(node_id=bytes(20))._create_protocol().droped)


def test_nothing_is_logged_for_each_lookup(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)

    async def story() -> None:
        async with Village() as village:
            await village.build(4)
            await village.publish()
            assert await village.houses[0].dht.get(village.houses[1].node_id)

    run(story)
    assert not [each for each in caplog.records if not each.name.startswith("asyncio")]


def test_a_lookup_of_many_steps_needs_no_deep_stack() -> None:
    async def story() -> None:
        hall = Hall()
        asker = dht_in(hall, "asker", Tuning(first_refresh_s=3600.0, lanes=1, paths=1, k=200))
        chain = [Liar(hall, f"link {number}", b"") for number in range(150)]
        for one, other in pairwise(chain):
            one.names = [other.presence.to_bytes()]
        asker.meet(chain[0].presence)
        depths: list[int] = []
        chain[-1].on_heard = lambda: depths.append(len(inspect.stack(0)))
        chain[5].on_heard = lambda: depths.append(len(inspect.stack(0)))
        assert await asker.get(identity("nobody").node_id) is None
        assert len(depths) == 2
        assert depths[0] == depths[1]
        await asker.close()

    run(story)


def test_nothing_is_pickled() -> None:
    house = House("h")
    for forbidden in ("save_state", "load_state", "save_state_regularly", "listen", "bootstrap"):
        with pytest.raises(NotImplementedError):
            getattr(house.dht, forbidden)("file", 1)
    folder = Path(inspect.getfile(engine)).parent
    assert not [path for path in folder.glob("*.py") if "import pickle" in path.read_text()]
    assert hasattr(kademlia.network, "pickle")


def test_what_is_worth_remembering_comes_as_signed_words() -> None:
    async def story() -> None:
        async with Village() as village:
            await village.build(4)
            house = village.houses[0]
            known = house.dht.contacts()
            assert {each.node_id for each in known} <= {each.node_id for each in village.houses}
            assert known
            assert all(each.is_genuine() for each in known)
            again = await House("again").open()
            for presence in known:
                again.dht.meet(presence)
            await again.dht.settle()
            assert again.dht.contacts()
            await again.close()

    run(story)


def test_nodes_meet_over_the_newer_kind_of_address() -> None:
    async def story() -> None:
        houses = []
        for name in ("one", "two", "three"):
            house = House(name)
            port = await house.post.open("::1", 0)
            house.presence = presence_of(house.identity, "::1", port)
            houses.append(house)
        for house in houses[1:]:
            house.dht.meet(houses[0].presence)
            await house.dht.settle()
        assert (await houses[1].dht.put(houses[1].record())).holders == 2
        assert await houses[2].dht.get(houses[1].node_id)
        for house in houses:
            await house.close()

    run(story)


def test_records_are_also_found_by_key() -> None:
    async def story() -> None:
        async with Village() as village:
            await village.build(4)
            house = village.houses[0]
            signed = house.record()
            await house.dht.put(signed)
            assert await village.houses[1].dht.get_digest(key_of(house.node_id)) == signed

    run(story)
    assert not hasattr(Server, "get_digest"), "the package has it now"


def test_a_node_no_datagram_reaches_is_never_asked_but_can_be_found() -> None:
    async def story() -> None:
        async with Village() as village:
            await village.build(4)
            hidden = identity("hidden")
            from aios_nb.hub.presence import declare

            nowhere = declare(
                hidden, NET, epoch=1, incarnation=0, scope=Scope.LOOPBACK, address=None
            )
            sponsor, asker = village.houses[:2]
            before = len(sponsor.dht.protocol.router)
            sponsor.dht.meet(nowhere)
            assert len(sponsor.dht.protocol.router) == before
            signed = record_of(hidden)
            assert (await sponsor.dht.put(signed)).holders == 3
            assert await asker.dht.get(hidden.node_id) == signed

    run(story)


def test_a_post_that_carries_another_network_does_not_mix() -> None:
    async def story() -> None:
        async with Village() as village:
            await village.build(2)
            house = village.houses[0]
            foreign = identity("foreign")
            house.dht.meet(presence_of(foreign, net="elsewhere"))
            assert len(house.dht.protocol.router) == 1
            other = Post(foreign, "elsewhere", lambda: presence_of(foreign, net="elsewhere"))
            port = await other.open("127.0.0.1", 0)
            spoken = presence_of(foreign, port=port, net="elsewhere")
            other._meeting._presence = lambda: spoken
            other.know(house.presence)
            assert not other.send(house.node_id, Kind.DHT, codec.write(Find(1, bytes(20), b"")))
            await other.close()

    run(story)
