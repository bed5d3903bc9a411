"""The models against the real machines, at sizes where those can be run."""

from __future__ import annotations

import asyncio
import random

import pytest

from aios_nb.bench.swarm import Member
from aios_nb.sim.epidemic import Rumour, summarise
from aios_nb.sim.lookups import Manner, Roads, look_up
from aios_nb.sim.measuring import Measuring
from aios_nb.sim.overlay import Overlay, Population
from aios_nb.sim.traffic import bytes_per_second

TOLERANCE = 0.2
"""Relative, of means."""
QUESTIONS_TOLERANCE = 0.35
"""Real tables are filled by what a node happened to hear, not by a fair draw."""


@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    ("nodes", "loss", "records"), [(100, 0.0, 5), (100, 0.25, 5), (400, 0.0, 3)]
)
def test_the_model_of_rumours_tells_the_time_of_real_gossip(nodes, loss, records):
    real = Measuring(nodes, loss=loss).intervals_to(0.99, records=records)
    model = summarise(Rumour.of_hub(nodes, loss=loss), runs=20).to_99

    assert model == pytest.approx(real, rel=TOLERANCE)


@pytest.mark.parametrize("nodes", [30, 100])
@pytest.mark.parametrize("news_per_s", [0, 1])
def test_the_model_of_traffic_counts_the_bytes_of_real_gossip(nodes, news_per_s):
    real = Measuring(nodes).bytes_per_second(news_per_s=news_per_s)

    assert bytes_per_second(nodes, news_per_s=news_per_s) == pytest.approx(real, rel=TOLERANCE)


async def questions_on_sockets(nodes: int, lookups: int) -> float:
    """Per lookup, among real DHT nodes on real sockets, which all published themselves."""
    rng = random.Random(1)
    members: list[Member] = []
    try:
        for number in range(nodes):
            members.append(member := Member(number, rng))
            await member.open()
            if number:
                member.dht.meet(rng.choice(members[:-1]).presence)
                await member.dht.settle()
        for member in members:
            assert await member.publish()
        for _ in range(lookups):
            assert await rng.choice(members).find(rng.choice(members).node_id)
        asked = sum(member.dht.stats["get questions"] for member in members)
        return asked / sum(member.dht.stats["gets"] for member in members)
    finally:
        for member in members:
            await member.close()


@pytest.mark.timeout(400)
def test_the_model_of_lookups_asks_as_often_as_the_real_dht():
    """With more nodes than those for which the DHT keeps records in fewer places."""
    nodes = 160
    real = asyncio.run(questions_on_sockets(nodes, lookups=100))
    model = look_up(Overlay(Population(nodes)), Manner.at(0.001), Roads(median_s=0.001)).messages

    assert model == pytest.approx(real, rel=QUESTIONS_TOLERANCE)
