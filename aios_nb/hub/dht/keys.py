"""Points of the key space: of nodes, and of what is kept about them."""

from __future__ import annotations

import base64
import hashlib
from functools import lru_cache

ID_BYTES = 20
ID_BITS = 8 * ID_BYTES
SPACE = 1 << ID_BITS
_IDS_REMEMBERED = 16_384


@lru_cache(_IDS_REMEMBERED)
def point_of_node(node_id: str) -> bytes:
    """The 20 bytes that a node id spells; ``ValueError`` for anything else."""
    point = base64.b32decode(node_id.upper())
    if len(point) != ID_BYTES:
        raise ValueError(f"{node_id[:40]!r} is no node id")
    return point


def point_of_key(public_key: bytes) -> bytes:
    """The same 20 bytes from the node's public key."""
    return hashlib.sha256(public_key).digest()[:ID_BYTES]


def key_of(node_id: str) -> bytes:
    """Where the record of this node is kept: far from the node itself, and not of its choosing."""
    return hashlib.sha256(b"node:" + node_id.encode()).digest()[:ID_BYTES]


def number(point: bytes) -> int:
    return int.from_bytes(point, "big")
