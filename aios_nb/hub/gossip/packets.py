"""What gossip says on the wire: a packet is a msgpack array of small messages, at most 1200 bytes.

Who sent a packet is proven by what carried it; who made a presence or record, by its signature. All
else in here is hearsay and is treated so.
"""

from __future__ import annotations

import base64
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import Meta

from aios_nb.hub.presence import PRESENCE_LIMIT_BYTES
from aios_nb.records import RECORD_LIMIT_BYTES, Millis

PACKET_LIMIT_BYTES = 1200
_ARRAY_BYTES = 3
"""The head of a packet."""
_ITEMS_MAX = 128
_U32_MAX = 2**32 - 1

Raw20 = Annotated[bytes, Meta(min_length=20, max_length=20)]
"""A node id as it travels."""
Handle = Annotated[bytes, Meta(min_length=8, max_length=8)]
Version = Annotated[bytes, Meta(min_length=8, max_length=8)]
Sum = Annotated[bytes, Meta(min_length=8, max_length=8)]
Sums = Annotated[bytes, Meta(min_length=1024, max_length=1024)]
Count = Annotated[int, Meta(ge=0, le=_U32_MAX)]
Bucket = Annotated[int, Meta(ge=0, le=127)]
Life = tuple[Millis, Count]
"""Epoch and incarnation."""


class Ping(msgspec.Struct, frozen=True, array_like=True, tag=0):
    """Are you there? ``doubted``: the life of yours that I take for suspect or dead."""

    seq: Count
    doubted: Life | None = None


class Ack(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """I am there, or someone I was asked to probe is."""

    seq: Count
    doubted: Life | None = None


class Ask(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """Probe that node for me."""

    seq: Count
    target: Raw20
    doubted: Life | None = None


class Nack(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """It does not answer me either. It shows that at least we two are well."""

    seq: Count


class Suspect(msgspec.Struct, frozen=True, array_like=True, tag=4):
    """My own probes of that node, in that life, have failed since so long ago."""

    node: Raw20
    life: Life
    age_ms: Count


class Alive(msgspec.Struct, frozen=True, array_like=True, tag=5):
    """A node's signed word about itself, also its last one."""

    presence: Annotated[bytes, Meta(max_length=PRESENCE_LIMIT_BYTES)]


class Whole(msgspec.Struct, frozen=True, array_like=True, tag=6):
    """A record, with how many nodes passed it on whole before."""

    hops: Annotated[int, Meta(ge=0, le=15)]
    handle: Handle
    version: Version
    content: Annotated[bytes, Meta(max_length=RECORD_LIMIT_BYTES)]


Item = tuple[Handle, Version]


class Have(msgspec.Struct, frozen=True, array_like=True, tag=7):
    """Records I could send you."""

    items: Annotated[tuple[Item, ...], Meta(max_length=_ITEMS_MAX)]


class Want(msgspec.Struct, frozen=True, array_like=True, tag=8):
    """Send me these records."""

    handles: Annotated[tuple[Handle, ...], Meta(max_length=_ITEMS_MAX)]


class Roots(msgspec.Struct, frozen=True, array_like=True, tag=9):
    """Sums over all members and all records that we both may know, for you to compare."""

    members: Sum
    records: Sum


class MemberSums(msgspec.Struct, frozen=True, array_like=True, tag=10):
    """My members, bucket by bucket."""

    sums: Sums


class RecordSums(msgspec.Struct, frozen=True, array_like=True, tag=11):
    """My records, bucket by bucket."""

    sums: Sums


class Faces(msgspec.Struct, frozen=True, array_like=True, tag=12):
    """All members in this bucket that I hold for living, from one id to another."""

    bucket: Bucket
    after: Annotated[bytes, Meta(max_length=20)]
    upto: Annotated[bytes, Meta(max_length=20)]
    faces: Annotated[tuple[tuple[Raw20, Millis, Count], ...], Meta(max_length=_ITEMS_MAX)]


class Listing(msgspec.Struct, frozen=True, array_like=True, tag=13):
    """All records in this bucket that I have, from one handle to another."""

    bucket: Bucket
    after: Annotated[bytes, Meta(max_length=8)]
    upto: Annotated[bytes, Meta(max_length=8)]
    items: Annotated[tuple[Item, ...], Meta(max_length=_ITEMS_MAX)]


class Missing(msgspec.Struct, frozen=True, array_like=True, tag=14):
    """Send me what these nodes say of themselves."""

    nodes: Annotated[tuple[Raw20, ...], Meta(max_length=_ITEMS_MAX)]


Message: TypeAlias = (
    Ping
    | Ack
    | Ask
    | Nack
    | Suspect
    | Alive
    | Whole
    | Have
    | Want
    | Roots
    | MemberSums
    | RecordSums
    | Faces
    | Listing
    | Missing
)
Piece: TypeAlias = Message | msgspec.Raw
"""A message, or one already encoded: news is encoded once and sent many times."""
END: Literal[b"\xff"] = b"\xff"
"""Behind every id and handle's first byte of its bucket: up to the end."""

_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(list[Message])


def encode(message: Message) -> bytes:
    return _encoder.encode(message)


def pack(pieces: Sequence[Piece]) -> bytes:
    """One packet; the caller has seen to its size."""
    return _encoder.encode(pieces)


def packets(messages: Iterable[Message]) -> Iterator[bytes]:
    """As many packets as these messages need."""
    waiting: list[Piece] = []
    used = _ARRAY_BYTES
    for message in messages:
        content = encode(message)
        if waiting and used + len(content) > PACKET_LIMIT_BYTES:
            yield pack(waiting)
            waiting, used = [], _ARRAY_BYTES
        waiting.append(msgspec.Raw(content))
        used += len(content)
    if waiting:
        yield pack(waiting)


def still_there(packet: bytes) -> bytes | None:
    """The answer of a node that takes no other part in the gossip; None if nobody asks."""
    pings = [message for message in unpack(packet) or () if isinstance(message, Ping)]
    return pack([Ack(ping.seq) for ping in pings]) if pings else None


def unpack(packet: bytes) -> list[Message] | None:
    """The messages in a packet; None if it is none of ours."""
    if len(packet) > PACKET_LIMIT_BYTES:
        return None
    try:
        return _decoder.decode(packet)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None


@lru_cache(maxsize=1 << 14)
def raw_id(node_id: str) -> bytes:
    """A node id as it travels, in 20 bytes."""
    return base64.b32decode(node_id.upper())


@lru_cache(maxsize=1 << 14)
def text_id(raw: bytes) -> str:
    """A node id as it is written."""
    return base64.b32encode(raw).decode().lower()
