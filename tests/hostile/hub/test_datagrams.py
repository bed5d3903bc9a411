"""Datagrams that nobody should send, on the port of a whole running node."""

from __future__ import annotations

import contextlib
import gc
import itertools
import logging
import os
import random
import socket
import time
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest

from aios_nb.hub.gossip.packets import Alive, Ping, Whole, pack
from aios_nb.hub.presence import Presence, declare
from aios_nb.identity import TAG_ALIVE, Identity
from aios_nb.records import Scope
from tests.hostile.hub.seeds import agent, key, now_ms, place, word
from tests.hub.post import by_hand
from tests.hub.post.noise import SPOILERS
from tests.network.conftest import Make, found, meet, say, sees, states, the, until, works
from tests.sites import TestSite

MB = 1 << 20
STORM = 10_000


class Stranger:
    """A socket of its own, that may be a node of its own."""

    def __init__(self, identity: Identity | None = None) -> None:
        self.socket = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.socket.bind(("127.0.0.1", 0))
        self.socket.settimeout(5)
        self.identity = identity or Identity.generate()
        self.address: tuple[str, int] = self.socket.getsockname()
        self.sent_bytes = 0

    def send(self, data: bytes, to: TestSite) -> None:
        with contextlib.suppress(OSError):  # too long for any datagram
            self.sent_bytes += self.socket.sendto(data, _port(to))

    def heard(self) -> list[bytes]:
        """All that has come."""
        came: list[bytes] = []
        self.socket.settimeout(0)
        with contextlib.suppress(BlockingIOError):
            while True:
                came.append(self.socket.recv(65536))
        self.socket.settimeout(5)
        return came

    def word(self, epoch: int = 1) -> Presence:
        return word(self.identity, self.address, epoch=epoch)

    def proves_itself(self, to: TestSite, presence: Presence | None = None) -> bytes:
        """The whole greeting; the token it got."""
        said = presence or self.word()
        self.send(by_hand.hello(self.identity, said), to)
        token = self.socket.recv(2000)[33:41]
        me = by_hand.raw(self.identity)
        proof = by_hand.datagram(by_hand.PROOF, me, token, os.urandom(8) + said.to_bytes())
        self.send(proof, to)
        return token

    def gossips(self, to: TestSite, token: bytes, packet: bytes) -> None:
        me = by_hand.raw(self.identity)
        self.send(by_hand.datagram(by_hand.GOSSIP, me, token, packet), to)


def _port(site: TestSite) -> tuple[str, int]:
    address: tuple[str, int] = site.rooms.network.presence().address
    return address


@pytest.fixture
def stranger() -> Iterator[Callable[..., Stranger]]:
    made: list[Stranger] = []

    def make(identity: Identity | None = None) -> Stranger:
        made.append(Stranger(identity))
        return made[-1]

    yield make
    for one in made:
        one.socket.close()


def _captured(site: TestSite) -> list[bytes]:
    """All datagrams that come in from now on."""
    udp = site.rooms.network._post._udp
    heard: list[bytes] = []
    arrived = udp._receive
    udp._receive = lambda data, source: (heard.append(data), arrived(data, source))
    return heard


def _read(site: TestSite) -> int:
    return int(site.on_loop(lambda: site.rooms.network._post.received_bytes))


def _storm(
    rng: random.Random, pool: list[bytes], who: list[Stranger], site: TestSite, count: int
) -> None:
    """So many, each from one of them, no faster than they are read."""
    for number in range(count):
        one = rng.choice(who)
        one.send(rng.choice(SPOILERS)(rng, rng.choice(pool)), site)
        if number % 50 == 0:
            _read(site)
    before = -1
    while before != (before := _read(site)):
        site.call("node.info")


