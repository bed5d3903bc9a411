"""The models against the real machines, at sizes where those can be run."""

from __future__ import annotations

import pytest

from aios_nb.sim.epidemic import Rumour, summarise
from aios_nb.sim.measuring import DELAY_S, Measuring
from aios_nb.sim.traffic import bytes_per_second

TOLERANCE = 0.2
"""Relative, of means. It was at most 0.07 when this was written."""


@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    ("nodes", "loss", "records"), [(100, 0.0, 5), (100, 0.25, 5), (400, 0.0, 3)]
)
def test_the_model_of_rumours_tells_the_time_of_real_gossip(nodes, loss, records):
    real = Measuring(nodes, loss=loss).intervals_to(0.99, records=records)
    model = summarise(Rumour.of_hub(nodes, loss=loss, delay_s=DELAY_S), runs=20).to_99

    assert model == pytest.approx(real, rel=TOLERANCE)


@pytest.mark.parametrize("nodes", [30, 100])
@pytest.mark.parametrize("news_per_s", [0, 1])
def test_the_model_of_traffic_counts_the_bytes_of_real_gossip(nodes, news_per_s):
    real = Measuring(nodes).bytes_per_second(news_per_s=news_per_s)

    assert bytes_per_second(nodes, news_per_s=news_per_s) == pytest.approx(real, rel=TOLERANCE)
