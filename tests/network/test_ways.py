"""The same network by other ways: without datagrams, without gossip, without the DHT."""

from __future__ import annotations

import time
from collections import Counter
from typing import Any

import pytest

from aios_nb.hub.post import Post
from tests.network.conftest import Make, found, meet, refused, say, sees, states, the, until, works
from tests.sites import TestSite

DOUBTS_S = 4.0


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
    dht: Any = keeper.rooms.network.whereabouts._dht
    return keeper.node.run(lambda: dht.get(other.node.node_id))


def _stays(site: TestSite, other: TestSite) -> bool:
    """Whether it is alive for longer than doubts about it take to come.

    A node that is held up for half a second is doubted until it can speak; that is no fault.
    """
    until(lambda: the_member(site, other) is not None)
    seen = Counter[str | None]()
    ends = time.monotonic() + DOUBTS_S
    while time.monotonic() < ends:
        seen[the_member(site, other)] += 1
        time.sleep(0.05)
    if not set(seen) <= {"alive", "suspect"} or seen["alive"] <= seen["suspect"]:
        return False
    until(lambda: the_member(site, other) == "alive")
    return True


def the_member(site: TestSite, other: TestSite) -> str | None:
    """What the gossip says of it, whatever links there are."""
    member = site.on_loop(lambda: site.rooms.network.member(other.node.node_id))
    return None if member is None else str(member.state)


@pytest.mark.parametrize("wide", [{"allow_hosts": ("127.0.0.1",)}, {"public_url": "http://x.test"}])
def test_a_node_that_nobody_can_reach_joins_one_that_the_world_can(node: Make, wide: Any):
    site = node("site", works("talker", "talks a lot"), host="0.0.0.0", **wide)
    url = f"http://127.0.0.1:{site.node.url.rpartition(':')[2]}"
    notebook = node("notebook", works("miller", "grinds corn"), join=f"{url}#{site.node.node_id}")

    until(lambda: the(site, "talker") in found(notebook, "talks"))
    until(lambda: the(notebook, "miller") in found(site, "corn"))
    assert _stays(notebook, site)
    assert _stays(site, notebook)
    assert say(site, the(notebook, "miller")) == "miller has hello"
    # Where the notebook says it is means nothing there, and goes nowhere.
    assert not site.on_loop(lambda: site.rooms.network.whereabouts.places(notebook.node.node_id))


def test_a_node_that_does_not_gossip_still_says_that_it_is_there(node: Make):
    site = node("site")
    quiet = node("quiet", works("miller", "grinds corn"), join=site, gossip=False)

    until(lambda: the(quiet, "miller") in found(site, "corn"))
    assert _stays(site, quiet)
