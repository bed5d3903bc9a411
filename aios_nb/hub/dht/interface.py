"""What the hub sees of a DHT, and what a DHT needs of the post; the engine can be replaced."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import msgspec

from aios_nb.hub.presence import Presence
from aios_nb.records import Signed


class Stored(msgspec.Struct, frozen=True):
    """Who keeps a record now: how many other nodes said so, and whether this one does."""

    holders: int
    here: bool


class Dht(Protocol):
    """Where a node is, asked of the network: ``node:<id>`` and that node's signed record."""

    def meet(self, presence: Presence, *, proven: bool = False) -> None:
        """There is such a node; ``proven`` says that its signature has been checked."""

    async def put(self, signed: Signed) -> Stored:
        """Have this node record kept near its key, and again every few hours."""

    async def get(self, node_id: str) -> Signed | None:
        """The newest record of this node that the network has; None once nobody is left to ask."""

    async def close(self) -> None:
        """End every lookup and leave no task behind."""


class Carrier(Protocol):
    """What is used of the post. It delivers only what a node sent from the address it signed."""

    def know(self, presence: Presence) -> None:
        """This genuine presence says where a node is."""

    def send(self, to: str, kind: Any, body: bytes) -> bool:
        """Send to a node; False if no datagram reaches it."""

    def on(self, kind: Any, receiver: Callable[[str, bytes], None]) -> None:
        """Deliver bodies of this kind with the id of their proven sender."""
