"""The short way for ``agent_send`` by an older client, in its session.

The SDK answers such a call by a stream of events, with five tasks around it. A client that shows no
progress and no forms needs none of that: the answer is all it waits for. One that does goes the
SDK's way, and so does whatever is missing, new, or wrong.
"""

from __future__ import annotations

import asyncio
import time
from typing import Any, Literal, cast

import msgspec
from aiohttp import web
from mcp.server.streamable_http import REQUEST_CANCELLED
from mcp.shared.exceptions import MCPError
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS

from aios_nb.access import Principal
from aios_nb.errors import RpcError
from aios_nb.wire.asgi import Stream
from aios_nb.wire.connection import Connection
from aios_nb.wire.jsonrpc import NOT_JSON
from aios_nb.wire.mcp.brief import REFRESH_S
from aios_nb.wire.mcp.express import Part, Waiting, context_of, told_to
from aios_nb.wire.mcp.sending import Sending
from aios_nb.wire.mcp.sessions import Session
from aios_nb.wire.mcp.tools import Send, failed

_VERSION = "MCP-Protocol-Version"
_CANCELLED = b'"notifications/cancelled"'


class _Params(Part, frozen=True):
    name: Literal["agent_send"]
    arguments: Send
    meta: Part | None = msgspec.field(default=None, name="_meta")


class Call(Part, frozen=True):
    jsonrpc: Literal["2.0"]
    id: int | str
    method: Literal["tools/call"]
    params: _Params


class _Which(msgspec.Struct, rename="camel", frozen=True):
    request_id: int | str


class _Cancelled(msgspec.Struct, frozen=True):
    jsonrpc: Literal["2.0"]
    method: Literal["notifications/cancelled"]
    params: _Which


_read = msgspec.json.Decoder(Call).decode
_read_cancelled = msgspec.json.Decoder(_Cancelled).decode


class InSession:
    """Answers such calls, and leaves all others alone."""

    def __init__(self, sending: Sending) -> None:
        self._sending = sending
        self._running: dict[tuple[str, int | str], asyncio.Task[Any]] = {}
        self._cancelled: set[tuple[str, int | str]] = set()

    def read(self, request: web.BaseRequest, session: Session, body: bytes) -> Call | None:
        """The call, if it is one for this way."""
        headers = request.headers
        accept = headers.get("Accept", "")
        if (
            session.peer is None
            or session.peer.client_capabilities is None
            or session.peer.client_capabilities.elicitation is not None
            or time.monotonic() - session.deep > REFRESH_S
            or request.method != "POST"
            or not Stream.suits(request)
            or headers.get(_VERSION) not in HANDSHAKE_PROTOCOL_VERSIONS
            or headers.get("Content-Type") != "application/json"
            or "application/json" not in accept
            or "text/event-stream" not in accept
        ):
            return None
        try:
            call = _read(body)
        except NOT_JSON:
            return None
        return None if (session.id, call.id) in self._running else call

    async def answer(
        self, request: web.BaseRequest, session: Session, caller: Principal, call: Call
    ) -> web.StreamResponse:
        key = (session.id, call.id)
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a coroutine runs in one
        # By the older protocol a broken connection is no wish to cancel.
        cast("Connection", request.protocol).on_lost = None
        self._running[key] = task
        waiting = Waiting(request)
        try:
            told = await self._told(caller, call, request.headers[_VERSION])
        except asyncio.CancelledError:
            if key not in self._cancelled:
                raise
            task.uncancel()
            waiting.begin()  # the SDK's client breaks on plain JSON that it does not wait for
            told = {"error": {"code": REQUEST_CANCELLED, "message": "Request cancelled"}}
        finally:
            waiting.end()
            del self._running[key]
            self._cancelled.discard(key)
        return told_to(request, waiting, call.id, told)

    async def _told(self, caller: Principal, call: Call, version: str) -> dict[str, Any]:
        arguments = call.params.arguments
        ctx = context_of(call.id, arguments, caller, version)
        try:
            try:
                result = await self._sending.send(ctx, caller, arguments, ctx)
            except RpcError as error:
                result = failed(error)
        except MCPError as error:
            told = error.error.model_dump(by_alias=True, mode="json", exclude_none=True)
            return {"error": told}
        return {"result": result}

    def cancels(self, session: Session, body: bytes) -> bool:
        """Whether this asks to stop a call that is answered here; then it is stopped."""
        if not self._running or _CANCELLED not in body:
            return False
        try:
            key = (session.id, _read_cancelled(body).params.request_id)
        except NOT_JSON:
            return False
        task = self._running.get(key)
        if task is None:
            return False
        self._stop(key, task)
        return True

    def end(self, session_id: str) -> None:
        """That session is over, and with it what it asked for."""
        for key, task in tuple(self._running.items()):
            if key[0] == session_id:
                self._stop(key, task)

    def _stop(self, key: tuple[str, int | str], task: asyncio.Task[Any]) -> None:
        self._cancelled.add(key)
        task.cancel()
