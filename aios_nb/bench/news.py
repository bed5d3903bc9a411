"""What is asked of nodes that tell each other news, real or imagined, and what they showed."""

from __future__ import annotations

import msgspec

ABOUT = "carries water, and tells everyone who asks how much of it there is"
ENOUGH = 0.99
"""Of the nodes: where the clock stops for a piece of news."""
CEILING_S = 30.0
"""For one piece of news; what takes longer counts as this."""
AROUND_BYTES = 28
"""The heads of UDP and IP around each datagram."""


class Plan(msgspec.Struct, frozen=True, kw_only=True):
    """How large a network, and how long it is looked at."""

    nodes: int
    records: int
    """Published one after the other, each when the one before is everywhere."""
    seconds: float
    """Of looking at the bytes, idle and again with one new record per second."""
    loss: float = 0.0
    delay_s: tuple[float, float] = (0.010, 0.050)
    killed: int = 0
    seed: int = 1


class Seen(msgspec.Struct, kw_only=True):
    """Times in seconds; bytes per second that one node sends, with all heads."""

    spread_s: list[float] = []
    """From publishing to nearly everyone, by record."""
    idle_bytes: float = 0.0
    busy_bytes: float = 0.0
    dead_s: list[float] = []
    """From each death to the last living node that took note."""
    dead_middle_s: list[float] = []
    """The same, to the middle one."""
    wronged: int = 0
    """Pairs of living nodes of which one was ever called dead by the other."""
    pairs: int = 0
    lag_s: float = 0.0
    """The longest turn of the loop; on sockets only."""
    took_s: float = 0.0


def enough(nodes: int) -> int:
    """So many nodes are nearly everyone."""
    return -int(-ENOUGH * nodes // 1)


class Told(msgspec.Struct):
    """What the one who joined saw, in seconds."""

    linked_s: float
    """From ready to the link to the seed; zero if it was there before."""
    learned_s: float
    """From ready to the last record."""
    verify_s: float
    """The signatures of the same records, checked one after the other and nothing else."""
    cpu_s: float
    """Of learning: what counts on a machine that does other things too."""
    verify_cpu_s: float
    gaps_s: list[float]
    """How late each beat of its loop came meanwhile."""
