"""A server on a real socket, with small rooms behind it that write down who called what."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator, Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import pytest
from aiohttp import web

from aios_nb.access import ANYONE, Principal, owner_of
from aios_nb.config import Limits
from aios_nb.envelope import Delta
from aios_nb.errors import Busy, InvalidParams, NoSuchAgent, TooLarge
from aios_nb.identity import Identity, answer_hello
from aios_nb.wire.dispatch import Dispatcher
from aios_nb.wire.guard import Guard, Need, Scoped
from aios_nb.wire.methods import METHODS, Method
from aios_nb.wire.replies import HEADERS
from aios_nb.wire.server import ROUTES, Link, Server
from aios_nb.wire.websocket import SUBPROTOCOL

TOKEN = "the-right-token-of-43-characters-or-so-long"
SECRET = "a sentence nobody outside may read"
ROOMS = ("node", "nodes", "tokens", "agents", "hub", "chat", "aios", "blobs", "gossip")
OPEN_LIMITS = Limits(refused_per_s=1e6)
"""For tests that are refused on purpose, again and again."""


class Flow:
    """Notices whose pieces the test feeds."""

    def __init__(self, notification: str, *, result_first: bool, result: Any) -> None:
        self.notification = notification
        self.result_first = result_first
        self.outcome = result
        self.closed = asyncio.Event()
        self._pieces: asyncio.Queue[Any] = asyncio.Queue()

    def feed(self, *pieces: Any) -> None:
        for piece in pieces:
            self._pieces.put_nowait(piece)

    def finish(self) -> None:
        self._pieces.put_nowait(None)

    async def __aiter__(self) -> AsyncIterator[Any]:
        while (piece := await self._pieces.get()) is not None:
            yield piece

    async def result(self) -> Any:
        if isinstance(self.outcome, Exception):
            raise self.outcome
        return self.outcome

    def close(self) -> None:
        self.closed.set()


class Room:
    """Answers every method with who called it; a few behave as the tests need them."""

    def __init__(self, name: str, calls: list[tuple[str, Principal, Any]]) -> None:
        self._name = name
        self._calls = calls
        self.gate = asyncio.Event()
        self.entered = asyncio.Event()
        self.cancelled = asyncio.Event()
        self.flows: asyncio.Queue[Flow] = asyncio.Queue()

    def __getattr__(self, verb: str) -> Callable[[Principal, Any], Any]:
        if verb.startswith("_"):
            raise AttributeError(verb)

        def answer(principal: Principal, params: Any) -> Any:
            self._calls.append((f"{self._name}.{verb}", principal, params))
            return {"by": principal.id}

        return answer

    async def send(self, principal: Principal, params: Any) -> Any:
        self._calls.append(("chat.send", principal, params))
        match params.text:
            case "boom":
                raise RuntimeError(SECRET)
            case "nobody":
                raise NoSuchAgent("no such agent", hint="look again")
            case "unencodable":
                return {"value": object()}
            case "cancels itself":
                raise asyncio.CancelledError
            case "wait":
                self.entered.set()
                try:
                    await self.gate.wait()
                except asyncio.CancelledError:
                    self.cancelled.set()
                    raise
        return {"text": params.text, "status": "done"}

    def history(self, principal: Principal, params: Any) -> Any:
        if params.conversation == "broken":
            raise KeyError(SECRET)
        return {"conversation": params.conversation, "messages": []}

    def stream(self, principal: Principal, params: Any) -> Flow:
        self._calls.append(("chat.stream", principal, params))
        outcome: Any = {"text": params.text, "status": "done"}
        flow = Flow("chat.delta", result_first=False, result=outcome)
        self.flows.put_nowait(flow)
        return flow

    async def watch(self, principal: Principal, params: Any) -> Flow:
        if getattr(params, "after", None) == 404:
            self.entered.set()
            await self.gate.wait()
        flow = Flow(
            "agents.event" if self._name == "agents" else "chat.event",
            result_first=True,
            result={"cursor": 7},
        )
        self.flows.put_nowait(flow)
        return flow


class Shelf:
    """Files in memory and a folder, readable by who put them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.readers: dict[str, set[str]] = {}

    async def put_stream(
        self, chunks: AsyncIterator[bytes], sha256: str, owner: str, limit: int
    ) -> int:
        import hashlib

        content = b""
        async for chunk in chunks:
            content += chunk
            if len(content) > limit:
                raise TooLarge("too large")
        if content == b"full":
            raise Busy("the disk is full", retry_after_s=7)
        if hashlib.sha256(content).hexdigest() != sha256:
            raise InvalidParams("the bytes do not match the hash in the address")
        (self.folder / sha256).write_bytes(content)
        self.readers.setdefault(sha256, set()).add(owner)
        return len(content)

    def open_path(self, sha256: str) -> Path | None:
        path = self.folder / sha256
        return path if path.is_file() else None

    def may_read(self, sha256: str, reader: Principal) -> bool:
        return reader.id in self.readers.get(sha256, ())


