"""Anchors are those of the design notes: another program, the same rule."""

from __future__ import annotations

import math

import numpy as np
import pytest

from aios_nb.errors import UsageError
from aios_nb.hub.gossip import spreading, wanting
from aios_nb.sim import epidemic
from aios_nb.sim.epidemic import Rumour, _others, digest_rounds, spread, summarise


def memberlist(nodes: int) -> int:
    """Copies that a node sends by the rule of the notes."""
    return 4 * math.ceil(math.log10(nodes + 1))


@pytest.mark.parametrize(
    ("nodes", "to_99", "to_all"), [(100, 5.4, 5.9), (1000, 7.0, 8.0), (10_000, 9.0, 10.4)]
)
def test_a_rumour_takes_the_rounds_of_the_notes(nodes, to_99, to_all):
    summary = summarise(Rumour(nodes, sends=memberlist(nodes)), runs=10)

    assert summary.to_99 == pytest.approx(to_99, abs=0.4)
    assert summary.to_all == pytest.approx(to_all, abs=0.5)


@pytest.mark.parametrize(
    ("nodes", "to_99", "to_all"), [(100, 7.6, 7.6), (1000, 9.4, 10.5), (10_000, 11.1, 13.8)]
)
def test_loss_and_dead_nodes_cost_the_rounds_of_the_notes(nodes, to_99, to_all):
    summary = summarise(Rumour(nodes, sends=memberlist(nodes), loss=0.25, dead=0.1), runs=10)

    assert summary.to_99 == pytest.approx(to_99, abs=0.8)
    assert summary.to_all == pytest.approx(to_all, abs=1.5)


def test_a_rumour_reaches_a_hundred_thousand():
    summary = summarise(Rumour(100_000, sends=memberlist(100_000)), runs=2)

    assert summary.to_99 == pytest.approx(11.0, abs=0.5)
    assert 12 <= summary.messages_per_node <= 17


def test_digests_alone_take_the_rounds_of_the_notes():
    rounds = [digest_rounds(100_000, seed=seed) for seed in range(3)]

    assert sum(rounds) / 3 == pytest.approx(13, abs=1.5)
    assert digest_rounds(1000) < min(rounds)


def test_the_more_is_lost_the_longer_it_takes():
    times = [summarise(Rumour(2000, loss=loss), runs=8).to_99 for loss in (0, 0.2, 0.4)]

    assert times == sorted(times)
    assert times[0] < times[-1]


def test_the_more_are_dead_the_longer_it_takes():
    times = [summarise(Rumour(2000, dead=dead), runs=8).to_99 for dead in (0, 0.2, 0.4)]

    assert times == sorted(times)
    assert times[0] < times[-1]


def test_who_tells_more_others_is_done_sooner():
    few, many = (summarise(Rumour(2000, fanout=fanout), runs=5).to_99 for fanout in (2, 5))

    assert many < few


def test_coverage_only_grows_and_ends_with_all():
    run = spread(Rumour(500, steps=8, delay=(0.05, 0.25)))

    assert list(run.coverage) == sorted(run.coverage)
    assert run.coverage[0] == 1 / 500
    assert run.coverage[-1] == 1
    assert run.at(0) == run.coverage[0]
    assert run.at(1e9) == 1


def test_who_speaks_at_once_is_faster_than_rounds():
    rounds = summarise(Rumour(400), runs=8).to_99
    ticks = summarise(Rumour(400, steps=20, delay=(0.05, 0.25)), runs=8).to_99

    assert ticks < 0.5 * rounds


def test_asking_for_what_was_only_named_takes_longer():
    rumour = Rumour(400, steps=20, delay=(0.05, 0.25))
    whole = summarise(rumour, runs=8).to_99
    named = summarise(Rumour(400, steps=20, delay=(0.05, 0.25), whole_hops=1), runs=8).to_99

    assert whole < named


def test_a_rumour_that_is_told_once_dies():
    run = spread(Rumour(1000, sends=1))

    assert run.time_to(0.99) is None
    assert run.messages_per_node < 1.0


def test_nobody_sends_more_than_the_limit():
    run = spread(Rumour(300, fanout=3, sends=4, loss=0.6))

    assert run.messages_per_node <= 4


def test_the_dead_hear_nothing_and_are_not_waited_for():
    run = spread(Rumour(200, dead=0.5))

    assert run.coverage[0] == 1 / 100
    assert run.coverage[-1] == 1


def test_the_same_seed_gives_the_same_numbers():
    rumour = Rumour(1000, loss=0.1)

    assert spread(rumour, 7) == spread(rumour, 7)
    assert spread(rumour, 7) != spread(rumour, 8)


def test_others_are_different_and_never_oneself():
    rng = np.random.default_rng(1)
    speakers = np.arange(6, dtype=np.int32).repeat(400)

    chosen = _others(rng, speakers, 6, 3)

    assert all(len({speaker, *row}) == 4 for speaker, row in zip(speakers, chosen, strict=True))
    counts = np.bincount(chosen.ravel(), minlength=6)
    assert np.abs(counts / counts.sum() - 1 / 6).max() < 0.02


def test_time_grows_with_the_logarithm():
    sizes = [100, 1000, 10_000]
    per_log2 = [summarise(Rumour(nodes), runs=5).to_99 / math.log2(nodes) for nodes in sizes]

    assert all(0.6 <= ratio <= 0.9 for ratio in per_log2)


@pytest.mark.parametrize(
    "wrong", [{"nodes": 3}, {"nodes": 2_000_000}, {"loss": 1.0}, {"dead": -0.1}, {"loss": math.nan}]
)
def test_nonsense_is_refused(wrong):
    with pytest.raises(UsageError):
        Rumour(**wrong)


def test_the_model_asks_again_when_the_gossip_does():
    assert epidemic.ASK_AGAIN == spreading._ASK_AGAIN_SHARE
    assert epidemic.SLOWER == wanting._SLOWER
