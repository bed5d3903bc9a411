"""Lookups in a Kademlia network, as a model: how long, how many questions, and whether it is found.

``Overlay`` is the network, ``Manner`` how a lookup asks in it, ``Roads`` how long an answer takes.
Same seed, same lookups.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

from aios_nb.sim.asking import Lookup, Manner, Question, Roads, in_batches, without_barriers
from aios_nb.sim.overlay import ID_BITS, Overlay

__all__ = ["Lookup", "Lookups", "Manner", "Roads", "look_up"]


@dataclass(frozen=True, slots=True)
class Lookups:
    """How many went, in the order they were made."""

    each: tuple[Lookup, ...]

    @property
    def found(self) -> float:
        return sum(lookup.found for lookup in self.each) / len(self.each)

    @property
    def messages(self) -> float:
        return sum(lookup.messages for lookup in self.each) / len(self.each)

    def seconds(self, share: float) -> float:
        """The time within which this share of them was done."""
        ordered = sorted(lookup.seconds for lookup in self.each)
        return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def look_up(
    overlay: Overlay,
    manner: Manner | None = None,
    roads: Roads | None = None,
    *,
    count: int = 200,
    seed: int = 0,
) -> Lookups:
    """So many lookups of random keys, each from a random honest node."""
    rng = random.Random(f"{seed}/{overlay.population}")  # noqa: S311 (a simulation repeats itself)
    manner, roads = manner or Manner(), roads or Roads()
    search = in_batches if manner.barriers else without_barriers
    made = []
    for _ in range(count):
        question = Question(overlay, overlay.someone(rng), rng.getrandbits(ID_BITS))
        made.append(search(question, manner, roads, rng))
    return Lookups(tuple(made))
