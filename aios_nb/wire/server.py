"""The one HTTP port of a node: guard, then route, then answer."""

from __future__ import annotations

import asyncio
import errno
import ipaddress
import logging
import socket
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, cast

import msgspec
from aiohttp import HttpVersion11, web

from aios_nb.access import ANYONE, Principal
from aios_nb.config import MB, Limits
from aios_nb.errors import Busy, UsageError
from aios_nb.wire import jsonrpc, uid, websocket
from aios_nb.wire.blobs import PREFIX as BLOBS
from aios_nb.wire.blobs import BlobRoute, Files
from aios_nb.wire.connection import Connection, Listener, next_piece
from aios_nb.wire.dispatch import Dispatcher
from aios_nb.wire.doors import Door
from aios_nb.wire.guard import NEEDS_TOKEN, TOO_MANY, WRONG_TOKEN, Guard, Need, Refusal
from aios_nb.wire.methods import Answers
from aios_nb.wire.porch import LET_THROUGH_PER_TURN, Porch, Shuts, is_held_back, never
from aios_nb.wire.replies import head_reply, json_reply, nothing, refused
from aios_nb.wire.sse import Events

log = logging.getLogger(__name__)

BACKLOG = 1024
PEER = "aios-peer-1"
"""The subprotocol of links to other nodes."""
PORT_MAX = 65_535
STOP_WAIT_S = 1.0
"""How long answers that are being written may take when the server stops."""

Link = Callable[[web.BaseRequest, Principal], Awaitable[web.StreamResponse]]
"""Takes over an upgrade request for one websocket subprotocol."""


class Route(msgspec.Struct, frozen=True):
    """What a path takes and asks. One that ends with a slash stands for all that is below it."""

    path: str
    methods: frozenset[str]
    need: Need


_READ = frozenset({"GET", "HEAD"})
_POST = frozenset({"POST"})
ROUTES: Mapping[str, Route] = {
    route.path: route
    for route in (
        Route("/rpc", _POST, Need.TOKEN),
        Route("/ws", frozenset({"GET"}), Need.HELLO),
        Route("/healthz", _READ, Need.NOTHING),
        Route("/.well-known/aios.json", _READ, Need.NOTHING),
        Route(BLOBS, _READ | {"PUT"}, Need.TOKEN),
        Route("/mcp", frozenset({"GET", "POST", "DELETE"}), Need.OPEN),
        Route("/agents/", _READ | {"POST"}, Need.OPEN),
        Route("/.well-known/agent-card.json", _READ, Need.OPEN),
        Route("/.well-known/ard.json", _READ, Need.OPEN),
        Route("/.well-known/ai-catalog.json", _READ, Need.OPEN),
        Route("/api/search", _POST, Need.OPEN),
        Route("/api/agents", _READ, Need.OPEN),
        Route("/api/agents/", _READ, Need.OPEN),
        Route("/api/explore", _POST, Need.OPEN),
    )
}
"""Every path by itself."""

_PREFIXES = tuple(route for path, route in ROUTES.items() if path.endswith("/"))
_RPC = ROUTES["/rpc"]
_HEALTHZ = ROUTES["/healthz"]
_NO_ROUTE = Refusal(404, "nothing is served here", "JSON-RPC is at POST /rpc")
_NOT_JSON = Refusal(415, "JSON-RPC is sent as application/json")
_HEALTHY = b'{"status":"ok"}'
_FORM_TYPES = ("text/plain", "application/x-www-form-urlencoded", "multipart/form-data")
"""What a page can send anywhere without asking first."""


