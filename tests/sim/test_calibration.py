"""The models against the real machines, at sizes where those can be run."""

from __future__ import annotations

import asyncio
import random

import pytest

from aios_nb.hub.dht.engine import KademliaDht
from aios_nb.hub.dht.tuning import Tuning
from aios_nb.identity import Identity
from aios_nb.sim.epidemic import Rumour, summarise
from aios_nb.sim.lookups import Manner, Roads, look_up
from aios_nb.sim.measuring import Measuring
from aios_nb.sim.overlay import Overlay, Population
from aios_nb.sim.traffic import bytes_per_second
from tests.hub.dht.village import Hall, TimelessLoop, identity, record_of
from tests.hub.dht.visitors import dht_in

TOLERANCE = 0.2
"""Relative, of means."""
QUESTIONS_TOLERANCE = 0.3
"""Real tables are filled by what a node happened to hear, not by a fair draw."""
UNHURRIED = Tuning(first_refresh_s=3600.0, requests_per_s=1e6, requests_burst=1_000_000)


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


async def questions_asked(nodes: int, lookups: int) -> float:
    """Per lookup, among real nodes of the DHT, which all published themselves."""
    rng = random.Random(1)
    hall = Hall()
    members: list[tuple[Identity, KademliaDht]] = []
    for number in range(nodes):
        who = identity(f"member {number}")
        dht = dht_in(hall, f"member {number}", UNHURRIED)
        if members:
            dht.meet(hall.presences[rng.choice(members)[0].node_id])
            await dht.settle()
        members.append((who, dht))
    for who, dht in members:
        assert (await dht.put(record_of(who))).holders
    for _ in range(lookups):
        assert await rng.choice(members)[1].get(rng.choice(members)[0].node_id)
    asked = sum(dht.stats["get questions"] for _, dht in members)
    for _, dht in members:
        await dht.close()
    return asked / lookups


def test_the_model_of_lookups_asks_as_often_as_the_real_dht():
    """With more nodes than those for which the DHT keeps records in fewer places."""
    nodes = 130
    with asyncio.Runner(loop_factory=TimelessLoop) as runner:
        real = runner.run(questions_asked(nodes, lookups=200))
    model = look_up(Overlay(Population(nodes)), Manner.at(0.001), Roads(median_s=0.001)).messages

    assert model == pytest.approx(real, rel=QUESTIONS_TOLERANCE)
