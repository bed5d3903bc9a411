"""All doors of a node for programs that speak another protocol than ours."""

from __future__ import annotations

from aios_nb.config import Limits
from aios_nb.identity import Identity
from aios_nb.ports import AgentNews, Blobs
from aios_nb.wire.dispatch import Dispatcher
from aios_nb.wire.doors import Door, Facts, Late

CATALOGS = (
    *("/.well-known/ard.json", "/.well-known/ai-catalog.json"),
    *("/api/search", "/api/agents", "/api/agents/", "/api/explore"),
)


class Lobby:
    """Makes the doors of one node, by path."""

    def __init__(
        self,
        dispatcher: Dispatcher,
        identity: Identity,
        facts: Facts,
        blobs: Blobs,
        limits: Limits,
        *,
        conformance: bool,
        news: AgentNews,
    ) -> None:
        """``news`` tells of all agents: what a caller may see of them, its door asks for."""
        self._calls = dispatcher.for_anyone()
        self._identity = identity
        self._facts = facts
        self._blobs = blobs
        self._limits = limits
        self._conformance = conformance
        self._news = news

    def doors(self) -> dict[str, Door]:
        """What ``Server`` takes; heavy ones are loaded when somebody first comes."""
        a2a, catalogs = Late(self._a2a), Late(self._catalogs)
        return {
            **dict.fromkeys(CATALOGS, catalogs),
            "/mcp": self._mcp(),
            "/agents/": a2a,
            "/.well-known/agent-card.json": a2a,
        }

    def _catalogs(self) -> Door:
        from aios_nb.wire.catalogs import CatalogDoor

        return CatalogDoor(self._calls, self._identity.public_key, self._facts)

    def _a2a(self) -> Door:
        from aios_nb.wire.a2a.door import A2aDoor

        return A2aDoor(
            self._calls,
            self._identity,
            self._facts,
            self._blobs,
            self._limits,
            conformance=self._conformance,
        )

    def _mcp(self) -> Door:
        from aios_nb.wire.mcp.door import McpDoor

        return McpDoor(
            self._calls,
            self._facts,
            self._limits,
            self._blobs,
            news=self._news,
            conformance=self._conformance,
        )
