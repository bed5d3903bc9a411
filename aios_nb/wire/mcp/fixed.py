"""The fixtures of the public suite, beside our own surface. In conformance mode only."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from mcp.server.lowlevel.server import Server
from mcp.server.mcpserver import MCPServer
from mcp.server.subscriptions import SubscriptionBus
from mcp.shared.exceptions import MCPError
from mcp_types import METHOD_NOT_FOUND

_TAKEN_OVER = ("logging/setLevel",)
"""Methods that only the fixtures have."""


class Fixtures:
    """What ``wire/fixtures`` adds, asked for every name that is not ours."""

    def __init__(self, bus: SubscriptionBus) -> None:
        from aios_nb.wire.fixtures.mcp import add

        root = logging.getLogger()
        before = root.level, list(root.handlers)
        holder = MCPServer("fixtures", subscriptions=bus)
        root.setLevel(before[0])  # its constructor sets up logging for the whole program
        root.handlers[:] = before[1]
        add(holder)
        self._server: Server[Any] = holder._lowlevel_server  # noqa: SLF001 - has no other name

    def take_over(self, server: Server[Any]) -> None:
        """Let a server answer what it has no handler for."""
        for method in _TAKEN_OVER:
            entry = self._server.get_request_handler(method)
            if entry is not None:
                server.add_request_handler(method, entry.params_type, entry.handler)

    def schema(self, name: str) -> Mapping[str, Any] | None:
        lookup = self._server.get_tool_input_schema
        return None if lookup is None else lookup(name)

    async def ask(self, ctx: Any, method: str, params: Any) -> Any:
        entry = self._server.get_request_handler(method)
        if entry is None:
            raise MCPError(METHOD_NOT_FOUND, "Method not found", method)
        return await entry.handler(ctx, params)

    async def listed(self, ctx: Any, method: str, params: Any, key: str) -> list[dict[str, Any]]:
        """Its part of a list, as it goes over the wire."""
        told = await self.ask(ctx, method, params)
        if not isinstance(told, dict):
            told = told.model_dump(by_alias=True, mode="json", exclude_none=True)
        return list(told[key])
