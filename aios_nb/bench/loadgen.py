"""The load generator: its own process, so that its work is not counted as the server's.

``python -m aios_nb.bench.loadgen`` reads commands (``spec.Command``) as JSON lines and answers
each with one ``spec.Answer``. Protocol callbacks only, no coroutine per call, and no garbage
collection inside a window: a call costs the generator 10 to 30 µs, less than any server.
"""

from __future__ import annotations

import asyncio
import base64
import gc
import importlib.util
import os
import secrets
import sys
import time
from collections import deque
from collections.abc import Callable
from typing import Any, cast
from urllib.parse import urlsplit

import msgspec

from aios_nb.bench import frames, usage
from aios_nb.bench.calls import OK, Call, ChatStream, Rpc, call_for, decode, quoted
from aios_nb.bench.events import EventParser
from aios_nb.bench.http1 import BadReply, ResponseParser
from aios_nb.bench.spec import (
    Answer,
    Broken,
    Command,
    Drive,
    Load,
    Open,
    Target,
    Window,
    percentile,
)

CONNECT_WAIT_S = 10.0
REPLY_WAIT_S = 120.0
"""How long after its end a window waits for what is still in flight."""
SPIN_S = 0.002
"""Timers are good to a millisecond; the last two before an open-loop send are polled."""
PROTOCOL = "aios-rpc-1"

now = time.perf_counter


class Session:
    """Connections to one target, kept between windows."""

    def __init__(self, target: Target) -> None:
        parts = urlsplit(target.url)
        self.target = target
        self.host = parts.hostname or "127.0.0.1"
        self.port = parts.port or 80
        self.call: Call = call_for(target)
        self.slots = target.concurrency
        self._since = [0.0] * self.slots
        self._first: list[float | None] = [None] * self.slots
        self._loop: _Loop | None = None
        self._latencies: list[float] = []
        self._firsts: list[float] = []
        self._wrong = 0
        self._first_wrong: str | None = None

    async def open(self) -> None:
        """Connect whatever is not connected."""
        raise NotImplementedError

    def close(self) -> None:
        raise NotImplementedError

    def send(self, slot: int) -> None:
        """Put the slot's next request on the wire."""
        raise NotImplementedError

    async def drive(self, load: Load) -> Window:
        """What this load shows. Wrong replies are counted, and the first one is quoted."""
        await self.open()
        self._latencies, self._firsts = [], []
        self._wrong, self._first_wrong = 0, None
        loop: _Loop = _OpenLoop(self, load) if load.rate else _ClosedLoop(self, load)
        self._loop = loop
        pid = self.target.pid
        gc.collect()
        gc.disable()
        try:
            before = usage.thread_ns(pid) if pid else None
            own = time.process_time()
            started = now()
            loop.start(started)
            try:
                await asyncio.wait_for(loop.over, (load.seconds or 0) + REPLY_WAIT_S)
            except TimeoutError:
                raise Broken(f"replies that never came from {self.target.url}") from None
            ended = now()
            own = time.process_time() - own
            after = usage.thread_ns(pid) if pid else None
        finally:
            gc.enable()
            self._loop = None
        return self._window(load, ended - started, usage.used_ns(before, after), own, loop.lags)

    def _window(
        self, load: Load, seconds: float, cpu_ns: int | None, own_s: float, lags: list[float]
    ) -> Window:
        ordered = sorted(self._latencies)
        count = len(ordered)
        return Window(
            replies=count,
            wrong=self._wrong,
            first_wrong=self._first_wrong,
            seconds=seconds,
            p50=percentile(ordered, 0.5) * 1e3,
            p99=percentile(ordered, 0.99) * 1e3,
            mean=sum(ordered) / count * 1e3 if count else 0.0,
            low=ordered[0] * 1e3 if count else 0.0,
            high=ordered[-1] * 1e3 if count else 0.0,
            first_p50=percentile(sorted(self._firsts), 0.5) * 1e3 if self._firsts else None,
            cpu_us=cpu_ns / 1e3 / count if cpu_ns is not None and count else None,
            client_us=own_s * 1e6 / count if count else 0.0,
            lag_p99=percentile(sorted(lags), 0.99) * 1e3,
            samples=[value * 1e3 for value in self._latencies] if load.keep else [],
        )

    # Called from the hot path --------------------------------------------------------

    def fire(self, slot: int, since: float) -> None:
        self._since[slot] = since
        self._first[slot] = None
        self.send(slot)

    def began(self, slot: int) -> None:
        """The first piece of a streamed reply is here."""
        if self._first[slot] is None:
            self._first[slot] = now()

    def finished(self, slot: int, problem: str | None) -> None:
        """A reply is here, right or wrong."""
        at = now()
        loop = self._loop
        if problem is None:
            self._latencies.append(at - self._since[slot])
            first = self._first[slot]
            if first is not None:
                self._firsts.append(first - self._since[slot])
        else:
            self._count_wrong(problem)
        if loop is not None:
            loop.free(slot, at)

    def lost(self, slot: int, problem: str) -> None:
        """The connection under a call is gone; the slot is out for this window."""
        self._count_wrong(problem)
        if self._loop is not None:
            self._loop.drop(slot)

    def _count_wrong(self, problem: str) -> None:
        self._wrong += 1
        self._first_wrong = self._first_wrong or problem


