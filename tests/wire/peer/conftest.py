"""Nodes with a server, links and a few methods, on real loopback sockets in one loop."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from typing import Any, Self

import pytest

from aios_nb.access import Caller, Principal, owner_of
from aios_nb.config import Limits
from aios_nb.errors import NoSuchAgent
from aios_nb.identity import Identity, answer_hello
from aios_nb.params import Params
from aios_nb.records import Scope, node_record, sign_record
from aios_nb.wire.dispatch import Dispatcher
from aios_nb.wire.guard import Guard
from aios_nb.wire.methods import METHODS, Answers, Method
from aios_nb.wire.peer import links
from aios_nb.wire.peer.frames import SUBPROTOCOL
from aios_nb.wire.peer.links import PeerLinks
from aios_nb.wire.server import Server

OPEN = Limits(refused_per_s=1e6, stranger_handshakes_per_s=1e6)
"""For tests that knock again and again."""
NOW_MS = 1_800_000_000_000
WAIT_S = 20.0
"""For what hangs; everything here takes a moment."""
NODES = frozenset({Caller.KNOWN, Caller.NODE})


class Text(Params, frozen=True):
    text: str = ""
    times: int = 1


class Told:
    """Notices whose unread pieces grow together, as those of a chat do."""

    notification = "test.delta"
    result_first = False

    def __init__(self, whole: str) -> None:
        self.whole = whole
        self.written = 0
        self.pieces = 0
        self.closed = asyncio.Event()
        self.over = False
        self._news = asyncio.Event()

    def write(self, upto: int, *, last: bool = False) -> None:
        self.written, self.over = upto, last
        self._news.set()

    async def __aiter__(self) -> AsyncIterator[Any]:
        at = 0
        while True:
            while at == self.written:
                if self.over:
                    return
                self._news.clear()
                await self._news.wait()
            piece, at = self.whole[at : self.written], self.written
            self.pieces += 1
            yield {"text": piece}

    async def result(self) -> Any:
        return {"length": self.written}

    def close(self) -> None:
        self.closed.set()


class Room:
    """Answers whatever the table names."""

    def __getattr__(self, verb: str) -> Callable[[Principal, Any], Any]:
        if verb.startswith("_"):
            raise AttributeError(verb)
        return lambda principal, _: {"by": principal.id, "as": principal.kind}


class NodeUnderTest:
    """A server with links, and what the methods of the test saw."""

    def __init__(
        self,
        *,
        identity: Identity | None = None,
        network: str = "main",
        limits: Limits = OPEN,
        epoch: int = 1,
        shows_record: bool = True,
        pins: Any = None,
        idle_s: float = 120.0,
        known: bool = True,
        wide: bool = False,
    ) -> None:
        self.identity = identity or Identity.generate()
        self.node_id = self.identity.node_id
        self.limits = limits
        self.blocked: set[str] = set()
        self.known = known
        self.addresses: dict[str, list[str]] = {}
        self.told: list[str] = []
        self.notified: asyncio.Queue[str] = asyncio.Queue()
        self.gate = asyncio.Event()
        self.entered = asyncio.Event()
        self.finished = asyncio.Event()
        self.flows: asyncio.Queue[Told] = asyncio.Queue()
        self.port = 0
        self.made_ago_ms = 0
        """The age of its record."""
        self._network = network
        self._shows_record = shows_record
        self.links = PeerLinks(
            self.identity,
            network,
            limits=limits,
            name="tester",
            epoch=epoch,
            standing=self.standing,
            lookup=lambda node: self.addresses.get(node, []),
            record=self.record,
            pins=pins,
            on_up=lambda node: self.told.append(f"up {node}"),
            on_down=lambda node: self.told.append(f"down {node}"),
            idle_s=idle_s,
            wide=wide,
        )
        methods = [
            Method("test.echo", Text, NODES, handler=lambda _, p: {"text": p.text}),
            Method("test.long", Text, NODES, handler=lambda _, p: {"text": p.text * p.times}),
            Method("test.who", Text, NODES, handler=lambda who, _: {"id": who.id, "as": who.kind}),
            Method("test.later", Text, NODES, handler=self._later),
            Method("test.fails", Text, NODES, handler=self._fails),
            Method("test.gate", Text, NODES, handler=self._gate),
            Method("test.note", Text, NODES, handler=lambda _, p: self.notified.put_nowait(p.text)),
            Method("test.flow", Text, NODES, Answers.NOTICES, handler=self._flow),
            Method("test.paper", Text, NODES, handler=self._paper),
        ]
        rooms = {name: Room() for name in {row.name.partition(".")[0] for row in METHODS}}
        self.dispatcher = Dispatcher(rooms, extra=methods, limits=limits)
        self.links.open(self.dispatcher)
        self.server: Server | None = None

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def standing(self, node_id: str) -> Caller | None:
        if node_id in self.blocked:
            return None
        return Caller.KNOWN if self.known else Caller.NODE

    def record(self) -> bytes | None:
        if not self._shows_record or not self.port:
            return None
        now = int(time.time() * 1000) - self.made_ago_ms
        record = node_record(
            net=self._network,
            node=self.node_id,
            name="tester",
            scope=Scope.LOOPBACK,
            endpoints=[("http", "127.0.0.1", self.port)],
            seq=now,
            epoch=1,
            now_ms=now,
        )
        return sign_record(self.identity, record).to_bytes()

    async def start(self, port: int = 0) -> NodeUnderTest:
        guard = Guard("token", owner_of(self.node_id), limits=self.limits)
        self.server = Server(
            self.dispatcher,
            None,  # type: ignore[arg-type] - no files here
            guard,
            lambda nonce: answer_hello(self.identity, nonce, self.port),
            dict,
            limits=self.limits,
            links={SUBPROTOCOL: self.links.serve},
        )
        _, self.port = await self.server.start("127.0.0.1", port)
        return self

    async def stop(self) -> None:
        await self.links.close()
        if self.server is not None:
            await self.server.stop()

    def knows(self, other: NodeUnderTest) -> None:
        self.addresses[other.node_id] = [other.url]

    async def _later(self, _: Principal, params: Text) -> Any:
        await asyncio.sleep(0)
        return {"text": params.text}

    async def _fails(self, _: Principal, params: Text) -> Any:
        raise NoSuchAgent(f"no agent {params.text}", hint="look again", near=["echo"])

    async def _gate(self, _: Principal, params: Text) -> Any:
        self.entered.set()
        await self.gate.wait()
        self.finished.set()
        return {"text": params.text}

    def _flow(self, _: Principal, params: Text) -> Told:
        flow = Told(params.text * params.times)
        self.flows.put_nowait(flow)
        return flow

    async def _paper(self, _: Principal, params: Text) -> Told:
        await asyncio.sleep(0)
        return self._flow(_, params)


class Relay:
    """Passes the bytes of one connection on, and shows them to whoever is in the middle."""

    def __init__(self, port: int) -> None:
        self._port = port
        self.heard = b""
        self.meddle = lambda frame: [frame]
        """What goes on to the node instead of a websocket frame."""
        self.swallows: set[str] = set()
        """``there`` and ``back``: nothing passes that way, and nobody is told."""
        self._tasks: list[asyncio.Task[None]] = []
        self._writers: list[asyncio.StreamWriter] = []

    async def __aenter__(self) -> Self:
        self._server = await asyncio.start_server(self._pass, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        for writer in self._writers:
            writer.transport.abort()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    async def _pass(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        there, out = await asyncio.open_connection("127.0.0.1", self._port)
        self._writers += [writer, out]
        head_ = await reader.readuntil(b"\r\n\r\n")
        out.write(head_.replace(str(self.port).encode(), str(self._port).encode()))
        self._tasks += [
            asyncio.ensure_future(self._in(reader, out)),
            asyncio.ensure_future(self._back(there, writer)),
        ]

    async def _in(self, reader: asyncio.StreamReader, out: asyncio.StreamWriter) -> None:
        try:
            while True:
                start = await reader.readexactly(2)
                size = start[1] & 0x7F
                if size == 126:
                    more = await reader.readexactly(2)
                    start, size = start + more, int.from_bytes(more, "big")
                frame = start + await reader.readexactly(4 + size)
                self.heard += frame
                if "there" not in self.swallows:
                    for one in self.meddle(frame):
                        out.write(one)
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            if "there" not in self.swallows:
                out.close()

    async def _back(self, there: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(ConnectionError):
            while data := await there.read(1 << 16):
                self.heard += data
                if "back" not in self.swallows:
                    writer.write(data)
        if "back" not in self.swallows:
            writer.close()


@pytest.fixture
def pair() -> Callable[..., contextlib.AbstractAsyncContextManager[tuple[Any, Any]]]:
    """``async with pair() as (a, b)``: two nodes that know where the other is."""

    @contextlib.asynccontextmanager
    async def start(**options: Any) -> AsyncIterator[tuple[NodeUnderTest, NodeUnderTest]]:
        a, b = NodeUnderTest(**options), NodeUnderTest(**options)
        await a.start()
        await b.start()
        a.knows(b)
        b.knows(a)
        try:
            async with asyncio.timeout(WAIT_S):
                yield a, b
        finally:
            await a.stop()
            await b.stop()
        left = [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
        assert not left, left

    return start


@pytest.fixture
def fast(monkeypatch: pytest.MonkeyPatch) -> None:
    """Links are looked after fifty times a second."""
    monkeypatch.setattr(links, "TICK_S", 0.02)


async def until(true: Callable[[], Any]) -> None:
    """Wait for something that has no event."""
    async with asyncio.timeout(WAIT_S):
        while not true():  # noqa: ASYNC110
            await asyncio.sleep(0.005)
