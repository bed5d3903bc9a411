"""Which nodes are known: allowed, shut out, or running in the same home."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from aios_nb.access import ANYONE, Caller, Principal, owner_of
from aios_nb.errors import Busy, InvalidParams
from aios_nb.home import Home, RunInfo
from aios_nb.nodes import LOOK_AGAIN_S, KnownNodes
from aios_nb.store import Store
from tests.clock import Clock

OWN, FRIEND, STRANGER, FOE = "a" * 32, "b" * 32, "c" * 32, "d" * 32
AGENT = "adder@"


@pytest.fixture
def home(tmp_path: Path) -> Home:
    home = Home(tmp_path / "home")
    home.prepare()
    return home


@pytest.fixture
def nodes(store: Store, home: Home, clock: Clock) -> KnownNodes:
    return KnownNodes(store, home, OWN, clock)


@pytest.fixture
def acquainted(nodes: KnownNodes) -> KnownNodes:
    """A friend is allowed, a foe is shut out."""
    asyncio.run(nodes.allow(FRIEND))
    asyncio.run(nodes.block(FOE))
    return nodes


def run_file(name: str, node_id: str) -> RunInfo:
    return RunInfo(name=name, node_id=node_id, url="http://127.0.0.1:1", token="t")


# Standing ------------------------------------------------------------------------------


def test_a_node_that_was_allowed_is_known_and_another_is_any_node(acquainted: KnownNodes):
    assert acquainted.standing(FRIEND) is Caller.KNOWN
    assert acquainted.standing(STRANGER) is Caller.NODE


def test_a_node_that_was_shut_out_is_nobody(acquainted: KnownNodes):
    assert acquainted.standing(FOE) is None
    assert acquainted.blocked == {FOE}


def test_this_node_itself_is_its_owner(nodes: KnownNodes):
    assert nodes.standing(OWN) is Caller.OWNER


def test_the_last_word_about_a_node_counts_and_outlives_a_restart(
    acquainted: KnownNodes, store: Store, home: Home
):
    asyncio.run(acquainted.block(FRIEND))
    asyncio.run(acquainted.allow(FOE))

    for nodes in (acquainted, KnownNodes(store, home, OWN)):
        assert nodes.standing(FRIEND) is None
        assert nodes.standing(FOE) is Caller.KNOWN
        assert nodes.blocked == {FRIEND}


@pytest.mark.parametrize("verb", ["allow", "block"])
def test_this_node_itself_is_neither_allowed_nor_shut_out(nodes: KnownNodes, verb: str):
    with pytest.raises(InvalidParams, match="this node itself"):
        asyncio.run(getattr(nodes, verb)(OWN))
    assert nodes.standing(OWN) is Caller.OWNER


def test_links_are_told_after_the_change_is_in_force(nodes: KnownNodes):
    told: list[tuple[str, Caller | None]] = []
    nodes.on_change = lambda node: told.append((node, nodes.standing(node)))
    asyncio.run(nodes.allow(FRIEND))
    asyncio.run(nodes.block(FRIEND))

    assert told == [(FRIEND, Caller.KNOWN), (FRIEND, None)]


def test_what_cannot_be_stored_does_not_count(acquainted: KnownNodes, store: Store):
    told: list[str] = []
    acquainted.on_change = told.append
    store.close_now()
    with pytest.raises(Busy):
        asyncio.run(acquainted.allow(STRANGER))

    assert acquainted.standing(STRANGER) is Caller.NODE
    assert told == []


# Nodes of the same home -------------------------------------------------------------------


def test_a_node_that_runs_in_the_same_home_is_known_while_it_runs(
    nodes: KnownNodes, home: Home, clock: Clock
):
    with home.claim("other") as claim:
        claim.publish(run_file("other", STRANGER))
        assert nodes.standing(STRANGER) is Caller.KNOWN
    clock.now += LOOK_AGAIN_S

    assert nodes.standing(STRANGER) is Caller.NODE


def test_a_node_that_starts_later_is_known_soon(nodes: KnownNodes, home: Home, clock: Clock):
    assert nodes.standing(STRANGER) is Caller.NODE
    with home.claim("other") as claim:
        claim.publish(run_file("other", STRANGER))
        clock.now += LOOK_AGAIN_S
        assert nodes.standing(STRANGER) is Caller.KNOWN


def test_a_run_file_without_its_lock_proves_nothing(nodes: KnownNodes, home: Home):
    path = home.run_path("other")
    path.write_bytes(msgspec.json.encode(run_file("other", STRANGER)))
    path.chmod(0o600)

    assert nodes.standing(STRANGER) is Caller.NODE


def test_a_node_of_the_same_home_that_was_shut_out_stays_out(acquainted: KnownNodes, home: Home):
    with home.claim("other") as claim:
        claim.publish(run_file("other", FOE))
        assert acquainted.standing(FOE) is None


def test_asking_often_looks_at_the_disk_once(
    nodes: KnownNodes, home: Home, clock: Clock, monkeypatch: pytest.MonkeyPatch
):
    looks: list[int] = []
    look: Callable[[], list[RunInfo]] = home.running
    monkeypatch.setattr(home, "running", lambda: looks.append(1) or look())
    for _ in range(1000):
        nodes.standing(STRANGER)
    clock.now += LOOK_AGAIN_S
    nodes.standing(STRANGER)

    assert len(looks) == 2


def test_a_home_that_cannot_be_read_makes_nobody_known(nodes: KnownNodes, home: Home):
    (home.path / "run").rmdir()
    (home.path / "run").write_text("not a folder")

    assert nodes.standing(STRANGER) is Caller.NODE


# The way here -----------------------------------------------------------------------------


def known(node: str = FRIEND) -> Principal:
    return Principal(Caller.KNOWN, node)


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ([], Caller.KNOWN),
        ([FRIEND], Caller.KNOWN),
        ([FRIEND, AGENT + FRIEND], Caller.KNOWN),
        ([OWN, AGENT + FRIEND], Caller.KNOWN),
        ([OWN, AGENT + OWN, AGENT + FRIEND], Caller.KNOWN),
        ([STRANGER, AGENT + FRIEND], Caller.NODE),
        ([FRIEND, AGENT + STRANGER, AGENT + FRIEND], Caller.NODE),
        (["not an id at all"], Caller.NODE),
    ],
)
def test_a_call_has_the_rights_that_every_node_on_its_way_has(
    acquainted: KnownNodes, path: list[str], kind: Caller
):
    assert acquainted.weakest(known(), path) == Principal(kind, FRIEND)


@pytest.mark.parametrize("path", [[FOE], [FRIEND, AGENT + FOE], [FOE, AGENT + OWN, AGENT + FRIEND]])
def test_a_call_that_came_through_a_node_that_is_shut_out_is_nobodys(
    acquainted: KnownNodes, path: list[str]
):
    assert acquainted.weakest(known(), path) is None


def test_a_path_never_raises_what_its_caller_may(acquainted: KnownNodes):
    stranger = Principal(Caller.NODE, STRANGER)

    assert acquainted.weakest(stranger, [OWN, FRIEND]) == stranger
    assert acquainted.weakest(ANYONE, [OWN]) == ANYONE


def test_a_node_that_lost_its_standing_has_lost_it_on_open_links_too(acquainted: KnownNodes):
    once_known = known(STRANGER)
    asyncio.run(acquainted.block(FRIEND))

    assert acquainted.weakest(once_known, []) == Principal(Caller.NODE, STRANGER)
    assert acquainted.weakest(known(), []) is None


def test_who_is_not_a_node_is_lowered_by_the_path_and_keeps_its_id(acquainted: KnownNodes):
    owner = owner_of(OWN)
    bridge = Principal(Caller.TOKEN, "token:1", "tg:", as_owner=True)

    assert acquainted.weakest(owner, [OWN]) is owner
    assert acquainted.weakest(owner, [FRIEND]) == Principal(Caller.KNOWN, owner.id)
    assert acquainted.weakest(bridge, [FRIEND]) == Principal(Caller.TOKEN, "token:1", "tg:")
