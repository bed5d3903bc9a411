"""What gossip costs one node in bytes per second, counted packet by packet.

Being there is nearly free and does not grow with the network. News costs by how much of it there
is in the whole network, and only with the logarithm of how many nodes pass it on.
"""

from __future__ import annotations

from aios_nb.hub.gossip import LAN, Pace
from aios_nb.sim.virtual import HEAD_BYTES

PING_BYTES = 5
"""A question whether a node is there, or its answer."""
ROOTS_BYTES = 23
"""The sums by which two nodes see that they know the same."""
NAME_BYTES = 25
"""A record by name only."""
WANT_BYTES = 14
RECORD_BYTES = 334
"""A small record with its signature, and the message around it."""


def bytes_per_second(nodes: int, *, news_per_s: float = 0.0, pace: Pace = LAN) -> float:
    """Sent by each of ``nodes``, with so many new records per second in the whole network."""
    return _being_there(nodes, pace) + news_per_s * _one_record(nodes, pace)


def _being_there(nodes: int, pace: Pace) -> float:
    """Each asks one node in an interval, is asked by one, and compares with one now and then."""
    probing = 2 * (HEAD_BYTES + PING_BYTES) / pace.probe_every(nodes)
    comparing = 2 * (HEAD_BYTES + ROOTS_BYTES) / pace.sync_every(nodes)
    return probing + comparing


def _one_record(nodes: int, pace: Pace) -> float:
    """Names to everyone but the teller; the question and the record itself go to each once."""
    names = (pace.sends(nodes) - 1) * (HEAD_BYTES + NAME_BYTES)
    return names + HEAD_BYTES + WANT_BYTES + HEAD_BYTES + RECORD_BYTES
