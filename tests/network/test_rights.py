"""What is told to whom: agents that are not for everyone, and nodes that are shut out."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from aios_nb.hub.post import Kind
from tests.network.conftest import Make, found, meet, refused, say, sees, the, until, works
from tests.sites import TestSite

REFUSED_ENOUGH = 3


def _told(site: TestSite) -> set[str]:
    """The names of all agents whose records that node holds."""
    catalogue = site.rooms.network.catalogue
    return site.on_loop(lambda: {signed.record.name for signed in catalogue.agents()})


def test_private_and_known_agents_are_told_to_nobody(node: Make, tmp_path: Path):
    home = tmp_path / "home"
    agents = [works(access, access=access) for access in ("private", "known", "network", "public")]
    a = node("a", *agents, home=home)
    sibling = node("sibling", home=home)
    stranger = node("stranger", join=a)
    meet(a, sibling, stranger)
    for site in (sibling, stranger):
        until(lambda site=site: {"network", "public"} <= set(_told(site)))
        assert _told(site) == {"network", "public"}
        assert found(site, "answers name:known") == found(site, "answers name:private") == {}
    assert _told(a) == {"network", "public"}

    assert say(sibling, the(a, "known")) == "known has hello"
    assert "no such agent" in str(refused(stranger, the(a, "known")))
    for site in (sibling, stranger):
        assert "no such agent" in str(refused(site, the(a, "private")))


def test_an_agent_that_is_private_from_now_on_is_found_no_more(node: Make):
    a = node("a", works("diary"))
    b = node("b", join=a)
    until(lambda: the(a, "diary") in found(b, "name:diary"))
    a.node.host(works("diary", access="private"))
    until(lambda: found(b, "name:diary") == {})
    assert _told(b) == set()


def test_a_blocked_node_is_not_heard_and_told_nothing_until_it_is_allowed(node: Make):
    a = node("a", works("baker"))
    b = node("b", works("pest"), join=a)
    c = node("c", works("miller"), join=a)
    meet(a, b, c)
    for site, agent in ((a, the(b, "pest")), (c, the(b, "pest")), (b, the(a, "baker"))):
        until(lambda site=site, agent=agent: agent in found(site, f"name:{agent.split('@')[0]}"))

    a.call("nodes.block", node=b.node.node_id)
    assert found(a, "name:pest") == {}
    assert the(b, "pest") in found(c, "name:pest")
    sent = _sent(a, to=b)
    b.on_loop(lambda: _greet_anew(b, a))
    a.node.host(works("secret"))
    b.node.host(works("noise"))
    until(lambda: the(a, "secret") in found(c, "name:secret"))
    until(lambda: the(b, "noise") in found(c, "name:noise"))
    until(lambda: a.rooms.network._post.counts["refused"] > REFUSED_ENOUGH)
    assert sent == []
    assert a.on_loop(lambda: a.rooms.links.link(b.node.node_id)) is None
    assert found(a, "name:noise") == {}
    assert "refuses the link" in str(refused(a, the(b, "pest")))

    a.call("nodes.allow", node=b.node.node_id)
    until(lambda: the(b, "noise") in found(a, "name:noise"))
    until(lambda: sees(a, b) == "alive" == sees(b, a))
    assert say(a, "pest") == "pest has hello"


def _greet_anew(site: TestSite, other: TestSite) -> None:
    """Have that node forget what the other one's post gave it."""
    post, member = site.rooms.network._post, site.rooms.network.member(other.node.node_id)
    post.forget(member.node_id)
    post.know(member.presence)
    assert post.send(member.node_id, Kind.GOSSIP, b"")


def _sent(site: TestSite, to: TestSite) -> list[int]:
    """The kinds of all datagrams to that node, from now on."""
    udp = site.rooms.network._post._udp
    before, port = udp.send, to.rooms.network.presence().address[1]
    kinds: list[int] = []

    def send(data: bytes, source: Any) -> bool:
        if source[1] == port:
            kinds.append(data[0])
        return before(data, source)

    udp.send = send
    return kinds
