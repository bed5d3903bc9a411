"""Some nodes without a wire between them: real stores, keys, records and hubs; links that call."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from aios_nb.access import Caller, Principal, owner_of
from aios_nb.agents.definition import describe
from aios_nb.agents.host import AgentHost
from aios_nb.blobs import BlobStore
from aios_nb.config import Limits
from aios_nb.errors import ConnectionLost, InvalidParams, Unreachable
from aios_nb.hub.bindings import Bindings
from aios_nb.hub.directory import Directory
from aios_nb.hub.finding import Finding
from aios_nb.hub.room import Hub
from aios_nb.identity import Identity
from aios_nb.params import Agent
from aios_nb.ports import Target
from aios_nb.store import Store

Twist = Callable[[Any], Any]


class FarCarrier:
    """Stands for the way to a node: whoever gets a target can see whose it is."""

    def __init__(self, node_id: str) -> None:
        self.node_id = node_id

    async def carry(self, task: Any, run: Any) -> Any:
        raise NotImplementedError


class House:
    """One node: what it offers, what it knows, and whom it joined."""

    def __init__(self, town: Town, folder: Path, identity: Identity | None = None) -> None:
        self.town = town
        self.identity = identity or Identity.generate()
        self.id = self.identity.node_id
        self.owner = owner_of(self.id)
        self.folder = folder
        folder.mkdir(exist_ok=True)
        self.away = self.silent = self.cut = False
        self.twist: Twist = lambda answer: answer
        self.asked: list[str] = []
        self.joined_nodes: list[str] = []
        self.now = 0.0
        self._open()

    def _open(self) -> None:
        self.store = Store.open(self.folder / "node.db")
        self.directory = Directory(self.identity, self.store, "main", 1_700_000_000_000)
        self.host = AgentHost(
            self.id, BlobStore(self.folder / "blobs", self.store, Limits()), Limits()
        )
        self.bindings = Bindings(self.store)
        self.finding = Finding(self.directory, self.bindings, clock=lambda: self.now)
        self.finding.connect(self, FarCarrier, nodes=lambda: self.town.linked)
        self.hub = Hub(self.directory, self.finding, self.directory.withdrawn)

    async def restart(self) -> None:
        """The same node with what it had stored and nothing else."""
        await self.store.close()
        self._open()

    async def offer(self, name: str, **card: Any) -> str:
        async def answers(text: str) -> str:
            """Answers."""
            return text

        hosted = self.host.host(describe(answers, name=name, **card))
        await self.directory.publish(hosted)
        return hosted.id

    def join(self, *others: House) -> None:
        self.joined_nodes += [other.id for other in others]

    async def seek(self, ref: str, caller: Principal | None = None) -> Target:
        return await self.finding.seek(ref, caller or self.owner)

    async def card(self, agent: str, caller: Principal | None = None) -> Any:
        answer = self.hub.card(caller or self.owner, Agent(agent))
        shown = answer if isinstance(answer, dict) else await answer
        return msgspec.to_builtins(shown)

    # ports.Links

    async def reach(self, node_id: str) -> Any:
        self.asked.append(node_id)
        other = self.town.houses.get(node_id)
        if other is None or other.away:
            raise Unreachable("away", reason="no answer")
        return ToHouse(self, other)

    async def news(self, node_id: str, within_s: float) -> None:
        raise NotImplementedError

    async def met(self, within_s: float) -> None:
        """All were met before."""

    def joined(self) -> Sequence[str]:
        return self.joined_nodes


class ToHouse:
    """A link: calls the other hub as the node it comes from. Is a ``ports.Link``."""

    epoch = 1
    is_open = True

    def __init__(self, here: House, there: House) -> None:
        self._from = Principal(Caller.KNOWN, here.id)
        self._there = there
        self.node_id = there.id

    async def call(self, method: str, params: Mapping[str, Any]) -> Any:
        if self._there.silent:
            await asyncio.Event().wait()
        if self._there.cut:
            raise ConnectionLost("the link broke")
        if method != "agents.card":
            raise InvalidParams(method)
        return self._there.twist(await self._there.card(params["agent"], self._from))

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        raise NotImplementedError

    def stream(self, method: str, params: Mapping[str, Any]) -> Any:
        raise NotImplementedError


class Town:
    """Nodes that know where the others are."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._runner = asyncio.Runner()
        self.houses: dict[str, House] = {}
        self.linked: list[str] = []

    def house(self) -> House:
        made = House(self, self._folder / f"house{len(self.houses)}")
        self.houses[made.id] = made
        return made

    def run(self, work: Any) -> Any:
        return self._runner.run(work)

    def close(self) -> None:
        for house in self.houses.values():
            self.run(house.store.close())
        self._runner.close()
