"""JSON-RPC over one websocket (``aios-rpc-1``): a signed hello, the token, then many calls at once.

The client speaks first, in three steps:

1. ``{"nonce": N}``, N = 32 random bytes as base64url without padding (43 characters). The server
   answers with its signed hello.
2. ``{"token": T}``. The server answers ``{"ok": true, "principal": ID}``, or closes with 4401.
3. JSON-RPC requests, batches and notifications, one per text or binary frame; each is answered in
   the kind of frame it came in.

A program that showed its token in the upgrade request starts at 3, and may still ask for the hello
first.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, TypeVar, cast

import msgspec
from aiohttp import WSCloseCode, WSMsgType, web

from aios_nb.access import ANYONE, Principal
from aios_nb.config import KB, Limits
from aios_nb.errors import Busy, Cancelled, InvalidParams, UsageError
from aios_nb.identity import read_nonce
from aios_nb.wire import jsonrpc
from aios_nb.wire.guard import Guard
from aios_nb.wire.jsonrpc import ABSENT, Call
from aios_nb.wire.methods import Answers
from aios_nb.wire.replies import HEADERS

if TYPE_CHECKING:
    from aios_nb.ports import Notices
    from aios_nb.wire.connection import Connection
    from aios_nb.wire.dispatch import Bound, Dispatcher
    from aios_nb.wire.methods import Handler

SUBPROTOCOL = "aios-rpc-1"
HEARTBEAT_S = 20.0
CLOSE_WAIT_S = 2.0
CLOSE_BAD_HELLO = 4400
CLOSE_WRONG_TOKEN = 4401
CLOSE_PLAIN_HTTP = 4403
CLOSE_TOO_SLOW = 4408
CLOSE_TOO_MANY = 4429
OUT_BYTES = 64 * KB
"""More than this does not wait for the end of the turn."""
FRAMES_PER_TURN = 100
"""A client that sends without end must let others have a turn."""
HELLO_BYTES = 4096
"""Either message of the handshake is shorter."""
UNPROVEN_BYTES = 4 * HELLO_BYTES
"""What may come before the token, and may then be held for it."""
_BODY = (WSMsgType.TEXT, WSMsgType.BINARY)

Hello = Callable[[bytes], Any]
"""Signs a nonce; gives the object to send."""


class Nonce(msgspec.Struct, forbid_unknown_fields=True):
    nonce: str


class Token(msgspec.Struct, forbid_unknown_fields=True):
    token: str


_Message = TypeVar("_Message", Nonce, Token)


class _Refused(Exception):
    """The handshake ends here."""

    def __init__(self, code: int, reason: bytes) -> None:
        super().__init__(code)
        self.code = code
        self.reason = reason


class Sockets:
    """All the websockets of a node, and the calls they have started."""

    def __init__(self, dispatcher: Dispatcher, guard: Guard, hello: Hello, limits: Limits) -> None:
        self.dispatcher = dispatcher
        self.guard = guard
        self.hello = hello
        self.limits = limits
        self.calls: set[asyncio.Future[Any]] = set()
        """Calls in flight; they outlive their socket."""
        self.flows = 0
        """Notices being sent, over all sockets."""
        self._open: set[Socket] = set()
        self._unproven: dict[Socket, None] = {}

    async def serve(self, request: web.BaseRequest, principal: Principal) -> web.StreamResponse:
        """Hold a conversation over the upgraded connection until either side ends it."""
        socket = Socket(self, request, principal)
        self._open.add(socket)
        if principal is ANYONE:
            self._unproven[socket] = None
            if len(self._unproven) > self.limits.ws_unproven:
                # As with connections: the oldest gives way, so that the owner gets in.
                next(iter(self._unproven)).hurry(CLOSE_TOO_MANY)
        try:
            return await socket.run()
        finally:
            self._open.discard(socket)
            self._unproven.pop(socket, None)

    def keep(self, call: asyncio.Future[Any]) -> None:
        """Hold on to a call until it is done."""
        self.calls.add(call)
        call.add_done_callback(self.calls.discard)

    def proven(self, socket: Socket) -> None:
        self._unproven.pop(socket, None)

    def shut_out(self, caller: str) -> None:
        """Close the sockets of that caller; it hears no answer any more."""
        for socket in tuple(self._open):
            if socket.principal.id == caller:
                socket.hurry(CLOSE_WRONG_TOKEN)

    async def close(self) -> None:
        """Close every socket, cancel every call."""
        for socket in tuple(self._open):
            socket.hurry(WSCloseCode.GOING_AWAY)
        await asyncio.sleep(0)  # a call that was made in this very turn gets to its first await
        for task in tuple(self.calls):
            task.cancel()
        if self.calls:
            await asyncio.wait(self.calls)


class Socket:
    """One connection: reads frames, answers what it can at once, keeps the rest in flight."""

    def __init__(self, sockets: Sockets, request: web.BaseRequest, principal: Principal) -> None:
        self._sockets = sockets
        self._dispatcher = sockets.dispatcher
        self._limits = sockets.limits
        self._request = request
        self._connection = cast("Connection", request.protocol)
        self.principal = principal
        self._loop = asyncio.get_running_loop()
        self._ws: web.WebSocketResponse[Any] = web.WebSocketResponse(
            protocols=(SUBPROTOCOL,),
            compress=False,
            heartbeat=HEARTBEAT_S,
            max_msg_size=sockets.limits.body_bytes,
            timeout=CLOSE_WAIT_S,
            decode_text=False,
        )
        self._ws.headers.update(HEADERS)
        self._calls = 0
        self._out: list[bytes] = []
        self._out_bytes = 0
        self._watches: dict[str, asyncio.Task[None]] = {}
        self._flows: set[asyncio.Task[None]] = set()
        self._watch_ids = itertools.count(1)
        self._reader: asyncio.Task[Any] | None = None
        self._hurry: int | None = None

    async def run(self) -> web.StreamResponse:
        """Serve until the socket is closed by either side."""
        self._reader = asyncio.current_task()
        code, reason = int(WSCloseCode.OK), b""
        try:
            await self._ws.prepare(self._request)
            if await self._introduce():
                await self._serve()
        except _Refused as refused:
            code, reason = refused.code, refused.reason
        except ConnectionError:
            code = WSCloseCode.GOING_AWAY
        except asyncio.CancelledError:
            if self._hurry is None or self._reader is None or self._reader.uncancel() > 0:
                raise
            code = self._hurry
        finally:
            self._reader = None
            for flow in tuple(self._flows):
                flow.cancel()
            self._flush()
        if not self._ws.prepared:
            raise ConnectionResetError("the client has gone")
        if not self._ws.closed:
            await self._ws.close(code=code, message=reason)
        return self._ws

    def hurry(self, code: int) -> None:
        """End this socket soon, with that close code."""
        if self._reader is not None and self._hurry is None:
            self._hurry = code
            self._reader.cancel()

    # The handshake --------------------------------------------------------------------

    async def _introduce(self) -> bool:
        """True when the caller is known. A caller known by its header may skip all of it."""
        if self.principal is not ANYONE:
            self._sockets.proven(self)
            return True
        self._connection.quota = UNPROVEN_BYTES
        try:
            async with asyncio.timeout(self._limits.hello_wait_s):
                return await self._handshake()
        except TimeoutError:
            raise _Refused(CLOSE_TOO_SLOW, b"the hello took too long") from None

    async def _handshake(self) -> bool:
        first = await self._ws.receive()
        if first.type not in _BODY:
            return False
        if not self._greet(first.data, first.type):
            raise _Refused(CLOSE_BAD_HELLO, b"first send {nonce}, 32 bytes as base64url")
        second = await self._ws.receive()
        if second.type not in _BODY:
            return False
        guard = self._sockets.guard
        if not guard.may_carry_token(self._request.headers, self._connection.peer):
            raise _Refused(CLOSE_PLAIN_HTTP, b"no token over plain HTTP: use https")
        token = _short(second.data, Token)
        principal = guard.by_token(token.token) if token else None
        if principal is None:
            raise _Refused(CLOSE_WRONG_TOKEN, b"that is not a token of this node")
        self.principal = principal
        self._sockets.proven(self)
        self._connection.quota = None
        self._connection.prove()
        self._send(jsonrpc.encode({"ok": True, "principal": principal.id}), second.type)
        return True

    def _greet(self, data: bytes, kind: int) -> bool:
        nonce = _short(data, Nonce)
        if nonce is None:
            return False
        try:
            answer = self._sockets.hello(read_nonce(nonce.nonce))
        except UsageError:
            return False
        self._send(jsonrpc.encode(answer), kind)
        return True

    # Calls ----------------------------------------------------------------------------

    async def _serve(self) -> None:
        ws = self._ws
        connection = self._connection
        may_greet = True
        for turn in itertools.count(1):
            frame = await ws.receive()
            if frame.type not in _BODY:
                return
            if may_greet:
                may_greet = False
                if self._greet(frame.data, frame.type):
                    continue
            self._take(frame.data, frame.type)
            if connection.writing_paused:
                # Who does not read is not read: nothing may pile up here.
                await connection.drained()
            elif turn % FRAMES_PER_TURN == 0:
                await asyncio.sleep(0)

    def _take(self, data: bytes, kind: int) -> None:
        got = self._dispatcher.read(data)
        if type(got) is not Call:
            if type(got) is bytes:
                self._send(got, kind)
            else:
                self._take_batch(cast("jsonrpc.Batch", got), kind)
            return
        try:
            self._start(got, kind)
        except Exception as problem:  # noqa: BLE001 - every failure is answered
            self._send(self._dispatcher.failure(got, problem), kind)

    def _take_batch(self, batch: jsonrpc.Batch, kind: int) -> None:
        size = len(batch.members)
        if self._calls + size > self._limits.ws_calls:
            self._send(jsonrpc.error(jsonrpc.NULL_ID, _too_many_calls()), kind)
        else:
            self._later(self._dispatcher.answer_batch(self.principal, batch), kind, size)

    def _start(self, call: Call, kind: int) -> None:
        bound = self._dispatcher.find(self.principal, call.method)
        if bound.kind is Answers.CALL:
            if self._calls >= self._limits.ws_calls:
                raise _too_many_calls()
            answer = self._dispatcher.answer_call(self.principal, call)
            if isinstance(answer, bytes):
                self._send(answer, kind)
            else:
                self._later(answer, kind)
        elif bound.kind is Answers.SOCKET:
            watch = bound.params(call.params).watch
            self._unwatch(watch)
            if call.id is not ABSENT:
                self._send(jsonrpc.result(call.id, {"watch": watch}), kind)
        else:
            self._open(bound, call, kind)

    def _later(self, answer: Awaitable[bytes], kind: int, size: int = 1) -> None:
        self._calls += size
        self._sockets.keep(self._loop.create_task(self._finish(answer, kind, size)))

    async def _finish(self, answer: Awaitable[bytes], kind: int, size: int) -> None:
        try:
            self._send(await answer, kind)
        finally:
            self._calls -= size

    # Notices --------------------------------------------------------------------------

    def _open(self, bound: Bound, call: Call, kind: int) -> None:
        if self._sockets.flows >= self._limits.open_streams:
            raise Busy("too many open streams on this node", hint="close some")
        params = bound.params(call.params)
        watch = f"w{next(self._watch_ids)}"
        flow = self._loop.create_task(self._flow(bound, params, call, watch, kind))
        self._sockets.flows += 1
        self._flows.add(flow)
        self._watches[watch] = flow
        flow.add_done_callback(lambda _: self._flow_ended(flow, watch))

    def _flow_ended(self, flow: asyncio.Task[None], watch: str) -> None:
        self._sockets.flows -= 1
        self._flows.discard(flow)
        self._watches.pop(watch, None)

    def _unwatch(self, watch: str) -> None:
        flow = self._watches.pop(watch, None)
        if flow is None:
            raise InvalidParams(f"no watch {watch} on this connection")
        flow.cancel()

    async def _flow(self, bound: Bound, params: Any, call: Call, watch: str, kind: int) -> None:
        notices: Notices | None = None
        try:
            # Called here, not before: a socket that closes at once leaves nothing half begun.
            given = cast("Handler", bound.handler)(self.principal, params)
            notices = await self._opened(given) if hasattr(given, "__await__") else given
            await self._pump(cast("Notices", notices), call, watch, kind)
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling():
                return
            self._send(self._dispatcher.failure(call, Cancelled(f"{call.method} ended")), kind)
        except ConnectionError:
            return
        except Exception as problem:  # noqa: BLE001 - every failure is answered
            self._send(self._dispatcher.failure(call, problem), kind)
        finally:
            if notices is not None:
                notices.close()

    async def _opened(self, opening: Awaitable[Notices]) -> Notices:
        """The notices. A socket that closes meanwhile does not cut the method in the middle."""
        task = asyncio.ensure_future(opening)
        self._sockets.keep(task)
        try:
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            task.add_done_callback(_close_unheard)
            raise

    async def _pump(self, notices: Notices, call: Call, watch: str, kind: int) -> None:
        head = jsonrpc.notification_head(notices.notification)
        if notices.result_first:
            opened = msgspec.to_builtins(await notices.result()) or {}
            if call.id is not ABSENT:
                self._send(jsonrpc.result(call.id, {**opened, "watch": watch}), kind)
            head += b'{"watch":"%b",' % watch.encode()
        else:
            self._watches.pop(watch, None)  # a stream ends by itself
        connection = self._connection
        async for item in notices:
            params = jsonrpc.encode(item)
            # An event is an object with members: its own brace gives way to the one in the head.
            self._send(b"%b%b}" % (head, params[1:] if notices.result_first else params), kind)
            if not self._out:  # just written: this flow may be one that never pauses
                await asyncio.sleep(0)
            if connection.writing_paused:
                await connection.drained()
        if not notices.result_first and call.id is not ABSENT:
            self._send(jsonrpc.result(call.id, await notices.result()), kind)

    # Frames ---------------------------------------------------------------------------

    def _send(self, data: bytes, kind: int) -> None:
        """Queue a frame; all frames of one turn of the loop leave in one write."""
        if not data:
            return
        size = len(data)
        if size < 126:  # noqa: PLR2004 - RFC 6455, section 5.2
            head = bytes((0x80 | kind, size))
        elif size < 1 << 16:
            head = b"%c\x7e%b" % (0x80 | kind, size.to_bytes(2, "big"))
        else:
            head = b"%c\x7f%b" % (0x80 | kind, size.to_bytes(8, "big"))
        if not self._out:
            self._loop.call_soon(self._flush)
        self._out.append(head)
        self._out.append(data)
        self._out_bytes += size
        if self._out_bytes > OUT_BYTES:
            self._flush()

    def _flush(self) -> None:
        if not self._out:
            return
        data = b"".join(self._out)
        self._out.clear()
        self._out_bytes = 0
        transport = self._request.transport
        if transport is not None and not transport.is_closing() and not self._ws.closed:
            transport.write(data)


def _too_many_calls() -> Busy:
    return Busy("too many calls on this connection", hint="wait for some to end")


def _close_unheard(opened: asyncio.Future[Notices]) -> None:
    if not opened.cancelled() and opened.exception() is None:
        opened.result().close()


def _short(data: bytes, type_: type[_Message]) -> _Message | None:
    if len(data) > HELLO_BYTES:
        return None
    try:
        return msgspec.json.decode(data, type=type_)
    except jsonrpc.NOT_JSON:
        return None
