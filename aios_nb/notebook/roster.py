"""Who is there, as far as this notebook knows: kept up behind, read without waiting."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import logging
import threading
from collections import Counter
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from aios_nb.site import Site

log = logging.getLogger("aios_nb.notebook")

LOOK_S = 2.0
"""Between two looks how many other nodes there are; nothing tells when they come and go."""
LOOKS_MAX = 15
"""So many looks later all of them are asked for, whatever the number says."""

Row = dict[str, Any]


class Roster:
    """A mirror of ``agents.watch`` and of the names of the nodes.

    Of a network of more than 2000 agents it has the first ones, and those that changed since.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._own_id = ""
        self._rows: dict[str, Row] = {}
        self._nodes: dict[str, Row] = {}
        self._names: list[str] | None = None
        self._told: list[Callable[[], None]] = []

    # For any thread --------------------------------------------------------------------------

    def rows(self) -> list[Row]:
        """The rows of all agents, those of this node first, then by name."""
        with self._lock:
            rows, own = list(self._rows.values()), self._own_id
        return sorted(rows, key=lambda row: (row["node_id"] != own, row["name"], row["id"]))

    def names(self) -> list[str]:
        """What may be typed for an agent: names that mean one only, then ids of others."""
        with self._lock:
            if self._names is None:
                self._names = self._typed()
            return self._names

    def nodes(self) -> list[Row]:
        """The rows of ``node.peers``: the other nodes."""
        with self._lock:
            return list(self._nodes.values())

    @property
    def alive(self) -> int:
        """How many other nodes answer."""
        return sum(row["state"] == "alive" for row in self.nodes())

    def node_name(self, node_id: str) -> str:
        """What that node calls itself; empty when nobody told."""
        with self._lock:
            return str(self._nodes.get(node_id, {}).get("name", ""))

    def subscribe(self, told: Callable[[], None]) -> Callable[[], None]:
        """Call ``told``, on the node's loop, when other nodes come or go; the result ends that."""
        self._told.append(told)

        def leave() -> None:
            if told in self._told:
                self._told.remove(told)

        return leave

    def clear(self) -> None:
        """There is no node, so nobody is known."""
        with self._lock:
            self._rows, self._nodes, self._names = {}, {}, None

    def _typed(self) -> list[str]:
        own = [row["name"] for row in self._rows.values() if row["node_id"] == self._own_id]
        others = [row["name"] for row in self._rows.values() if row["node_id"] != self._own_id]
        mine, often = set(own), Counter(others)
        single = [name for name in often if often[name] == 1 and name not in mine]
        ids = [key for key, row in self._rows.items() if row["node_id"] != self._own_id]
        return [*sorted(own), *sorted(single), *sorted(ids)]

    # On the node's loop ----------------------------------------------------------------------

    async def follow(self, site: Site) -> None:
        """Keep up with this node until it stops."""
        self._own_id = site.client.node_id
        async with asyncio.TaskGroup() as group:
            group.create_task(self._follow_agents(site))
            group.create_task(self._follow_nodes(site))

    async def _follow_agents(self, site: Site) -> None:
        flow = site.client.notices("agents.watch")
        with contextlib.closing(flow):
            first = await flow.result()
            with self._lock:
                self._rows = {row["id"]: row for row in first["agents"]}
                self._names = None
            async for change in flow:
                self._changed(change["event"], change["agent"])

    def _changed(self, event: str, row: Row) -> None:
        with self._lock:
            self._names = None
            if event == "withdrawn":
                self._rows.pop(row["id"], None)
            else:
                self._rows[row["id"]] = row

    async def _follow_nodes(self, site: Site) -> None:
        number = -1
        for look in itertools.count():
            alive = (await site.client.call("node.info")).get("peers", 0)
            if alive != number or look % LOOKS_MAX == 0:
                number = alive
                self._met((await site.client.call("node.peers"))["peers"])
            await asyncio.sleep(LOOK_S)

    def _met(self, peers: Iterable[Row]) -> None:
        found = {row["node_id"]: row for row in peers}
        with self._lock:
            news = {key: row["state"] for key, row in found.items()} != {
                key: row["state"] for key, row in self._nodes.items()
            }
            self._nodes = found
        if news:
            for told in tuple(self._told):
                told()
