"""A client's end of a WebSocket: the upgrade, then messages; few writes for what one read frees."""

from __future__ import annotations

import asyncio
import base64
import secrets
from typing import cast

from aios_nb.bench import frames
from aios_nb.bench.calls import quoted
from aios_nb.bench.http1 import BadReply
from aios_nb.bench.spec import Broken

AT_ONCE_MIN = 4
AT_ONCE_SHARE = 4
"""What one read frees is sent in so many writes: in one, client and server would take turns."""
_MESSAGES = (frames.BINARY, frames.TEXT)


class Upgraded(asyncio.Protocol):
    """Subclasses say what a message means (``got``) and what an end means (``fail``)."""

    transport: asyncio.Transport

    def __init__(self, in_flight: int = 1) -> None:
        self._at_once = max(AT_ONCE_MIN, in_flight // AT_ONCE_SHARE)
        self._frames = frames.FrameParser(self._on_frame)
        self._upgraded = False
        self._greeting = b""
        self._inbox: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._out: list[bytes] = []
        self._reading = False
        self.introduced = False
        """From now on messages go to ``got``; before, ``heard`` gives them one by one."""

    def got(self, payload: bytes) -> None:
        """Take a message that came after the introduction."""
        raise NotImplementedError

    def fail(self, problem: str) -> None:
        """The connection is of no more use."""
        raise NotImplementedError

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    async def upgrade(self, host: str, protocol: str) -> None:
        """Turn the HTTP connection into a WebSocket that speaks this protocol."""
        key = base64.b64encode(secrets.token_bytes(16))
        self.transport.write(
            f"GET /ws HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: {protocol}\r\n"
            f"Sec-WebSocket-Key: {key.decode()}\r\n\r\n".encode()
        )
        head = await self.heard("the upgrade")
        if (
            not head.startswith(b"HTTP/1.1 101")
            or frames.accept_for(key) not in head
            or protocol.encode() not in head
        ):
            raise Broken(f"the upgrade was refused: {quoted(head)}")

    async def heard(self, what: str) -> bytes:
        """The next message of the introduction."""
        found = await self._inbox.get()
        if found is None:
            raise Broken(f"the connection was closed during {what}")
        return found

    def put(self, frame: bytes) -> None:
        """Send now; or, while replies are being read, together with the others they free."""
        if not self._reading:
            self.transport.write(frame)
            return
        self._out.append(frame)
        if len(self._out) >= self._at_once:
            self._flush()

    def data_received(self, data: bytes) -> None:
        if not self._upgraded:
            self._greeting += data
            head, found, data = self._greeting.partition(b"\r\n\r\n")
            if not found:
                return
            self._upgraded = True
            self._inbox.put_nowait(head)
        self._reading = True
        try:
            self._frames.feed(data)
        except BadReply as error:
            self.fail(str(error))
        finally:
            self._reading = False
        self._flush()

    def _flush(self) -> None:
        if self._out and not self.transport.is_closing():
            self.transport.write(b"".join(self._out))
        self._out.clear()

    def _on_frame(self, opcode: int, payload: bytes) -> None:
        if opcode in _MESSAGES:
            if self.introduced:
                self.got(payload)
            else:
                self._inbox.put_nowait(payload)
        elif opcode == frames.PING:
            self.transport.write(frames.frame(payload, frames.PONG))
        elif opcode == frames.CLOSE:
            self._over(f"the server closed the socket: {quoted(payload)}")

    def connection_lost(self, exc: Exception | None) -> None:
        self._over(f"the socket was closed ({exc or 'by the server'})")

    def _over(self, problem: str) -> None:
        self._inbox.put_nowait(None)
        self.fail(problem)
