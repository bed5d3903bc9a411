"""A method's notifications as server-sent events: ``data: {json}`` each, the response among them.

The first event goes out at once; what follows within 5 ms is written together, which halves the
cost of a fast stream and is slower than nobody reads.
"""

from __future__ import annotations

import asyncio
import logging
from typing import TYPE_CHECKING, Any, cast

from aiohttp import HttpVersion11, web
from aiohttp.helpers import rfc822_formatted_time

from aios_nb.config import KB
from aios_nb.errors import Cancelled
from aios_nb.wire import jsonrpc
from aios_nb.wire.replies import HEADERS

if TYPE_CHECKING:
    from aios_nb.ports import Notices
    from aios_nb.wire.connection import Connection
    from aios_nb.wire.dispatch import Dispatcher

log = logging.getLogger(__name__)

GATHER_S = 0.005
GATHER_BYTES = 64 * KB
"""More than this does not wait, and lets others have a turn: an agent may never pause."""
KEEPALIVE_S = 15.0
_HEADERS = {**HEADERS, "Content-Type": "text/event-stream", "X-Accel-Buffering": "no"}
_LINES = "".join(f"{name}: {value}\r\n" for name, value in _HEADERS.items())
_LAST_CHUNK = b"0\r\n\r\n"


class _Written(web.StreamResponse):
    """A response whose every byte ``Events`` writes itself.

    The framework would send head, events and end in writes of their own; together, a stream of one
    event costs about a tenth less and its event is there a tenth sooner.
    """

    def __init__(self) -> None:  # not super(): that would build what we avoid
        self._keep_alive = True

    async def prepare(self, request: web.BaseRequest) -> None:
        """The head goes with the first event."""

    async def write_eof(self, data: bytes = b"") -> None:
        """The end goes with the last event."""


class Events:
    """The event stream that answers one request."""

    def __init__(self, request: web.BaseRequest) -> None:
        self._request = request
        self._connection = cast("Connection", request.protocol)
        self._loop = asyncio.get_running_loop()
        self._chunked = request.version >= HttpVersion11
        self._whole = request.version == HttpVersion11 and bool(request.keep_alive)
        """Head and end are ours to write too."""
        self._response = _Written() if self._whole else web.StreamResponse(headers=_HEADERS)
        self._head = b""
        self._waiting: list[bytes] = []
        self._waiting_bytes = 0
        self._wrote_at = float("-inf")
        self._flush_timer: asyncio.TimerHandle | None = None
        self._keepalive_timer: asyncio.TimerHandle | None = None
        self._task: asyncio.Task[Any] | None = None
        self._lost = False

    async def send(
        self, dispatcher: Dispatcher, call: jsonrpc.Call, notices: Notices
    ) -> web.StreamResponse:
        """Write everything, then end. A client that leaves closes the notices, not the run."""
        self._task = asyncio.current_task()
        self._connection.on_lost = self.end
        try:
            if self._whole:
                self._head = _head()
                self._loop.call_soon(self._write, b"")  # if no event takes it along
            else:
                await self._response.prepare(self._request)
            self._keepalive_timer = self._loop.call_later(KEEPALIVE_S, self._keep_alive)
            await self._follow(dispatcher, call, notices)
            self._flush(_LAST_CHUNK if self._whole else b"")
            await self._connection.drained()
        except asyncio.CancelledError:
            if not self._lost or self._task is None or self._task.uncancel() > 0:
                raise
        except ConnectionError:
            self._lost = True
        except Exception:
            log.exception("an event stream broke")
            self._lost = True  # it has begun: it cannot become an error, only end early
        finally:
            self._connection.on_lost = None
            for timer in (self._flush_timer, self._keepalive_timer):
                if timer is not None:
                    timer.cancel()
            notices.close()
        if self._lost:
            self._response.force_close()
        return self._response

    def end(self) -> None:
        """Stop now: the client has left, or the server is closing."""
        if self._task is not None and not self._lost:
            self._lost = True
            self._task.cancel()

    async def _follow(self, dispatcher: Dispatcher, call: jsonrpc.Call, notices: Notices) -> None:
        head = b"data: " + jsonrpc.notification_head(notices.notification)
        connection = self._connection
        try:
            if notices.result_first:
                self._event(b"data: %b\n\n" % jsonrpc.result(call.id, await notices.result()))
            async for item in notices:
                self._event(b"%b%b}\n\n" % (head, jsonrpc.encode(item)))
                if self._waiting_bytes > GATHER_BYTES:
                    self._flush()
                    await asyncio.sleep(0)
                if connection.writing_paused:
                    await connection.drained()
            if not notices.result_first:
                self._event(b"data: %b\n\n" % jsonrpc.result(call.id, await notices.result()))
        except asyncio.CancelledError:
            if self._lost or (self._task is not None and self._task.cancelling()):
                raise
            problem = Cancelled(f"{call.method} was cancelled")
            self._event(b"data: %b\n\n" % dispatcher.failure(call, problem))
        except ConnectionError:
            raise
        except Exception as problem:  # noqa: BLE001 - every failure is answered
            self._event(b"data: %b\n\n" % dispatcher.failure(call, problem))

    def _event(self, event: bytes) -> None:
        self._waiting.append(event)
        self._waiting_bytes += len(event)
        if self._flush_timer is None:
            now = self._loop.time()
            if now - self._wrote_at >= GATHER_S:
                self._flush()
            else:
                self._flush_timer = self._loop.call_at(self._wrote_at + GATHER_S, self._flush)

    def _flush(self, end: bytes = b"") -> None:
        if self._flush_timer is not None:
            self._flush_timer.cancel()
            self._flush_timer = None
        if self._waiting or end:
            data = b"".join(self._waiting)
            self._waiting.clear()
            self._waiting_bytes = 0
            self._write(data, end)
            self._wrote_at = self._loop.time()

    def _write(self, data: bytes, end: bytes = b"") -> None:
        if data and self._chunked:
            data = b"%x\r\n%b\r\n" % (len(data), data)
        data = self._head + data + end
        self._head = b""
        transport = self._request.transport
        if data and transport is not None and not transport.is_closing():
            transport.write(data)

    def _keep_alive(self) -> None:
        """A comment now and then, so that nobody on the way takes silence for death."""
        self._keepalive_timer = self._loop.call_later(KEEPALIVE_S, self._keep_alive)
        if not self._connection.writing_paused:
            self._write(b":\n\n")


def _head() -> bytes:
    return (
        f"HTTP/1.1 200 OK\r\n{_LINES}Date: {rfc822_formatted_time()}\r\n"
        "Transfer-Encoding: chunked\r\n\r\n"
    ).encode()
