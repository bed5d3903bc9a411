"""Gossip on a virtual clock: ``python -m aios_nb.bench.imagined JSON`` prints what was seen.

The machines, keys and catalogues are the real ones; how busy this computer is does not matter.
"""

from __future__ import annotations

import gc
import statistics
import sys
import time

import msgspec

from aios_nb.bench.news import ABOUT, CEILING_S, Plan, Seen, enough
from aios_nb.hub.gossip import LAN, Changed, Life
from aios_nb.sim.virtual import VirtualNetwork, Weather
from aios_nb.sim.virtual_node import VirtualNode

SETTLE_S = 3.0
PAUSE_S = 2.0
LOOK_S = 0.01
WATCH_S = 60.0
"""After the killing: by then everyone has taken note, and has had time to accuse the living."""
_STEP = 17
"""Publishers and victims are so many places apart."""


class Imagined:
    """A network that has been there for long, and everything that is measured in it."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._deaths: dict[str, list[float]] = {}
        self._killed: set[str] = set()
        self._wronged: set[tuple[str, str]] = set()
        weather = Weather(loss=plan.loss, delay_s=plan.delay_s)
        self.network = VirtualNetwork(plan.seed, pace=LAN, weather=weather, on_change=self._note)
        self.network.add(plan.nodes)
        self.network.acquaint()
        self.network.run(SETTLE_S)
        self._nodes = self.network.up
        self._published = 0

    def see(self) -> Seen:
        plan, begun = self._plan, time.perf_counter()
        seen = Seen(pairs=plan.nodes * (plan.nodes - 1))
        seen.spread_s = [self._spread() for _ in range(plan.records)]
        seen.idle_bytes = self._bytes(busy=False)
        seen.busy_bytes = self._bytes(busy=True)
        if plan.killed:
            times = self._kill()
            seen.dead_s = [max(each) for each in times]
            seen.dead_middle_s = [statistics.median(each) for each in times]
        seen.wronged = len(self._wronged)
        seen.took_s = time.perf_counter() - begun
        return seen

    def _note(self, node: VirtualNode, changed: Changed) -> None:
        if changed.member.state is not Life.DEAD:
            return
        of = changed.member.node_id
        if of in self._killed:
            self._deaths[of].append(self.network.now)
        else:
            self._wronged.add((node.node_id, of))

    def _publish(self) -> None:
        self._published += 1
        node = self._nodes[self._published * _STEP % len(self._nodes)]
        self._record = self.network.publish(node, f"agent-{self._published}", ABOUT)

    def _spread(self) -> float:
        began, most = self.network.now, enough(self._plan.nodes)
        self._publish()
        self.network.run_until(
            lambda: self.network.holders(self._record) >= most, CEILING_S, every_s=LOOK_S
        )
        taken = self.network.now - began
        self.network.run(PAUSE_S)
        return taken

    def _bytes(self, *, busy: bool) -> float:
        """The first seconds are those of warming up."""
        before, began = 0, self.network.now
        for second in range(int(SETTLE_S + self._plan.seconds)):
            if second == int(SETTLE_S):
                before, began = self._sent(), self.network.now
            if busy:
                self._publish()
            self.network.run(1)
        return (self._sent() - before) / (self.network.now - began) / len(self._nodes)

    def _sent(self) -> int:
        return sum(node.sent_bytes for node in self._nodes)

    def _kill(self) -> list[list[float]]:
        """When each living node took note, by victim. Who never did counts as the end."""
        victims = [
            self._nodes[number * _STEP % len(self._nodes)] for number in range(self._plan.killed)
        ]
        self.network.run(SETTLE_S)
        began = self.network.now
        for node in victims:
            self._killed.add(node.node_id)
            self._deaths[node.node_id] = []
            self.network.kill(node)
        self.network.run(WATCH_S)
        living = len(self._nodes) - len(self._killed)
        return [
            [at - began for at in times] + [WATCH_S] * (living - len(times))
            for times in self._deaths.values()
        ]


if __name__ == "__main__":
    gc.disable()  # a thousand nodes are a million members, and none of it is garbage
    asked = msgspec.json.decode(sys.argv[1], type=Plan)
    print(msgspec.json.encode(Imagined(asked).see()).decode())
