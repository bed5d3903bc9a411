"""The routing table: many contacts near this node, some of every other part of the key space.

The package's table, with the bounds of buckets, the rule for splitting and the search for
neighbours as the paper has them, and with room for only a few nodes of one owner's addresses.
"""

from __future__ import annotations

import bisect
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import chain
from typing import Any

from kademlia.node import Node  # type: ignore[import-untyped]
from kademlia.routing import KBucket, RoutingTable  # type: ignore[import-untyped]

from aios_nb.hub.dht.contacts import Contact
from aios_nb.hub.dht.keys import ID_BITS, SPACE
from aios_nb.hub.dht.tuning import Tuning

_AROUND_MAX = 3
"""Buckets full of contacts that a lookup begins with at the most."""


class Bucket(KBucket):  # type: ignore[misc]
    """The contacts of one aligned part of the key space, both ends included."""

    @property
    def bits(self) -> int:
        """How many low bits its members differ in."""
        width: int = self.range[1] - self.range[0] + 1
        return width.bit_length() - 1

    def depth(self) -> int:
        """How many leading bits its range has in common, whoever is in it."""
        return ID_BITS - self.bits

    def split(self) -> tuple[Bucket, Bucket]:
        middle = (self.range[0] + self.range[1]) // 2
        halves = (
            Bucket(self.range[0], middle, self.ksize),
            Bucket(middle + 1, self.range[1], self.ksize),
        )
        for contact in chain(self.nodes.values(), self.replacement_nodes.values()):
            halves[contact.long_id > middle].add_node(contact)
        for half in halves:
            half.last_updated = self.last_updated
        return halves

    def is_new_node(self, node: Node) -> bool:
        """Whether it is known neither as a member nor as one who waits."""
        return node.id not in self.nodes and node.id not in self.replacement_nodes

    def unconfirmed(self) -> Contact | None:
        """A member that never answered us: it gives way to one that did."""
        return next((each for each in self.nodes.values() if not each.confirmed), None)


