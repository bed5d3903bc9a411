"""Who this node is, who called it, who is let in: ``node.*``, ``nodes.*`` and ``tokens.*``."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

from aios_nb import params as p
from aios_nb._version import __version__
from aios_nb.access import Principal
from aios_nb.envelope import iso_ms
from aios_nb.nodes import ALLOWED, BLOCKED, KnownNodes
from aios_nb.store import Store
from aios_nb.tokens import Token, Tokens


class Reception:
    """The front desk of a node."""

    def __init__(
        self,
        node_id: str,
        name: str,
        store: Store,
        nodes: KnownNodes,
        *,
        peers: Callable[[], Awaitable[Sequence[Mapping[str, Any]]]],
        traffic: Callable[[], Mapping[str, int]],
        waiting: Callable[[], Sequence[Mapping[str, Any]]],
        alive: Callable[[], int],
        known: Callable[[], int],
        agents: Callable[[Principal], int],
        counted: Callable[[], Mapping[str, tuple[int, float, int]]],
        superseded: Callable[[], bool],
        name_of: Callable[[str], str],
    ) -> None:
        """``alive`` counts the other nodes that are there, ``known`` the agents they offer.

        ``superseded``: another process runs with this node's key since later than this one.
        ``name_of``: what a node calls itself, by its id; empty for who is none.
        """
        self._node_id = node_id
        self._name = name
        self._store = store
        self._nodes = nodes
        self._peers = peers
        self._traffic = traffic
        self._waiting = waiting
        self._alive = alive
        self._known = known
        self._agents = agents
        self._counted = counted
        self._superseded = superseded
        self._name_of = name_of
        self._began = time.monotonic()
        self.url = ""

    def info(self, principal: Principal, _: p.Nothing) -> dict[str, Any]:
        told = {
            "node_id": self._node_id,
            "name": self._name,
            "version": __version__,
            "url": self.url,
            "uptime_s": round(time.monotonic() - self._began, 3),
            "agents": self._agents(principal),
        }
        if principal.is_owner:
            told["peers"] = self._alive()
            told["known_agents"] = self._known()
            if self._superseded():
                told["superseded"] = True
        return told

    async def peers(self, _principal: Principal, _: p.Nothing) -> dict[str, Any]:
        rows = await self._peers()
        return {"peers": rows, "waiting": self._waiting(), "traffic": self._traffic()}

    def callers(self, _principal: Principal, _: p.Nothing) -> dict[str, Any]:
        """Who called how often and for how long, busiest first; those shut out as well."""
        known = {
            caller: (calls, seconds, last_at)
            for caller, calls, seconds, last_at in self._store.read(
                "SELECT id, calls, seconds, last_at FROM callers"
            )
        }
        for caller, (calls, seconds, last_at) in self._counted().items():
            before = known.get(caller, (0, 0.0, 0))
            known[caller] = (before[0] + calls, before[1] + seconds, last_at)
        blocked = self._nodes.blocked
        for node in blocked:
            known.setdefault(node, (0, 0.0, 0))
        rows = [
            {
                "id": caller,
                "calls": calls,
                "seconds": round(seconds, 3),
                "last_at": iso_ms(last_at) if last_at else None,
                "blocked": caller in blocked,
                "name": self._name_of(caller),
            }
            for caller, (calls, seconds, last_at) in known.items()
            if calls or caller in blocked
        ]
        return {"callers": sorted(rows, key=lambda row: (-int(row["calls"] or 0), str(row["id"])))}

    async def allow(self, _principal: Principal, params: p.NodeRef) -> dict[str, Any]:
        await self._nodes.allow(params.node)
        return {"node": params.node, "state": ALLOWED}

    async def block(self, _principal: Principal, params: p.NodeRef) -> dict[str, Any]:
        await self._nodes.block(params.node)
        return {"node": params.node, "state": BLOCKED}


class TokenDesk:
    """Where the owner gives out scoped tokens, and takes them back."""

    def __init__(self, tokens: Tokens) -> None:
        self._tokens = tokens

    async def create(self, _principal: Principal, params: p.NewToken) -> dict[str, Any]:
        """The only answer that ever has the token itself."""
        as_owner = params.as_ is not None
        made, secret = await self._tokens.create(params.scope, params.prefix, as_owner=as_owner)
        return {**_described(made), "token": secret}

    def list(self, _principal: Principal, _: p.Nothing) -> dict[str, Any]:
        return {"tokens": [_described(token) for token in self._tokens.list()]}

    async def revoke(self, _principal: Principal, params: p.TokenRef) -> dict[str, Any]:
        await self._tokens.revoke(params.id)
        return {"id": params.id, "revoked": True}


def _described(token: Token) -> dict[str, Any]:
    return {
        "id": token.id,
        "scope": token.scope,
        "prefix": token.prefix,
        "as": "owner" if token.as_owner else None,
        "created_at": iso_ms(token.created),
    }
