"""The agents of this node, published under its signature.

``finding.py`` adds those of other nodes; ``room.py`` shows both to the wire.
"""

from __future__ import annotations

import asyncio
import difflib
import functools
import hashlib
import logging
import re
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from aios_nb.access import Access, Principal
from aios_nb.envelope import AgentRow
from aios_nb.errors import NoSuchAgent, RecordError
from aios_nb.hub.news import News
from aios_nb.identity import Identity, to_base64url
from aios_nb.ports import Offer
from aios_nb.records import (
    LIFETIME_MS,
    RECORD_VERSION,
    TAGS_MAX,
    AgentRecord,
    NodeRecord,
    Record,
    Scope,
    Signed,
    agent_record,
    card_bytes,
    next_seq,
    node_record,
    parse,
    sign_record,
    withdrawal,
)
from aios_nb.store import Store, Tx

log = logging.getLogger("aios_nb.hub")

_REF = re.compile(r"([a-z0-9][a-z0-9_-]{0,47})(?:@([a-z2-7]{4,32}))?")
"""A name, alone or with a node's id or the start of one."""
INDEX_SLACK = 200
"""Records more or less that are not worth saying."""
_SHARED = frozenset({Access.NETWORK, Access.PUBLIC})
_FIRST = "1"
SEARCH_HINT = "`aios-nb search` looks for one"


@functools.lru_cache(maxsize=256)
def read_ref(ref: str) -> tuple[str, str | None] | None:
    """The name and what was typed of the node's id; None for what names no agent."""
    match = _REF.fullmatch(ref)
    return None if match is None else (match[1], match[2])


