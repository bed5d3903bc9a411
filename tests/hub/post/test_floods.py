"""Strangers who send too much, of anything."""

from __future__ import annotations

import asyncio
import gc
import hashlib
import itertools
import logging
import os
import random
import sys
import tracemalloc
from collections.abc import Callable, Iterator

import msgspec
import pytest

from aios_nb.hub.post import Kind
from aios_nb.hub.post.budgets import ALL_ANSWERS, ANSWERS, CHECKS
from aios_nb.hub.post.datagram import raw_of
from aios_nb.hub.post.meeting import WELCOMES_TIMED
from aios_nb.hub.post.sessions import MOST_SESSIONS, Sessions
from aios_nb.hub.post.tokens import TOKEN_S
from aios_nb.identity import Identity
from tests.clock import Clock
from tests.hub.post import by_hand
from tests.hub.post.noise import noise
from tests.hub.post.offices import (
    forged,
    office,
    run,
    stranger,
    town,
    until,
    word,
)

MB = 1 << 20


@pytest.fixture
def allocated() -> Iterator[Callable[[], int]]:
    """How many bytes Python's objects hold."""

    def held() -> int:
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    tracemalloc.start()
    yield held
    tracemalloc.stop()


def test_a_source_that_has_proven_nothing_gets_no_more_than_it_sent():
    async def scene():
        async with town() as stack:
            here, plain = await office(stack), Identity.generate()
            here.said = word(here.identity, here.address, epoch=2**52, incarnation=2**31)
            worst = 0.0
            for kind in range(256):
                who = stranger(stack)
                small = word(plain, who.address, epoch=0)
                for body in (small.to_bytes(), b"", b"x" * 8 + small.to_bytes(), b"x" * 1300):
                    before = len(who.answers)
                    data = by_hand.datagram(kind, by_hand.raw(plain), os.urandom(8), body)
                    await who.told(data, here)
                    got = sum(len(answer) for answer in who.answers[before:])
                    worst = max(worst, got / len(data))
            print(f"\nat most {worst:.2f} bytes out for each byte in")  # noqa: T201
            assert 0.9 < worst < 3
            assert here.letters == []

    run(scene)


def test_a_flood_of_hellos_is_answered_within_the_budget():
    async def scene():
        async with town() as stack:
            clock = Clock()
            here, who = await office(stack, clock=clock), stranger(stack)
            key = Identity.generate()
            data = by_hand.hello(key, word(key, who.address))
            for _ in range(5 * ANSWERS[1]):
                await who.told(data, here)
            assert len(who.answers) == ANSWERS[1]
            clock.now += 1
            for _ in range(5 * ANSWERS[1]):
                await who.told(data, here)
            assert len(who.answers) == ANSWERS[1] + ANSWERS[0]

    run(scene)


def test_friends_renew_their_tokens_while_others_flood():
    async def scene():
        async with town() as stack:
            clock = Clock()
            here, friend = await office(stack, clock=clock), await office(stack, clock=clock)
            friend.post.know(here.said)
            await friend.reaches(here)
            newcomer = await office(stack)
            newcomer.post.know(here.said)
            clock.now += TOKEN_S * 0.9
            send, here.post._udp.send = here.post._udp.send, lambda *_: True
            for n in range(2 * ALL_ANSWERS[1]):
                made_up = (f"10.9.{n >> 8}.{n & 255}", 7)
                here.post._arrived(by_hand.datagram(2, os.urandom(20), os.urandom(8)), made_up)
            here.post._udp.send = send
            assert newcomer.write(here, b"let me in")
            await until(lambda: here.post.counts["busy"])
            assert friend.write(here, b"it is me")
            session = friend.post._sessions.get(raw_of(here.node_id))
            await until(lambda: not session.wants_renewal(clock.now))
            assert here.bodies()[-1] == b"it is me"
            assert not here.post.proven(newcomer.node_id)

    run(scene)


def test_signatures_are_checked_within_the_budget():
    async def scene():
        async with town() as stack:
            clock = Clock()
            here, who = await office(stack, clock=clock), stranger(stack)
            key = Identity.generate()
            token = await by_hand.token_for(who, key, word(key, who.address), here)
            for n in range(3 * CHECKS[1]):
                body = os.urandom(8) + forged(key, who, epoch=n).to_bytes()
                await who.told(by_hand.datagram(5, by_hand.raw(key), token, body), here)
            assert here.post.counts["forged"] == CHECKS[1]
            assert here.post.counts["busy"] == 2 * CHECKS[1]
            assert here.met == []

    run(scene)


FULL = 50_000
"""Senders after which everything that has a size has reached it."""


