"""The accepted connections: how many, whose, and how long they may take.

One sweep watches all of them instead of a timer for each, and it rests when nothing is due.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import os
import secrets
from collections.abc import Awaitable, Callable
from typing import Any, cast

from aiohttp import web
from aiohttp.http_exceptions import HttpProcessingError
from aiohttp.web_protocol import RequestHandler, RequestPayloadError

from aios_nb.config import Limits
from aios_nb.wire import uid
from aios_nb.wire.guard import Peer, Refusal
from aios_nb.wire.replies import refused

log = logging.getLogger(__name__)

UNPROVEN_SHARE = 0.75
"""Of all connections; the rest is for those that have shown a token."""
SWEEPS_PER_WAIT = 4
SWEEP_MIN_S, SWEEP_MAX_S = 0.02, 1.0
STALL_S = 60.0
"""A client that reads nothing for this long, with answers waiting, is cut off."""
LINGER_S = 2.0
"""What a refused client still sends is read and dropped for this long, so that it sees why."""

_CLIENT_FAULTS = (ConnectionError, RequestPayloadError, HttpProcessingError)
"""The client left in the middle of its body, or sent one that is not in chunks as it said."""


class Connection(RequestHandler):
    """One HTTP connection, with what the guard knows of its other end."""

    __slots__ = ("_drain", "busy", "due", "on_lost", "peer", "proven", "quota", "taken")

    def __init__(self, listener: Listener, **options: Any) -> None:
        super().__init__(listener, **options)
        self.peer = Peer()
        self.proven = False
        self.busy = False
        """A request is being handled: silence is ours, not the client's."""
        self.due: float | None = None
        """When the client must have sent, or read, what we wait for."""
        self.quota: int | None = None
        """How many bytes may still come, where that is few: a websocket before its token."""
        self.on_lost: Callable[[], object] | None = None
        self.taken: Callable[[bytes], None] | None = None
        """Who reads the rest, once the connection is a link to another node."""
        self._drain: asyncio.Event | None = None

    async def start(self) -> None:
        """Answer requests until the end; which may have come before this had its first turn."""
        if self._manager is not None:
            await super().start()

    def connection_lost(self, exc: BaseException | None) -> None:
        self.due = None
        if self._drain is not None:
            self._drain.set()
        if self.on_lost is not None:
            self.on_lost()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        if self.due is None and not self.busy:
            # The first bytes of a request start its clock; the handler stops it.
            cast("Listener", self._manager).await_header(self)
        if self.quota is not None:
            self.quota -= len(data)
            if self.quota < 0 and self.transport is not None:
                self.transport.abort()
                return
        if self.taken is not None:
            self.taken(data)
            return
        super().data_received(data)

    def resume_reading(self, resume_parser: bool = True) -> None:  # noqa: FBT001, FBT002
        """As the framework's, which feeds its parser anew on each read: needless if not paused."""
        if self._reading_paused:
            super().resume_reading(resume_parser)

    def resume_writing(self) -> None:
        super().resume_writing()
        if self._drain is not None:
            self._drain.set()
            self._drain = None

    def prove(self) -> None:
        """A token was shown here."""
        self.proven = True
        if self._manager is not None:
            cast("Listener", self._manager).proved(self)

    def expect(self, within_s: float) -> None:
        """Cut the client off unless ``due`` is cleared or renewed in time."""
        if self._manager is not None:
            cast("Listener", self._manager).expect(self, within_s)

    async def while_there(self, work: Awaitable[web.StreamResponse]) -> web.StreamResponse:
        """What the work gives; it is cancelled when the client goes away meanwhile.

        By the task of the connection itself, which has nobody to answer any more: a task of its
        own for each request is a tenth of what a short call costs.
        """
        task = asyncio.current_task()
        self.on_lost = None if task is None else task.cancel
        try:
            return await work
        finally:
            self.on_lost = None

    async def drained(self) -> None:
        """Wait until the client has read enough of what was written. Raises when it has gone."""
        if self.writing_paused and self.transport is not None:
            # Not the framework's own waiter: it is shared, and one cancelled task would end all.
            if self._drain is None:
                self._drain = asyncio.Event()
            self.expect(STALL_S)
            await self._drain.wait()
            self.due = None
        if self.transport is None:
            raise ConnectionResetError("the client has gone")

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,  # noqa: ARG002 - the framework's text may quote what was sent
    ) -> web.StreamResponse:
        """One line for bytes that are not HTTP, and for our own mistakes; details to the log."""
        if request.writer.output_size > 0:
            raise ConnectionResetError("the answer has begun; it cannot become an error")
        if status >= 500 and not isinstance(exc, _CLIENT_FAULTS):  # noqa: PLR2004
            ref = secrets.token_hex(4)
            log.error("internal error %s in %s", ref, request.method, exc_info=exc)
            answer = refused(Refusal(status, f"internal error {ref}"))
        else:
            log.debug("bad request: %s", exc)
            answer = refused(Refusal(400, "this is not a valid HTTP request"))
        answer.force_close()
        return answer


