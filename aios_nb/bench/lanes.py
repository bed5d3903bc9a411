"""Load over HTTP: one keep-alive connection per slot, one request in flight on each."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

from aios_nb.bench.calls import OK, quoted
from aios_nb.bench.events import EventParser
from aios_nb.bench.http1 import BadReply, ResponseParser
from aios_nb.bench.session import CONNECT_WAIT_S, Session
from aios_nb.bench.spec import Target


class HttpSession(Session):
    """``concurrency`` keep-alive connections with one request in flight on each."""

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self.heads = [self.head()] * self.slots
        """What each slot's requests begin with."""
        self._lanes: dict[int, _Lane] = {}

    def head(self, *more: tuple[str, str]) -> bytes:
        """The head of a request with these headers more; the length of its body is to fill in."""
        target = self.target
        lines = [
            f"POST {target.path} HTTP/1.1",
            f"Host: {self.host}:{self.port}",
            "Content-Type: application/json",
        ]
        if target.token:
            lines.append(f"Authorization: Bearer {target.token}")
        if self.call.streamed:
            lines.append("Accept: text/event-stream")
        lines += [f"{name}: {value}" for name, value in (*target.headers, *more)]
        lines.append("Content-Length: ")
        return "\r\n".join(lines).encode().replace(b"%", b"%%") + b"%d\r\n\r\n"

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
        lane.transport.write(self.heads[slot] % len(body) + body)

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