# When the next call goes out -------------------------------------------------------------


class _Loop:
    """Decides when a slot sends again; ``over`` is set when nothing is left in flight."""

    def __init__(self, session: Session, load: Load) -> None:
        self.session = session
        self.load = load
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.lags: list[float] = []
        self.in_flight = 0

    def start(self, started: float) -> None:
        raise NotImplementedError

    def free(self, slot: int, at: float) -> None:
        raise NotImplementedError

    def drop(self, slot: int) -> None:
        raise NotImplementedError

    def end(self) -> None:
        if not self.over.done():
            self.over.set_result(None)


class _ClosedLoop(_Loop):
    """Every slot sends as soon as it has its answer, for a time or up to a count."""

    def start(self, started: float) -> None:
        self._until = started + self.load.seconds if self.load.seconds else float("inf")
        self._left = self.load.count if self.load.count is not None else float("inf")
        for slot in range(self.session.slots):
            if self._left <= 0:
                break
            self._left -= 1
            self.in_flight += 1
            self.session.fire(slot, now())

    def free(self, slot: int, at: float) -> None:
        if at < self._until and self._left > 0:
            self._left -= 1
            self.session.fire(slot, at)
        else:
            self.drop(slot)

    def drop(self, slot: int) -> None:
        del slot
        self.in_flight -= 1
        if not self.in_flight:
            self.end()


class _OpenLoop(_Loop):
    """Calls go out at a fixed rate, answered or not; a late one is counted from its due time."""

    def start(self, started: float) -> None:
        per_s, seconds = self.load.rate, self.load.seconds
        if not per_s or not seconds:
            raise Broken("an open loop needs a rate and a time")
        self._clock = asyncio.get_running_loop()
        self._step = 1 / per_s
        self._started = started
        self._number = 0
        self._count = int(per_s * seconds)
        self._free = list(range(self.session.slots))
        self._slots = self.session.slots
        self._queue: deque[float] = deque()
        self._tick()

    def _tick(self) -> None:
        if self.over.done():
            return
        while self._number < self._count:
            due = self._started + self._number * self._step
            left = due - now()
            if left > SPIN_S:
                self._clock.call_later(left - SPIN_S, self._tick)
                return
            if left > 0:
                self._clock.call_soon(self._tick)
                return
            self.lags.append(-left)
            self._number += 1
            if self._free:
                self.in_flight += 1
                self.session.fire(self._free.pop(), due)
            else:
                self._queue.append(due)
        self._maybe_end()

    def free(self, slot: int, at: float) -> None:
        del at
        if self._queue:
            self.session.fire(slot, self._queue.popleft())
            return
        self.in_flight -= 1
        self._free.append(slot)
        self._maybe_end()

    def drop(self, slot: int) -> None:
        del slot
        self.in_flight -= 1
        self._slots -= 1
        if not self._slots:
            self.end()
        else:
            self._maybe_end()

    def _maybe_end(self) -> None:
        if self._number >= self._count and not self.in_flight and not self._queue:
            self.end()


# HTTP: one connection per slot -------------------------------------------------------------


