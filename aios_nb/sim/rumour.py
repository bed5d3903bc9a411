"""A rumour as it is modelled: its rule, one way it went, and what many such ways have in common."""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from typing import Self

from aios_nb.errors import UsageError
from aios_nb.hub.gossip.pace import LAN
from aios_nb.hub.gossip.spreading import WHOLE_HOPS
from aios_nb.sim import NODES_MAX

DELAY_S = (0.010, 0.050)
"""Shortest and longest way of a packet, unless something else is said."""
STEPS = 20
"""Moments in an interval that tell short ways from long ones."""


@dataclass(frozen=True, slots=True)
class Rumour:
    """The rule of passing on, and what the network does to it. Times are in gossip intervals."""

    nodes: int = 1000
    fanout: int = LAN.fanout
    """Others told per interval."""
    sends: int | None = None
    """Copies a node sends in all; None for the gossip's own rule, by the size of the network."""
    loss: float = 0.0
    """Share of packets that never arrive."""
    dead: float = 0.0
    """Share of nodes that are told but do not listen."""
    steps: int = 1
    """Moments in an interval. 1: all who have heard speak together, in rounds. More: each speaks
    at once when it hears, and again after every interval of its own."""
    delay: tuple[float, float] = (0.0, 0.0)
    """Shortest and longest way of a packet."""
    whole_hops: int | None = None
    """From this hop on only the name is sent, and whoever lacks the thing asks for it, once in an
    interval. None: the thing itself is always sent."""

    @classmethod
    def of_hub(
        cls,
        nodes: int,
        *,
        loss: float = 0.0,
        dead: float = 0.0,
        delay_s: tuple[float, float] = DELAY_S,
    ) -> Self:
        """As the hub's gossip spreads a record where packets take that long."""
        shortest, longest = (each / LAN.gossip_s for each in delay_s)
        return cls(
            nodes,
            loss=loss,
            dead=dead,
            steps=STEPS,
            delay=(shortest, longest),
            whole_hops=WHOLE_HOPS,
        )

    def __post_init__(self) -> None:
        if not self.fanout < self.nodes <= NODES_MAX:
            raise UsageError(f"a rumour has {self.fanout + 1} to {NODES_MAX} nodes to go through")
        if not (0 <= self.loss < 1 and 0 <= self.dead < 1):
            raise UsageError("a share is at least 0 and less than 1")

    @property
    def limit(self) -> int:
        """Copies a node sends in all."""
        return LAN.sends(self.nodes) if self.sends is None else self.sends


@dataclass(frozen=True, slots=True)
class Spread:
    """How one rumour went."""

    rumour: Rumour
    times: tuple[float, ...]
    """In intervals, from the moment it was published."""
    coverage: tuple[float, ...]
    """Share of the live nodes that had heard by then."""
    messages_per_node: float
    """Sent per live node until all had heard, or until nobody had anything left to send."""

    def at(self, time: float) -> float:
        """Share of the live nodes that had heard after so many intervals."""
        return self.coverage[max(bisect_right(self.times, time) - 1, 0)]

    def time_to(self, share: float) -> float | None:
        """Intervals until this share of the live nodes had heard; None if it never did."""
        for time, reached in zip(self.times, self.coverage, strict=True):
            if reached >= share:
                return time
        return None


@dataclass(frozen=True, slots=True)
class Summary:
    """Several rumours of one kind: means, and how many reached everybody by rumour alone."""

    rumour: Rumour
    runs: int
    to_99: float | None
    to_all: float | None
    """Of those runs that came so far."""
    messages_per_node: float
    complete: float
    """Share of the runs that told every live node; digests bring it to the rest."""
    coverage: tuple[float, ...]
    """Mean share of the live nodes that had heard after 0, 1, 2, … intervals."""

    @property
    def per_log2(self) -> float | None:
        """Intervals to 99 %, as a multiple of log2 n."""
        return None if self.to_99 is None else self.to_99 / math.log2(self.rumour.nodes)