class Routes(RoutingTable):  # type: ignore[misc]
    """The table of one node. ``check`` is asked to greet a contact that has been silent."""

    buckets: list[Bucket]

    def __init__(
        self,
        protocol: Any,
        node: Node,
        tuning: Tuning,
        clock: Callable[[], float],
        check: Callable[[Contact], None],
    ) -> None:
        self.tuning = tuning
        self.clock = clock
        self.check = check
        self._prefixes: Counter[str] = Counter()
        super().__init__(protocol, tuning.k, node)

    def flush(self) -> None:
        self.buckets = [Bucket(0, SPACE - 1, self.ksize)]
        self._lower = [0]
        self._prefixes.clear()

    def __len__(self) -> int:
        return sum(map(len, self.buckets))

    def __iter__(self) -> Iterator[Contact]:
        return chain.from_iterable(bucket.nodes.values() for bucket in self.buckets)

    # Who is in it ------------------------------------------------------------------------

    def add_contact(self, node: Contact) -> bool:
        """Take it in if there is room. Nobody alive is put out for it."""
        if node.id == self.node.id:
            return False
        bucket = self.buckets[self.get_bucket_for(node)]
        if node.id in bucket.nodes:
            bucket.nodes.move_to_end(node.id)
            return True
        if not self._is_diverse(bucket, node):
            return False
        while len(bucket) >= self.ksize:
            stale = bucket.unconfirmed() if node.confirmed else None
            if stale is not None:
                self._drop(bucket, stale)
            elif self._may_split(bucket):
                self.split_bucket(self.get_bucket_for(node))
                bucket = self.buckets[self.get_bucket_for(node)]
            else:
                self._wait(bucket, node)
                return False
        bucket.replacement_nodes.pop(node.id, None)
        self._enter(bucket, node)
        return True

    def remove_contact(self, node: Contact) -> None:
        """It is dead; one who waited takes its place."""
        bucket = self.buckets[self.get_bucket_for(node)]
        bucket.replacement_nodes.pop(node.id, None)
        if node.id not in bucket.nodes:
            return
        self._drop(bucket, node)
        while bucket.replacement_nodes:
            _, waiting = bucket.replacement_nodes.popitem()
            if self._is_diverse(bucket, waiting):
                self._enter(bucket, waiting)
                return

    def _enter(self, bucket: Bucket, node: Contact) -> None:
        bucket.nodes[node.id] = node
        node.routed = True
        node.counted_prefix = node.prefix
        if node.prefix is not None:
            self._prefixes[node.prefix] += 1

    def _drop(self, bucket: Bucket, node: Contact) -> None:
        member = bucket.nodes.pop(node.id)
        member.routed = False
        if member.counted_prefix is not None:
            self._prefixes[member.counted_prefix] -= 1
            if not self._prefixes[member.counted_prefix]:
                del self._prefixes[member.counted_prefix]

    def _wait(self, bucket: Bucket, node: Contact) -> None:
        bucket.add_node(node)
        oldest = bucket.head()
        if self.clock() - oldest.heard_at > self.tuning.quiet_s:
            self.check(oldest)

    def _is_diverse(self, bucket: Bucket, node: Contact) -> bool:
        prefix = node.prefix
        if prefix is None:
            return True
        in_bucket = sum(each.prefix == prefix for each in bucket.nodes.values())
        return (
            in_bucket < self.tuning.contacts_per_prefix_in_bucket
            and self._prefixes[prefix] < self.tuning.contacts_per_prefix
        )

    # Its shape ---------------------------------------------------------------------------

    def _may_split(self, bucket: Bucket) -> bool:
        depth = bucket.depth()
        if depth >= ID_BITS - 1:
            return False
        return bool(bucket.has_in_range(self.node)) or depth % self.tuning.split_bits != 0

    def split_bucket(self, index: int) -> None:
        super().split_bucket(index)
        self._lower.insert(index + 1, self.buckets[index + 1].range[0])

    def get_bucket_for(self, node: Node) -> int:
        return bisect.bisect_right(self._lower, node.long_id) - 1

    def lonely_buckets(self) -> list[Bucket]:
        """Those in whose range nothing was looked for lately."""
        before = self.clock() - self.tuning.refresh_s
        return [bucket for bucket in self.buckets if bucket.last_updated < before]

    def touch(self, target: int) -> None:
        """Something was looked for there."""
        bucket = self.buckets[bisect.bisect_right(self._lower, target) - 1]
        bucket.last_updated = self.clock()

    # Who is near -------------------------------------------------------------------------

    def nearest(self, target: int) -> Iterator[Contact]:
        """All contacts, the nearest to ``target`` first. Whole buckets are nearer than others."""

        def distance(bucket: Bucket) -> int:
            bits = bucket.bits
            lower: int = bucket.range[0]
            return ((lower ^ target) >> bits) << bits

        for bucket in sorted(self.buckets, key=distance):
            yield from sorted(bucket.nodes.values(), key=lambda each: each.long_id ^ target)

    def around(self, target: int, reach: int) -> list[Contact]:
        """Whom a lookup begins with: the nearest ``k`` that answer, and more within ``reach``.

        All of the region, because who crowds a key must not be all that a lookup begins with.
        """
        found: list[Contact] = []
        for contact in self.nearest(target):
            if len(found) >= self.ksize and (
                contact.long_id ^ target > reach or len(found) >= _AROUND_MAX * self.ksize
            ):
                break
            if not contact.failures:
                found.append(contact)
        return found

    def find_neighbors(
        self, node: Node, k: int | None = None, exclude: Node | None = None
    ) -> list[Contact]:
        """The ``k`` nearest, however many buckets they are in."""
        wanted = k or self.ksize
        found: list[Contact] = []
        for contact in self.nearest(node.long_id):
            if contact.id != node.id and (exclude is None or contact.id != exclude.id):
                found.append(contact)
                if len(found) == wanted:
                    break
        return found