class HttpSession(Session):
    """``concurrency`` keep-alive connections with one request in flight on each."""

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        lines = [
            f"POST {target.path} HTTP/1.1",
            f"Host: {self.host}:{self.port}",
            "Content-Type: application/json",
        ]
        if target.token:
            lines.append(f"Authorization: Bearer {target.token}")
        if self.call.streamed:
            lines.append("Accept: text/event-stream")
        lines.append("Content-Length: ")
        self._head = "\r\n".join(lines).encode().replace(b"%", b"%%") + b"%d\r\n\r\n"
        self._lanes: dict[int, _Lane] = {}

    async def open(self) -> None:
        loop = asyncio.get_running_loop()
        for slot in range(self.slots):
            lane = self._lanes.get(slot)
            if lane is None or lane.transport.is_closing():
                async with asyncio.timeout(CONNECT_WAIT_S):
                    _, fresh = await loop.create_connection(self._lane(slot), self.host, self.port)
                self._lanes[slot] = fresh

    def _lane(self, slot: int) -> Callable[[], _Lane]:
        kind = _StreamLane if self.call.streamed else _Lane
        return lambda: kind(self, slot)

    def send(self, slot: int) -> None:
        lane = self._lanes[slot]
        body = self.call.request(slot)
        lane.busy = True
        lane.transport.write(self._head % len(body) + body)

    def close(self) -> None:
        for lane in self._lanes.values():
            lane.transport.close()


class _Lane(asyncio.Protocol):
    transport: asyncio.Transport

    def __init__(self, session: HttpSession, slot: int) -> None:
        self.session = session
        self.slot = slot
        self.busy = False
        self.parser = ResponseParser(self.on_reply)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        try:
            self.parser.feed(data)
        except BadReply as error:
            self._fail(str(error))

    def on_reply(self, status: int, body: bytes) -> None:
        if not self.busy:
            raise BadReply("a reply that nobody asked for")
        self.busy = False
        session = self.session
        if status != OK:
            session.finished(self.slot, f"HTTP {status}: {quoted(body)}")
        else:
            session.finished(self.slot, session.call.reply(self.slot, body))

    def connection_lost(self, exc: Exception | None) -> None:
        self._fail(f"the connection was closed ({exc or 'by the server'})")

    def _fail(self, problem: str) -> None:
        self.transport.close()
        if self.busy:
            self.busy = False
            self.session.lost(self.slot, problem)


class _StreamLane(_Lane):
    def __init__(self, session: HttpSession, slot: int) -> None:
        super().__init__(session, slot)
        self.parser = ResponseParser(self.on_reply, self.on_piece)
        self._events = EventParser(self.on_event)
        self._strange = b""

    def on_piece(self, data: bytes) -> None:
        if self.parser.status == OK and b"text/event-stream" in self.parser.head:
            self._events.feed(data)
        else:
            self._strange += data

    def on_event(self, data: bytes) -> None:
        if self.session.call.piece(self.slot, data):
            self.session.began(self.slot)

    def on_reply(self, status: int, body: bytes) -> None:
        del body
        if not self.busy:
            raise BadReply("a reply that nobody asked for")
        self.busy = False
        self._events = EventParser(self.on_event)
        strange, self._strange = self._strange, b""
        if status != OK or strange:
            self.session.finished(self.slot, f"HTTP {status}, no stream: {quoted(strange)}")
        else:
            self.session.finished(self.slot, self.session.call.end(self.slot))


# WebSocket: one connection for all slots -----------------------------------------------------


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


def session_for(target: Target) -> Session:
    """Connections of the kind this target asks for; not opened yet."""
    return WsSession(target) if target.wire == "ws" else HttpSession(target)


# The process ---------------------------------------------------------------------------------


class _Desk:
    """Does what the commands say, one after the other."""

    def __init__(self) -> None:
        self._sessions: dict[int, Session] = {}
        self._last = 0

    async def do(self, command: Command) -> Answer:
        try:
            if isinstance(command, Open):
                session = session_for(command.target)
                await session.open()
                self._last += 1
                self._sessions[self._last] = session
                return Answer(session=self._last)
            if isinstance(command, Drive):
                return Answer(window=await self._sessions[command.session].drive(command.load))
            self._sessions.pop(command.session).close()
            return Answer(session=command.session)
        except (Broken, OSError, TimeoutError) as error:
            return Answer(error=str(error) or type(error).__name__)


async def serve() -> None:
    """Answer commands from standard input until it ends."""
    reader = asyncio.StreamReader()
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    desk = _Desk()
    commands: msgspec.json.Decoder[Command] = msgspec.json.Decoder(Command)
    while line := await reader.readline():
        answer = await desk.do(commands.decode(line))
        sys.stdout.buffer.write(msgspec.json.encode(answer) + b"\n")
        sys.stdout.buffer.flush()


def main() -> None:
    """Run on uvloop where it is installed: the generator should not be what is measured."""
    factory: Callable[[], asyncio.AbstractEventLoop] | None = None
    if importlib.util.find_spec("uvloop") and not os.environ.get("AIOS_BENCH_PLAIN_LOOP"):
        factory = importlib.import_module("uvloop").new_event_loop
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(serve())


if __name__ == "__main__":
    main()
