from __future__ import annotations

import pytest

from aios_nb.errors import UsageError
from aios_nb.hub.gossip import Life
from aios_nb.sim.chapters import live
from aios_nb.sim.lab import Lab


@pytest.fixture
def lab() -> Lab:
    """Ten nodes that have found each other."""
    made = Lab(10, seed=1)
    assert made.settle() is not None
    return made


def test_nodes_that_join_one_know_all(lab: Lab):
    first, last = lab.samples[0], lab.samples[-1]

    assert first.known < last.known == 1
    assert last.running == 10
    assert last.ghosts == last.given_up == 0


def test_a_new_agent_spreads_and_its_coverage_is_seen(lab: Lab):
    signed = lab.publish("adder", by=3)
    lab.run(0.05)

    assert 0 < lab.samples[-1].coverage < 1
    assert lab.settle() is not None
    assert lab.network.holders(signed) == 10
    assert lab.agents == [signed]


def test_the_killed_become_ghosts_and_then_are_gone(lab: Lab):
    start = lab.now
    killed = lab.kill(3)
    lab.run(1)
    assert lab.samples[-1].ghosts == 3

    assert lab.settle() is not None
    assert lab.samples[-1].ghosts == 0
    assert all(len(lab.noticed(number, since=start)) == 7 for number in killed)
    assert lab.false_deaths == 0


def test_the_restarted_are_back_without_their_agents(lab: Lab):
    lab.publish("adder", by=3)
    lab.settle()
    lab.kill([3])
    lab.settle()
    assert lab.agents == []

    assert lab.restart() == [3]
    assert lab.settle() is not None
    assert lab.samples[-1].running == 10
    assert lab.agents == []


def test_who_says_goodbye_is_gone_sooner_than_the_killed(lab: Lab):
    lab.leave(2)
    left = lab.settle()
    lab.kill(2)

    assert left < lab.settle()


def test_a_busy_node_is_doubted_and_taken_back(lab: Lab):
    lab.freeze([4], seconds=8)
    lab.run(7)
    assert lab.samples[-1].suspected > 0

    assert lab.run_until(lambda: lab.samples[-1].suspected == 0) is not None
    assert lab.samples[-1].known == 1
    assert lab.false_deaths == 0


def test_halves_that_are_cut_off_forget_each_other_and_find_back(lab: Lab):
    apart = lab.partition(4)
    lab.run(30)
    pairs = 10 * 9
    assert lab.samples[-1].known == pytest.approx((4 * 3 + 6 * 5) / pairs)
    assert lab.samples[-1].given_up == 0
    assert {turn.node for turn in lab.turns if turn.observer not in apart} >= set(apart)

    lab.heal()
    assert lab.settle() is not None
    assert lab.false_deaths == 0


def test_accusers_kill_nobody(lab: Lab):
    lab.accusers(5)
    before = lab.honest[0].got_packets
    lab.run(20)

    assert lab.samples[-1].accusations >= 5 * 10 * 9 * 15
    assert lab.honest[0].got_packets > before + 5 * 15
    assert len(lab) == lab.samples[-1].running == 10
    assert lab.samples[-1].known == 1
    assert lab.false_deaths == 0


def test_a_false_death_would_be_seen(lab: Lab):
    one, other = lab.honest[:2]
    member = one.gossip.members[other.node_id]
    lab.network._on_change(one, _Changed(member))

    assert lab.false_deaths == 1


class _Changed:
    def __init__(self, member) -> None:
        self.member = type(member)(member.node_id, Life.DEAD, member.presence, 0.0)


def test_traffic_is_counted(lab: Lab):
    lab.run(5)
    quiet = lab.samples[-1].kb_per_s
    for number in range(20):
        lab.publish(f"agent-{number}")
    lab.run(0.5)

    assert 0 < quiet < lab.samples[-1].kb_per_s


def test_the_same_seed_gives_the_same_run():
    def story(seed: int):
        lab = Lab(8, seed=seed, loss=0.1)
        lab.run(2)
        lab.kill(2)
        lab.run(3)
        return lab.network.trace, lab.samples, lab.story, lab.turns

    assert story(5) == story(5)
    assert story(5) != story(6)


def test_samples_are_a_table_and_a_series(lab: Lab):
    times, known = lab.series("known")

    assert list(lab.df()["known"]) == known
    assert list(lab.df().index) == times


def test_what_was_done_is_a_story(lab: Lab):
    lab.publish("adder")
    lab.kill(2)

    assert [what for _, what in lab.story] == ["adder is published", "2 killed"]


@pytest.mark.parametrize("count", [0, 11])
def test_only_nodes_that_run_can_be_killed(lab: Lab, count):
    with pytest.raises(UsageError, match="10 nodes running"):
        lab.kill(count)


@pytest.mark.parametrize("nodes", [1, 401])
def test_a_lab_has_a_size(nodes):
    with pytest.raises(UsageError, match="2 to 400"):
        Lab(nodes)


def test_a_life_in_numbers():
    told = {each.what: each.value for each in live(10, kill=2, accusers=2)}

    assert list(told) == [
        "everyone knows everyone after",
        "a new agent is known everywhere after",
        "sent per node when all is quiet",
        "2 killed: first noticed after",
        "2 killed: gone everywhere after",
        "times a running node was held for dead",
    ]
    assert told["2 killed: first noticed after"] <= told["2 killed: gone everywhere after"]
    assert told["times a running node was held for dead"] == 0
