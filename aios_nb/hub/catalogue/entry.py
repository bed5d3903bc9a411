"""One record on the shelf: its bytes as they came, and little beside them.

Every node holds 20,000 of them, so they are kept as bytes and read again when someone asks.
"""

from __future__ import annotations

import hashlib

import msgspec

from aios_nb.records import NodeRecord, Scope, Signed, Unproven, is_withdrawal, reread

HANDLE_BYTES = 8
VERSION_BYTES = 8


def handle_of(key: str) -> bytes:
    """A record's key, short: how nodes speak of a record without sending it."""
    return hashlib.blake2b(key.encode(), digest_size=HANDLE_BYTES).digest()


def version_of(payload: bytes) -> bytes:
    """Which of all records with the same key it is; epoch and seq are in the payload."""
    return hashlib.blake2b(payload, digest_size=VERSION_BYTES).digest()


class Entry(msgspec.Struct, gc=False, eq=False):
    """A proven record, with what is asked so often that reading the bytes would be too slow."""

    handle: bytes
    version: bytes
    content: bytes
    name: str
    """The agent's; empty for the record of a node."""
    seq: int
    exp: int
    withdrawn: bool
    scope: Scope
    """To whom it may be told: to peers of this scope or a narrower one."""

    @property
    def of_node(self) -> bool:
        return not self.name

    @property
    def worth(self) -> tuple[bool, int]:
        """Of one node's agents the least go first, and everywhere the same ones.

        A withdrawal stays before what is offered: without it, what it ended would come back.
        """
        if self.withdrawn:
            return True, self.seq
        return False, -int.from_bytes(self.handle, "big")

    def signed(self) -> Signed:
        return reread(self.content, "node" if self.of_node else "agent")


def entry_of(claim: Unproven | Signed, scope: Scope) -> Entry:
    """How a record is kept; ``scope`` is that of an agent's node, a node's record has its own."""
    record = claim.record
    of_node = isinstance(record, NodeRecord)
    return Entry(
        handle_of(record.key),
        version_of(claim.payload),
        claim.pk + claim.sig + claim.payload,
        "" if of_node else record.name,
        record.seq,
        record.exp,
        is_withdrawal(record),
        record.scope if isinstance(record, NodeRecord) else scope,
    )
