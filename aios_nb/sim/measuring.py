"""The real gossip, measured at sizes where it can be run, to hold the models against."""

from __future__ import annotations

from aios_nb.hub.gossip import LAN
from aios_nb.records import Signed
from aios_nb.sim.rumour import DELAY_S
from aios_nb.sim.virtual import VirtualNetwork, Weather

_CEILING_S = 30.0
_LOOK_S = 0.02
_PAUSE_S = 1.0
_WARM_UP_S = 3


class Measuring:
    """A network of nodes that have known each other for long, and what is measured in it."""

    def __init__(self, nodes: int, *, loss: float = 0.0, seed: int = 1) -> None:
        self._nodes = nodes
        weather = Weather(loss=loss, delay_s=DELAY_S)
        self.network = VirtualNetwork(seed, pace=LAN, weather=weather)
        self.network.add(nodes)
        self.network.acquaint()
        self.network.run(_PAUSE_S)
        self._published = 0

    def intervals_to(self, share: float, *, records: int = 3) -> float:
        """Gossip intervals until so many nodes have a new record: the mean of a few records."""
        taken = 0.0
        for _ in range(records):
            start = self.network.now
            signed = self._publish()
            enough = share * self._nodes
            while self.network.holders(signed) < enough and self.network.now < start + _CEILING_S:
                self.network.run(_LOOK_S)
            taken += self.network.now - start
            self.network.run(_PAUSE_S)
        return taken / records / LAN.gossip_s

    def bytes_per_second(self, *, news_per_s: int = 0, seconds: int = 10) -> float:
        """Sent by each node, headers included, with so many new records in all."""
        self._live(_WARM_UP_S, news_per_s)
        before = self._sent()
        self._live(seconds, news_per_s)
        return (self._sent() - before) / seconds / self._nodes

    def _live(self, seconds: int, news_per_s: int) -> None:
        for _ in range(seconds):
            for _ in range(news_per_s):
                self._publish()
                self.network.run(1 / news_per_s)
            if not news_per_s:
                self.network.run(1)

    def _publish(self) -> Signed:
        self._published += 1
        node = self.network.node(self._published * 17 % self._nodes)
        return self.network.publish(node, f"agent-{self._published}")

    def _sent(self) -> int:
        return sum(node.sent_bytes for node in self.network.up)
