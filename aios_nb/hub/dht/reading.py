"""What several holders say about one key, and when that is enough to believe the newest of it."""

from __future__ import annotations

from collections.abc import Callable

from aios_nb.hub.dht.storage import NodeRecords
from aios_nb.records import Signed, rank


class Reading:
    """The newest good record so far. What does not check out counts as no answer at all."""

    def __init__(self, key: bytes, storage: NodeRecords, quorum: int) -> None:
        self._key = key
        self._storage = storage
        self._quorum = quorum
        self.best: Signed | None = None
        self.holders = 0
        """Nodes that have the newest record."""
        self.forged = 0
        here = storage.record(key)
        if here is not None:
            self._take(here)

    def heard(self, content: bytes) -> None:
        """A node says that it keeps this."""
        if self.best is not None and content == self.best.to_bytes():
            self.holders += 1
            return
        signed = self._storage.check(self._key, content)
        if signed is None:
            self.forged += 1
        else:
            self._take(signed)

    def _take(self, signed: Signed) -> None:
        if self.best is None or rank(signed) > rank(self.best):
            self.best, self.holders = signed, 1

    def is_enough(self, crowded: Callable[[], bool]) -> bool:
        """Whether to stop asking. Where somebody crowds the key, everyone near it is heard."""
        return self.holders >= self._quorum and not crowded()
