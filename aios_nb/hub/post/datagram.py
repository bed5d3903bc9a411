"""What a datagram looks like: ``kind(1) || network(4) || sender(20) || token(8) || body``.

The mark of the network stands in each one, so that two networks on one machine or by one shared
address never mix. No I/O.
"""

from __future__ import annotations

import base64
import hashlib
from enum import IntEnum
from functools import lru_cache
from typing import Any, TypeAlias

Source: TypeAlias = tuple[Any, ...]
"""Where a datagram came from, as the system says it: host, port, and two numbers more for IPv6."""

DATAGRAM_LIMIT_BYTES = 1400
"""One packet on every usual path: nothing is put together from pieces."""
MARK_BYTES = 4
SENDER_BYTES = 20
TOKEN_BYTES = 8
SENDER_AT = 1 + MARK_BYTES
TOKEN_AT = SENDER_AT + SENDER_BYTES
HEAD_BYTES = TOKEN_AT + TOKEN_BYTES
BODY_LIMIT_BYTES = DATAGRAM_LIMIT_BYTES - HEAD_BYTES
_IDS_REMEMBERED = 16_384


class Kind(IntEnum):
    """What the body is, and what stands in the place of the token."""

    HELLO = 0
    """The asker's presence; a nonce."""
    WELCOME = 1
    """A token for the asker, then the answerer's presence; the asker's nonce."""
    GOSSIP = 2
    DHT = 3
    """What is carried; the token that the receiver gave."""
    AGAIN = 4
    """That token is not good here, greet anew; the token in question. The body is empty, or the
    later word of that very node, for one who proved an earlier one."""
    PROOF = 5
    """A token for the answerer, then the asker's presence; the token of the welcome."""


CARRIED = frozenset({Kind.GOSSIP, Kind.DHT})


def mark_of(network: str) -> bytes:
    """The four bytes by which datagrams of a network are known."""
    return hashlib.sha256(b"aios-net\0" + network.encode()).digest()[:MARK_BYTES]


def head_of(kind: Kind, mark: bytes, sender: bytes, token: bytes) -> bytes:
    """All of a datagram but its body."""
    return bytes((kind,)) + mark + sender + token


@lru_cache(_IDS_REMEMBERED)
def raw_of(node_id: str) -> bytes:
    """The 20 bytes of a node id."""
    return base64.b32decode(node_id.upper())


def text_of(raw: bytes) -> str:
    """The node id of these 20 bytes."""
    return base64.b32encode(raw).decode().lower()
