"""What the chat room's doors share: the log, the exchange, and who is speaking."""

from __future__ import annotations

import re

from aios_nb.access import Principal, owner_of
from aios_nb.blobs import BlobStore
from aios_nb.chat.callers import Callers
from aios_nb.chat.exchange import Exchange
from aios_nb.chat.log import Log
from aios_nb.chat.reading import Reader
from aios_nb.chat.recovery import recover
from aios_nb.chat.retention import Retention
from aios_nb.config import Limits
from aios_nb.envelope import Sender
from aios_nb.errors import InvalidParams, NotAllowed
from aios_nb.ports import Finder
from aios_nb.store import Store

_BRIDGED = re.compile(r"[a-z]{1,16}:[A-Za-z0-9._:-]{1,111}")
"""A person who comes through a bridge, such as ``tg:BOT:USER``."""


class Room:
    """Conversations on this node. ``Talking`` and ``Keeping`` are its doors."""

    def __init__(
        self, node_id: str, store: Store, finder: Finder, blobs: BlobStore, limits: Limits
    ) -> None:
        self.node_id = node_id
        self.finder = finder
        self.blobs = blobs
        self.callers = Callers(store)
        self.log = Log(store)
        self.reader = Reader(self.log)
        self.retention = Retention(self.log, owner_of(node_id).id, limits)
        self.exchange = Exchange(node_id, self.log, self.reader, self.callers, finder, limits)
        self.reader.live = self.exchange.live_statuses

    def voice(self, principal: Principal, sender: str | None = None) -> Sender:
        """Who is speaking. Only the owner (and later bridges, within their prefix) may say who."""
        if sender is None or sender == principal.id:
            return Sender(principal.id, "human")
        if not principal.is_owner:
            raise NotAllowed("you cannot speak for others")
        if not _BRIDGED.fullmatch(sender):
            raise InvalidParams(
                f"not a person's sender id: {sender[:80]}", hint="yours, or tg:BOT:USER"
            )
        return Sender(sender, "human")

    async def start(self) -> None:
        """Settle what the last life of this node left open."""
        await recover(self.exchange, self.log, self.reader)

    async def upkeep(self) -> None:
        """Now and then: write down what is kept in memory."""
        await self.log.save_touched()
        await self.exchange.save_progress()
        await self.callers.save()

    async def tidy(self) -> None:
        """Once an hour: throw away what may go."""
        await self.retention.apply()
        await self.blobs.sweep(self.reader.files())

    async def close(self) -> None:
        """Interrupt what runs, and write everything down."""
        await self.exchange.close()
        await self.upkeep()
