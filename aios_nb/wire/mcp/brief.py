"""The short way for a client that looks something up: an answer without a stream around it.

The SDK answers each request of an older session by a stream of events, with five tasks for one
answer; for a newer client it wraps and unwraps the HTTP request several times. What only reads, and
is there at once, needs none of that. The SDK still checks and shapes it; a request that is in any
point unusual, or that fails, goes its long way.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Literal

import anyio
import msgspec
from aiohttp import web
from mcp.server.connection import Connection
from mcp.server.lowlevel.server import Server
from mcp.server.runner import serve_one
from mcp.shared.exceptions import NoBackChannelError
from mcp.shared.inbound import InboundModernRoute, classify_inbound_request
from mcp.shared.message import ServerMessageMetadata
from mcp.shared.transport_context import TransportContext
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS

from aios_nb.access import Principal
from aios_nb.wire.jsonrpc import NOT_JSON
from aios_nb.wire.mcp.callers import KEY
from aios_nb.wire.mcp.sessions import IDLE_S, Session
from aios_nb.wire.mcp.tools import TOOLS
from aios_nb.wire.replies import json_reply

TOOLS_READ_HERE = frozenset(tool.name for tool in TOOLS if not tool.looks_out)
"""What is looked up here and nowhere else."""
REFRESH_S = IDLE_S / 6
"""After so long a request goes the long way again: the SDK ends sessions that are silent."""
_VERSION = "MCP-Protocol-Version"
_ROUTING = (_VERSION, "Mcp-Method", "Mcp-Name")
"""What a newer client says of its request in the head as well."""
_TRANSPORT = TransportContext(kind="streamable-http", can_send_request=False)


class Call(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    jsonrpc: Literal["2.0"]
    id: int | str
    method: Literal["tools/call"]
    params: dict[str, Any]


class Look(msgspec.Struct, frozen=True):
    """A call for this way, and what its client has said of itself."""

    call: Call
    version: str
    client: Any = None
    capabilities: Any = None


_read = msgspec.json.Decoder(Call).decode
_encode = msgspec.json.Encoder().encode


class _Exchange:
    """One request and its answer: there is no way back to the client but that."""

    transport = _TRANSPORT
    can_send_request = False

    def __init__(self, request_id: int | str, request: _Request) -> None:
        self.request_id = request_id
        self.message_metadata = ServerMessageMetadata(request_context=request)
        self.cancel_requested = anyio.Event()

    async def send_raw_request(self, method: str, *_: Any) -> dict[str, Any]:
        raise NoBackChannelError(method)

    async def notify(self, *_: Any) -> None:
        """Nobody would hear it."""

    async def progress(self, *_: Any) -> None:
        """It is done at once."""


class _Request:
    """What handlers look at of the HTTP request."""

    def __init__(self, caller: Principal, headers: Mapping[str, str]) -> None:
        self.scope = {KEY: caller}
        self.headers = headers


class Brief:
    """Answers such calls, and leaves all others alone."""

    def __init__(self, server: Server[Any]) -> None:
        self._server = server

    def in_session(self, request: web.BaseRequest, session: Session, body: bytes) -> Look | None:
        """The call of an older client, if it is one for this way."""
        version = request.headers.get(_VERSION)
        if (
            session.peer is None
            or time.monotonic() - session.deep > REFRESH_S
            or version not in HANDSHAKE_PROTOCOL_VERSIONS
        ):
            return None
        call = _call(request, body)
        return None if call is None else Look(call, version)

    def by_itself(self, request: web.BaseRequest, body: bytes) -> Look | None:
        """The call of a newer client, if it is one for this way."""
        headers = request.headers
        if (
            headers.get("Mcp-Name") not in TOOLS_READ_HERE
            or headers.get(_VERSION) not in MODERN_PROTOCOL_VERSIONS
            or any(len(headers.getall(name, ())) != 1 for name in _ROUTING)
            or any(name.lower().startswith("mcp-param-") for name in headers)
            or (call := _call(request, body)) is None
        ):
            return None
        said = {"method": call.method, "params": call.params}
        route = classify_inbound_request(
            said, headers={name.lower(): headers[name] for name in _ROUTING}
        )
        if not isinstance(route, InboundModernRoute):
            return None
        return Look(call, route.protocol_version, route.client_info, route.client_capabilities)

    async def answer(
        self, request: web.BaseRequest, caller: Principal, look: Look
    ) -> web.StreamResponse | None:
        """None when it failed: the long way says how, and nothing was changed by looking."""
        call = look.call
        try:
            result = await serve_one(
                self._server,
                _Exchange(call.id, _Request(caller, request.headers)),
                call.method,
                call.params,
                connection=Connection.from_envelope(look.version, look.client, look.capabilities),
                lifespan_state={},
            )
        except Exception:  # noqa: BLE001 - told by the long way
            return None
        return json_reply(request, _encode({"jsonrpc": "2.0", "id": call.id, "result": result}))


def _call(request: web.BaseRequest, body: bytes) -> Call | None:
    headers = request.headers
    accept = headers.get("Accept", "")
    if (
        request.method != "POST"
        or headers.get("Content-Type") != "application/json"
        or "application/json" not in accept
        or "text/event-stream" not in accept
    ):
        return None
    try:
        call = _read(body)
    except NOT_JSON:
        return None
    return call if call.params.get("name") in TOOLS_READ_HERE else None
