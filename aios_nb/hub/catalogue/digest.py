"""What a node holds, in a kilobyte: two that hold the same have the same digest.

128 buckets by the first bits of the handle, each the XOR of its records' versions, kept for each
scope of peer that might ask: to a peer in the wide world we tell less than to one beside us.
"""

from __future__ import annotations

import struct

from aios_nb.errors import UsageError
from aios_nb.records import Scope, may_be_told

BUCKETS = 128
DIGEST_BYTES = BUCKETS * 8
_SHIFT = 1  # bits of the first byte that do not choose the bucket
_SUMS = struct.Struct(f">{BUCKETS}Q")


def bucket_of(handle: bytes) -> int:
    """The bucket of a record; in the order of handles, so that pages can go bucket by bucket."""
    return handle[0] >> _SHIFT


class Digest:
    """The sums, kept up to date with each record that comes or goes."""

    def __init__(self) -> None:
        self._sums = {scope: [0] * BUCKETS for scope in Scope}

    def toggle(self, handle: bytes, version: bytes, about: Scope) -> None:
        """The record comes in, or goes out: with XOR it is the same."""
        bucket, value = bucket_of(handle), int.from_bytes(version, "big")
        for peer, sums in self._sums.items():
            if may_be_told(about, peer):
                sums[bucket] ^= value

    def to_bytes(self, peer: Scope) -> bytes:
        return _SUMS.pack(*self._sums[peer])

    def differing(self, theirs: bytes, peer: Scope) -> list[int]:
        """The buckets in which the other side's digest is not ours."""
        if len(theirs) != DIGEST_BYTES:
            raise UsageError(f"a digest has {DIGEST_BYTES} bytes, not {len(theirs)}")
        pairs = zip(self._sums[peer], _SUMS.unpack(theirs), strict=True)
        return [bucket for bucket, (mine, other) in enumerate(pairs) if mine != other]
