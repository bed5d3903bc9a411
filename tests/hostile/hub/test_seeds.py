"""What a node learns from the one it joined, when that one lies."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from typing import Self

from aios_nb.hub.catalogue import Page
from aios_nb.hub.gossip.members import MEMBERS_MAX
from tests.between.liar import Liar
from tests.hostile.hub.seeds import agent, key, tells, tells_pages, word
from tests.network.conftest import Make, found, meet, say, sees, the, until, works
from tests.sites import TestSite

MADE_UP = 6000
PAGE = 1000


class Pulse:
    """How long the loop of a node was held up, at most, while this was watching."""

    def __init__(self, site: TestSite) -> None:
        self._site = site
        self._stop = threading.Event()
        self.worst_s = 0.0
        self._thread = threading.Thread(target=self._watch)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._thread.join()

    def _watch(self) -> None:
        while not self._stop.wait(0.005):
            before = time.monotonic()
            self._site.on_loop(lambda: None)
            self.worst_s = max(self.worst_s, time.monotonic() - before)


def _made_up_pages(after: str) -> Iterator[Page]:
    """Well signed words of nodes that were never there."""
    for start in range(0, MADE_UP, PAGE):
        words = tuple(
            word(key(f"nobody {number}"), ("127.0.0.1", 20_000 + number)).to_bytes()
            for number in range(start, start + PAGE)
        )
        yield Page(presences=words, after=after)
    yield Page()


def _members(site: TestSite) -> int:
    return int(site.on_loop(lambda: len(site.rooms.network.members())))


def _spoiled(content: bytes) -> bytes:
    """With another signature."""
    return content[:40] + bytes([content[40] ^ 1]) + content[41:]


def test_a_seed_with_thousands_of_made_up_members(node: Make):
    a = node("a", works("baker"))
    b = node("b", works("miller"), join=a)
    meet(a, b)
    pages = list(_made_up_pages("p" + "a" * 32))
    with Liar() as liar, Pulse(a) as pulse:
        tells_pages(liar, lambda: iter(pages))
        liar.call(a, "gossip.sync", digest=b"")
        until(lambda: _members(a) >= MEMBERS_MAX)
        until(lambda: liar.methods().count("gossip.sync") >= len(pages))
        assert _members(a) <= MEMBERS_MAX
        assert sees(a, b) == "alive"
        c = node("c", works("smith"), join=a)
        until(lambda: sees(a, c) == "alive")
        until(lambda: the(c, "smith") in found(a, "name:smith"))
        assert say(a, "miller") == "miller has hello"
    print(f"\nthe loop was held up for {pulse.worst_s * 1000:.0f} ms at most")  # noqa: T201


def test_a_seed_that_never_ends(node: Make):
    """Page after page with the same cursor, with nothing new in them."""
    a = node("a", works("baker"))
    with Liar() as liar:
        content = agent(key("endless"), "one").to_bytes()
        page = Page(records=(content,) * 50, after="r" + "0" * 16)
        tells_pages(liar, lambda: iter(lambda: page, None))
        liar.call(a, "gossip.sync", digest=b"")
        until(lambda: liar.methods().count("gossip.sync") > 20)
        b = node("b", works("miller"), join=a)
        meet(a, b)
        until(lambda: the(b, "miller") in found(a, "name:miller"))
        until(lambda: not a.on_loop(lambda: dict(a.rooms.network._spreading._pulling)))
        assert len(a.rooms.network.catalogue) < 10


def test_a_seed_that_says_nothing_does_not_hold_up_a_start(node: Make):
    with Liar() as liar:
        wait = threading.Event()
        liar.says["gossip.sync"] = lambda _: wait.wait(30) and None
        a = node("a", works("baker"))
        try:
            b = node("b", works("miller"), join=[liar.url, a])
            meet(a, b)
            assert say(b, "baker") == "baker has hello"
        finally:
            wait.set()


def test_a_dead_seed_does_not_hold_up_a_start(node: Make):
    a = node("a", works("baker"))
    nobody = f"http://127.0.0.1:9#{key('nobody').node_id}"
    b = node("b", works("miller"), join=[nobody, a])
    meet(a, b)
    assert say(b, "baker") == "baker has hello"


def test_what_a_seed_forges_is_not_taken(node: Make):
    a = node("a", works("baker"))
    b = node("b", works("miller"), join=a)
    meet(a, b)
    until(lambda: the(b, "miller") in found(a, "name:miller"))
    true = a.on_loop(lambda: next(iter(a.rooms.network.catalogue.agents_named("miller"))))
    other = agent(key("liar"), "miller", epoch=true.record.epoch + 1)
    genuine = word(key("liar"), epoch=2**52)
    with Liar() as liar:
        tells(
            liar,
            presences=[
                true.pk + genuine.sig + genuine.payload,
                word(key("x"), ("127.0.0.1", 9)).to_bytes()[:-1] + b"\0",
                b"",
                b"x" * 5000,
            ],
            records=[
                true.pk + other.sig + true.payload,
                true.pk + other.sig + other.payload,
                true.to_bytes() + b"\0",
                b"y" * 5000,
                b"",
                _spoiled(agent(key("odd"), "forged").to_bytes()),
                agent(key("old"), "replayed", at=true.record.seq - 30 * 3600 * 1000).to_bytes(),
                agent(key("new"), "future", at=true.record.seq + 2 * 3600 * 1000).to_bytes(),
                agent(key("odd"), "fine").to_bytes(),
            ],
        )
        liar.call(a, "gossip.sync", digest=b"")
        until(lambda: a.on_loop(lambda: list(a.rooms.network.catalogue.agents_named("fine"))))
        assert not a.on_loop(lambda: list(a.rooms.network.catalogue.agents_named("forged")))
        assert found(a, "name:replayed") == found(a, "name:future") == {}
        assert a.on_loop(lambda: list(a.rooms.network.catalogue.agents_named("miller"))) == [true]
        assert sees(a, b) == "alive"
        counts = a.rooms.network.catalogue.counts
        assert counts["out of time"] == 2
        assert counts["not a record"] >= 3
        assert counts["forged"] == 1
        assert found(a, "name:fine") == {}, "its node was never seen alive"