async def next_piece(request: web.BaseRequest) -> bytes:
    """The next piece of a body, empty at its end; ``ConnectionError`` when the client left."""
    try:
        return await request.content.readany()
    except RuntimeError as error:  # how the framework says that the connection is closed
        raise ConnectionResetError("the client has gone") from error


class Listener(web.Server):
    """Accepts connections, and closes those that are too many or too slow."""

    def __init__(self, handler: Any, limits: Limits, *, by_uid: bool) -> None:
        super().__init__(
            handler,
            access_log=None,
            logger=log,
            keepalive_timeout=limits.keepalive_s,
            lingering_time=LINGER_S,
            # A compressed body would be counted after it has grown; nobody here sends one.
            auto_decompress=False,
        )
        self._limits = limits
        self._by_uid = by_uid
        self._unproven: dict[Connection, None] = {}
        self._leaving: set[RequestHandler] = set()
        self._unproven_most = max(1, int(limits.connections * UNPROVEN_SHARE))
        self._sweep_s = min(
            max(min(limits.header_wait_s, limits.body_wait_s) / SWEEPS_PER_WAIT, SWEEP_MIN_S),
            SWEEP_MAX_S,
        )
        self._sweeping: asyncio.TimerHandle | None = None
        self.dropped = 0
        """Connections closed because there were too many."""

    def __call__(self) -> RequestHandler:
        return Connection(self, loop=self._loop, **self._kwargs)

    def connection_made(self, handler: RequestHandler, transport: asyncio.Transport) -> None:
        super().connection_made(handler, transport)
        connection = cast("Connection", handler)
        connection.peer = self._peer(transport)
        self.await_header(connection)
        self._leaving &= self._connections.keys()
        # Who was dropped is gone some turns of the loop later, and takes nobody's place until then.
        if len(self._connections) - len(self._leaving) > self._limits.connections:
            self._drop(connection)
            return
        self._unproven[connection] = None
        if len(self._unproven) > self._unproven_most:
            # The oldest goes, not the newest: a flood must not keep the owner from getting in.
            self._drop(next(iter(self._unproven)))

    def connection_lost(self, handler: RequestHandler, exc: BaseException | None = None) -> None:
        self._unproven.pop(cast("Connection", handler), None)
        super().connection_lost(handler, exc)

    def proved(self, connection: Connection) -> None:
        """This connection has shown a token."""
        self._unproven.pop(connection, None)

    def await_header(self, connection: Connection) -> None:
        self.expect(connection, self._limits.header_wait_s)

    def expect(self, connection: Connection, within_s: float) -> None:
        """Close the connection unless ``due`` is cleared or renewed in time."""
        connection.due = self._loop.time() + within_s
        if self._sweeping is None:
            self._sweeping = self._loop.call_later(self._sweep_s, self._sweep)

    async def finish(self, wait_s: float) -> None:
        """Let answers be written for a while, then close every connection for good."""
        transports = list(self._connections.values())
        self.pre_shutdown()
        await self.shutdown(wait_s)
        for transport in transports:
            transport.abort()  # close() alone waits for a client that does not read
        if self._sweeping is not None:
            self._sweeping.cancel()
            self._sweeping = None

    def _sweep(self) -> None:
        now = self._loop.time()
        waiting = False
        for handler, transport in list(self._connections.items()):
            due = cast("Connection", handler).due
            if due is None:
                continue
            waiting = True
            if due <= now:
                transport.abort()
        self._sweeping = self._loop.call_later(self._sweep_s, self._sweep) if waiting else None

    def _drop(self, connection: Connection) -> None:
        self.dropped += 1
        self._unproven.pop(connection, None)
        if connection.transport is not None:
            self._leaving.add(connection)
            connection.transport.abort()

    def _peer(self, transport: asyncio.Transport) -> Peer:
        there, here = transport.get_extra_info("peername"), transport.get_extra_info("sockname")
        if not there or not here:
            return Peer(foreign=self._by_uid)
        foreign = self._by_uid and uid.uid_of(there[:2], here[:2]) != os.geteuid()
        # From one of our own addresses to itself: that never leaves the machine either.
        near = there[0] == here[0] or _is_loopback(there[0])
        return Peer(loopback=near, foreign=foreign)


def _is_loopback(host: str) -> bool:
    address = ipaddress.ip_address(host.partition("%")[0])
    mapped = getattr(address, "ipv4_mapped", None)
    return bool((mapped or address).is_loopback)
