"""Who this node is, who called it, who is let in: the ``node.*`` and ``nodes.*`` methods."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from aios_nb import params as p
from aios_nb._version import __version__
from aios_nb.access import Principal
from aios_nb.envelope import iso_ms
from aios_nb.errors import InvalidParams
from aios_nb.store import Store, Tx


class Reception:
    """The front desk of a node."""

    def __init__(
        self,
        node_id: str,
        name: str,
        store: Store,
        *,
        agents: Callable[[Principal], int],
        counted: Callable[[], Mapping[str, tuple[int, float, int]]],
    ) -> None:
        self._node_id = node_id
        self._name = name
        self._store = store
        self._agents = agents
        self._counted = counted
        self._began = time.monotonic()
        self._blocked = {
            row[0] for row in store.read("SELECT id FROM nodes WHERE state = 'blocked'")
        }
        self.url = ""

    def info(self, principal: Principal, _: p.Nothing) -> dict[str, Any]:
        return {
            "node_id": self._node_id,
            "name": self._name,
            "version": __version__,
            "url": self.url,
            "uptime_s": round(time.monotonic() - self._began, 3),
            "agents": self._agents(principal),
        }

    def peers(self, _principal: Principal, _: p.Nothing) -> dict[str, Any]:
        return {"peers": []}

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
        for node in self._blocked:
            known.setdefault(node, (0, 0.0, 0))
        rows = [
            {
                "id": caller,
                "calls": calls,
                "seconds": round(seconds, 3),
                "last_at": iso_ms(last_at) if last_at else None,
                "blocked": caller in self._blocked,
            }
            for caller, (calls, seconds, last_at) in known.items()
            if calls or caller in self._blocked
        ]
        return {"callers": sorted(rows, key=lambda row: (-int(row["calls"] or 0), str(row["id"])))}

    async def allow(self, _principal: Principal, params: p.NodeRef) -> dict[str, Any]:
        return await self._let(params.node, "allowed")

    async def block(self, _principal: Principal, params: p.NodeRef) -> dict[str, Any]:
        return await self._let(params.node, "blocked")

    async def _let(self, node: str, state: str) -> dict[str, Any]:
        if node == self._node_id:
            raise InvalidParams("that is this node itself")

        def apply(tx: Tx) -> None:
            tx.execute(
                "INSERT OR REPLACE INTO nodes VALUES (?, ?, ?)", (node, state, int(time.time()))
            )

        await self._store.write(apply)
        (self._blocked.add if state == "blocked" else self._blocked.discard)(node)
        return {"node": node, "state": state}
