"""The short way for the one call that is made all the time: ``agent_send`` by a newer client.

The SDK takes about four times as long for it as the question and the answer themselves. A request
that is in every point as the protocol wants it is read and answered here. Whatever is missing,
new, or wrong makes it go the SDK's way, which knows what to say.
"""

from __future__ import annotations

import asyncio
from typing import Any, Literal

import msgspec
from aiohttp import web
from mcp.server.request_state import RequestStateBoundary
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import ERROR_CODE_HTTP_STATUS
from msgspec import UNSET, UnsetType

from aios_nb.access import Principal
from aios_nb.errors import RpcError
from aios_nb.wire.asgi import Stream
from aios_nb.wire.jsonrpc import NOT_JSON
from aios_nb.wire.mcp.callers import KEY
from aios_nb.wire.mcp.sending import Sending
from aios_nb.wire.mcp.tools import Send, failed
from aios_nb.wire.replies import HEADERS, JSON_HEADERS, json_reply

ERA = "2026-07-28"
METHOD, NAME = "tools/call", "agent_send"
PING_S = 15.0
"""A call that takes longer becomes a stream with a comment now and then, so that nobody on the way
takes silence for death."""
_PREFIX = "io.modelcontextprotocol/"
_STREAM_HEADERS = {**HEADERS, "Content-Type": "text/event-stream", "X-Accel-Buffering": "no"}
_OK = 200


class Part(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Of a request that is as it should be, and has nothing else in it."""


class _Elicitation(Part, frozen=True):
    form: dict[str, Any] | None = None
    url: dict[str, Any] | None = None


class _Sampling(Part, frozen=True):
    context: dict[str, Any] | None = None
    tools: dict[str, Any] | None = None


class _Capabilities(Part, frozen=True):
    elicitation: _Elicitation | None = None
    sampling: _Sampling | None = None
    roots: Part | None = None


class _Client(Part, frozen=True):
    name: str
    version: str
    title: str | UnsetType = UNSET
    description: str | UnsetType = UNSET


class _Meta(Part, frozen=True):
    version: Literal["2026-07-28"] = msgspec.field(name=f"{_PREFIX}protocolVersion")
    capabilities: _Capabilities = msgspec.field(name=f"{_PREFIX}clientCapabilities")
    client: _Client | UnsetType = msgspec.field(default=UNSET, name=f"{_PREFIX}clientInfo")


class _Params(Part, frozen=True):
    name: Literal["agent_send"]
    arguments: Send
    meta: _Meta = msgspec.field(name="_meta")


class _Request(Part, frozen=True):
    jsonrpc: Literal["2.0"]
    id: int | str
    method: Literal["tools/call"]
    params: _Params


_read = msgspec.json.Decoder(_Request).decode
_encode = msgspec.json.Encoder().encode


class _Context:
    """What ``Sending`` asks of a request. Takes the place of the SDK's own."""

    method = METHOD
    can_send_request = False
    request_state = input_responses = None

    def __init__(
        self, id_: int | str, arguments: Send, caller: Principal, version: str, capabilities: Any
    ) -> None:
        self.request_id = id_
        self.protocol_version = version
        self.client_capabilities = capabilities
        self.params = {"name": NAME, "arguments": msgspec.to_builtins(arguments)}
        self.scope = {KEY: caller}
        self.session = self.request = self


def context_of(
    id_: int | str, arguments: Send, caller: Principal, version: str, capabilities: Any = None
) -> Any:
    """The request as ``Sending`` wants it, without the SDK."""
    return _Context(id_, arguments, caller, version, capabilities)


class Express:
    """Answers such calls, and leaves all others alone."""

    def __init__(
        self, sending: Sending, boundary: RequestStateBoundary, server: dict[str, Any]
    ) -> None:
        """``boundary`` seals what a client carries for us; ``server`` is who we say we are."""
        self._sending = sending
        self._boundary = boundary
        self._meta = {f"{_PREFIX}serverInfo": server}

    def read(self, request: web.BaseRequest, body: bytes) -> _Request | None:
        """The call, if it is one for this way."""
        headers = request.headers
        accept = headers.get("Accept", "")
        if (
            headers.get("Mcp-Name") != NAME
            or request.method != "POST"
            or not Stream.suits(request)
            or headers.getall("MCP-Protocol-Version", ()) != [ERA]
            or headers.getall("Mcp-Method", ()) != [METHOD]
            or headers.getall("Mcp-Name", ()) != [NAME]
            or headers.get("Content-Type") != "application/json"
            or "application/json" not in accept
            or "text/event-stream" not in accept
        ):
            return None
        try:
            return _read(body)
        except NOT_JSON:
            return None

    async def answer(
        self, request: web.BaseRequest, caller: Principal, call: _Request
    ) -> web.StreamResponse:
        waiting = Waiting(request)
        try:
            told, status = await self._told(caller, call)
        finally:
            waiting.end()
        return told_to(request, waiting, call.id, told, status)

    async def _told(self, caller: Principal, call: _Request) -> tuple[dict[str, Any], int]:
        params = call.params
        ctx = context_of(call.id, params.arguments, caller, ERA, params.meta.capabilities)
        try:
            try:
                result = await self._sending.send(ctx, caller, call.params.arguments, ctx)
            except RpcError as error:
                result = failed(error)
            if result.setdefault("resultType", "complete") != "complete":
                result = await self._sealed(ctx, result)
        except MCPError as error:
            told = error.error.model_dump(by_alias=True, mode="json", exclude_none=True)
            return {"error": told}, ERROR_CODE_HTTP_STATUS.get(error.error.code, _OK)
        result["_meta"] = self._meta
        return {"result": result}, _OK

    async def _sealed(self, ctx: Any, result: dict[str, Any]) -> dict[str, Any]:
        async def given(_: Any) -> dict[str, Any]:
            return result

        sealed = await self._boundary(ctx, given)
        return dict(sealed)  # type: ignore[arg-type]


class Waiting:
    """Looks at the clock while an agent works; a client that waits long gets a stream."""

    def __init__(self, request: web.BaseRequest) -> None:
        self._request = request
        self.stream: Stream | None = None
        self._loop = asyncio.get_running_loop()
        self._timer = self._loop.call_later(PING_S, self._ping)

    def _ping(self) -> None:
        self.begin().push(b": ping\r\n\r\n")
        self._timer = self._loop.call_later(PING_S, self._ping)

    def begin(self) -> Stream:
        """The stream, from now on the way of the answer."""
        if self.stream is None:
            self.stream = Stream(self._request, _OK, _STREAM_HEADERS)
        return self.stream

    def end(self) -> None:
        self._timer.cancel()


def told_to(
    request: web.BaseRequest,
    waiting: Waiting,
    id_: int | str,
    told: dict[str, Any],
    status: int = _OK,
) -> web.StreamResponse:
    """The answer: by itself, or as the last event of a stream that was begun meanwhile."""
    said = _encode({"jsonrpc": "2.0", "id": id_, **told})
    if waiting.stream is not None:
        waiting.stream.push(b"event: message\r\ndata: %b\r\n\r\n" % said, last=True)
        return waiting.stream
    if status == _OK:
        return json_reply(request, said)
    return web.Response(status=status, body=said, headers=JSON_HEADERS)
