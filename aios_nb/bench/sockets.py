"""Load over a WebSocket: one connection that all slots share."""

from __future__ import annotations

import asyncio
import base64
import secrets
from typing import Any, cast

import msgspec

from aios_nb.bench import frames
from aios_nb.bench.calls import ChatStream, Rpc, decode, quoted
from aios_nb.bench.http1 import BadReply
from aios_nb.bench.session import CONNECT_WAIT_S, Session
from aios_nb.bench.spec import Broken, Target

PROTOCOL = "aios-rpc-1"


class WsSession(Session):
    """One socket with ``concurrency`` calls in flight, told apart by their ids."""

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        if not isinstance(self.call, Rpc):
            raise Broken(f"{target.work} does not go over a WebSocket")
        self.rpc: Rpc = self.call
        self._socket: _Socket | None = None

    async def open(self) -> None:
        if self._socket is not None and not self._socket.transport.is_closing():
            return
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(CONNECT_WAIT_S):
            _, socket = await loop.create_connection(lambda: _Socket(self), self.host, self.port)
            self._socket = socket
            await socket.introduce(self.target)

    def send(self, slot: int) -> None:
        if self._socket is None:
            raise Broken("sending before the connection is open")
        self._socket.put(slot, self.rpc.request(slot))

    def close(self) -> None:
        if self._socket is not None:
            self._socket.transport.close()


class _Socket(asyncio.Protocol):
    transport: asyncio.Transport

    def __init__(self, session: WsSession) -> None:
        self._session = session
        self._frames = frames.FrameParser(self._on_message)
        self._upgraded = False
        self._greeting = b""
        self._inbox: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._proven = False
        self._busy: set[int] = set()
        self._out: list[bytes] = []
        self._reading = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    async def introduce(self, target: Target) -> None:
        """Upgrade, hear the node's hello, give the token."""
        key = base64.b64encode(secrets.token_bytes(16))
        host = f"{self._session.host}:{self._session.port}"
        self.transport.write(
            f"GET /ws HTTP/1.1\r\nHost: {host}\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
            f"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Protocol: {PROTOCOL}\r\n"
            f"Sec-WebSocket-Key: {key.decode()}\r\n\r\n".encode()
        )
        head = await self._next("the upgrade")
        if (
            not head.startswith(b"HTTP/1.1 101")
            or frames.accept_for(key) not in head
            or PROTOCOL.encode() not in head
        ):
            raise Broken(f"the upgrade was refused: {quoted(head)}")
        nonce = base64.urlsafe_b64encode(secrets.token_bytes(32)).rstrip(b"=").decode()
        self._say({"nonce": nonce})
        hello = msgspec.json.decode(await self._next("the hello"))
        if target.node_id not in (None, hello.get("node_id")):
            raise Broken("another node answered the hello")
        self._say({"token": target.token})
        welcome = msgspec.json.decode(await self._next("the welcome"))
        if welcome.get("ok") is not True:
            raise Broken(f"the token was not taken: {welcome}")
        self._proven = True

    def _say(self, message: dict[str, Any]) -> None:
        self.transport.write(frames.frame(msgspec.json.encode(message)))

    async def _next(self, what: str) -> bytes:
        found = await self._inbox.get()
        if found is None:
            raise Broken(f"the connection was closed during {what}")
        return found

    def put(self, slot: int, body: bytes) -> None:
        """Send now; or, while replies are being read, together with the others they free."""
        self._busy.add(slot)
        if self._reading:
            self._out.append(frames.frame(body))
        else:
            self.transport.write(frames.frame(body))

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
            self._fail(str(error))
        finally:
            self._reading = False
        if self._out and not self.transport.is_closing():
            self.transport.write(b"".join(self._out))
        self._out.clear()

    def _on_message(self, opcode: int, payload: bytes) -> None:
        if opcode == frames.PING:
            self.transport.write(frames.frame(payload, frames.PONG))
        elif opcode == frames.CLOSE:
            self._fail(f"the server closed the socket: {quoted(payload)}")
        elif opcode != frames.PONG:
            if self._proven:
                self._on_rpc(payload)
            else:
                self._inbox.put_nowait(payload)

    def _on_rpc(self, payload: bytes) -> None:
        session = self._session
        incoming = decode(payload)
        slot = session.rpc.slot_of(incoming) if incoming is not None else None
        if incoming is None or slot is None or slot not in self._busy:
            self._fail(f"a message that belongs to no call: {quoted(payload)}")
            return
        rpc = session.rpc
        if isinstance(rpc, ChatStream):
            if rpc.take(slot, incoming):
                session.began(slot)
            if incoming.method is not None:
                return
            problem = rpc.end(slot)
        else:
            problem = rpc.answer(slot, incoming)
        self._busy.discard(slot)
        session.finished(slot, problem)

    def connection_lost(self, exc: Exception | None) -> None:
        self._inbox.put_nowait(None)
        self._fail(f"the socket was closed ({exc or 'by the server'})")

    def _fail(self, problem: str) -> None:
        self.transport.close()
        busy, self._busy = self._busy, set()
        for slot in busy:
            self._session.lost(slot, problem)