class Answer(msgspec.Struct):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Site:
    """A running server and ways to talk to it."""

    token = TOKEN
    secret = SECRET

    def __init__(self, server: Server, port: int, identity: Identity) -> None:
        self.server = server
        self.port = port
        self.identity = identity
        self.calls: list[tuple[str, Principal, Any]] = []
        self.rooms: dict[str, Room] = {}
        self.shelf: Shelf

    @property
    def host(self) -> str:
        return f"127.0.0.1:{self.port}"

    @property
    def url(self) -> str:
        return f"http://{self.host}"

    async def raw(self, data: bytes, *, then_eof: bool = False) -> bytes:
        """Everything the server says to these bytes until it closes."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(data)
            if then_eof:
                writer.write_eof()
            return await reader.read()
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    async def http(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        *,
        token: str | None = TOKEN,
    ) -> Answer:
        """One request on a connection of its own; ``headers`` replace the usual ones."""
        sent = {"Host": self.host, "Content-Length": str(len(body)), "Connection": "close"}
        if token is not None:
            sent["Authorization"] = f"Bearer {token}"
        sent |= headers or {}
        lines = "".join(f"{name}: {value}\r\n" for name, value in sent.items())
        head = f"{method} {path} HTTP/1.1\r\n{lines}\r\n".encode("utf-8", "surrogateescape")
        return parse(await self.raw(head + body))

    async def rpc(
        self,
        body: bytes | Any,
        headers: Mapping[str, str] | None = None,
        *,
        token: str | None = TOKEN,
    ) -> Answer:
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        usual = {"Content-Type": "application/json"}
        return await self.http("POST", "/rpc", data, usual | dict(headers or {}), token=token)

    @contextlib.asynccontextmanager
    async def ws(
        self, *, token: str | None = TOKEN, **options: Any
    ) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
        """A websocket; after the handshake, unless ``token`` is None."""
        options.setdefault("protocols", (SUBPROTOCOL,))
        async with (
            aiohttp.ClientSession() as session,
            session.ws_connect(f"{self.url}/ws", **options) as socket,
        ):
            if token is not None:
                await socket.send_json({"nonce": "A" * 43})
                await socket.receive_json()
                await socket.send_json({"token": token})
                assert (await socket.receive_json())["ok"] is True
            yield socket


def parse(data: bytes) -> Answer:
    head, _, body = data.partition(b"\r\n\r\n")
    lines = head.decode().split("\r\n")
    headers = {k.lower(): v for k, _, v in (line.partition(": ") for line in lines[1:])}
    if headers.get("transfer-encoding") == "chunked":
        whole = b""
        while body:
            size, _, body = body.partition(b"\r\n")
            whole += body[: int(size, 16)]
            body = body[int(size, 16) + 2 :]
        body = whole
    return Answer(int(lines[0].split()[1]), headers, body)


class Plain:
    """A door that says who came with what."""

    def __init__(self, calls: list[tuple[str, Principal, Any]]) -> None:
        self._calls = calls

    async def answer(
        self, request: web.BaseRequest, who: Principal, body: bytes
    ) -> web.StreamResponse:
        self._calls.append((request.path, who, body))
        return web.json_response({"who": who.id, "bytes": len(body)}, headers=HEADERS)

    def shut_out(self, caller: str) -> None:
        self._calls.append(("shut_out", ANYONE, caller))

    async def close(self) -> None:
        """Nothing is open."""


@pytest.fixture
def serving(tmp_path: Path) -> Callable[..., contextlib.AbstractAsyncContextManager[Site]]:
    """``async with serving() as site``."""

    @contextlib.asynccontextmanager
    async def serve(
        *,
        limits: Limits = OPEN_LIMITS,
        extra: Iterable[Method] = (),
        scoped: Scoped | None = None,
        conformance: bool = False,
        allow_hosts: tuple[str, ...] = (),
        public_url: str | None = None,
        links: Mapping[str, Link] | None = None,
    ) -> AsyncIterator[Site]:
        identity = Identity.generate()
        calls: list[tuple[str, Principal, Any]] = []
        rooms = {name: Room(name, calls) for name in ROOMS}
        guard = Guard(
            TOKEN,
            owner_of(identity.node_id),
            limits=limits,
            scoped=scoped,
            conformance=conformance,
            allow_hosts=allow_hosts,
            public_url=public_url,
        )
        shelf = Shelf(tmp_path)
        server = Server(
            Dispatcher(rooms, extra=extra, limits=limits),
            shelf,
            guard,
            lambda nonce: answer_hello(identity, nonce, port),
            lambda: {"v": 1, "node_id": identity.node_id, "record": "AAAA"},
            limits=limits,
            links=links,
            doors={path: Plain(calls) for path, route in ROUTES.items() if route.need is Need.OPEN},
        )
        _, port = await server.start("127.0.0.1", 0)
        site = Site(server, port, identity)
        site.calls, site.rooms, site.shelf = calls, rooms, shelf
        try:
            yield site
        finally:
            await server.stop()

    return serve


@pytest.fixture
def delta() -> Callable[[int, str], Delta]:
    """A piece of a reply."""
    return lambda offset, text: Delta("m1", "r1", offset, text)


@pytest.fixture(params=[row.name for row in METHODS])
def row(request: pytest.FixtureRequest) -> Method:
    """Every method of the table."""
    return next(row for row in METHODS if row.name == request.param)
