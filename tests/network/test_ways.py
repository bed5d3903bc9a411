"""The same network by other ways: without datagrams, without gossip, without the DHT."""

from __future__ import annotations

from typing import Any

import pytest

from aios_nb.hub.post import Post
from tests.network.conftest import Make, found, meet, refused, say, sees, states, the, until, works
from tests.sites import TestSite


class Closed:
    """Closes the UDP port of the nodes that start while it is shut."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.shut = False
        real = Post.open

        async def open_(post: Post, host: str, port: int) -> int:
            if self.shut:
                raise PermissionError("no datagrams here")
            return await real(post, host, port)

        monkeypatch.setattr(Post, "open", open_)


@pytest.fixture
def udp(monkeypatch: pytest.MonkeyPatch) -> Closed:
    return Closed(monkeypatch)


@pytest.mark.parametrize("everywhere", [False, True])
def test_where_no_datagrams_pass_all_is_found_over_links(
    node: Make, udp: Closed, everywhere: bool, caplog: pytest.LogCaptureFixture
):
    udp.shut = everywhere
    a = node("a", works("baker", "bakes bread"))
    c = node("c", works("smith"), join=a)
    udp.shut = True
    b = node("b", works("miller", "grinds corn"), join=a)
    assert b.rooms.network.presence().address is None
    assert "no datagrams, only links" in caplog.text
    meet(a, b, c)
    until(lambda: the(a, "baker") in found(b, "bread"))
    until(lambda: the(b, "miller") in found(a, "corn"))
    until(lambda: the(b, "miller") in found(c, "corn"))
    assert say(c, "miller") == say(a, "miller") == "miller has hello"
    b.node.host(works("late"))
    for site in (a, c):
        until(lambda site=site: the(b, "late") in found(site, "name:late"))
    c.node.host(works("later"))
    until(lambda: the(c, "later") in found(b, "name:later"))
    left = b.node.node_id
    b.stop()
    for site in (a, c):
        until(lambda site=site: states(site)[left] == "left")
        assert found(site, "name:miller") == {}


def test_without_datagrams_the_one_that_brought_others_together_may_go(node: Make, udp: Closed):
    udp.shut = True
    first = node("first")
    b = node("b", works("miller"), join=first)
    c = node("c", works("smith"), join=first)
    meet(first, b, c)
    first.stop()
    until(lambda: c.node.node_id in _linked(b))
    meet(b, c)
    until(lambda: the(c, "smith") in found(b, "name:smith"))
    assert say(c, "miller") == "miller has hello"


def test_without_gossip_a_joined_node_is_asked(node: Make):
    h = node("h", works("host-one"), gossip=False)
    b = node("b", works("miller", "grinds corn"), join=h, gossip=False)
    a = node("a", join=[h, b], gossip=False)
    until(lambda: len(_linked(a)) == 2)
    assert states(a) == {h.node.node_id: "alive", b.node.node_id: "alive"}
    assert set(found(a, "who grinds corn")) >= {the(b, "miller")}
    assert found(a, "name:miller").keys() == {the(b, "miller")}
    assert say(a, "miller") == "miller has hello"
    assert say(a, "host-one") == "host-one has hello"


def test_without_gossip_the_dht_says_where_a_node_is(node: Make):
    h = node("h", gossip=False)
    a = node("a", join=h, gossip=False)
    b = node("b", works("miller"), join=h, gossip=False)
    until(lambda: sees(a, h) == sees(b, h) == "alive")
    assert b.node.node_id not in _linked(a)
    until(lambda: _held(h, b))
    assert say(a, the(b, "miller")) == "miller has hello"


def test_without_gossip_and_dht_nobody_says_where_a_node_is(node: Make):
    h = node("h", gossip=False, dht=False)
    a = node("a", join=h, gossip=False, dht=False)
    b = node("b", works("miller"), join=h, gossip=False, dht=False)
    until(lambda: sees(a, h) == sees(b, h) == "alive")
    assert "no address" in str(refused(a, the(b, "miller")).data)


def test_without_the_dht_gossip_says_where_a_node_is(node: Make):
    h = node("h", dht=False)
    a = node("a", join=h, dht=False)
    b = node("b", works("miller"), join=h, dht=False)
    meet(a, b, h)
    assert b.node.node_id not in _linked(a)
    until(lambda: the(b, "miller") in found(a, "name:miller"))
    assert say(a, the(b, "miller")) == "miller has hello"
    assert say(h, "miller") == "miller has hello"


def _linked(site: TestSite) -> set[str]:
    return set(site.on_loop(site.rooms.links.linked))


def _held(keeper: TestSite, other: TestSite) -> Any:
    """Whether that node keeps the other's record in its part of the DHT."""
    dht: Any = keeper.rooms.network._dht
    return keeper.node.run(lambda: dht.get(other.node.node_id))
