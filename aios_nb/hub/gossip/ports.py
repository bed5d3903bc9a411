"""What gossip needs of the records it spreads; the catalogue is that."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Protocol

from aios_nb.hub.catalogue.change import Offered
from aios_nb.records import Scope


class Records(Protocol):
    """Records by handle, 8 bytes for the key of one; a version is 8 bytes too."""

    def offer(self, content: bytes, over: Scope) -> Offered:
        """Take it in if it is genuine, newer than what is there, and known that far away."""

    def handle(self, key: str) -> bytes: ...
    def version(self, handle: bytes) -> bytes | None: ...
    def content(self, handle: bytes) -> bytes | None: ...

    def scope(self, handle: bytes) -> Scope | None:
        """To peers of this scope or a narrower one it may be told."""

    def wants(self, handle: bytes, version: bytes) -> bool:
        """Whether that version is worth sending here."""

    def digest(self, scope: Scope) -> bytes:
        """128 sums of 8 bytes over what a peer of this scope may be told."""

    def differing_buckets(self, digest: bytes, scope: Scope) -> list[int]: ...
    def listing(self, buckets: Iterable[int], scope: Scope) -> list[tuple[bytes, bytes]]: ...
