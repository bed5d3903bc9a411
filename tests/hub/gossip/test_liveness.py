from __future__ import annotations

import pytest

from aios_nb.hub.gossip import LAN, Life
from aios_nb.hub.gossip.packets import Ping, Suspect, pack, raw_id
from aios_nb.hub.gossip.probing import Detector
from tests.hub.gossip.networks import Watched, network, state_of, states


def test_killed_nodes_are_dead_for_everyone_and_nobody_else_is():
    town = network(30)
    killed = [town.node(number) for number in (3, 8, 13, 18, 23, 28)]
    began = town.now
    for node in killed:
        town.kill(node)
    assert town.run_until(town.agrees, 60)
    for node in killed:
        seen = town.times(Life.DEAD, node)
        assert len(seen) == 24
        assert min(seen) - began > 12.0
        assert max(seen) - began < 15.0
    assert len(town.times(Life.DEAD)) == 6 * 24


def test_a_frozen_node_is_not_dead_and_is_taken_back_and_accuses_nobody():
    town = network(30)
    sleeper = town.node(7)
    town.freeze(sleeper)
    town.run(12)
    assert not town.times(Life.DEAD)
    assert town.times(Life.SUSPECT, sleeper), "someone noticed"
    town.thaw(sleeper)
    woken = town.now
    assert town.run_until(town.agrees, 30)
    assert town.now - woken < 2.0
    others = [change for change in town.changes if change[2] != sleeper.node_id]
    assert others == []
    town.run(20)
    assert not town.times(Life.DEAD)


def test_a_node_that_slept_until_it_was_dead_is_taken_back():
    town = network(12)
    sleeper = town.node(7)
    town.freeze(sleeper)
    town.run(30)
    assert len(town.times(Life.DEAD, sleeper)) == 11
    town.thaw(sleeper)
    woken = town.now
    assert town.run_until(town.agrees, 30)
    assert town.now - woken < 2.0
    assert len(town.times(Life.DEAD)) == 11


def test_who_leaves_is_gone_at_once_and_comes_back_only_in_a_later_life():
    town = network(20)
    leaver, seed = town.node(4), town.node(0)
    last_word = leaver.gossip.presence
    began = town.now
    town.leave(leaver)
    assert town.run_until(town.agrees, 10)
    assert town.now - began < 2.0
    assert {state_of(leaver, seen_by=node) for node in town.up} == {Life.LEFT}
    seed.gossip.introduce(seed.now(), last_word)
    assert state_of(leaver, seen_by=seed) is Life.LEFT
    town.restart(leaver, seed)
    assert town.run_until(town.agrees, 10)
    assert state_of(leaver, seen_by=town.node(9)) is Life.ALIVE


def test_a_restarted_node_is_alive_at_once_in_its_new_epoch():
    town = network(20)
    node, seed = town.node(4), town.node(0)
    before = node.epoch
    town.kill(node)
    town.run(3)
    town.restart(node, seed)
    began = town.now
    assert town.run_until(town.agrees, 10)
    assert town.now - began < 2.0
    assert node.epoch > before
    assert {other.gossip.members[node.node_id].epoch for other in town.up if other is not node} == {
        node.epoch
    }


def test_a_node_heard_by_some_only_stays_alive_for_all():
    town = network(10, pace=LAN)
    deaf, silent = town.node(2), town.node(5)
    town.cut(silent, deaf)
    town.run(60)
    assert state_of(silent, seen_by=deaf) is Life.ALIVE
    assert not town.times(Life.DEAD)


@pytest.mark.parametrize("loss", [0.1, 0.25])
def test_lost_packets_are_not_deaths(loss):
    town = network(20, pace=LAN, loss=loss, duplication=0.05)
    town.run(60)
    assert not town.times(Life.DEAD)


def test_lost_packets_make_few_nodes_speak_up_for_themselves():
    town = network(80, pace=LAN, loss=0.25)
    town.run(60)
    assert town.times(Life.SUSPECT), "enough is lost for doubt"
    said = [node.gossip.presence.said.incarnation for node in town.up]
    assert sum(said) <= 4, "each of these goes to everyone"


