"""What this node keeps for others: node records, each under the key of the node that signed it."""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator

from kademlia.storage import IStorage  # type: ignore[import-untyped]

from aios_nb.errors import RecordError
from aios_nb.hub.dht.keys import key_of, number
from aios_nb.hub.dht.tuning import Tuning
from aios_nb.records import (
    RECORD_LIMIT_BYTES,
    NodeRecord,
    Scope,
    Signed,
    check_time,
    may_be_told,
    parse,
    rank,
)

KEY_COST_BYTES = 512
"""What a record takes beside its own bytes."""
_SPARE = 64


class NodeRecords(IStorage):  # type: ignore[misc]
    """Bounded in keys and bytes; the key farthest from this node makes room.

    Whoever floods the store pushes out what others keep nearer, not what is looked for here.
    """

    def __init__(
        self,
        network: str,
        own_point: bytes,
        now_ms: Callable[[], int],
        tuning: Tuning,
        scope: Callable[[], Scope],
    ) -> None:
        self._network = network
        self._now_ms = now_ms
        self._tuning = tuning
        self._scope = scope
        self._own = number(own_point)
        self._kept: dict[bytes, tuple[int, Signed]] = {}
        self._far: list[tuple[int, bytes]] = []
        """A heap, the farthest first; it may still name keys that are gone."""
        self.size_bytes = 0

    def __len__(self) -> int:
        return len(self._kept)

    def offer(self, key: bytes, content: bytes) -> bool:
        """Whether this record or a newer one is kept now. A forged or foreign one is not."""
        known = self._kept.get(key)
        if known is not None and known[1].to_bytes() == content:
            signed = known[1]
            if not self._counts(signed):
                return False
        else:
            read = self.check(key, content)
            if read is None:
                return False
            signed = read
            if known is not None and rank(known[1]) >= rank(signed) and self._counts(known[1]):
                return True
        if known is None:
            heapq.heappush(self._far, (-(self._own ^ number(key)), key))
        self._forget(key)
        self._kept[key] = (self._now_ms(), signed)
        self.size_bytes += _cost(signed)
        while len(self._kept) > self._tuning.keys_max or self.size_bytes > self._tuning.bytes_max:
            self._forget(heapq.heappop(self._far)[1])
        return key in self._kept

    def check(self, key: bytes, content: bytes) -> Signed | None:
        """The record in ``content`` if it is genuine, of this network, good now and of this key."""
        if not isinstance(content, bytes) or len(content) > RECORD_LIMIT_BYTES:
            return None
        try:
            signed = parse(content)
        except RecordError:
            return None
        record = signed.record
        if not isinstance(record, NodeRecord) or key_of(record.node) != key:
            return None
        if not may_be_told(record.scope, self._scope()):
            return None
        return signed if self._counts(signed) else None

    def _counts(self, signed: Signed) -> bool:
        try:
            check_time(signed.record, self._now_ms())
        except RecordError:
            return False
        return signed.record.net == self._network

    def record(self, key: bytes) -> Signed | None:
        """What is kept under a key and still counts."""
        found = self._kept.get(key)
        if found is None:
            return None
        if not self._counts(found[1]):
            self._drop([key])
            return None
        return found[1]

    def expire(self) -> None:
        """Drop what no longer counts."""
        self._drop([key for key, (_, signed) in self._kept.items() if not self._counts(signed)])

    def _drop(self, keys: list[bytes]) -> None:
        for key in keys:
            self._forget(key)
        if len(self._far) > 2 * len(self._kept) + _SPARE:
            self._far = [(-(self._own ^ number(key)), key) for key in self._kept]
            heapq.heapify(self._far)

    def _forget(self, key: bytes) -> None:
        gone = self._kept.pop(key, None)
        if gone is not None:
            self.size_bytes -= _cost(gone[1])

    # The package's words for it ----------------------------------------------------------

    def __setitem__(self, key: bytes, value: bytes) -> None:
        """Keep a record; ``ValueError`` for what is none, so that no way in avoids the checks."""
        if not self.offer(key, value):
            raise ValueError("only a good node record is kept, under its own key")

    def __getitem__(self, key: bytes) -> bytes:
        found = self.record(key)
        if found is None:
            raise KeyError(key)
        return found.to_bytes()

    def get(self, key: bytes, default: bytes | None = None) -> bytes | None:
        found = self.record(key)
        return default if found is None else found.to_bytes()

    def iter_older_than(self, seconds_old: float) -> Iterator[tuple[bytes, bytes]]:
        before = self._now_ms() - int(seconds_old * 1000)
        old = [(key, signed) for key, (at, signed) in self._kept.items() if at <= before]
        return iter([(key, signed.to_bytes()) for key, signed in old])

    def __iter__(self) -> Iterator[tuple[bytes, bytes]]:
        return iter([(key, signed.to_bytes()) for key, (_, signed) in self._kept.items()])


def _cost(signed: Signed) -> int:
    return len(signed.payload) + len(signed.pk) + len(signed.sig) + KEY_COST_BYTES
