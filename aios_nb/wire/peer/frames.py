"""What is inside a sealed frame: a stream's number, the frame's type, and its payload. No I/O."""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import Annotated

import msgspec
from msgspec import Meta

from aios_nb.envelope import NAME
from aios_nb.wire.jsonrpc import NOT_JSON
from aios_nb.wire.peer.sealing import OVERHEAD_BYTES

SUBPROTOCOL = "aios-peer-1"
FRAME_BYTES = (1 << 16) - 1
"""The longest sealed frame: what a websocket counts in two bytes."""
FRAME_BYTES_MIN = 1 << 10
HEAD_BYTES = 5
CREDIT_BYTES = 1 << 18
"""What may be sent on a stream before its reader has taken any of it."""
CREDIT_BYTES_MIN = 1 << 12
MESSAGE_BYTES_MIN = 1 << 10
PIECED_MAX = 4
"""Messages that may be under way in pieces at one time, in each direction of a link."""
NUMBER_MAX = (1 << 32) - 1
LINK = 0
"""The number of the stream that is the link itself."""


class Kind(IntEnum):
    """The types of a frame; others are ignored."""

    MESSAGE = 0
    """The last or only piece of a message."""
    PIECE = 1
    """More of this message follows on this stream."""
    CREDIT = 2
    """So many more bytes may be sent on this stream."""
    END = 3
    """This stream is given up."""
    READY = 4
    PING = 5
    PONG = 6
    BYE = 7


MESSAGE, PIECE, CREDIT, END = (
    int(kind) for kind in (Kind.MESSAGE, Kind.PIECE, Kind.CREDIT, Kind.END)
)
READY, PING, PONG, BYE = (int(kind) for kind in (Kind.READY, Kind.PING, Kind.PONG, Kind.BYE))
"""Plain numbers: a member of an enum costs more to compare."""

_NAME_OR_NONE = rf"\A(?:{NAME.pattern})?\Z"
"""It is shown to people: nothing else may be in it."""
_head = struct.Struct(">IB")
_credit = struct.Struct(">IBI")
head = _head.pack
read_head = _head.unpack_from


class Violation(Exception):
    """The other side broke the rules of the link, which ends."""


class Ready(msgspec.Struct, frozen=True):
    """What a node says first on a link: how much it takes, and who it is."""

    credit: Annotated[int, Meta(ge=CREDIT_BYTES_MIN, le=NUMBER_MAX)]
    frame: Annotated[int, Meta(ge=FRAME_BYTES_MIN, le=NUMBER_MAX)]
    message: Annotated[int, Meta(ge=MESSAGE_BYTES_MIN, le=NUMBER_MAX)]
    streams: Annotated[int, Meta(ge=1, le=NUMBER_MAX)]
    epoch: Annotated[int, Meta(ge=0, le=(1 << 53) - 1)] = 0
    name: Annotated[str, Meta(pattern=_NAME_OR_NONE)] = ""
    record: Annotated[str, Meta(max_length=2000)] | None = None
    """Its signed node record, base64url."""

    @property
    def piece_bytes(self) -> int:
        """How much of a message fits into one frame."""
        return min(self.frame, FRAME_BYTES) - OVERHEAD_BYTES - HEAD_BYTES


class Bye(msgspec.Struct, frozen=True):
    why: Annotated[str, Meta(max_length=32)] = ""


_ready = msgspec.json.Decoder(Ready).decode
_bye = msgspec.json.Decoder(Bye).decode


def credit(number: int, amount: int) -> bytes:
    """The frame that lets the other side send more."""
    return _credit.pack(number, CREDIT, amount)


def read_credit(frame: bytes) -> int:
    if len(frame) != _credit.size:
        raise Violation("a credit is four bytes")
    amount: int = _credit.unpack(frame)[2]
    return amount


def say(kind: int, what: Ready | Bye) -> bytes:
    """A frame about the link itself."""
    return head(LINK, kind) + msgspec.json.encode(what)


def read_ready(frame: bytes) -> Ready:
    number, kind = split(frame)
    if number != LINK or kind != READY:
        raise Violation("a link begins with ready")
    try:
        return _ready(frame[HEAD_BYTES:])
    except NOT_JSON as problem:
        raise Violation(f"not a ready: {problem}") from None


def read_bye(frame: bytes) -> Bye:
    try:
        return _bye(frame[HEAD_BYTES:])
    except NOT_JSON as problem:
        raise Violation(f"not a bye: {problem}") from None


def split(frame: bytes) -> tuple[int, int]:
    """The stream's number and the type of a frame."""
    if len(frame) < HEAD_BYTES:
        raise Violation("too short for a frame")
    return read_head(frame)
