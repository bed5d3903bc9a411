"""Anchors are those of the design notes: another program, the same rule."""

from __future__ import annotations

import random

import pytest

from aios_nb.errors import UsageError
from aios_nb.sim.asking import Question, in_batches, without_barriers
from aios_nb.sim.lookups import Manner, Roads, look_up
from aios_nb.sim.overlay import ID_BITS, Overlay, Population, nearest

BATCHES = Manner(barriers=True, quorum=None, timeout_s=1.0)
"""Until the nearest nodes have answered, each batch as long as its slowest."""


@pytest.fixture(scope="module")
def ten_thousand() -> Overlay:
    return Overlay(Population(10_000))


@pytest.fixture(scope="module")
def a_third_dead() -> Overlay:
    return Overlay(Population(10_000, dead=0.3))


def test_nearest_is_what_sorting_all_would_give():
    rng = random.Random(3)
    ids = sorted({rng.getrandbits(ID_BITS) for _ in range(500)})
    for count in (1, 7, 20, 600):
        key = rng.getrandbits(ID_BITS)
        assert nearest(ids, key, count) == sorted(ids, key=lambda each: each ^ key)[:count]


def test_a_node_knows_all_its_neighbours_and_some_far_ones(ten_thousand: Overlay):
    rng = random.Random(4)
    node = ten_thousand.someone(rng)

    near = ten_thousand.contacts(node, node)
    far = ten_thousand.contacts(node, node ^ (1 << (ID_BITS - 1)))

    own = [each for each in ten_thousand.holders(node) if each != node]
    assert set(own[:5]) <= set(near)
    assert len(far) == 20
    assert all((each ^ node) >> (ID_BITS - 1) for each in far)
    assert far == ten_thousand.contacts(node, node ^ (1 << (ID_BITS - 1)))


def test_batches_take_the_time_and_questions_of_the_notes(ten_thousand: Overlay):
    made = look_up(ten_thousand, BATCHES, count=150)

    assert made.found == 1
    assert made.messages == pytest.approx(23.0, abs=1.5)
    assert made.seconds(0.5) == pytest.approx(0.64, rel=0.15)
    assert made.seconds(0.99) == pytest.approx(1.07, rel=0.25)


def test_in_batches_the_dead_cost_the_seconds_of_the_notes(a_third_dead: Overlay):
    """And more: each dead node changes the list, and then the package asks in threes again."""
    made = look_up(a_third_dead, BATCHES, count=150)

    assert made.found == 1
    assert 3.7 <= made.seconds(0.5) <= 1.5 * 3.7


def test_without_barriers_the_dead_cost_little(a_third_dead: Overlay, ten_thousand: Overlay):
    batches = look_up(a_third_dead, Manner(barriers=True), count=100)
    free = look_up(a_third_dead, Manner.at(0.08), count=100)
    quiet = look_up(ten_thousand, Manner.at(0.08), count=100)

    assert free.found == 1
    assert free.seconds(0.5) < 0.5 * batches.seconds(0.5)
    assert free.seconds(0.5) < quiet.seconds(0.5) + 2 * Manner.at(0.08).slow_s


def test_a_record_is_found_sooner_than_all_its_holders(ten_thousand: Overlay):
    record = look_up(ten_thousand, Manner.at(0.08), count=100)
    holders = look_up(ten_thousand, Manner.at(0.08, publishing=True), count=100)

    assert record.found == 1
    assert holders.found > 0.95  # most of them each time; by chance not all ways lead there
    assert record.seconds(0.5) < holders.seconds(0.5)
    assert record.messages < holders.messages


def test_the_more_are_dead_the_longer_it_takes():
    times = [
        look_up(Overlay(Population(2000, dead=dead)), count=150).seconds(0.9)
        for dead in (0, 0.2, 0.4)
    ]

    assert times == sorted(times)
    assert times[0] < times[-1]


def test_longer_roads_make_longer_lookups(ten_thousand: Overlay):
    near, far = (
        look_up(ten_thousand, Manner.at(rtt), Roads(median_s=rtt), count=60).seconds(0.5)
        for rtt in (0.08, 0.16)
    )

    assert far == pytest.approx(2 * near, rel=0.15)


def test_a_hundred_thousand_nodes_stay_under_the_target():
    made = look_up(Overlay(Population(100_000)), count=60)
    dead = look_up(Overlay(Population(100_000, dead=0.3)), count=60)

    assert made.found == dead.found == 1
    assert made.seconds(0.5) <= 0.7
    assert dead.seconds(0.5) <= 1.5


def test_liars_are_survived_by_ways_that_share_no_node():
    overlay = Overlay(Population(5000, sybils=0.2))
    one, three = (look_up(overlay, Manner(paths=paths), count=400).found for paths in (1, 3))

    assert three >= 0.99
    assert one < three


def test_the_more_lie_the_less_is_found():
    found = [
        look_up(Overlay(Population(2000, sybils=share)), count=200).found
        for share in (0.0, 0.5, 0.9)
    ]

    assert found[0] == 1
    assert found == sorted(found, reverse=True)
    assert found[-1] < 0.9


def test_liars_nearest_to_a_key_hide_it_only_if_they_are_all_of_them():
    some = look_up(Overlay(Population(2000, crowding=19)), Manner(quorum=1), count=60)
    every = look_up(Overlay(Population(2000, crowding=20)), Manner(quorum=1), count=60)

    assert some.found > 0.7
    assert every.found == 0


def test_a_liar_never_has_the_record():
    overlay = Overlay(Population(500, sybils=0.5))
    question = Question(overlay, overlay.someone(random.Random(1)), key=12345)
    holders = overlay.holders(12345)

    assert any(map(overlay.is_sybil, holders))
    assert not any(question.has_record(node) for node in holders if overlay.is_sybil(node))
    assert all(question.has_record(node) for node in holders if not overlay.is_sybil(node))


class Watched(Question):
    """Remembers who was asked."""

    def __init__(self, overlay: Overlay, asker: int, key: int) -> None:
        super().__init__(overlay, asker, key)
        self.asked: list[int] = []

    def takes(self, node: int, roads: Roads, rng: random.Random) -> float:
        self.asked.append(node)
        return super().takes(node, roads, rng)


@pytest.mark.parametrize("search", [without_barriers, in_batches])
def test_nobody_is_asked_twice_and_nobody_asks_itself(search, a_third_dead: Overlay):
    rng = random.Random(5)
    for _ in range(20):
        asker = a_third_dead.someone(rng)
        question = Watched(a_third_dead, asker, rng.getrandbits(ID_BITS))
        made = search(question, Manner(quorum=None), Roads(), rng)
        assert len(set(question.asked)) == len(question.asked) == made.messages
        assert asker not in question.asked


def test_the_same_seed_gives_the_same_lookups():
    overlay = Population(1000, dead=0.2)

    assert look_up(Overlay(overlay), count=20) == look_up(Overlay(overlay), count=20)
    assert look_up(Overlay(overlay), count=20) != look_up(Overlay(overlay), count=20, seed=1)


@pytest.mark.parametrize("wrong", [{"nodes": 10}, {"dead": 1.0}, {"sybils": -0.1}])
def test_nonsense_is_refused(wrong):
    with pytest.raises(UsageError):
        Population(**wrong)
