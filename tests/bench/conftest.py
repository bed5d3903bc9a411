"""A small stand-in for a node whose answers can be made wrong, and a line that cuts bytes apart."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable
from typing import Any

import pytest
from aiohttp import WSMsgType, web

from aios_nb.bench.spec import Target
from aios_nb.bench.tokens import chunk
from aios_nb.identity import Identity
from aios_nb.wire.peer import frames
from aios_nb.wire.peer.handshake import Responder

TOKEN = "let-me-in"
NODE = Identity.from_seed(b"desk" * 8)
NODE_ID = NODE.node_id
PIECE_BYTES = 100
"""Short: every reply on a peer link comes in pieces."""


class Desk:
    """Answers like a node; ``spoil`` changes a JSON-RPC message before it leaves."""

    def __init__(self) -> None:
        self.url = ""
        self.status = 200
        self.spoil: Callable[[dict[str, Any]], dict[str, Any]] = lambda message: message
        self.hold: asyncio.Event | None = None
        self.close_after: int | None = None
        self.drop_deltas = False
        self.conversations: list[str | None] = []
        self.answered = 0
        self.callers: list[str] = []
        self.controls: list[bytes] = []
        """Frames of peer links that are no requests."""

    def target(self, work: str, concurrency: int = 1, **more: Any) -> Target:
        return Target(
            url=self.url,
            work=work,  # type: ignore[arg-type]
            concurrency=concurrency,
            token=TOKEN,
            node_id=NODE_ID,
            seed="test",
            **more,
        )

    def messages(self, request: dict[str, Any]) -> list[dict[str, Any]]:
        """The notifications and the response that this request is owed."""
        params = request["params"]
        deltas: list[dict[str, Any]] = []
        if request["method"] == "bench.echo":
            result: dict[str, Any] = {"text": params["task"]}
        else:
            asked = params.get("envelope", {})
            given = params.get("conversation") or asked.get("conversation_id")
            self.conversations.append(given)
            text = asked["content"]["task"] if asked else params["text"]
            if request["method"] == "chat.stream" or params.get("stream"):
                count, salt = text.split()
                pieces = [chunk(salt, number) for number in range(int(count))]
                text = "".join(pieces)
                for number, piece in enumerate(pieces):
                    message_id = (asked or params)["message_id"]
                    delta = {"message_id": message_id, "reply_id": "r", "done": False}
                    delta |= {"offset": number * len(piece), "text": piece}
                    deltas.append({"jsonrpc": "2.0", "method": "chat.delta", "params": delta})
            fresh = f"c{len(self.conversations)}"
            result = {"conversation": given or fresh, "status": "done", "text": text}
            if asked:
                assert asked["recipient"]["id"].endswith(f"@{NODE_ID}")
                assert asked["sender"]["id"] == f"owner@{self.callers[-1]}"
                content = {"result": text, "status": "success"}
                result = {"message_type": "response", "content": content}
        if self.drop_deltas:
            deltas = deltas[1:]
        response = {"jsonrpc": "2.0", "id": request["id"], "result": result}
        return [*deltas, self.spoil(response)]

    async def rpc(self, request: web.Request) -> web.StreamResponse:
        assert request.headers["Authorization"] == f"Bearer {TOKEN}"
        if self.hold is not None:
            await self.hold.wait()
        self.answered += 1
        if self.close_after is not None and self.answered > self.close_after:
            assert request.transport is not None
            request.transport.close()
        if self.status != 200:
            return web.Response(status=self.status, text="no")
        messages = self.messages(await request.json())
        if request.headers.get("Accept") != "text/event-stream":
            return web.json_response(messages[-1])
        stream = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await stream.prepare(request)
        for message in messages:
            await stream.write(f"data: {json.dumps(message)}\n\n".encode())
        await stream.write_eof()
        return stream

    async def echo(self, request: web.Request) -> web.StreamResponse:
        return web.Response(status=self.status, body=await request.read())

    async def ws(self, request: web.Request) -> web.StreamResponse:
        if request.headers["Sec-WebSocket-Protocol"] == frames.SUBPROTOCOL:
            return await self.peer(request)
        socket = web.WebSocketResponse(protocols=("aios-rpc-1",))
        await socket.prepare(request)
        nonce = await socket.receive_json()
        assert len(nonce["nonce"]) == 43
        await socket.send_json({"node_id": NODE_ID, "port": 0, "sig": ""})
        token = await socket.receive_json()
        if token != {"token": TOKEN}:
            await socket.close(code=4401)
            return socket
        await socket.send_json({"ok": True})
        await socket.ping()
        async for frame in socket:
            assert frame.type is WSMsgType.TEXT
            self.answered += 1
            if self.close_after is not None and self.answered > self.close_after:
                await socket.close()
                break
            for message in self.messages(json.loads(frame.data)):
                await socket.send_json(message)
        return socket

    async def peer(self, request: web.Request) -> web.StreamResponse:
        socket = web.WebSocketResponse(protocols=(frames.SUBPROTOCOL,))
        await socket.prepare(request)
        side = Responder(NODE, "main")
        self.callers.append(side.read(await socket.receive_bytes()))
        await socket.send_bytes(side.second())
        session = side.finish(await socket.receive_bytes())
        seal, unseal = session.sealer.seal, session.opener.open
        mine = frames.Ready(credit=1 << 16, frame=1 << 16, message=1 << 20, streams=64)
        await socket.send_bytes(seal(frames.say(frames.READY, mine)))
        frames.read_ready(unseal(await socket.receive_bytes()))
        await socket.send_bytes(seal(frames.head(0, frames.PING) + b"are here"))
        async for sealed in socket:
            frame = unseal(sealed.data)
            number, kind = frames.split(frame)
            if kind != frames.MESSAGE:
                self.controls.append(frame)
                continue
            self.answered += 1
            if self.close_after is not None and self.answered > self.close_after:
                await socket.close()
                break
            for message in self.messages(json.loads(frame[frames.HEAD_BYTES :])):
                said = json.dumps(message).encode()
                for piece in in_pieces(number, said):
                    await socket.send_bytes(seal(piece))
        return socket


def in_pieces(number: int, message: bytes) -> list[bytes]:
    """The frames of a message on a peer link."""
    parts = [message[at : at + PIECE_BYTES] for at in range(0, len(message), PIECE_BYTES)]
    kinds = [frames.PIECE] * (len(parts) - 1) + [frames.MESSAGE]
    return [frames.head(number, kind) + part for kind, part in zip(kinds, parts, strict=True)]


@contextlib.asynccontextmanager
async def desk() -> AsyncIterator[Desk]:
    """A running stand-in."""
    made = Desk()
    app = web.Application()
    app.router.add_post("/rpc", made.rpc)
    app.router.add_post("/echo", made.echo)
    app.router.add_get("/ws", made.ws)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    made.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield made
    finally:
        await runner.cleanup()


class _Half(asyncio.Protocol):
    """One side of the line; passes on what it hears, in pieces of ``size`` bytes."""

    transport: asyncio.Transport

    def __init__(self, size: int) -> None:
        self._size = size
        self._waiting = bytearray()
        self._busy = False
        self.other: _Half | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self._waiting += data
        self.pass_on()

    def pass_on(self) -> None:
        self._busy = False
        if self._waiting and self.other is not None:
            piece, self._waiting = self._waiting[: self._size], self._waiting[self._size :]
            self.other.transport.write(bytes(piece))
            self._busy = True
            # One turn later, so that the other end has read this piece alone.
            asyncio.get_running_loop().call_soon(self.pass_on)

    def connection_lost(self, exc: Exception | None) -> None:
        if self.other is not None:
            self.other.transport.close()


@contextlib.asynccontextmanager
async def cut_apart(url: str) -> AsyncIterator[str]:
    """The same server behind a line that delivers its replies byte by byte."""
    loop = asyncio.get_running_loop()
    port = int(url.rpartition(":")[2])
    dials: set[asyncio.Task[None]] = set()

    class Front(_Half):
        def connection_made(self, transport: asyncio.BaseTransport) -> None:
            super().connection_made(transport)
            task = loop.create_task(self.dial())
            dials.add(task)
            task.add_done_callback(dials.discard)

        async def dial(self) -> None:
            _, back = await loop.create_connection(lambda: _Half(1), "127.0.0.1", port)
            self.other, back.other = back, self
            self.pass_on()

    server = await loop.create_server(lambda: Front(1 << 16), "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        server.close()


@pytest.fixture(name="desk")
def desk_fixture() -> Callable[[], contextlib.AbstractAsyncContextManager[Desk]]:
    return desk


@pytest.fixture(name="cut_apart")
def cut_apart_fixture() -> Callable[[str], contextlib.AbstractAsyncContextManager[str]]:
    return cut_apart


@pytest.fixture(name="recorded")
def recorded_fixture() -> Callable[[web.StreamResponse | Any, bytes], bytes]:
    """What a real aiohttp server writes for these request bytes, as it stands on the wire."""

    def record(handler: Any, request: bytes) -> bytes:
        async def run() -> bytes:
            app = web.Application()
            app.router.add_route("*", "/", handler)
            runner = web.AppRunner(app, access_log=None)
            await runner.setup()
            await web.TCPSite(runner, "127.0.0.1", 0).start()
            reader, writer = await asyncio.open_connection(*runner.addresses[0][:2])
            writer.write(request)
            found = await reader.read()
            writer.close()
            await writer.wait_closed()
            await runner.cleanup()
            return found

        return asyncio.run(run())

    return record