class Server:
    """Serves a dispatcher, files and the node's own record over HTTP."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        files: Files,
        guard: Guard,
        hello: websocket.Hello,
        wellknown: Callable[[], Any],
        *,
        limits: Limits | None = None,
        links: Mapping[str, Link] | None = None,
        doors: Mapping[str, Door] | None = None,
    ) -> None:
        """``hello`` signs a nonce, ``wellknown`` gives the node's record.

        ``links`` adds websocket subprotocols to ``aios-rpc-1``. ``doors`` answer for the routes
        that are open to anyone, by path; a route without one is not there.
        """
        self._limits = limits or Limits()
        self._dispatcher = dispatcher
        self._guard = guard
        self._wellknown = wellknown
        self._doors = dict(doors or {})
        self._blobs = BlobRoute(files, self._limits)
        self.sockets = websocket.Sockets(dispatcher, guard, hello, self._limits)
        self._links: dict[str, Link] = {websocket.SUBPROTOCOL: self.sockets.serve, **(links or {})}
        self._events: dict[Events, str] = {}
        """Open streams, and whose they are."""
        self._shut_out: set[str] = set()
        self._listener: Listener | None = None
        self._accepting: asyncio.Server | Porch | None = None
        self._too_large = Refusal(
            413, f"a request may have {self._limits.body_bytes / MB:g} MB at most"
        )

    async def start(self, host: str, port: int) -> tuple[str, int]:
        """Listen, and return where. Raises ``UsageError`` when that cannot be."""
        if self._accepting is not None:
            raise UsageError("this server is already running")
        bound = _bind("127.0.0.1" if host == "localhost" else host, port)
        address, chosen = bound.getsockname()[:2]
        if not self._guard.is_wide and not ipaddress.ip_address(address).is_loopback:
            bound.close()
            raise UsageError(
                f"{host} can be reached from other machines",
                hint="add --public-url URL or --allow-host NAME if that is meant",
            )
        by_uid = not self._guard.is_wide and uid.is_told()
        if not self._guard.is_wide and not by_uid:
            log.info("this system does not tell whose a connection is: the token alone decides")
        self._guard.bound(chosen)
        self._listener = Listener(self._answer, self._limits, by_uid=by_uid)
        self._accepting = await self._accept(bound, self._listener)
        return address, chosen

    async def _accept(self, bound: socket.socket, listener: Listener) -> asyncio.Server | Porch:
        if is_held_back():
            peer = self._links.get(PEER)
            return Porch(
                bound,
                listener,
                subprotocol=PEER,
                turns_away=peer.turns_away if isinstance(peer, Shuts) else never,
                answers_to=self._guard.answers_to,
            )
        loop = asyncio.get_running_loop()
        accepting = await loop.create_server(listener, sock=bound, backlog=LET_THROUGH_PER_TURN)
        bound.listen(BACKLOG)  # asyncio takes one number for the queue and for a turn of its loop
        return accepting

    def shut_out(self, caller: str) -> None:
        """Let go of a caller whose token is good no more: its sockets, streams and answers."""
        self._shut_out.add(caller)
        self.sockets.shut_out(caller)
        for door in self._all_doors():
            door.shut_out(caller)
        for events, whose in tuple(self._events.items()):
            if whose == caller:
                events.end()

    async def stop(self) -> None:
        """Close everything: no socket and no task is left. Harmless when not running."""
        accepting, listener = self._accepting, self._listener
        self._accepting = self._listener = None
        if accepting is None or listener is None:
            return
        accepting.close()
        for events in tuple(self._events):
            events.end()
        await self.sockets.close()
        for door in self._all_doors():
            await door.close()
        await listener.finish(STOP_WAIT_S)
        await accepting.wait_closed()

    def _all_doors(self) -> set[Door]:
        """Each once: one may answer for several paths."""
        return set(self._doors.values())

    async def _answer(self, request: web.BaseRequest) -> web.StreamResponse:
        connection = cast("Connection", request.protocol)
        connection.due = None
        connection.busy = True
        try:
            admitted = self._admit(request, connection)
            if isinstance(admitted, Refusal):
                return _refused(request, admitted)
            route, who = admitted
            if route is _RPC:
                return await self._rpc(request, connection, who)
            return await self._other(request, route, who)
        finally:
            connection.busy = False

    def _admit(
        self, request: web.BaseRequest, connection: Connection
    ) -> tuple[Route, Principal] | Refusal:
        """The route and the caller, if the one is for the other."""
        guard, headers = self._guard, request.headers
        if (refusal := guard.screen(headers, connection.peer)) is not None:
            return refusal
        path = request.raw_path
        route = _RPC if path == "/rpc" else _route(path.partition("?")[0])
        if route is None or (route.need is Need.OPEN and route.path not in self._doors):
            return guard.refuse(_NO_ROUTE, headers, connection.peer)
        if request.method not in route.methods:
            return guard.refuse(_wrong_method(route), headers, connection.peer)
        who = guard.identify(headers, connection.peer, route.need)
        if isinstance(who, Refusal):
            return who
        if who is not ANYONE and not connection.proven:
            connection.prove()
        return route, who

    async def _other(
        self, request: web.BaseRequest, route: Route, who: Principal
    ) -> web.StreamResponse:
        if route.need is Need.HELLO:
            return await self._upgrade(request, who)
        if route.need is Need.OPEN:
            return await self._through(self._doors[route.path], request, who)
        if route.need is Need.TOKEN:
            if not self._guard.may_change(who):
                return refused(self._guard.refuse(NEEDS_TOKEN))
            await _continue(request)
            return await self._blobs.answer(request, who)
        body = _HEALTHY if route is _HEALTHZ else jsonrpc.encode(self._wellknown())
        return json_reply(request, body) if request.method == "GET" else head_reply(body)

    async def _through(
        self, door: Door, request: web.BaseRequest, who: Principal
    ) -> web.StreamResponse:
        connection = cast("Connection", request.protocol)
        body = await self._body(request, connection, who)
        if isinstance(body, Refusal):
            return refused(body)
        if who is ANYONE and not self._guard.may_read(body.count(b"[") + body.count(b"{")):
            return refused(TOO_MANY)
        return await connection.while_there(door.answer(request, who, body))

    # JSON-RPC -------------------------------------------------------------------------

    async def _rpc(
        self, request: web.BaseRequest, connection: Connection, who: Principal
    ) -> web.StreamResponse:
        headers = request.headers
        sent_as = headers.get("Content-Type")
        if (
            sent_as is not None
            and sent_as != "application/json"
            and sent_as.lower().startswith(_FORM_TYPES)
        ):
            return refused(_NOT_JSON)
        body = await self._body(request, connection, who)
        if isinstance(body, Refusal):
            return refused(body)
        accepts = headers.get("Accept")
        if accepts is not None and "text/event-stream" in accepts:
            return await self._stream(request, who, body)
        answer = self._dispatcher.answer(who, body)
        if not isinstance(answer, bytes):
            answer = await answer
        return self._said(request, who, answer)

    def _said(self, request: web.BaseRequest, who: Principal, answer: bytes) -> web.StreamResponse:
        if who.id in self._shut_out:  # since it asked
            return refused(WRONG_TOKEN)
        return json_reply(request, answer) if answer else nothing()

    async def _body(
        self, request: web.BaseRequest, connection: Connection, who: Principal
    ) -> bytes | Refusal:
        """All of it; most bodies come with their head. Waiting, a caller may be shut out."""
        most = self._limits.body_bytes
        payload = request.content
        if payload.is_eof():
            body = payload.read_nowait(-1)
            return body if len(body) <= most else self._too_large
        if (request.content_length or 0) > most:
            return self._too_large
        await _continue(request)
        connection.expect(self._limits.body_wait_s)
        parts = bytearray()
        while chunk := await next_piece(request):
            parts += chunk
            if len(parts) > most:
                connection.due = None
                return self._too_large
        connection.due = None
        return WRONG_TOKEN if who.id in self._shut_out else bytes(parts)

    async def _stream(
        self, request: web.BaseRequest, who: Principal, body: bytes
    ) -> web.StreamResponse:
        call = self._dispatcher.read(body)
        if not isinstance(call, jsonrpc.Call):
            answer = self._dispatcher.answer(who, body)
        else:
            try:
                bound = self._dispatcher.find(who, call.method)
                if bound.kind is Answers.NOTICES and not call.is_notification:
                    return await self._notices(request, who, call)
                answer = self._dispatcher.answer_call(who, call)
            except Exception as problem:  # noqa: BLE001 - every failure is answered
                answer = self._dispatcher.failure(call, problem)
        if not isinstance(answer, bytes):
            answer = await answer
        return self._said(request, who, answer)

    async def _notices(
        self, request: web.BaseRequest, who: Principal, call: jsonrpc.Call
    ) -> web.StreamResponse:
        if len(self._events) >= self._limits.open_streams:
            raise Busy("too many open streams on this node", hint="close some")
        events = Events(request)
        self._events[events] = who.id
        try:
            _, notices = self._dispatcher.start(who, call)
            if hasattr(notices, "__await__"):
                notices = await notices
            if who.id in self._shut_out:
                notices.close()
                return refused(WRONG_TOKEN)
            return await events.send(self._dispatcher, call, notices)
        finally:
            del self._events[events]

    # Websockets -----------------------------------------------------------------------

    async def _upgrade(self, request: web.BaseRequest, who: Principal) -> web.StreamResponse:
        offered = [name.strip() for name in _all(request, "Sec-WebSocket-Protocol")]
        link = next((self._links[name] for name in offered if name in self._links), None)
        if link is None:
            if PEER in offered:
                return _refused(request, Refusal(400, "peer links are not enabled on this node"))
            hint = f"name the subprotocol {websocket.SUBPROTOCOL}"
            return _refused(
                request, Refusal(400, "no websocket subprotocol that is served here", hint)
            )
        try:
            ready = web.WebSocketResponse(protocols=offered).can_prepare(request).ok
        except ValueError:  # a key that is not even ASCII
            ready = False
        if not ready:
            return _refused(request, Refusal(400, "this is not a websocket upgrade request"))
        return await link(request, who)


def _refused(request: web.BaseRequest, refusal: Refusal) -> web.Response:
    answer = refused(refusal)
    if "Upgrade" in request.headers:
        # Such a client may have sent more that is not HTTP.
        answer.force_close()
    return answer


def _route(path: str) -> Route | None:
    found = ROUTES.get(path)
    if found is None:
        return next((route for route in _PREFIXES if path.startswith(route.path)), None)
    return None if found in _PREFIXES else found


def _wrong_method(route: Route) -> Refusal:
    allowed = ", ".join(sorted(route.methods))
    return Refusal(405, f"this takes {allowed}", None, (("Allow", allowed),))


def _all(request: web.BaseRequest, name: str) -> list[str]:
    return ",".join(request.headers.getall(name, ())).split(",")


async def _continue(request: web.BaseRequest) -> None:
    """Let a client go on that asked before sending a large body."""
    if request.headers.get("Expect", "").lower() == "100-continue" and (
        request.version == HttpVersion11 and request.transport is not None
    ):
        request.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")


def _bind(host: str, port: int) -> socket.socket:
    if not 0 <= port <= PORT_MAX:  # the system would take the rest of the division
        raise UsageError(f"there is no port {port}", hint=f"choose 0 to {PORT_MAX}")
    try:
        found = socket.getaddrinfo(
            host or None, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )
    except (OSError, UnicodeError):
        raise UsageError(f"{host!r} is no address of this machine") from None
    family, _, _, _, address = found[0]
    # With protocol 0 asyncio would leave Nagle's delay on.
    listening = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listening.bind(address)
        listening.listen(BACKLOG)
    except OSError as problem:
        listening.close()
        raise _bind_problem(host, port, problem) from None
    listening.setblocking(False)  # noqa: FBT003
    return listening


def _bind_problem(host: str, port: int, problem: OSError) -> UsageError:
    code = problem.errno
    if code == errno.EADDRINUSE:
        return UsageError(
            f"port {port} on {host} is in use", hint="choose another, or leave it out for any"
        )
    if code == errno.EACCES:
        return UsageError(f"port {port} needs more rights", hint="choose one above 1023")
    if code == errno.EADDRNOTAVAIL:
        return UsageError(f"{host!r} is no address of this machine")
    return UsageError(f"cannot listen on {host} port {port}")
