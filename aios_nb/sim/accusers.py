"""Nodes that call others dead, again and again, and say so to everybody."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from aios_nb.hub.gossip.packets import Suspect, packets, raw_id
from aios_nb.sim.virtual import VirtualNetwork
from aios_nb.sim.virtual_node import VirtualNode

_AGE_MS = 60_000
"""They claim to have doubts since long ago."""


def accuse(
    network: VirtualNetwork, accusers: Sequence[VirtualNode], victims: Sequence[VirtualNode]
) -> int:
    """Each accuser tells each victim that all the others have been silent for a minute.

    The number of those claims is returned.
    """
    for victim in victims:
        claims = list(_claims(other for other in victims if other is not victim))
        for accuser in accusers:
            for packet in claims:
                network.inject(accuser, victim, packet)
    return len(accusers) * len(victims) * (len(victims) - 1)


def _claims(victims: Iterator[VirtualNode]) -> Iterator[bytes]:
    return packets(Suspect(raw_id(each.node_id), _life(each), _AGE_MS) for each in victims)


def _life(victim: VirtualNode) -> tuple[int, int]:
    said = victim.gossip.presence.said
    return said.epoch, said.incarnation
