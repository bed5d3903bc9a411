"""What the chat room's doors share: the log, the exchange, and who is speaking."""

from __future__ import annotations

import functools
import re
import time
from collections.abc import Callable
from typing import Literal

from aios_nb.access import Principal, looks_strange
from aios_nb.blobs import BlobStore
from aios_nb.chat.callers import Callers
from aios_nb.chat.calls import Call
from aios_nb.chat.exchange import Exchange
from aios_nb.chat.log import Log
from aios_nb.chat.reading import Reader
from aios_nb.chat.recovery import Again, recover
from aios_nb.chat.retention import Retention
from aios_nb.chat.strangers import Pool
from aios_nb.config import Limits
from aios_nb.envelope import NAME, Sender
from aios_nb.errors import InvalidParams, NotAllowed
from aios_nb.ports import Finder
from aios_nb.store import Store

_BRIDGED = re.compile(r"(?!token:)[a-z]{1,16}:[A-Za-z0-9._:-]{1,111}")
"""A person who comes through a bridge, such as ``tg:BOT:USER``; never the bridge itself."""


class Room:
    """Conversations on this node. ``Talking`` and ``Keeping`` are its doors."""

    def __init__(
        self,
        node_id: str,
        store: Store,
        finder: Finder,
        blobs: BlobStore,
        limits: Limits,
        is_stranger: Callable[[str], bool] = looks_strange,
    ) -> None:
        self.node_id = node_id
        self.finder = finder
        self.blobs = blobs
        self.file_bytes = limits.file_bytes
        self.callers = Callers(store, limits, is_stranger)
        self.strangers = Pool(limits, time.monotonic)
        self.log = Log(store)
        self.reader = Reader(self.log)
        self.retention = Retention(self.log, limits, self.callers, self.strangers, is_stranger)
        self.exchange = Exchange(
            node_id, self.log, self.reader, self.callers, finder, self.strangers, limits
        )
        self.reader.live = self.exchange.live_statuses

    def voice(self, principal: Principal, sender: str | None = None) -> Sender:
        """Who is speaking. The owner may name a person, a bridge one behind its prefix."""
        if sender is None or sender == principal.id:
            return Sender(principal.id, "human")
        if not principal.is_owner and not principal.speaks_for(sender):
            raise NotAllowed("you cannot speak for others", hint=_within(principal))
        if not _BRIDGED.fullmatch(sender):
            raise InvalidParams(
                f"not a person's sender id: {sender[:80]}", hint="yours, or tg:BOT:USER"
            )
        return Sender(sender, "human")

    async def start(self, again: Again = lambda principal, _: principal) -> None:
        """Settle what the last life of this node left open."""
        await self.retention.count()
        await recover(self.exchange, self.log, self.reader, again)
        self.exchange.orphans.lost_all()

    def lost(self, node_id: str) -> None:
        """There is no link to this node any more."""
        self.exchange.orphans.lost(node_id)

    def gave(self, reader: Principal, message_id: str, sha256: str) -> bool:
        """Whether an agent of ours answered that node's message with this file."""
        try:
            found = self.exchange.repeats.find(reader, message_id)
        except InvalidParams:
            return False
        ends = found.runs if isinstance(found, Call) else found
        outcomes = [end.outcome for end in ends if end.outcome is not None]
        return any(file.sha256 == sha256 for outcome in outcomes for file in outcome.files)

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
        await self.retention.close()
        await self.exchange.close()
        await self.upkeep()


def voice_of_node(
    principal: Principal, claimed_id: str, claimed_type: Literal["human", "agent"]
) -> Sender:
    """Who is speaking when another node calls: somebody of that node, whatever it claims.

    Its owner, one of its agents, or a person behind one of its bridges, who is known here with the
    node behind them (``tg:1:2@NODEID``): our own bridges know other people by such ids. Everything
    else that is claimed counts as its owner's word.
    """
    return _voice(principal.id, claimed_id, claimed_type)


@functools.lru_cache(maxsize=256)
def _voice(node: str, claimed_id: str, claimed_type: Literal["human", "agent"]) -> Sender:
    name, at, where = claimed_id.rpartition("@")
    if not at:
        name = claimed_id
    elif where != node:
        name = ""
    if at and name != "owner" and NAME.fullmatch(name):
        return Sender(claimed_id, "agent")
    if claimed_type == "human" and _BRIDGED.fullmatch(name):
        return Sender(f"{name}@{node}", "human")
    return Sender(f"owner@{node}", "human")


def _within(principal: Principal) -> str | None:
    return f"only for {principal.prefix}…" if principal.prefix else None
