"""A Kademlia network of up to a million nodes whose routing tables are drawn when first read.

A lookup among 100,000 nodes reads the tables of some twenty of them. So a network is a sorted list
of ids; the bucket of a node is drawn from the stretch of that list where its contacts must lie.
"""

from __future__ import annotations

import random
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from aios_nb.errors import UsageError
from aios_nb.sim import NODES_MAX

ID_BITS = 64
"""Enough to tell a million nodes apart; real ids have 160."""


@dataclass(frozen=True, slots=True)
class Population:
    """Who is there."""

    nodes: int = 1000
    bucket: int = 20
    """Contacts in a full bucket, and holders of a record: Kademlia's k."""
    dead: float = 0.0
    """Share of nodes that died a moment ago: they stand in all tables and hold records."""
    sybils: float = 0.0
    """Share of nodes that know each other, name only each other and keep no record."""
    crowding: int = 0
    """Of the holders of each record, how many are such nodes, nearest to the key of all."""

    def __post_init__(self) -> None:
        if not self.bucket < self.nodes <= NODES_MAX:
            raise UsageError(f"a network has {self.bucket + 1} to {NODES_MAX} nodes")
        if not (0 <= self.dead < 1 and 0 <= self.sybils < 1):
            raise UsageError("a share is at least 0 and less than 1")


class Overlay:
    """The nodes of a population, and what each would answer. Same seed, same network."""

    def __init__(self, population: Population, seed: int = 0) -> None:
        self.population = population
        self._seed = seed
        rng = np.random.default_rng([seed, population.nodes])
        drawn = rng.integers(1 << ID_BITS, size=population.nodes, dtype=np.uint64)
        ids = np.unique(drawn)
        self._ids: list[int] = ids.tolist()
        self._dead = frozenset(ids[rng.random(len(ids)) < population.dead].tolist())
        self._sybils: list[int] = ids[rng.random(len(ids)) < population.sybils].tolist()
        self._are_sybils = frozenset(self._sybils)
        self._buckets: dict[tuple[int, int], list[int]] = {}

    def is_dead(self, node: int) -> bool:
        return node in self._dead

    def is_sybil(self, node: int) -> bool:
        return node in self._are_sybils

    def someone(self, rng: random.Random) -> int:
        """An honest node that is alive."""
        while True:
            node = rng.choice(self._ids)
            if node not in self._dead and node not in self._are_sybils:
                return node

    def holders(self, key: int) -> list[int]:
        """The nodes nearest to a key: those a record is stored on."""
        return nearest(self._ids, key, self.population.bucket)

    def colluders(self, key: int) -> list[int]:
        """What a Sybil names when asked for a key."""
        return nearest(self._sybils, key, self.population.bucket)

    def contacts(self, node: int, key: int) -> list[int]:
        """The contacts of a node that are nearest to a key, as many as fill a bucket."""
        wanted = self.population.bucket
        found: list[int] = []
        for group in self._by_distance(node, key):
            if len(found) >= wanted:
                break
            found += sorted(group(), key=lambda contact: contact ^ key)
        return found[:wanted]

    def _by_distance(self, node: int, key: int) -> list[Callable[[], list[int]]]:
        """The table in groups: each is wholly nearer to the key than the next."""
        shared = ID_BITS - (node ^ key).bit_length()
        groups: list[Callable[[], list[int]]] = []
        if shared < ID_BITS:
            groups.append(lambda: self._bucket(node, shared))
            groups.append(lambda: self._beside(node, shared + 1))
        groups += [
            lambda depth=depth: self._bucket(node, depth)  # type: ignore[misc]
            for depth in range(min(shared, ID_BITS) - 1, -1, -1)
        ]
        return groups

    def _beside(self, node: int, depth: int) -> list[int]:
        """All contacts that share at least ``depth`` bits with the node."""
        found: list[int] = []
        while depth < ID_BITS:
            low, high = _stretch(self._ids, node, depth)
            if high - low <= 1:  # nobody but the node itself
                break
            found += self._bucket(node, depth)
            depth += 1
        return found

    def _bucket(self, node: int, depth: int) -> list[int]:
        """Contacts that share exactly ``depth`` bits with the node; all there are, or a draw."""
        known = self._buckets.get((node, depth))
        if known is None:
            low, high = _stretch(self._ids, node ^ (1 << (ID_BITS - 1 - depth)), depth + 1)
            chosen: Sequence[int] = range(low, high)
            if len(chosen) > self.population.bucket:
                draw = random.Random(f"{self._seed}/{node}/{depth}")  # noqa: S311
                chosen = draw.sample(chosen, self.population.bucket)
            known = [self._ids[index] for index in chosen]
            self._buckets[node, depth] = known
        return known


def nearest(ids: Sequence[int], key: int, count: int) -> list[int]:
    """The ``count`` ids of a sorted list with the least XOR distance to the key, in that order."""
    low, high = 0, len(ids)
    for depth in range(1, ID_BITS + 1):
        inner = _stretch(ids, key, depth)
        if inner[1] - inner[0] < count:
            break
        low, high = inner
    return sorted(ids[low:high], key=lambda each: each ^ key)[:count]


def _stretch(ids: Sequence[int], key: int, depth: int) -> tuple[int, int]:
    """Where the ids lie that share their first ``depth`` bits with the key."""
    low = key >> (ID_BITS - depth) << (ID_BITS - depth)
    start = bisect_left(ids, low)
    return start, bisect_left(ids, low + (1 << (ID_BITS - depth)), lo=start)
