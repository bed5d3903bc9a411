"""All that is behind the MCP door, made when the first client comes."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import AsyncIterator
from typing import Any

from aiohttp import web
from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
from mcp.server.auth.provider import AccessToken
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.streamable_http_manager import StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from aios_nb.access import Principal
from aios_nb.config import KB, Limits
from aios_nb.journal import journal
from aios_nb.ports import AgentNews, Blobs
from aios_nb.wire.asgi import Headers, Message, Residence, answered
from aios_nb.wire.dispatch import Dispatcher
from aios_nb.wire.doors import Facts
from aios_nb.wire.guard import Refusal
from aios_nb.wire.mcp.brief import TOOLS_READ_HERE, Brief
from aios_nb.wire.mcp.callers import KEY, who
from aios_nb.wire.mcp.completion import Completion
from aios_nb.wire.mcp.express import Express
from aios_nb.wire.mcp.fixed import Fixtures
from aios_nb.wire.mcp.insession import InSession
from aios_nb.wire.mcp.news import Announcing
from aios_nb.wire.mcp.prompts import Prompts
from aios_nb.wire.mcp.resources import Resources
from aios_nb.wire.mcp.resumption import RETRY_MS, Kept
from aios_nb.wire.mcp.sending import Sending
from aios_nb.wire.mcp.server import KINDS, NAME, Everywhere, McpServer
from aios_nb.wire.mcp.sessions import IDLE_S, Session, Sessions
from aios_nb.wire.mcp.tools import Tools
from aios_nb.wire.replies import HEADERS, refused

SESSION, VERSION = "Mcp-Session-Id", "MCP-Protocol-Version"
LISTS = frozenset({"tools/list", "prompts/list", "resources/list", "resources/templates/list"})
_USERS = 1000
OPENING_BYTES = 20 * KB
"""What a client says of itself is kept as long as its session, and read it is many times larger."""
_TOO_LARGE = Refusal(413, f"the request that opens a session has {OPENING_BYTES // KB} KB at most")


class House:
    """The server, its sessions, and what is told to them."""

    def __init__(
        self,
        calls: Dispatcher,
        facts: Facts,
        limits: Limits,
        blobs: Blobs,
        *,
        news: AgentNews,
        conformance: bool,
    ) -> None:
        for name in ("mcp", "sse_starlette"):
            # Without a handler of its own Python prints warnings, which strangers can bring about.
            logging.getLogger(name).addHandler(journal)
        self._sessions = Sessions()
        self._sending = Sending(calls, facts, blobs)
        resources = Resources(calls)
        # A key for this start alone: what waited for an answer does not outlive it either.
        sealing = RequestStateSecurity(keys=[os.urandom(32)], bind_principal=lambda c: who(c).id)
        boundary = RequestStateBoundary(sealing, default_audience=NAME)
        self._server = McpServer(
            facts,
            self._sessions,
            Tools(calls, self._sending),
            resources,
            Prompts(resources),
            Completion(calls),
            boundary,
        )
        self._express = Express(self._sending, boundary, self._server.server_info_stamp)
        if conformance:
            self._server.fixtures = Fixtures(Everywhere(self._server.buses))
            self._server.fixtures.take_over(self._server)
        # The guard has looked at Host and Origin, the server at the size.
        security = TransportSecuritySettings(enable_dns_rebinding_protection=False)
        self._manager = StreamableHTTPSessionManager(
            self._server,
            event_store=Kept() if conformance else None,
            retry_interval=RETRY_MS if conformance else None,
            security_settings=security,
            max_request_body_size=limits.body_bytes,
            session_idle_timeout=IDLE_S,
            max_sessions=None,  # ``Sessions`` counts, for each caller
        )
        self._brief = Brief(self._server)
        self._in_session = InSession(self._sending)
        self._plain = StreamableHTTPSessionManager(
            self._server,
            json_response=True,
            security_settings=security,
            max_request_body_size=limits.body_bytes,
        )
        """For newer clients' requests that are answered at once: without a stream in between,
        which nobody would see, such a request costs a third less."""
        buses = {KINDS[kind]: bus for kind, bus in self._server.buses.items()}
        self._announcing = Announcing(news, facts.node_id, self._sessions, buses)
        self._users: dict[str, AuthenticatedUser] = {}
        self._residence: Residence | None = None
        self._ending: set[asyncio.Task[None]] = set()

    async def open(self) -> None:
        self._residence = Residence(self._lived_in())
        await self._residence.entered()

    @contextlib.asynccontextmanager
    async def _lived_in(self) -> AsyncIterator[None]:
        async with self._manager.run(), self._plain.run():
            telling = asyncio.create_task(self._announcing.run())
            try:
                yield
            finally:
                telling.cancel()
                await asyncio.wait([telling])

    async def answer(
        self, request: web.BaseRequest, caller: Principal, body: bytes
    ) -> web.StreamResponse:
        if (call := self._express.read(request, body)) is not None:
            return await self._express.answer(request, caller, call)
        version = request.headers.get(VERSION)
        if version is not None and version not in HANDSHAKE_PROTOCOL_VERSIONS:
            return await self._newer(request, caller, body)
        return await self._older(request, caller, body)

    async def _newer(
        self, request: web.BaseRequest, caller: Principal, body: bytes
    ) -> web.StreamResponse:
        """Each request by itself."""
        look = self._brief.by_itself(request, body)
        if look and (told := await self._brief.answer(request, caller, look)) is not None:
            return told
        manager = self._plain if self._is_plain(request) else self._manager
        scope = {KEY: caller, "user": self._user(caller)}
        return await answered(manager.handle_request, request, body, scope, patient=False)

    async def _older(
        self, request: web.BaseRequest, caller: Principal, body: bytes
    ) -> web.StreamResponse:
        """In a session, or to open one."""
        scope = {KEY: caller, "user": self._user(caller)}
        app = self._manager.handle_request
        id_ = request.headers.get(SESSION)
        if id_ is None:
            if len(body) > OPENING_BYTES:
                return refused(_TOO_LARGE)
            return await answered(
                app, request, body, scope, began=lambda headers: self._began(caller, headers)
            )
        session = self._sessions.get(id_)
        if session is None or session.who.id != caller.id:
            return await answered(app, request, body, scope)  # the SDK knows what to say
        if (told := await self._shortly(request, session, caller, body)) is not None:
            return told
        self._sessions.begin(session)
        try:
            return await answered(app, request, body, scope)
        finally:
            self._sessions.end(session)
            if request.method == "DELETE":
                self._sessions.gone(id_)
                self._in_session.end(id_)

    async def _shortly(
        self, request: web.BaseRequest, session: Session, caller: Principal, body: bytes
    ) -> web.StreamResponse | None:
        """The answer, where it needs nothing of the SDK's session."""
        if (call := self._in_session.read(request, session, body)) is not None:
            session.busy += 1
            try:
                return await self._in_session.answer(request, session, caller, call)
            finally:
                session.busy -= 1
                self._sessions.touch(session)
        if self._in_session.cancels(session, body):
            return web.Response(status=202, headers=HEADERS)
        if (look := self._brief.in_session(request, session, body)) is None:
            return None
        self._sessions.touch(session)
        return await self._brief.answer(request, caller, look)

    def _is_plain(self, request: web.BaseRequest) -> bool:
        """By what the headers say; the SDK refuses a request whose body says something else."""
        method = request.headers.get("Mcp-Method")
        return method in LISTS or (
            method == "tools/call" and request.headers.get("Mcp-Name") in TOOLS_READ_HERE
        )

    def _began(self, caller: Principal, headers: Headers) -> None:
        """An older client has opened a session, if its first request is answered well."""
        for name, value in headers:
            if name == b"mcp-session-id":
                for old in self._sessions.opened(value.decode("latin-1"), caller):
                    self._end(old)

    def _user(self, caller: Principal) -> AuthenticatedUser:
        """The caller as the SDK knows callers: a session is for who opened it, and nobody else."""
        user = self._users.get(caller.id)
        if user is None:
            if len(self._users) >= _USERS:
                self._users.clear()
            token = AccessToken(token="", client_id=caller.id, scopes=[])
            user = self._users[caller.id] = AuthenticatedUser(token)
        return user

    def shut_out(self, caller: str) -> None:
        for session in self._sessions.shut_out(caller):
            self._end(session)

    def _end(self, session: Session) -> None:
        task = asyncio.get_running_loop().create_task(self._ended(session))
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def _ended(self, session: Session) -> None:
        """End a session in the way its own client would."""
        self._in_session.end(session.id)
        asked = False

        async def receive() -> Message:
            nonlocal asked
            if asked:
                return {"type": "http.disconnect"}
            asked = True
            return {"type": "http.request", "body": b"", "more_body": False}

        async def send(_: Message) -> None:
            """Nobody reads the answer."""

        scope: dict[str, Any] = {
            "type": "http",
            "method": "DELETE",
            "path": "/mcp",
            "query_string": b"",
            "headers": [(b"mcp-session-id", session.id.encode("latin-1"))],
            KEY: session.who,
            "user": self._user(session.who),
        }
        await self._manager.handle_request(scope, receive, send)

    def leaving(self) -> None:
        """The node stops: from now on nobody's going away stops a run."""
        self._sending.leaving = True
        self._server.close_streams()

    async def close(self) -> None:
        if self._ending:
            await asyncio.wait(self._ending)
        if self._residence is not None:
            await self._residence.close()
        await self._sending.close()