def test_a_hundred_thousand_made_up_senders_leave_nothing_behind():
    async def scene():
        async with town() as stack:
            clock = Clock()
            here, friend = await office(stack, clock=clock), await office(stack)
            friend.post.know(here.said)
            await friend.reaches(here)
            rng = random.Random(7)
            template = word(Identity.generate(), ("127.0.0.1", 1)).said
            here.post._udp.send = lambda data, to: True  # these sources are made up
            blocks = 0
            for n in range(100_000):
                if n == FULL:
                    blocks = sys.getallocatedblocks()
                pk = rng.randbytes(32)
                host, port = f"127.{n >> 16}.{n >> 8 & 255}.{n & 255}", 1 + n % 60_000
                said = msgspec.structs.replace(template, host=host, port=port)
                presence = pk + rng.randbytes(64) + msgspec.msgpack.encode(said)
                me = hashlib.sha256(pk).digest()[:20]
                kind = (0, 5, 2, 3)[n % 4]
                body = (b"x" * 8 if kind == 5 else b"") + presence
                here.post._arrived(by_hand.datagram(kind, me, rng.randbytes(8), body), (host, port))
                clock.now += 0.0001
            grown = sys.getallocatedblocks() - blocks
            print(f"\n{grown} objects more after 100,000 made-up senders")  # noqa: T201
            assert grown < 1000
            meeting = here.post._meeting
            assert len(meeting.sessions) == len(meeting.acquaintances) == 1
            assert len(meeting._welcomed) <= WELCOMES_TIMED
            assert set(here.letters) == {(friend.node_id, Kind.GOSSIP, b"are you there")}
            del here.post._udp.send
            await friend.reaches(here, b"still open")

    run(scene)


def test_sessions_are_bounded_and_the_used_ones_stay():
    sessions = Sessions()
    used = b"used" * 5
    kept, _ = sessions.at(used, ("127.0.0.1", 1))
    for n in range(100_000):
        sessions.at(n.to_bytes(20, "big"), ("127.0.0.1", n))
        if not n % 1000:
            assert sessions.get(used) is kept
    assert len(sessions) == MOST_SESSIONS
    assert sessions.get(used) is kept


def test_more_visitors_than_sessions(monkeypatch):
    monkeypatch.setattr("aios_nb.hub.post.sessions.MOST_SESSIONS", 10)

    async def scene():
        async with town() as stack:
            here = await office(stack)
            others = [await office(stack) for _ in range(40)]
            for other in others:
                other.post.know(here.said)
                await other.reaches(here, b"hi")
            assert len(here.post._sessions) == 10
            for other in others[:15]:
                await other.reaches(here, b"me again")

    run(scene)


def test_ten_thousand_hostile_datagrams(caplog, allocated):
    async def scene():
        async with town() as stack:
            here, friend = await office(stack), await office(stack)
            friend.post.know(here.said)
            heard: list[bytes] = []
            arrived = here.post._udp._receive
            here.post._udp._receive = lambda *came: (heard.append(came[0]), arrived(*came))
            await friend.reaches(here)
            await here.reaches(friend)
            here.post._udp._receive = arrived
            who = stranger(stack)
            key = Identity.generate()
            token = await by_hand.introduced(who, key, word(key, who.address), here)
            here.letters.clear()
            storm = noise(random.Random(11), heard, key, token, who, here)
            for data in itertools.islice(storm, 300):
                await who.told(data, here)
            before, sizes = allocated(), here.post.counts["size"]
            for data in itertools.islice(storm, 10_000):
                who.send(data, here)
                await asyncio.sleep(0)
            await who.told(b"", here)
            here.letters.clear()
            who.answers.clear()
            grown = allocated() - before
            print(f"\n{grown / 1024:.0f} KB more; {dict(here.post.counts)}")  # noqa: T201
            assert grown < 5 * MB
            assert here.post.counts["size"] > sizes + 1000
            assert here.post.counts["error"] == here.post.counts["receiver"] == 0
            for why in ("size", "network", "kind", "junk", "token", "unasked", "address"):
                assert here.post.counts[why], why
            await friend.reaches(here, b"after the storm")
            await here.reaches(friend, b"after the storm")

    with caplog.at_level(logging.DEBUG, logger="aios_nb"):
        run(scene)
    assert caplog.records == []


@pytest.mark.parametrize("kind", list(Kind))
def test_every_cut_of_a_datagram_is_taken_calmly(kind):
    async def scene():
        async with town() as stack:
            here, who = await office(stack), stranger(stack)
            key = Identity.generate()
            said = word(key, who.address)
            token = await by_hand.introduced(who, key, said, here)
            whole = by_hand.datagram(kind, by_hand.raw(key), token, b"x" * 8 + said.to_bytes())
            for length in range(len(whole)):
                await who.told(whole[:length], here)
            assert here.post.counts["error"] == 0

    run(scene)
