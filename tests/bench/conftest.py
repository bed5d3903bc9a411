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

TOKEN = "let-me-in"
NODE_ID = "a" * 32


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

    def target(self, work: str, concurrency: int = 1, **more: Any) -> Target:
        return Target(
            url=self.url,
            work=work,  # type: ignore[arg-type]
            concurrency=concurrency,
            token=TOKEN,
            node_id=NODE_ID,
            **more,
        )

    def messages(self, request: dict[str, Any]) -> list[dict[str, Any]]:
        """The notifications and the response that this request is owed."""
        params = request["params"]
        deltas: list[dict[str, Any]] = []
        if request["method"] == "bench.echo":
            result: dict[str, Any] = {"text": params["task"]}
        else:
            given = params.get("conversation")
            self.conversations.append(given)
            text = params["text"]
            if request["method"] == "chat.stream":
                count, salt = text.split()
                pieces = [chunk(salt, number) for number in range(int(count))]
                text = "".join(pieces)
                for number, piece in enumerate(pieces):
                    delta = {"message_id": params["message_id"], "reply_id": "r", "done": False}
                    delta |= {"offset": number * len(piece), "text": piece}
                    deltas.append({"jsonrpc": "2.0", "method": "chat.delta", "params": delta})
            fresh = f"c{len(self.conversations)}"
            result = {"conversation": given or fresh, "status": "done", "text": text}
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
