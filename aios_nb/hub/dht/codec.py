"""What nodes of the DHT say to each other: five messages, each one datagram.

A type, a length and a nesting that are not these do not get past ``read``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, TypeAlias

import msgspec
from msgspec import Meta

from aios_nb.hub.dht.keys import ID_BYTES
from aios_nb.hub.presence import PRESENCE_LIMIT_BYTES
from aios_nb.records import RECORD_LIMIT_BYTES

MESSAGE_LIMIT_BYTES = 1300
"""One datagram, whatever is in it: nothing is cut up on its way."""
TOKEN_BYTES = 8
CONTACTS_MAX = 16
NUMBER_BITS = 63

Number = Annotated[int, Meta(ge=0)]
Point = Annotated[bytes, Meta(min_length=ID_BYTES, max_length=ID_BYTES)]
WriteToken = Annotated[bytes, Meta(min_length=TOKEN_BYTES, max_length=TOKEN_BYTES)]
Distance = Annotated[bytes, Meta(max_length=ID_BYTES)]
Content = Annotated[bytes, Meta(max_length=RECORD_LIMIT_BYTES)]
Statement = Annotated[bytes, Meta(max_length=PRESENCE_LIMIT_BYTES)]


class Find(msgspec.Struct, frozen=True, array_like=True, tag=0):
    """A wish to know who is nearest to ``target``, but farther than ``beyond``."""

    number: Number
    target: Point
    beyond: Distance


class Get(msgspec.Struct, frozen=True, array_like=True, tag=1):
    """The same, and what is kept under it; that is told if nothing is left out."""

    number: Number
    target: Point
    beyond: Distance


class Put(msgspec.Struct, frozen=True, array_like=True, tag=2):
    """A wish to have this kept. ``token`` came with the answer about the same key."""

    number: Number
    target: Point
    token: WriteToken
    record: Content


class Found(msgspec.Struct, frozen=True, array_like=True, tag=3):
    """The answer to Find and Get: contacts, the nearest first, as many as there is room for."""

    number: Number
    token: WriteToken
    more: bool
    record: Content
    contacts: Annotated[list[Statement], Meta(max_length=CONTACTS_MAX)]


class Kept(msgspec.Struct, frozen=True, array_like=True, tag=4):
    """The answer to Put: whether this or a newer record is kept."""

    number: Number
    kept: bool


Question: TypeAlias = Find | Get | Put
Answer: TypeAlias = Found | Kept

_encoder = msgspec.msgpack.Encoder()
_decoder: msgspec.msgpack.Decoder[Question | Answer] = msgspec.msgpack.Decoder(Question | Answer)
_FOUND_BYTES = 48
"""More than all of Found but record and contacts."""
_HEAD_BYTES = 3


def write(message: Question | Answer) -> bytes:
    return _encoder.encode(message)


def read(body: bytes) -> Question | Answer:
    """The message; ``ValueError`` for anything that is none."""
    if len(body) > MESSAGE_LIMIT_BYTES:
        raise ValueError("too long for a message")
    try:
        return _decoder.decode(body)
    except (msgspec.DecodeError, RecursionError) as error:
        raise ValueError("not a message") from error


def page(contacts: Iterable[bytes], record: bytes) -> tuple[list[bytes], bool]:
    """The first of these contacts that fit into one answer; whether some did not."""
    room = MESSAGE_LIMIT_BYTES - _FOUND_BYTES - len(record)
    fitting: list[bytes] = []
    for content in contacts:
        room -= len(content) + _HEAD_BYTES
        if room < 0:
            return fitting, True
        fitting.append(content)
    return fitting, False
