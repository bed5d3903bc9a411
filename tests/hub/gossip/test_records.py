"""Records reach everyone, and of two the later one stays."""

from __future__ import annotations

import math

import pytest

from aios_nb.hub.gossip import LAN
from aios_nb.hub.gossip.rumours import RUMOURS_MAX
from tests.hub.gossip.networks import Watched, network


@pytest.mark.parametrize(("loss", "share"), [(0.0, 0.9), (0.25, 1.2)])
def test_a_record_is_everywhere_within_a_few_intervals(loss, share):
    town = network(60, pace=LAN, loss=loss)
    took = []
    for number in range(7):
        record = town.publish(town.node(number), f"agent{number}", "words " * 50)
        began = town.now
        assert town.run_until(lambda one=record: town.holders(one) >= 0.99 * 60, 60, 0.01)
        took.append((town.now - began) / LAN.gossip_s)
        town.run(2)
    assert sorted(took)[3] <= share * math.log2(60)


def test_a_withdrawal_ends_an_agent_everywhere():
    town = network(12, pace=LAN, loss=0.1, duplication=0.2)
    author = town.node(3)
    old = town.publish(author, "agent")
    assert town.run_until(lambda: town.holders(old) == 12, 60)
    end = town.withdraw(author, "agent")
    assert town.run_until(lambda: town.holders(end) == 12, 60)
    assert town.holders(old) == 0


def test_clocks_that_are_half_an_hour_wrong_do_not_matter():
    town = Watched(3, pace=LAN)
    town.add(14, skew_s=1800)
    town.join_all()
    records = [town.publish(node, "agent") for node in town.up]
    assert town.run_until(town.agrees, 30)
    assert town.run_until(lambda: all(town.holders(one) == 14 for one in records), 30)
    author = town.node(5)
    town.restart(author, town.node(0))
    again = town.publish(author, "agent")
    assert town.run_until(lambda: town.holders(again) == 14, 30)


def test_who_missed_a_few_records_gets_them_in_packets():
    town = network(6, pace=LAN)
    author, late = town.node(0), town.node(5)
    for number in range(200):
        author.catalogue.own(author.sign(f"old{number}"))
    town.run(30)
    assert len(late.catalogue) == 64, "what one publisher may have here"
    town.partition([late])
    records = [town.publish(town.node(2), f"agent{number}") for number in range(5)]
    town.run(3)
    assert not any(late.catalogue.get(record.key) for record in records)
    town.heal()
    assert town.run_until(lambda: all(town.holders(one) == 6 for one in records), 60)


def test_a_late_joiner_pulls_what_there_is():
    town = network(10, pace=LAN)
    for node in town.up:
        for number in range(30):
            town.publish(node, f"agent{number}")
    town.run(30)
    assert {len(node.catalogue) for node in town.up} == {300}
    town.add(1)
    late = town.node(10)
    town.join(late, town.node(3))
    began = town.now
    assert town.run_until(lambda: len(late.catalogue) == 300, 30)
    assert town.now - began < 1.0
    assert town.run_until(town.agrees, 30)


def test_news_is_bounded_and_ends():
    town = network(3, pace=LAN)
    author = town.node(0)
    for number in range(RUMOURS_MAX + 500):
        signed = author.sign(f"agent{number}")
        author.catalogue.own(signed)
        author.gossip.published(author.now(), signed)
        assert author.gossip.waiting <= RUMOURS_MAX
    town.run(300)
    assert author.gossip.waiting == 0
    before = author.sent_bytes
    town.run(10)
    assert author.sent_bytes - before < 10 * 2000


def test_an_idle_network_is_quiet_whatever_its_size():
    rates = []
    for size in (10, 40):
        town = network(size, pace=LAN)
        town.run(20)
        before = sum(node.sent_bytes for node in town.up)
        town.run(20)
        rates.append((sum(node.sent_bytes for node in town.up) - before) / size / 20)
    assert max(rates) < 300
    assert max(rates) < 1.5 * min(rates)


def test_lost_packets_do_not_make_a_larger_network_louder():
    rates = []
    for size in (30, 120):
        town = network(size, pace=LAN, loss=0.25)
        town.run(10)
        before = sum(node.sent_bytes for node in town.up)
        town.run(40)
        rates.append((sum(node.sent_bytes for node in town.up) - before) / size / 40)
    assert max(rates) < 800
    assert max(rates) < 1.7 * min(rates)


def test_the_same_seed_gives_the_same_run_and_another_does_not():
    def run(seed):
        town = network(8, seed=seed, pace=LAN, loss=0.2, duplication=0.1)
        town.publish(town.node(2), "agent")
        town.kill(town.node(4))
        town.run(20)
        town.restart(town.node(4), town.node(0))
        town.run(5)
        return town.trace, town.changes

    assert run(5) == run(5)
    assert run(5)[0] != run(6)[0]