def test_a_claim_is_followed_up_sooner_than_a_probe_in_turn():
    town = network(40, pace=LAN)
    judge, accuser, victim = town.up[:3]
    town.kill(victim)
    said = victim.gossip.presence.said
    claim = Suspect(raw_id(victim.node_id), (said.epoch, said.incarnation), 1000)
    town.inject(accuser, judge, pack([claim]))
    town.run(LAN.timeout_s * 1.5 + 0.1)
    assert [of for _, by, of, _ in town.changes if by == judge.node_id] == [victim.node_id]
    assert state_of(victim, seen_by=judge) is Life.SUSPECT


@pytest.mark.parametrize("loss", [0.0, 0.1, 0.25])
def test_the_killed_are_found_whatever_gets_lost(loss):
    town = network(20, pace=LAN, loss=loss)
    killed = town.node(11)
    town.kill(killed)
    everyone = [node for node in town.up if node is not killed]
    assert town.run_until(
        lambda: all(state_of(killed, seen_by=node) is Life.DEAD for node in everyone), 120
    )


def test_two_halves_find_each_other_again():
    town = network(16, pace=LAN)
    left, right = town.up[:8], town.up[8:]
    town.partition(left, right)
    town.run(40)
    assert {states(left[0])[node.node_id] for node in right} == {Life.DEAD}
    one, other = town.publish(left[1], "one"), town.publish(right[1], "other")
    town.heal()
    assert town.run_until(town.agrees, 60)
    assert town.run_until(lambda: town.holders(one) == town.holders(other) == 16, 60)


def test_the_last_two_find_each_other_again():
    town = network(2, pace=LAN)
    one, other = town.up
    town.partition([one], [other])
    town.run(40)
    assert state_of(other, seen_by=one) is Life.DEAD
    town.heal()
    assert town.run_until(town.agrees, 60)


def test_a_link_is_a_proof_of_life():
    town = network(3, pace=LAN)
    here, there = town.node(0), town.node(1)
    town.kill(there)
    assert town.run_until(lambda: state_of(there, seen_by=here) is Life.DEAD, 60)
    here.gossip.heard(here.now(), there.node_id)
    assert state_of(there, seen_by=here) is Life.ALIVE


def test_many_who_join_through_one_know_each_other_soon():
    town = Watched()
    town.add(30)
    town.join_all()
    published = [town.publish(node, "agent") for node in town.up]
    assert town.run_until(town.agrees, 10)
    assert town.run_until(lambda: all(town.holders(one) == 30 for one in published), 10)
    assert town.now < 3.0


def test_a_node_that_slept_calls_nobody_dead_for_what_it_missed():
    town = network(12)
    sleeper, other = town.node(3), town.node(7)
    town.freeze(other)
    town.run(8)
    assert state_of(other, seen_by=sleeper) is Life.SUSPECT
    town.freeze(sleeper)
    town.thaw(other)
    town.run(20)
    sleeper.buffered.clear()  # more came than its socket held
    before = sleeper.gossip.presence.said.incarnation
    town.changes.clear()
    town.thaw(sleeper)
    assert sleeper.gossip.presence.said.incarnation == before + 1
    assert town.run_until(town.agrees, 30)
    assert not town.times(Life.DEAD)


def test_what_the_living_say_makes_nobody_look_through_all_suspects(monkeypatch):
    looked_at = 0
    next_of = Detector._next_of

    def counted(self, *of):
        nonlocal looked_at
        looked_at += 1
        return next_of(self, *of)

    town = network(40)
    nodes = list(town.nodes.values())
    for node in nodes[20:]:
        town.kill(node)
    suspects = 0
    while suspects < 15:
        town.run(0.2)
        suspects = sum(state is Life.SUSPECT for state in states(nodes[0]).values())
    monkeypatch.setattr(Detector, "_next_of", counted)
    for number in range(100):
        ping = pack([Ping(number, None)])
        nodes[0].gossip.received(nodes[0].now(), nodes[1].node_id, ping)
    assert looked_at <= suspects
