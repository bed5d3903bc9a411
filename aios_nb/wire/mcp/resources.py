"""What an MCP client can read: cards, conversations, the catalog, the node itself."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import unquote

from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS

from aios_nb.access import Principal
from aios_nb.errors import RpcError
from aios_nb.wire.dispatch import Dispatcher
from aios_nb.wire.mcp import words
from aios_nb.wire.mcp.news import CATALOG
from aios_nb.wire.translated import for_mcp

PAGE = 100
CATALOG_ROWS = 200
STATUS = "node://status"
JSON = "application/json"
_AGENT = re.compile(r"agent://([^/?#]{1,200})/(card|skills)")
_CONVERSATION = re.compile(r"conversation://([^/?#]{1,200})")

STATIC: tuple[dict[str, Any], ...] = (
    {
        "uri": STATUS, "name": "node-status", "title": "This node", "mimeType": JSON,
        "description": "Name, address and uptime of this node.",
    },
    {
        "uri": CATALOG, "name": "hub-catalog", "title": "All agents known here", "mimeType": JSON,
        "description": "The agents that you can reach from this node.",
    },
)  # fmt: skip
TEMPLATES: tuple[dict[str, Any], ...] = (
    {
        "uriTemplate": "agent://{id}/card", "name": "agent-card", "title": "Card of an agent",
        "mimeType": JSON, "description": "What an agent says about itself.",
    },
    {
        "uriTemplate": "agent://{id}/skills", "name": "agent-skills", "title": "Skills of an agent",
        "mimeType": JSON, "description": "What an agent is for, with examples.",
    },
    {
        "uriTemplate": "conversation://{id}", "name": "conversation", "title": "A conversation",
        "mimeType": JSON, "description": "The messages of one of your conversations.",
    },
)  # fmt: skip


class Resources:
    """The resources of one node, as one caller may see them."""

    def __init__(self, calls: Dispatcher) -> None:
        self._calls = calls

    async def listed(
        self, caller: Principal, cursor: str | None
    ) -> tuple[list[dict[str, Any]], str | None]:
        """A page of them, and where the next one begins."""
        if cursor is not None and not re.fullmatch("[0-9]{1,6}", cursor):
            raise MCPError(INVALID_PARAMS, "this cursor was not given out here")
        start = int(cursor or 0)
        rows = (await self._calls.call(caller, "agents.list"))["agents"]
        agents = [
            {
                "uri": f"agent://{row['id']}/card",
                "name": row["name"],
                "title": words.line(row["title"] or row["name"], words.TITLE_CHARS),
                "description": words.line(row["about"]),
                "mimeType": JSON,
            }
            for row in rows[start : start + PAGE]
        ]
        further = str(start + PAGE) if len(rows) > start + PAGE else None
        return [*(() if start else STATIC), *agents], further

    def knows(self, uri: str) -> bool:
        """Whether it has the form of one of ours."""
        return uri in (STATUS, CATALOG) or bool(
            _AGENT.fullmatch(uri) or _CONVERSATION.fullmatch(uri)
        )

    async def read(self, caller: Principal, uri: str) -> list[dict[str, Any]]:
        """Its contents. Raises the protocol's own error for what is not there for this caller."""
        try:
            told = await self._told(caller, uri)
        except RpcError as error:
            _, text = for_mcp(error)
            raise MCPError(INVALID_PARAMS, text, {"uri": uri}) from None
        return [{"uri": uri, "mimeType": JSON, "text": words.encode(told).decode()}]

    async def _told(self, caller: Principal, uri: str) -> Any:
        if uri == STATUS:
            return await self._calls.call(caller, "node.info")
        if uri == CATALOG:
            found = await self._calls.call(
                caller, "agents.search", {"query": "", "limit": CATALOG_ROWS}
            )
            return {"agents": words.agent_rows(found["agents"]), "total": found["total"]}
        if named := _AGENT.fullmatch(uri):
            agent, what = unquote(named[1]), named[2]
            card = words.card(await self._calls.call(caller, "agents.card", {"agent": agent}))
            if what == "card":
                return card
            return {name: card[name] for name in ("agent", "about", "tags", "examples")}
        if named := _CONVERSATION.fullmatch(uri):
            return await self.conversation(caller, unquote(named[1]))
        raise MCPError(INVALID_PARAMS, f"Unknown resource: {words.line(uri, 200)}", {"uri": uri})

    async def conversation(self, caller: Principal, id_: str) -> dict[str, Any]:
        got = await self._calls.call(caller, "chat.history", {"conversation": id_})
        return {
            "conversation": got["conversation"],
            "messages": [words.message(row) for row in got["messages"]],
        }
