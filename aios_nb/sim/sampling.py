"""What there is to see in a simulated network at one moment, as numbers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from aios_nb.hub.gossip import LIVING, Life
from aios_nb.records import Signed
from aios_nb.sim.virtual import VirtualNetwork
from aios_nb.sim.virtual_node import VirtualNode

_GONE = frozenset({Life.DEAD, Life.LEFT})


@dataclass(frozen=True, slots=True)
class Sample:
    """One moment. Liars are not asked, and what they think does not count."""

    time: float
    """Seconds since the network began."""
    running: int
    known: float
    """Of all pairs of running nodes, the share in which one knows that the other lives."""
    suspected: int
    """Pairs in which one doubts another that runs."""
    given_up: int
    """Pairs in which one holds another for dead that runs and could be reached."""
    ghosts: float
    """Nodes that do not run and are held for living, per node that runs."""
    coverage: float
    """Of the agents that are there, the share that a node knows of, in the mean."""
    kb_per_s: float
    """Sent per running node since the moment before, heads of packets included."""
    accusations: int
    """Lies that were sent to honest nodes so far, each about one of them."""


def look(
    network: VirtualNetwork,
    honest: Sequence[VirtualNode],
    agents: Iterable[Signed],
    *,
    kb_per_s: float = 0.0,
    accusations: int = 0,
) -> Sample:
    """The network as it is now, by asking every honest node what it thinks."""
    up = [node for node in honest if node.is_up]
    running = {node.node_id: node for node in up}
    known = suspected = given_up = ghosts = 0
    for node in up:
        for node_id, member in node.gossip.members.items():
            other = running.get(node_id)
            if other is None:
                ghosts += _is_ghost(network, node_id) and member.state in LIVING
                continue
            known += member.state in LIVING
            suspected += member.state is Life.SUSPECT
            given_up += member.state in _GONE and network.reaches(node, other)
    pairs = len(up) * (len(up) - 1)
    return Sample(
        time=network.now,
        running=len(up),
        known=known / pairs if pairs else 1.0,
        suspected=suspected,
        given_up=given_up,
        ghosts=ghosts / len(up) if up else 0.0,
        coverage=_coverage(up, list(agents)),
        kb_per_s=kb_per_s,
        accusations=accusations,
    )


def _is_ghost(network: VirtualNetwork, node_id: str) -> bool:
    node = network.nodes.get(node_id)
    return node is None or not node.is_up


def _coverage(up: Sequence[VirtualNode], agents: Sequence[Signed]) -> float:
    if not up or not agents:
        return 1.0
    has = sum(node.catalogue.get(agent.key) == agent for node in up for agent in agents)
    return has / (len(up) * len(agents))
