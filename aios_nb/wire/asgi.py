"""Programs written for ASGI behind our own server: each request by itself, answered as it comes.

The server has read the body and found out who calls.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping, MutableMapping
from contextlib import AbstractAsyncContextManager
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, cast

from aiohttp import HttpVersion11, web
from aiohttp.helpers import rfc822_formatted_time

from aios_nb.wire.replies import HEADERS, json_reply

if TYPE_CHECKING:
    from aios_nb.wire.connection import Connection

log = logging.getLogger(__name__)

Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
Headers = list[tuple[bytes, bytes]]
Began = Callable[[Headers], None]
App = Callable[[MutableMapping[str, Any], Receive, Send], Awaitable[None]]

LEAVE_S = 5.0
"""How long a program may go on for a client that has gone; then it is cancelled."""
HEAD_WAIT_S = 0.005
"""The head of a stream goes with its first piece, if that comes soon: one write instead of two."""
_HELD_BACK = frozenset({b"authorization", b"cookie", b"proxy-authorization"})
"""Headers that are nobody's business behind the guard."""
_OURS = frozenset({b"connection", b"transfer-encoding", b"content-length", b"date", b"server"})
_ASGI = {"version": "3.0", "spec_version": "2.3"}
_JSON = (b"application/json", b"application/json; charset=utf-8")
_STREAM = b"text/event-stream"
_LAST_CHUNK = b"0\r\n\r\n"
_OK, _FAILED = 200, 400


async def answered(
    app: App,
    request: web.BaseRequest,
    body: bytes,
    scope: Mapping[str, Any],
    *,
    began: Began | None = None,
    patient: bool = True,
) -> web.StreamResponse:
    """What the program answers; a stream is written while it comes, and ended on return.

    ``scope`` adds to what the program is told of the request; ``began`` hears the headers of an
    answer that is no failure before anybody else. Raises what the program raises before it begins
    to answer.

    A client that goes away is told to the program. It has some time to put things in order
    (``patient``), as one that hangs up when it has read enough would undo what was done; or it is
    cancelled at once.
    """
    exchange = _Exchange(request, body, began)
    connection = cast("Connection", request.protocol)
    if patient:
        connection.on_lost = exchange.lost
    try:
        await app(_scope(request, scope), exchange.receive, exchange.send)
    except Exception:
        if not exchange.has_begun:
            raise
        log.exception("a program broke off in the middle of its answer")
        return exchange.broken()
    finally:
        exchange.end()
    return exchange.response()


class Stream(web.StreamResponse):
    """An answer in pieces over HTTP/1.1 that keeps its connection; every byte is written here.

    The framework would send head, pieces and end in writes of their own.
    """

    def __init__(self, request: web.BaseRequest, status: int, headers: Mapping[str, str]) -> None:
        # not super(): that would build what nobody looks at
        self._keep_alive = True
        self._request = request
        lines = "".join(f"{name}: {value}\r\n" for name, value in headers.items())
        self._unsent: bytes | None = (
            f"HTTP/1.1 {status} {HTTPStatus(status).phrase}\r\n{lines}"
            f"Date: {rfc822_formatted_time()}\r\nTransfer-Encoding: chunked\r\n\r\n"
        ).encode()
        loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = loop.call_later(HEAD_WAIT_S, self.push, b"")

    @staticmethod
    def suits(request: web.BaseRequest) -> bool:
        return request.version == HttpVersion11 and bool(request.keep_alive)

    def push(self, piece: bytes, *, last: bool = False) -> None:
        """Write a piece; the head goes with the first one."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if piece:
            piece = b"%x\r\n%b\r\n" % (len(piece), piece)
        if self._unsent is not None:
            piece, self._unsent = self._unsent + piece, None
        if last:
            piece += _LAST_CHUNK
        transport = self._request.transport
        if piece and transport is not None and not transport.is_closing():
            transport.write(piece)

    def let_go(self) -> None:
        """Nothing more comes: the program broke off, or the client has gone."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    async def prepare(self, request: web.BaseRequest) -> None:
        """The head goes with the first piece."""

    async def write_eof(self, data: bytes = b"") -> None:
        """The end went with the last piece."""


