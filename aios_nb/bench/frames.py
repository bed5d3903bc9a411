"""The client's side of WebSocket (RFC 6455) on bytes. No I/O, no extensions."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable

from aios_nb.bench.http1 import BadReply

TEXT, BINARY, CLOSE, PING, PONG = 0x1, 0x2, 0x8, 0x9, 0xA
_CONTINUE = 0x0
_GUID = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
_NO_MASK = b"\0\0\0\0"


def accept_for(key: bytes) -> bytes:
    """What a server must answer to this ``Sec-WebSocket-Key``."""
    return base64.b64encode(hashlib.sha1(key + _GUID).digest())  # noqa: S324 (the RFC's choice)


def frame(payload: bytes, opcode: int = TEXT) -> bytes:
    """One whole client frame.

    The mask key is zero: the frame is well formed and the server unmasks as always, while the
    generator saves a pass over the bytes.
    """
    size = len(payload)
    if size < 126:
        return bytes((0x80 | opcode, 0x80 | size)) + _NO_MASK + payload
    if size < 1 << 16:
        return bytes((0x80 | opcode, 0xFE)) + size.to_bytes(2, "big") + _NO_MASK + payload
    return bytes((0x80 | opcode, 0xFF)) + size.to_bytes(8, "big") + _NO_MASK + payload


class FrameParser:
    """Calls ``on_message(opcode, payload)`` for each whole message and control frame."""

    __slots__ = ("_buffer", "_on_message", "_opcode", "_parts")

    def __init__(self, on_message: Callable[[int, bytes], None]) -> None:
        self._on_message = on_message
        self._buffer = b""
        self._parts: list[bytes] = []
        self._opcode = 0

    def feed(self, data: bytes) -> None:
        """Take bytes as they came; messages completed by them are reported before this returns."""
        buffer = self._buffer + data if self._buffer else data
        have = len(buffer)
        at = 0
        while have - at >= 2:
            first, size = buffer[at], buffer[at + 1]
            body = at + 2
            if first & 0x70 or size & 0x80:
                raise BadReply("a server frame that is masked or uses extensions")
            if size == 126:
                body += 2
                if have < body:
                    break
                size = int.from_bytes(buffer[at + 2 : body], "big")
            elif size == 127:
                body += 8
                if have < body:
                    break
                size = int.from_bytes(buffer[at + 2 : body], "big")
            end = body + size
            if have < end:
                break
            at = end
            self._take(first, buffer[body:end])
        self._buffer = buffer[at:] if at else buffer

    def _take(self, first: int, payload: bytes) -> None:
        opcode = first & 0x0F
        final = bool(first & 0x80)
        if opcode >= CLOSE or (final and opcode and not self._parts):
            self._on_message(opcode, payload)
            return
        if bool(self._parts) == bool(opcode):
            raise BadReply("a message begun inside another, or continued from nothing")
        self._opcode = opcode or self._opcode
        self._parts.append(payload)
        if final:
            whole = b"".join(self._parts)
            self._parts = []
            self._on_message(self._opcode, whole)
