"""Names of the network as a person types them, and nodes as a person is shown them."""

from __future__ import annotations

import pytest

from aios_nb.errors import NoSuchAgent
from tests.network.conftest import Make, found, meet, refused, say, states, the, until, works
from tests.sites import TestSite


def test_near_names_of_the_network_are_told(node: Make):
    a = node("a")
    b = node("b", works("librarium"), join=a)
    meet(a, b)
    until(lambda: the(b, "librarium") in found(a, "name:librarium"))
    error = refused(a, "libraruim")
    assert isinstance(error, NoSuchAgent)
    assert "librarium" in error.data["near"]
    assert "did you mean" in error.hint


def test_a_name_that_several_nodes_have_lists_their_ids(node: Make):
    a = node("a")
    b = node("b", works("painter"), join=a)
    c = node("c", works("painter"), join=a)
    meet(a, b, c)
    ids = sorted([the(b, "painter"), the(c, "painter")])
    until(lambda: sorted(found(a, "name:painter")) == ids)
    error = refused(a, "painter")
    assert error.data["near"] == ids
    assert all(agent in error.message for agent in ids)
    assert say(a, ids[0]) == "painter has hello"


def test_twelve_characters_of_a_node_that_gossip_told_of_are_enough(node: Make):
    seed = node("seed")
    a = node("a", join=seed)
    b = node("b", works("painter"), join=seed)
    meet(a, b, seed)
    start = the(b, "painter")[: len("painter@") + 12]
    assert "12 characters" in refused(a, start[:-1]).hint
    assert say(a, start) == "painter has hello"
    assert say(a, start[:-8]) == "painter has hello", "it was used before"


def test_the_nodes_a_person_is_shown(node: Make):
    seed = node("seed")
    a = node("a", join=seed)
    b = node("b", works("painter"), join=seed)
    meet(a, b, seed)
    until(lambda: _row(a, b)["name"] == "b")  # its record may come after its presence
    row = _row(a, b)
    assert row["url"] == b.node.url
    assert row["state"] == "alive"
    say(a, the(b, "painter"))
    until(lambda: _row(a, b)["latency_ms"])
    assert 0 < _row(a, b)["latency_ms"] < 10_000
    gone = b.node.node_id
    b.stop()
    until(lambda: states(a)[gone] == "left")


@pytest.mark.parametrize("way", ["a", "seed"])
def test_a_node_that_moved_is_shown_where_it_is_now(node: Make, way: str):
    seed = node("seed")
    a = node("a", join=seed)
    b = node("b", works("painter"), join=a)
    meet(a, b, seed)
    say(a, the(b, "painter"))
    was = b.node.url
    b.stop()
    again = node("b", works("painter"), join={"a": a, "seed": seed}[way])
    until(lambda: states(a)[again.node.node_id] == "alive")

    assert again.node.url != was
    until(lambda: _row(a, again)["url"] == again.node.url)


def _row(site: TestSite, other: TestSite) -> dict[str, object]:
    rows = {row["node_id"]: row for row in site.call("node.peers")["peers"]}
    return rows[other.node.node_id]