class _Exchange:
    """One request: what the program is given of it, and what it has answered so far."""

    def __init__(self, request: web.BaseRequest, body: bytes, began: Began | None) -> None:
        self._request = request
        self._began = began
        self._connection = cast("Connection", request.protocol)
        self._body: bytes | None = body
        self._status = 0
        self._headers: Headers = []
        self._parts: list[bytes] = []
        self._stream: web.StreamResponse | None = None
        self._ended = False
        self._gone = asyncio.Event()
        self._task = asyncio.current_task()
        self._leaving: asyncio.TimerHandle | None = None

    async def receive(self) -> Message:
        """The body; then, some time, that the client has gone."""
        if self._body is not None:
            body, self._body = self._body, None
            return {"type": "http.request", "body": body, "more_body": False}
        await self._gone.wait()
        return {"type": "http.disconnect"}

    def lost(self) -> None:
        """The client has gone."""
        self._gone.set()
        if self._task is not None and self._leaving is None:
            loop = asyncio.get_running_loop()
            self._leaving = loop.call_later(LEAVE_S, self._task.cancel)

    async def send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self._status = message["status"]
            self._headers = list(message.get("headers", ()))
            if self._began is not None and self._status < _FAILED:
                self._began(self._headers)
            if any(n == b"content-type" and v.startswith(_STREAM) for n, v in self._headers):
                await self._begin()
            return
        piece, more = message.get("body", b""), message.get("more_body", False)
        if self._stream is None:
            if piece:
                self._parts.append(piece)
            if not more:
                return
            await self._begin()
            piece = b"".join(self._parts)
        if isinstance(self._stream, Stream):
            self._ended = self._ended or not more
            self._stream.push(piece, last=not more)
        elif self._stream is not None and piece:
            await self._stream.write(piece)
        if self._connection.writing_paused:
            await self._connection.drained()

    async def _begin(self) -> None:
        """Answer in pieces from now on."""
        headers = self._all_headers()
        if Stream.suits(self._request):
            self._stream = Stream(self._request, self._status, headers)
            return
        self._stream = web.StreamResponse(status=self._status, headers=headers)
        self._stream.force_close()
        await self._stream.prepare(self._request)

    def end(self) -> None:
        """The program is done: nothing happens later."""
        if self._leaving is not None:
            self._leaving.cancel()
        if isinstance(self._stream, Stream):
            self._stream.let_go()

    @property
    def has_begun(self) -> bool:
        """Part of the answer is written: it cannot become an error, only end early."""
        return self._stream is not None

    def broken(self) -> web.StreamResponse:
        """The answer that has no end; its client sees that by the closed connection."""
        if self._stream is None:
            raise RuntimeError("nothing was begun")
        self._stream.force_close()
        return self._stream

    def response(self) -> web.StreamResponse:
        """The answer, to be written by the server as far as that has not happened."""
        if self._stream is not None:
            if isinstance(self._stream, Stream) and not self._ended:
                self._stream.push(b"", last=True)
            return self._stream
        if not self._status:
            raise RuntimeError("a program behind the bridge gave no answer")
        body = b"".join(self._parts)
        if self._status == _OK and all(
            name == b"content-length" or (name == b"content-type" and value in _JSON)
            for name, value in self._headers
        ):
            return json_reply(self._request, body)
        return web.Response(status=self._status, body=body, headers=self._all_headers())

    def _all_headers(self) -> dict[str, str]:
        headers = dict(HEADERS)
        for name, value in self._headers:
            if name not in _OURS:
                headers[name.decode("latin-1").title()] = value.decode("latin-1")
        return headers


def _scope(request: web.BaseRequest, more: Mapping[str, Any]) -> dict[str, Any]:
    path, _, query = request.raw_path.partition("?")
    headers = [(name.lower(), value) for name, value in request.raw_headers]
    return {
        "type": "http",
        "asgi": _ASGI,
        "http_version": f"{request.version.major}.{request.version.minor}",
        "method": request.method,
        "scheme": "http",
        "path": request.path,
        "raw_path": path.encode("latin-1", "replace"),
        "query_string": query.encode("latin-1", "replace"),
        "root_path": "",
        "headers": [header for header in headers if header[0] not in _HELD_BACK],
        "state": {},
        **more,
    }


class Residence:
    """Keeps a context open in one task: where it was entered, there it is left.

    What such a context holds (cancel scopes, task groups) must not move between tasks.
    """

    def __init__(self, context: AbstractAsyncContextManager[Any]) -> None:
        self._context = context
        self._leave = asyncio.Event()
        self._entered: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._task = asyncio.create_task(self._stay())

    async def entered(self) -> None:
        """Return when the context is open. Raises what kept it from opening."""
        await asyncio.shield(self._entered)

    async def close(self) -> None:
        """Leave it, and wait until that is done."""
        self._leave.set()
        await asyncio.wait([self._task])

    async def _stay(self) -> None:
        try:
            async with self._context:
                self._entered.set_result(None)
                await self._leave.wait()
        except BaseException as problem:
            if not self._entered.done():
                self._entered.set_exception(problem)
                return
            raise