def test_ten_thousand_hostile_datagrams_on_a_whole_node(
    node: Make, stranger: Any, caplog: pytest.LogCaptureFixture
):
    a = node("a", works("baker"))
    b = node("b", works("miller"), join=a)
    heard = _captured(a)
    meet(a, b)
    until(lambda: the(b, "miller") in found(a, "name:miller"))
    until(lambda: {data[0] for data in heard} >= {by_hand.GOSSIP, by_hand.DHT})
    pool = list(heard)
    strangers = [stranger() for _ in range(20)]
    pool += [by_hand.hello(one.identity, one.word()) for one in strangers]
    liar = stranger(key("liar"))
    token = liar.proves_itself(a)
    me = by_hand.raw(liar.identity)
    pool += [
        by_hand.datagram(kind, me, token, data[33:]) for data in heard[:200] for kind in (2, 3)
    ]
    rng = random.Random(5)
    everyone = [*strangers, liar]
    _storm(rng, pool, everyone, a, 1500)
    heard.clear()
    gc.collect()
    tracemalloc.start()
    try:
        with caplog.at_level(logging.DEBUG):
            caplog.clear()
            _storm(rng, pool, everyone, a, STORM)
            logged = [record for record in caplog.records if record.name.startswith("aios_nb.hub")]
            errors = [record for record in caplog.records if record.levelno >= logging.WARNING]
        heard.clear()
        caplog.clear()
        gc.collect()
        grown = tracemalloc.get_traced_memory()[0]
    finally:
        tracemalloc.stop()
    counts = a.rooms.network._post.counts
    print(f"\n{grown / 1024:.0f} KB more, {len(logged)} lines, {dict(counts)}")  # noqa: T201
    assert grown < 5 * MB
    assert errors == []
    assert len(logged) < STORM / 100
    assert counts["error"] == counts["receiver"] == 0
    assert sum(counts.values()) > STORM / 2
    assert sees(a, b) == "alive" == sees(b, a)
    b.node.host(works("late"))
    until(lambda: the(b, "late") in found(a, "name:late"))
    assert say(b, "baker") == "baker has hello"


def test_who_has_proven_nothing_gets_little_back(node: Make, stranger: Any):
    a = node("a", works("baker"))
    b = node("b", join=a)
    heard = _captured(a)
    meet(a, b)
    until(lambda: {data[0] for data in heard} >= {by_hand.GOSSIP, by_hand.DHT})
    pool = [*heard]
    sent = received = 0
    worst = 0.0
    for kind in range(6):
        one = stranger()
        said = one.word().to_bytes()
        me = by_hand.raw(one.identity)
        mine = [
            by_hand.datagram(kind, me, os.urandom(8), body) for body in (b"", said, b"x" + said)
        ]
        for data in [*mine * 20, *(data for data in pool[:100] if data[0] == kind)]:
            one.send(data, a)
        a.call("node.info")
        answers = sum(map(len, one.heard()))
        sent, received = sent + one.sent_bytes, received + answers
        worst = max(worst, answers / one.sent_bytes)
    print(f"\n{received / sent:.2f} bytes for a byte over all, {worst:.2f} at most")  # noqa: T201
    assert worst <= 3


def _calls(door: socket.socket) -> int:
    """How many have knocked."""
    for count in itertools.count():
        try:
            door.accept()[0].close()
        except BlockingIOError:
            return count
    raise AssertionError


def test_a_victim_that_many_name_gets_few_datagrams_and_few_calls(node: Make, stranger: Any):
    """Hundreds of members and records give its address as theirs."""
    a = node("a", works("baker"))
    victim, liar = stranger(), stranger(key("liar"))
    names = [key(f"nobody {number}") for number in range(400)]
    with socket.create_server(victim.address) as door:
        door.settimeout(0)
        token = liar.proves_itself(a)
        until(lambda: liar.identity.node_id in states(a))
        for start in range(0, len(names), 5):
            words = [
                Alive(word(one, victim.address).to_bytes()) for one in names[start : start + 5]
            ]
            liar.gossips(a, token, pack(words))
        for one in names[:40]:
            for record in (place(one, ("http", *victim.address), index=10**6), agent(one, "lure")):
                handle = a.rooms.network.catalogue.handle(record.key)
                liar.gossips(a, token, pack([Whole(2, handle, b"versions", record.to_bytes())]))
        until(lambda: len(states(a)) > len(names))
        until(lambda: len(found(a, "lure")) >= 40)
        until(lambda: a.rooms.network._post.counts["unanswered"] >= 3)
        came = victim.heard()
        calls = _calls(door)
    print(f"\n{len(names)} named the victim: {len(came)} datagrams, {calls} calls")  # noqa: T201
    assert len(came) <= 40
    assert calls <= 40
    assert {data[0] for data in came} <= {by_hand.HELLO}


