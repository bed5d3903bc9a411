"""A program that speaks to a node by raw bytes, and keeps no rule that it was not told to keep."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import os
import struct
from collections.abc import Sequence
from typing import Any, Self

import msgspec

from aios_nb.identity import Identity
from aios_nb.wire.peer.frames import (
    FRAME_BYTES,
    HEAD_BYTES,
    MESSAGE,
    READY,
    SUBPROTOCOL,
    Ready,
    head,
    say,
)
from aios_nb.wire.peer.handshake import Initiator, Session

CONTINUED, TEXT, BINARY, CLOSE, PING, PONG = 0, 1, 2, 8, 9, 10
FINAL, COMPRESSED = 0x80, 0x40
READY_NOW = Ready(credit=1 << 18, frame=FRAME_BYTES, message=1 << 22, streams=1000, epoch=1)


def ws_frame(
    payload: bytes, kind: int = BINARY, *, first: int | None = None, masked: bool = True
) -> bytes:
    """One websocket frame, right or wrong."""
    start = bytes((FINAL | kind if first is None else first,))
    bit = 0x80 if masked else 0
    size = len(payload)
    if size < 126:
        start += bytes((bit | size,))
    elif size < 1 << 16:
        start += bytes((bit | 126,)) + struct.pack(">H", size)
    else:
        start += bytes((bit | 127,)) + struct.pack(">Q", size)
    if not masked:
        return start + payload
    mask = os.urandom(4)
    long = mask * (size // 4 + 1)
    masked_ = (int.from_bytes(payload, "big") ^ int.from_bytes(long[:size], "big")).to_bytes(
        size, "big"
    )
    return start + mask + masked_


def request(method: str = "test.echo", id_: Any = 1, **params: Any) -> bytes:
    body = {"jsonrpc": "2.0", "method": method, "params": params}
    return msgspec.json.encode(body if id_ is None else {**body, "id": id_})


class HungUp(Exception):
    """The node closed the connection."""


class Attacker:
    """``async with Attacker(port) as attacker``: a socket that was upgraded, and nothing more."""

    def __init__(self, port: int, identity: Identity | None = None) -> None:
        self.port = port
        self.identity = identity or Identity.generate()
        self.session: Session | None = None
        self.sent = b""
        """Everything after the upgrade, as it went over the wire."""
        self.got: list[bytes] = []
        """The frames that were read, as they came."""

    async def __aenter__(self) -> Self:
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        self.writer.write(
            b"GET /ws HTTP/1.1\r\nHost: 127.0.0.1:%d\r\nUpgrade: websocket\r\n"
            b"Connection: Upgrade\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: %b\r\n"
            b"Sec-WebSocket-Extensions: permessage-deflate\r\n"
            b"Sec-WebSocket-Protocol: %b\r\n\r\n"
            % (self.port, base64.b64encode(os.urandom(16)), SUBPROTOCOL.encode())
        )
        answer = await self.reader.readuntil(b"\r\n\r\n")
        assert b" 101 " in answer.split(b"\r\n")[0], answer
        assert b"permessage" not in answer
        return self

    async def __aexit__(self, *_: object) -> None:
        self.writer.transport.abort()
        with contextlib.suppress(OSError):
            await self.writer.wait_closed()

    # Bytes --------------------------------------------------------------------------------

    def raw(self, data: bytes) -> None:
        self.sent += data
        self.writer.write(data)

    async def pieces(self, data: bytes) -> None:
        """A byte at a time, each in a packet of its own."""
        for byte in data:
            self.raw(bytes((byte,)))
            await self.writer.drain()
            await asyncio.sleep(0)

    async def read(self) -> bytes:
        """The payload of the next binary frame. Raises ``HungUp``."""
        while True:
            kind, payload = await self.any()
            if kind == CLOSE:
                raise HungUp
            if kind == BINARY:
                self.got.append(payload)
                return payload

    async def any(self) -> tuple[int, bytes]:
        """The next websocket frame. Raises ``HungUp``."""
        try:
            first, size = await self.reader.readexactly(2)
            if size == 126:
                size = int.from_bytes(await self.reader.readexactly(2), "big")
            return first & 0xF, await self.reader.readexactly(size)
        except (asyncio.IncompleteReadError, OSError):
            raise HungUp from None

    async def hung_up(self) -> list[bytes]:
        """The binary frames that still came, when the node has closed the connection."""
        seen = []
        try:
            while True:
                seen.append(await self.read())
        except HungUp:
            return seen

    # The link -----------------------------------------------------------------------------

    async def prove(self) -> Self:
        """The handshake, until the node has said ready."""
        initiator = Initiator(self.identity, "main")
        self.raw(ws_frame(initiator.first()))
        m3, self.session = initiator.third(await self.read())
        self.raw(ws_frame(m3))
        assert self.opened(await self.read())[:2] == (0, READY)
        return self

    async def link(self, ready: Ready = READY_NOW) -> Self:
        await self.prove()
        self.say(say(READY, ready))
        return self

    def seal(self, frame: bytes) -> bytes:
        assert self.session is not None
        return self.session.sealer.seal(frame)

    def say(self, *frames: bytes) -> None:
        self.raw(b"".join(ws_frame(self.seal(frame)) for frame in frames))

    def ask(self, number: int, body: bytes | None = None) -> None:
        self.say(head(number, MESSAGE) + (request() if body is None else body))

    def opened(self, sealed: bytes) -> tuple[int, int, bytes]:
        assert self.session is not None
        frame = self.session.opener.open(sealed)
        number, kind = struct.unpack_from(">IB", frame)
        return number, kind, frame[HEAD_BYTES:]

    async def hear(self) -> tuple[int, int, bytes]:
        """The next frame of the link: stream, type, payload."""
        return self.opened(await self.read())

    async def answer(self, number: int) -> dict[str, Any]:
        """What comes back on a stream, if it is short. Others are passed over."""
        while True:
            stream, kind, payload = await self.hear()
            if (stream, kind) == (number, MESSAGE):
                found: dict[str, Any] = msgspec.json.decode(payload)
                return found

    async def answers(self, numbers: Sequence[int]) -> dict[int, dict[str, Any]]:
        found: dict[int, dict[str, Any]] = {}
        while len(found) < len(numbers):
            stream, kind, payload = await self.hear()
            if kind == MESSAGE and stream in numbers:
                found[stream] = msgspec.json.decode(payload)
        return found
