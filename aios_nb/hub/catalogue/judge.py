"""Whether a record is to be kept: the cheap questions first, and none that needs its signature."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from aios_nb.config import Limits
from aios_nb.errors import RecordError
from aios_nb.hub.catalogue.change import Offered
from aios_nb.hub.catalogue.entry import Entry
from aios_nb.hub.catalogue.publisher import Publisher
from aios_nb.hub.catalogue.refusals import Refusals
from aios_nb.hub.catalogue.room import Room, room_for
from aios_nb.hub.catalogue.shelf import Shelf
from aios_nb.records import LIFETIME_MS, Record, Scope, Signed, Unproven, check_time, rank

REFUSED_FOR_MS = 600_000
CROWDED_OUT_FOR_MS = 30_000
"""Shorter: there may be room soon, or its node may turn out to be a member."""


class Judge:
    """Compares what is offered with what is on the shelf."""

    def __init__(
        self,
        shelf: Shelf,
        network: str,
        own_id: str,
        limits: Limits,
        now_ms: Callable[[], int],
        allowed: Callable[[str], bool],
        scope_of_node: Callable[[str], Scope | None],
    ) -> None:
        self._shelf = shelf
        self._network = network
        self._own_id = own_id
        self._limits = limits
        self._now_ms = now_ms
        self._allowed = allowed
        self._scope_of_node = scope_of_node
        self._crowded_at: int | None = None
        self.refusals = Refusals()
        self.counts: Counter[str] = Counter()

    def verdict(self, claim: Unproven | Signed, new: Entry) -> Offered | None:
        """What is clear about it; None if it is to be kept, or only its signature can tell."""
        record = claim.record
        publisher = self._shelf.publishers.get(record.node)
        before = None if publisher is None else publisher.entries.get(new.handle)
        if before is not None and before.version == new.version:
            return Offered.KNOWN
        amiss = self._amiss(record)
        if amiss is not None:
            return self.refuse(amiss, new)
        if publisher is None:
            scope = self._scope_of_node(record.node)
            return self._newcomer(Publisher(record.node, record.epoch, scope), new)
        if record.epoch != publisher.epoch:
            return self._older(new) if record.epoch < publisher.epoch else None
        if before is None:
            return self._newcomer(publisher, new)
        return self._against(publisher, before, claim, new)

    def _amiss(self, record: Record) -> str | None:
        """What is wrong with it, whatever else is here."""
        if record.net != self._network:
            return "of another network"
        if record.node == self._own_id:
            return "ours, but not from us"
        try:
            check_time(record, self._now_ms())
        except RecordError:
            return "out of time"
        return None

    def _against(
        self, publisher: Publisher, before: Entry, claim: Unproven | Signed, new: Entry
    ) -> Offered | None:
        """It or the one we have."""
        if new.seq < before.seq:
            return self._older(new)
        if new.seq == before.seq:
            if isinstance(claim, Unproven):
                return None  # only a proven one speaks against its node
            publisher.equivocated = True
            self.counts["equivocation"] += 1
        return None if rank(claim) > rank(before.signed()) else self._older(new)

    def _newcomer(self, publisher: Publisher, new: Entry) -> Offered | None:
        if self._shelf.find(new.handle) is not None:
            return self.refuse("the handle of another", new)
        if not new.of_node and new.seq <= publisher.floor:
            return self._older(new)
        if new.withdrawn:
            return None  # a proven one counts even if there is no room for it
        return None if self.room(publisher, new) else self.crowd_out(new)

    # Room --------------------------------------------------------------------------------

    def most_of(self, node_id: str) -> int | None:
        """How many agents that node may have here; None if only the whole is bounded."""
        return None if self._allowed(node_id) else self._limits.agents_per_publisher

    def room(self, publisher: Publisher, new: Entry) -> Room | None:
        """The place for it, if there is one."""
        most = None if new.of_node else self.most_of(publisher.node_id)
        return room_for(self._shelf, publisher, new, most)

    def crowd_out(self, entry: Entry) -> Offered:
        """There is no room for it, or none any more."""
        now = self._now_ms()
        self.counts["no room"] += 1
        self.refusals.remember(entry.version, now + CROWDED_OUT_FOR_MS)
        if self._shelf.crowd_of(entry).is_full():
            self._crowded_at = now
        return Offered.REFUSED

    def is_crowded(self) -> bool:
        """Whether the whole was full within the life of a record."""
        at = self._crowded_at
        return at is not None and self._now_ms() - at < LIFETIME_MS

    # Refusing ----------------------------------------------------------------------------

    def refuse(self, why: str, new: Entry | None = None) -> Offered:
        self.counts[why] += 1
        if new is not None:
            self.refusals.remember(new.version, self._now_ms() + REFUSED_FOR_MS)
        return Offered.REFUSED

    def _older(self, new: Entry) -> Offered:
        self.refusals.remember(new.version, self._now_ms() + REFUSED_FOR_MS)
        return Offered.OLDER