@pytest.mark.parametrize(
    "host", ["169.254.169.254", "224.0.0.1", "0.0.0.0", "255.255.255.255", "10.1.2.3", "8.8.8.8"]
)
def test_addresses_that_are_not_of_this_machine_are_never_written_to(
    node: Make, stranger: Any, host: str
):
    a = node("a", works("baker"))
    tried: list[Any] = []
    udp = a.rooms.network._post._udp
    send = udp.send
    udp.send = lambda data, to: (tried.append(to), send(data, to))[1]
    liar = stranger(key("liar"))
    token = liar.proves_itself(a)
    until(lambda: liar.identity.node_id in states(a))
    payload = word(key("x"), ("127.0.0.1", 9)).to_bytes()
    whole = _with_host(key("x"), host)
    liar.gossips(a, token, pack([Alive(payload)]))
    liar.gossips(a, token, pack([Alive(whole)]))
    until(lambda: key("x").node_id in states(a))
    until(lambda: any(to[1] == 9 for to in tried))
    assert {to[0] for to in tried} == {"127.0.0.1"}


def _with_host(identity: Identity, host: str) -> bytes:
    """A well signed word that our own code would not write."""
    payload = msgspec.msgpack.encode([1, "main", 5, 0, "alive", "loopback", host, 9])
    return identity.public_key + identity.sign(TAG_ALIVE, payload) + payload


def test_a_blocked_node_does_not_come_back_by_datagram(node: Make, stranger: Any):
    a = node("a", works("baker"))
    pest = stranger(key("pest"))
    token = pest.proves_itself(a)
    until(lambda: pest.identity.node_id in states(a))
    a.call("nodes.block", node=pest.identity.node_id)
    pest.heard()
    pest.gossips(a, token, pack([Ping(5)]))
    pest.send(by_hand.hello(pest.identity, pest.word(epoch=now_ms())), a)
    record = agent(pest.identity, "noise")
    handle = a.rooms.network.catalogue.handle(record.key)
    pest.gossips(a, token, pack([Whole(0, handle, b"versions", record.to_bytes())]))
    until(lambda: a.rooms.network._post.counts["refused"] >= 3)
    assert pest.heard() == []
    assert found(a, "name:noise") == {}


def test_a_word_replayed_from_another_address_opens_no_way(node: Make, stranger: Any):
    a = node("a", works("baker"))
    friend, thief = stranger(), stranger()
    friend.proves_itself(a)
    until(lambda: friend.identity.node_id in states(a))
    thief.send(by_hand.hello(friend.identity, friend.word()), a)
    until(lambda: a.rooms.network._post.counts["address"] > 0)
    assert thief.heard() == []


def test_nobody_else_can_say_that_our_key_is_used_elsewhere(
    node: Make, stranger: Any, caplog: pytest.LogCaptureFixture
):
    """A word of ours that is not signed by us, sent where a true one would be."""
    a = node("a", works("baker"))
    b = node("b", join=a)
    liar = stranger(key("liar"))
    liar.proves_itself(a)
    until(lambda: liar.identity.node_id in states(a))
    ours = a.rooms.network.presence()
    later = word(key("liar"), ("127.0.0.1", 9), epoch=now_ms() + 1000)
    me = by_hand.raw(liar.identity)
    session = a.rooms.network._post._sessions.get(me)
    for body in (ours.pk + later.sig + later.payload, later.to_bytes(), ours.to_bytes(), b"x"):
        a.on_loop(lambda: session.given(b"8 bytes.", by_hand.mark(), bytes(20), time.monotonic()))
        liar.send(by_hand.datagram(by_hand.AGAIN, me, b"8 bytes.", body), a)
        until(lambda: not session.heads)
    a.node.host(works("late"))
    until(lambda: the(a, "late") in found(b, "name:late"))
    assert "another process" not in caplog.text


def test_presences_of_another_network_or_scope_make_no_member(node: Make, stranger: Any):
    a = node("a", works("baker"))
    liar = stranger(key("liar"))
    token = liar.proves_itself(a)
    until(lambda: liar.identity.node_id in states(a))
    other = declare(
        key("x"), "other", epoch=1, incarnation=0, scope=Scope.LOOPBACK, address=("127.0.0.1", 9)
    )
    liar.gossips(a, token, pack([Alive(other.to_bytes())]))
    until(lambda: a.rooms.network._spreading.gossip.counts["of another network"] == 1)
    assert key("x").node_id not in states(a)