class Directory:
    """What this node offers, and the records that say so."""

    def __init__(
        self,
        identity: Identity,
        store: Store,
        network: str,
        epoch: int,
        name: str = "",
    ) -> None:
        self._identity = identity
        self.node_id = identity.node_id
        self.name = name
        self._store = store
        self.network = network
        self._epoch = epoch
        self._offers: dict[str, Offer] = {}
        self._records: dict[str, Signed] = {}
        self._node_record: Signed | None = None
        self._place: tuple[str, Scope, Sequence[tuple[str, str, int]]] | None = None
        self._signing = asyncio.Lock()
        """A ``seq`` is read, raised and saved by one at a time."""
        self.news = News()
        self.on_offer: Callable[[AgentRow, Sequence[str]], None] = lambda _row, _examples: None
        self.on_end: Callable[[str], None] = lambda _: None
        """Told of an agent that is offered from now on, and of the id of one that is no more."""
        self.on_record: Callable[[Signed], None] = lambda _: None
        """Told of every record of ours, once it is signed and saved."""
        self.held: Callable[[], int] = lambda: len(self._records)
        """How many records this node knows; it says so in its own."""
        self.silent = False
        """Another process runs with our key in a later life: we publish nothing any more."""

    # Publishing --------------------------------------------------------------------------

    async def publish(self, offer: Offer) -> None:
        """Let it be found from now on; signs a record if others may call it."""
        async with self._signing:
            known = offer.name in self._offers
            if offer.builtin or offer.access not in _SHARED:
                await self._end_record(offer.name)
            else:
                await self._sign(offer)
            self._offers[offer.name] = offer
        row = self._row(offer)
        self.on_offer(row, offer.card.examples)
        self.news.tell("replaced" if known else "offered", row)

    def restate(self, offer: Offer) -> None:
        """It stands otherwise than before; its card and its record are the same."""
        if self._offers.get(offer.name) is offer:
            row = self._row(offer)
            self.on_offer(row, offer.card.examples)
            self.news.tell("replaced", row)

    async def withdrawn(self, name: str) -> None:
        """It is not offered any more; says so under our signature."""
        async with self._signing:
            offer = self._offers.pop(name, None)
            if offer is None:
                return
            await self._end_record(name)
        self.on_end(offer.id)
        self.news.tell("withdrawn", self._row(offer, live=False))

    async def announce(
        self, name: str, scope: Scope, endpoints: Sequence[tuple[str, str, int]]
    ) -> None:
        """Sign where this node is, as seen from ``scope``."""
        async with self._signing:
            await self._announce(name, scope, endpoints)

    async def _announce(
        self, name: str, scope: Scope, endpoints: Sequence[tuple[str, str, int]]
    ) -> None:
        self._place = (name, scope, endpoints)
        key = f"node/{self.network}/{self.node_id}/{scope}"
        record = node_record(
            net=self.network,
            node=self.node_id,
            name=name,
            scope=scope,
            endpoints=endpoints,
            seq=self._next_seq(key),
            epoch=self._epoch,
            now_ms=_now_ms(),
            index=self.held(),
        )
        self._node_record = await self._keep(record)

    def records(self) -> list[Signed]:
        """All our records that are good now."""
        own = [] if self._node_record is None else [self._node_record]
        return [*own, *self._records.values()]

    def node_record(self) -> bytes | None:
        """Our record of this node, signed."""
        return self._node_record.to_bytes() if self._node_record else None

    def wellknown(self) -> dict[str, Any]:
        """``/.well-known/aios.json``: who this is, under its signature."""
        signed = self._node_record
        return {
            "v": RECORD_VERSION,
            "node_id": self.node_id,
            "record": to_base64url(signed.to_bytes()) if signed else None,
        }

    async def refresh(self) -> None:
        """Sign again what has lived half its life."""
        soon = _now_ms() + LIFETIME_MS // 2
        async with self._signing:
            signed = self._node_record
            stale = isinstance(signed, Signed) and (
                signed.record.exp < soon or self._grew(signed.record)
            )
            if self._place is not None and stale:
                await self._announce(*self._place)
            for name, signed in list(self._records.items()):
                if signed.record.exp < soon and name in self._offers:
                    await self._sign(self._offers[name])

    def _grew(self, said: Record) -> bool:
        """Whether we hold another number of records by now than we say, by far."""
        if not isinstance(said, NodeRecord):
            return False
        held = self.held()
        return abs(held - said.index) > max(INDEX_SLACK, said.index // 2)

    async def _sign(self, offer: Offer) -> None:
        card = offer.card
        record = agent_record(
            net=self.network,
            node=self.node_id,
            name=offer.name,
            access=offer.access,
            card=hashlib.sha256(card_bytes(offer.published)).digest(),
            seq=self._next_seq(f"agent/{self.network}/{self.node_id}/{offer.name}"),
            epoch=self._epoch,
            now_ms=_now_ms(),
            title=card.title,
            about=card.about,
            tags=tuple(card.tags)[:TAGS_MAX],
            version=card.version,
        )
        self._records[offer.name] = await self._keep(record)

    async def _end_record(self, name: str) -> None:
        signed = self._records.pop(name, None) or self._stored(name)
        if signed is None or not isinstance(signed.record, AgentRecord) or signed.record.withdrawn:
            return
        record = withdrawal(
            signed.record, seq=self._next_seq(signed.key), epoch=self._epoch, now_ms=_now_ms()
        )
        await self._keep(record)

    async def _keep(self, record: Record) -> Signed:
        """Sign and save: a ``seq`` is saved before anyone sees it."""
        signed = sign_record(self._identity, record)

        def apply(tx: Tx) -> None:
            tx.execute(
                "INSERT OR REPLACE INTO records VALUES (?, ?, ?)",
                (signed.key, record.seq, signed.to_bytes()),
            )

        await self._store.write(apply)
        if not self.silent:
            self.on_record(signed)
        return signed

    def _next_seq(self, key: str) -> int:
        rows = self._store.read("SELECT seq FROM records WHERE key = ?", (key,))
        return next_seq(rows[0][0] if rows else None, _now_ms())

    def _stored(self, name: str) -> Signed | None:
        key = f"agent/{self.network}/{self.node_id}/{name}"
        rows = self._store.read("SELECT bytes FROM records WHERE key = ?", (key,))
        try:
            return parse(rows[0][0]) if rows else None
        except RecordError as error:
            log.warning("a stored record of %s cannot be read: %s", name, error)
            return None

    def counted(self, name: str, published: Any) -> str:
        """The version of an agent whose author does not count: one more each time it is replaced.

        After a restart it goes on where it was; an agent that would publish the same card is no
        new one.
        """
        offer = self._offers.get(name)
        if offer is not None and not (offer.builtin or offer.source):
            return _one_more(offer.card.version)
        signed = self._stored(name)
        if signed is None or not isinstance(signed.record, AgentRecord):
            return _FIRST
        version = signed.record.version
        if signed.record.withdrawn:
            return _one_more(version)
        same = hashlib.sha256(card_bytes(published)).digest() == signed.record.card
        return version if same else _one_more(version)

    # Finding -----------------------------------------------------------------------------

    def local(self, ref: str, caller: Principal) -> Offer:
        """One of our agents. Raises ``NoSuchAgent``, also when the caller may not call it."""
        named = read_ref(ref)
        if named is not None:
            name, node = named
            offer = self._offers.get(name)
            here = node is None or self.node_id.startswith(node)
            if offer is not None and here and caller.may_call(offer.access):
                return offer
        raise self.no_such(ref, caller)

    def has(self, name: str) -> bool:
        """Whether this node offers an agent of that name to anyone."""
        return name in self._offers

    def offer(self, name: str) -> Offer | None:
        """What this node offers under that name."""
        return self._offers.get(name)

    def no_such(self, ref: str, caller: Principal, more: Iterable[str] = ()) -> NoSuchAgent:
        """The error for a name that leads nowhere, with near ones: ours and those of ``more``."""
        names = dict.fromkeys([*(offer.name for offer in self._visible(caller)), *more])
        near = difflib.get_close_matches(ref.partition("@")[0].lower(), names, 3, 0.5)
        if caller.is_owner and self._was_ours(ref):
            hint = "it was offered here before this start: run its cell or file again"
        elif near:
            hint = f"did you mean {' or '.join(near)}?"
        else:
            hint = SEARCH_HINT
        return NoSuchAgent(f"no such agent: {ref[:96]}", hint=hint, near=near)

    def _was_ours(self, ref: str) -> bool:
        """Whether an earlier life of this node offered it, and it was not withdrawn since."""
        name, node = read_ref(ref) or ("", None)
        if not name or (node is not None and not self.node_id.startswith(node)):
            return False
        signed = None if name in self._offers else self._stored(name)
        last = signed.record if signed is not None else None
        return isinstance(last, AgentRecord) and not last.withdrawn

    def _visible(self, caller: Principal) -> list[Offer]:
        return [offer for offer in self._offers.values() if caller.may_call(offer.access)]

    def _row(self, offer: Offer, *, live: bool = True) -> AgentRow:
        return AgentRow(
            offer.id,
            offer.name,
            self.node_id,
            offer.card.title,
            offer.card.about,
            tuple(offer.card.tags),
            live=live and offer.live,
            verified=not offer.source,  # else our own
            access=offer.access.value,
            version=offer.card.version,
            node_name=self.name,
            changed=offer.changed,
            source=offer.source,
        )

    def own(self, ref: str, caller: Principal) -> tuple[Offer, Signed | None]:
        """One of our agents with its record, if it has one."""
        offer = self.local(ref, caller)
        return offer, self._records.get(offer.name)

    def rows(self, caller: Principal) -> list[AgentRow]:
        """All agents this caller may call, by name."""
        rows = [self._row(offer) for offer in self._visible(caller)]
        return sorted(rows, key=lambda row: row.name)


def _one_more(version: str) -> str:
    return str(int(version) + 1) if version.isascii() and version.isdigit() else _FIRST


def _now_ms() -> int:
    return int(time.time() * 1000)
