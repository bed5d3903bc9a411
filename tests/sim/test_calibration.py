"""The models against the real machines, at sizes where those can be run."""

from __future__ import annotations

import pytest

from aios_nb.sim.epidemic import Rumour, summarise
from aios_nb.sim.virtual import VirtualNetwork, Weather

TOLERANCE = 0.2
"""Relative, of means. Measured: 0.03 without loss, 0.07 with."""
DELAY_S = (0.010, 0.050)


def intervals_to_99(nodes: int, loss: float, rumours: int) -> float:
    """The mean over records that one node after another publishes in a quiet network."""
    network = VirtualNetwork(1, weather=Weather(loss=loss, delay_s=DELAY_S))
    network.add(nodes)
    network.acquaint()
    network.run(1.0)
    taken = 0.0
    for number in range(rumours):
        start = network.now
        signed = network.publish(network.node(number * 17), f"agent-{number}")
        enough = 0.99 * nodes
        assert network.run_until(lambda s=signed, e=enough: network.holders(s) >= e, 10.0, 0.02)
        taken += network.now - start
        network.run(1.0)
    return taken / rumours / network.pace.gossip_s


@pytest.mark.timeout(400)
@pytest.mark.parametrize(
    ("nodes", "loss", "rumours"), [(100, 0.0, 5), (100, 0.25, 5), (400, 0.0, 3)]
)
def test_the_model_of_rumours_tells_the_time_of_real_gossip(nodes, loss, rumours):
    real = intervals_to_99(nodes, loss, rumours)
    model = summarise(Rumour.of_hub(nodes, loss=loss, delay_s=DELAY_S), runs=20).to_99

    assert model == pytest.approx(real, rel=TOLERANCE)
