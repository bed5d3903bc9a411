"""Virtual networks for the tests of gossip, and what is asked of them again and again."""

from __future__ import annotations

from aios_nb.hub.gossip import LOCAL, Changed, Life, Pace
from aios_nb.sim.virtual import VirtualNetwork, VirtualNode, Weather


class Watched(VirtualNetwork):
    """A network that remembers each change of state, with its time: what, who sees it, of whom."""

    def __init__(self, seed: int = 1, *, pace: Pace = LOCAL, weather: Weather | None = None):
        self.changes: list[tuple[float, str, str, Life]] = []
        super().__init__(seed, pace=pace, weather=weather, on_change=self._note)

    def _note(self, node: VirtualNode, changed: Changed) -> None:
        member = changed.member
        self.changes.append((self.now, node.node_id, member.node_id, member.state))

    def times(self, state: Life, of: VirtualNode | None = None) -> list[float]:
        return [
            at
            for at, _, node_id, seen in self.changes
            if seen is state and (of is None or of.node_id == node_id)
        ]


def network(size: int, *, seed: int = 1, pace: Pace = LOCAL, **weather: float) -> Watched:
    """So many nodes that know each other."""
    made = Watched(seed, pace=pace, weather=Weather(**weather))
    made.add(size)
    made.acquaint()
    made.run(1)
    made.changes.clear()
    return made


def states(seer: VirtualNode) -> dict[str, Life]:
    return {node_id: member.state for node_id, member in seer.gossip.members.items()}


def state_of(node: VirtualNode, *, seen_by: VirtualNode) -> Life | None:
    return states(seen_by).get(node.node_id)
