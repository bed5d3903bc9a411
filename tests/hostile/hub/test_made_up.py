"""Thousands of nodes that were never there, and members who lie together."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence

import pytest

from aios_nb.hub.gossip import LAN, LOCAL, Life
from aios_nb.hub.gossip.members import LIVING, MEMBERS_MAX
from aios_nb.hub.gossip.packets import Ack, Alive, Ask, Nack, Suspect, pack, raw_id, unpack
from aios_nb.hub.presence import Presence, declare
from aios_nb.identity import Identity
from aios_nb.records import Scope
from aios_nb.sim.virtual import VirtualNetwork, VirtualNode
from tests.hub.gossip.networks import Watched, network, state_of

MADE_UP = MEMBERS_MAX + 500


@pytest.fixture(scope="module")
def made_up() -> Sequence[Presence]:
    """Well signed, each by a key of its own; nobody is at any of these addresses."""
    return list(_made_up())


def _made_up() -> Iterator[Presence]:
    for number in range(MADE_UP):
        yield declare(
            Identity.from_seed(f"made up {number}".encode().ljust(32)),
            "main",
            epoch=1,
            incarnation=0,
            scope=Scope.GLOBAL,
            address=(f"5.77.{number // 250}.{number % 250 + 1}", 9),
        )


def _told(here: VirtualNode, liar: VirtualNode, presences: Sequence[Presence]) -> None:
    """As one who pulls gets them: all at once."""
    here.gossip.pulled(here.now(), liar.node_id, [one.to_bytes() for one in presences], ())


def test_members_are_bounded_and_whom_we_met_stays(made_up):
    town = network(6, pace=LAN)
    town.run(10)
    here, liar = town.node(0), town.node(5)
    _told(here, liar, made_up)
    assert len(here.gossip.members) == MEMBERS_MAX
    for node in town.up[1:]:
        assert state_of(node, seen_by=here) is Life.ALIVE


def test_a_newcomer_that_comes_itself_takes_the_place_of_one_that_never_was(made_up):
    town = network(3, pace=LAN)
    town.run(5)
    here, liar = town.node(0), town.node(2)
    _told(here, liar, made_up)
    town.add(1)
    newcomer = town.up[-1]
    town.join(newcomer, here)
    assert state_of(newcomer, seen_by=here) is Life.ALIVE
    assert len(here.gossip.members) == MEMBERS_MAX
    lost = [at for at, _, who, state in town.changes if state is Life.DEAD and who in town.nodes]
    assert lost == []


def test_one_that_is_only_told_of_does_not_push_out_another(made_up):
    town = network(3, pace=LAN)
    here, liar = town.node(0), town.node(2)
    _told(here, liar, made_up[:-1])
    before = set(here.gossip.members)
    assert len(before) == MEMBERS_MAX
    town.inject(liar, here, pack([Alive(made_up[-1].to_bytes())]))
    town.run(0.1)
    assert set(here.gossip.members) == before
    assert here.gossip.counts["no room"] > 0


@pytest.mark.parametrize("size", [4, 12])
def test_news_gets_through_among_made_up_members(made_up, size):
    town = _surrounded(size, made_up[: 12_000 // size])
    signed = town.publish(town.node(0), "agent", "words")
    assert town.run_until(lambda: town.holders(signed) == size, 60)


def test_a_death_is_noticed_among_made_up_members(made_up):
    town = _surrounded(4, made_up)
    dead, *others = town.up
    town.kill(dead)
    assert town.run_until(
        lambda: all(state_of(dead, seen_by=node) is Life.DEAD for node in others), 60
    )


def _surrounded(size: int, made_up: Sequence[Presence]) -> VirtualNetwork:
    """Real nodes that have known each other for a while, each told of thousands more."""
    town = network(size, pace=LOCAL)
    town.run(10)
    for node, teller in itertools.pairwise([*town.up, town.node(0)]):
        _told(node, teller, made_up)
        living = [one for one in node.gossip.members.values() if one.state in LIVING]
        assert len(living) >= min(len(made_up), MEMBERS_MAX)
    return town


@pytest.mark.parametrize("honest", [2, 4])
def test_liars_in_the_majority_do_not_keep_a_dead_node_alive(honest):
    """They all say that it answers them."""
    town = network(honest + 8, pace=LAN)
    town.run(5)
    dead, *others = town.up
    liars = others[honest - 1 :]
    for liar in liars:
        _lies(town, liar)
    town.kill(dead)
    assert town.run_until(
        lambda: all(state_of(dead, seen_by=node) is Life.DEAD for node in others[: honest - 1]), 200
    )


def _lies(town: Watched, liar: VirtualNode) -> None:
    true = liar.gossip.received

    def received(now: float, sender: str, packet: bytes) -> None:
        asked = [message for message in unpack(packet) or () if isinstance(message, Ask)]
        for ask in asked:
            town.inject(liar, town.nodes[sender], pack([Ack(ask.seq)]))
        if not asked:
            true(now, sender, packet)

    liar.gossip.received = received
    liar.gossip._detector._accuse = lambda _: None


def test_fifty_accusers_who_also_refuse_to_relay_do_not_kill_a_live_node():
    town = network(60, pace=LAN)
    victim, *others = town.up
    honest, liars = others[:9], others[9:]
    for liar in liars:
        _refuses(town, liar)
    for _ in range(60):
        for judge in honest:
            life = judge.gossip.members[victim.node_id].life
            claim = pack([Suspect(raw_id(victim.node_id), life, 2**32 - 1)])
            for liar in liars[:50]:
                town.inject(liar, judge, claim)
        town.run(1)
    assert town.times(Life.DEAD, of=victim) == []
    for judge in honest:
        assert state_of(victim, seen_by=judge) is Life.ALIVE


def _refuses(town: Watched, liar: VirtualNode) -> None:
    true = liar.gossip.received

    def received(now: float, sender: str, packet: bytes) -> None:
        asked = [message for message in unpack(packet) or () if isinstance(message, Ask)]
        for ask in asked:
            town.inject(liar, town.nodes[sender], pack([Nack(ask.seq)]))
        if not asked:
            true(now, sender, packet)

    liar.gossip.received = received


def test_a_node_heard_only_through_others_stays_though_it_must_sign_now_and_then():
    town = network(8, pace=LAN)
    far, here, *_ = town.up
    town.cut(far, here)
    town.cut(here, far)
    town.run(180)
    assert town.times(Life.DEAD) == []
    assert far.gossip.presence.said.incarnation > 0
