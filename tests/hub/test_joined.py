"""Names and cards between real nodes that joined each other."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from aios_nb.agents.definition import describe
from aios_nb.errors import NoSuchAgent
from tests.sites import TestSite

Make = Callable[..., TestSite]
ALONE = {"gossip": False, "dht": False}
"""Nothing is spread: each node knows what those tell that it joined."""


async def adder(text: str) -> str:
    """Adds the numbers in a sentence."""
    return f"added {text}"


async def diary(text: str) -> str:
    """Keeps my secrets."""
    return text


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    """Nodes of different people: each in a home of its own."""
    sites: list[TestSite] = []

    def made(name: str, *agents: Any, join: tuple[TestSite, ...] = (), **settings: Any) -> TestSite:
        urls = tuple(f"{site.node.url}#{site.node.node_id}" for site in join)
        sites.append(TestSite(tmp_path / name, agents, name=name, join=urls, **settings))
        return sites[-1]

    yield made
    for site in sites:
        site.stop()


def test_a_joined_nodes_agent_answers_by_its_name_and_keeps_it(make: Make) -> None:
    bob = make("bob", adder)
    alice = make("alice", join=(bob,))
    answer = alice.call("chat.send", agent="adder", text="2 and 2")
    assert answer["text"] == "added 2 and 2"
    agents = alice.call("chat.history", conversation=answer["conversation"])["agents"]
    assert agents == [f"adder@{bob.node.node_id}"]
    # Later another node offers the same; the name still means bob's.
    carol = make("carol", adder)
    alice.node.run(lambda: joined_too(alice, carol))
    assert alice.call("agents.card", agent="adder")["card"]["id"] == agents[0]


async def joined_too(site: TestSite, other: TestSite) -> None:
    rooms = site.rooms
    assert rooms is not None
    rooms.links.join(other.node.url, other.node.node_id)
    await rooms.links.reach(other.node.node_id)


def test_a_joined_nodes_card_is_verified(make: Make) -> None:
    bob = make("bob", adder)
    alice = make("alice", join=(bob,))
    for ref in ("adder", f"adder@{bob.node.node_id}", f"adder@{bob.node.node_id[:12]}"):
        shown = alice.call("agents.card", agent=ref)
        assert shown == bob.call("agents.card", agent="adder")
        assert shown["verified"] is True


def test_what_a_stranger_may_not_call_is_not_found(make: Make) -> None:
    bob = make(
        "bob", describe(diary, access="private"), describe(adder, name="helper", access="known")
    )
    alice = make("alice", join=(bob,))
    for name in ("diary", "helper"):
        for ref in (name, f"{name}@{bob.node.node_id}"):
            with pytest.raises(NoSuchAgent):
                alice.call("agents.card", agent=ref)
    bob.call("nodes.allow", node=alice.node.node_id)
    shown = alice.call("agents.card", agent="helper")
    assert (shown["record"], shown["verified"]) == (None, True)


def test_a_name_two_joined_nodes_have_must_be_said_whole(make: Make) -> None:
    bob, carol = make("bob", adder), make("carol", adder)
    alice = make("alice", join=(bob, carol))
    with pytest.raises(NoSuchAgent) as unclear:
        alice.call("chat.send", agent="adder", text="x")
    ids = {f"adder@{site.node.node_id}" for site in (bob, carol)}
    assert set(unclear.value.data["near"]) == ids
    for agent in ids:
        assert alice.call("chat.send", agent=agent, text="x")["text"] == "added x"


def test_nodes_of_another_network_are_not_asked(make: Make) -> None:
    bob = make("bob", adder, network="lab")
    alice = make("alice", join=(bob,))
    with pytest.raises(NoSuchAgent):
        alice.call("agents.card", agent="adder")


def test_a_node_shows_whom_it_joined(make: Make) -> None:
    bob = make("bob", adder)
    alice = make("alice", join=(bob,))
    alice.call("agents.card", agent="adder")
    [peer] = alice.node.peers()
    assert (peer.node_id, peer.name, peer.state) == (bob.node.node_id, "bob", "alive")
    assert peer.url == bob.node.url
    assert bob.node.node_id in str(alice.node.peers())


def test_an_agent_of_a_third_node_is_not_told_of(make: Make) -> None:
    carol = make("carol", adder, **ALONE)
    bob = make("bob", join=(carol,), **ALONE)
    alice = make("alice", join=(bob,), **ALONE)
    assert bob.call("agents.card", agent="adder")["card"]["id"] == f"adder@{carol.node.node_id}"
    with pytest.raises(NoSuchAgent):
        alice.call("agents.card", agent="adder")
