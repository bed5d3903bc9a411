"""How nodes find each other: in one home, through one URL, and again after both were away."""

from __future__ import annotations

from pathlib import Path

import pytest

from aios_nb.hub import network
from tests.network.conftest import Make, found, meet, refused, say, states, the, until, works
from tests.ports import free_port


def test_two_nodes_of_one_home_need_no_flag(node: Make, tmp_path: Path):
    home = tmp_path / "home"
    a = node("a", works("baker", "bakes bread"), home=home)
    b = node("b", works("miller", "grinds corn"), home=home)
    meet(a, b)
    until(lambda: the(b, "miller") in found(a, "who grinds corn"))
    until(lambda: the(a, "baker") in found(b, "bread"))
    assert say(a, "miller") == "miller has hello"
    assert say(b, "baker") == "baker has hello"


def test_a_question_right_after_the_start_waits_for_the_nodes_of_the_home(
    node: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    monkeypatch.setattr(network, "ACQUAINT_S", 60)  # on a busy machine, too
    home = tmp_path / "home"
    a = node("a", works("baker", "bakes bread"), home=home)
    b = node("b", works("miller", "grinds corn"), home=home)
    meet(a, b)
    for nr in range(3):
        assert say(node(f"asks{nr}", home=home), "miller") == "miller has hello"
        assert the(a, "baker") in found(node(f"looks{nr}", home=home), "bread")
        assert {a.node.node_id, b.node.node_id} <= set(states(node(f"counts{nr}", home=home)))


def test_nodes_of_another_network_in_the_same_home_stay_apart(node: Make, tmp_path: Path):
    home = tmp_path / "home"
    other = node("other", works("smith"), home=home, network="other")
    a = node("a", works("baker"), home=home)
    b = node("b", works("miller"), home=home)
    meet(a, b)
    c = node("c", works("smith"), home=home, network="other")
    meet(other, c)
    assert set(states(a)) == {b.node.node_id}
    assert set(states(other)) == {c.node.node_id}
    assert "no such agent" in str(refused(a, "smith"))
    assert found(a, "name:smith") == found(other, "name:baker") == {}


def test_one_joined_url_is_enough_and_its_node_may_go(node: Make):
    first = node("first", works("opener"))
    others = [node(f"n{n}", works(f"one{n}", "does small things"), join=first) for n in range(5)]
    meet(first, *others)
    wanted = {the(site, f"one{n}") for n, site in enumerate(others)}
    for site in others:
        until(lambda site=site: wanted <= set(found(site, "small things")))
        assert the(first, "opener") in found(site, "name:opener")

    gone = first.node.node_id
    first.stop()
    for site in others:
        until(lambda site=site: states(site)[gone] == "left")
        assert found(site, "name:opener") == {}
    meet(*others)
    for site in others:
        for n in range(5):
            assert say(site, f"one{n}") == f"one{n} has hello"


def test_two_that_knew_each_other_meet_again_without_a_flag(node: Make):
    port = free_port()
    b = node("b", works("miller"), port=port)
    a = node("a", works("baker"), join=b)
    meet(a, b)
    until(lambda: the(b, "miller") in found(a, "name:miller"))
    a.stop()
    b.stop()

    b = node("b", works("miller"), port=port)
    a = node("a", works("baker"))
    meet(a, b)
    until(lambda: the(b, "miller") in found(a, "name:miller"))
    assert say(b, "baker") == "baker has hello"
