"""What is sent to the doors for other protocols: one good request for each route."""

from __future__ import annotations

from typing import Any

from aios_nb.wire.guard import Need
from aios_nb.wire.server import ROUTES

ERA, PREFIX = "2026-07-28", "io.modelcontextprotocol/"
JSON = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}
OPEN = sorted(path for path, route in ROUTES.items() if route.need is Need.OPEN)


def modern(method: str, params: Any = None, name: str | None = None) -> dict[str, Any]:
    """An MCP request of the newer era, as ``httpx`` takes it."""
    meta = {f"{PREFIX}protocolVersion": ERA, f"{PREFIX}clientCapabilities": {}}
    routing = {"MCP-Protocol-Version": ERA, "Mcp-Method": method}
    return {
        "method": "POST",
        "url": "/mcp",
        "json": rpc(method, {**(params or {}), "_meta": meta}),
        "headers": {**JSON, **routing, **({"Mcp-Name": name} if name else {})},
    }


def tool(name: str, **arguments: Any) -> dict[str, Any]:
    return modern("tools/call", {"name": name, "arguments": arguments}, name)


def rpc(method: str, params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}


def initialize(**client: Any) -> dict[str, Any]:
    """The request that opens a session of the older era."""
    params = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
    return {"method": "POST", "url": "/mcp", "json": rpc("initialize", params), "headers": JSON}


def knock(path: str) -> dict[str, Any]:
    """A request that this route answers well, and that does something where it can."""
    message = {"messageId": "k-1", "role": "ROLE_USER", "parts": [{"text": "knock"}]}
    posts: dict[str, Any] = {
        "/agents/": ("/agents/bell/", rpc("SendMessage", {"message": message})),
        "/api/search": (path, {"query": {"text": "again"}}),
        "/api/explore": (path, {"resultType": {"facets": [{"field": "type"}]}}),
    }
    if path == "/mcp":
        return tool("agent_send", agent="bell", text="knock")
    if path in posts:
        url, body = posts[path]
        return {"method": "POST", "url": url, "json": body, "headers": JSON}
    url = f"{path}urn:air:agent.localhost:nobody:bell" if path == "/api/agents/" else path
    return {"method": "GET", "url": url, "headers": {}}
