"""Every record this node knows: offered by anyone, judged, shown and passed on.

What is known, too old, of another network or has no room costs no signature check; what is new is
proven before it changes anything.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from aios_nb.config import Limits
from aios_nb.errors import RecordError, UnknownRecord
from aios_nb.hub.catalogue.change import Change, Event, Offered
from aios_nb.hub.catalogue.entry import Entry, entry_of, handle_of
from aios_nb.hub.catalogue.judge import Judge
from aios_nb.hub.catalogue.publisher import Publisher
from aios_nb.hub.catalogue.room import weakest
from aios_nb.hub.catalogue.shelf import Shelf
from aios_nb.records import (
    CLOCK_TOLERANCE_MS,
    WIDTH,
    NodeRecord,
    Scope,
    Signed,
    Unproven,
    may_be_told,
    peek,
    rank,
)

EXPIRED_AT_ONCE = 500
"""Records that one ``expire`` drops at most: each is told to whoever watches."""


class Catalogue:
    """The records of the network, as far as this node holds them."""

    def __init__(
        self,
        network: str,
        own_id: str,
        limits: Limits,
        *,
        now_ms: Callable[[], int],
        allowed: Callable[[str], bool],
        scope_of_node: Callable[[str], Scope | None],
    ) -> None:
        self._network = network
        self._own_id = own_id
        self._now_ms = now_ms
        self._scope_of_node = scope_of_node
        self._shelf = Shelf(own_id, limits.records)
        self._judge = Judge(self._shelf, network, own_id, limits, now_ms, allowed, scope_of_node)
        self.counts = self._judge.counts
        """How many were refused, by why; and what else was noticed."""
        self.on_change: Callable[[Change], None] = lambda _: None

    def __len__(self) -> int:
        return len(self._shelf)

    @property
    def crowded(self) -> bool:
        """Whether the network has had more records than there is room for here, within a day."""
        return self._judge.is_crowded()

    # Taking in ---------------------------------------------------------------------------

    def offer(self, content: bytes, over: Scope = Scope.LOOPBACK) -> Offered:
        """A record from anyone; ``over`` says how far away the one is who tells it."""
        claim = self.examine(content, over)
        if isinstance(claim, Offered):
            return claim
        try:
            signed = claim.prove()
        except RecordError:
            return self.forged()
        return self.place(signed)

    def offer_many(self, contents: Iterable[bytes]) -> Iterator[Offered]:
        """Each is taken in when its result is asked for; ``take_in`` does it beside the loop."""
        return map(self.offer, contents)

    def examine(self, content: bytes, over: Scope = Scope.LOOPBACK) -> Unproven | Offered:
        """What is to be proven before it is placed; or the verdict, if that is clear already.

        An address that means something only on this machine or network is not taken from further
        away: there it is another one.
        """
        try:
            claim = peek(content)
        except UnknownRecord:
            return self._judge.refuse("of unknown type or version")
        except RecordError:
            return self._judge.refuse("not a record")
        if isinstance(claim.record, NodeRecord) and not may_be_told(claim.record.scope, over):
            return self._judge.refuse("out of scope")
        verdict = self._judge.verdict(claim, entry_of(claim, Scope.LOOPBACK))
        return claim if verdict is None else verdict

    def forged(self) -> Offered:
        """For one whose signature turned out to be wrong."""
        return self._judge.refuse("forged")

    def place(self, signed: Signed) -> Offered:
        """Keep a proven record, if it is still to be kept."""
        entry = entry_of(signed, Scope.LOOPBACK)
        verdict = self._judge.verdict(signed, entry)
        if verdict is not None:
            return verdict
        node_id, epoch = signed.record.node, signed.record.epoch
        known = self._shelf.publishers.get(node_id)
        had = known is not None and entry.handle in known.entries
        if known is not None and known.epoch < epoch:
            self._end_life(known)
            verdict = self._judge.verdict(signed, entry)
            if verdict is not None:
                return verdict
        publisher = self._publisher(node_id, epoch)
        if entry.handle not in publisher.entries:
            room = self._judge.room(publisher, entry)
            if room is None:
                publisher.lost(entry)
                return self._judge.crowd_out(entry)
            if room.gives_way is not None:
                self._evict(*room.gives_way)
        self._put(publisher, entry, signed)
        return Offered.NEWER if had else Offered.NEW

    def own(self, signed: Signed) -> Offered:
        """A record of this node, just signed: kept whatever else there is."""
        record = signed.record
        if record.node != self._own_id or record.net != self._network:
            raise ValueError(f"{signed.key} is not ours")
        known = self._shelf.publishers.get(self._own_id)
        before = None if known is None else known.entries.get(handle_of(signed.key))
        if known is not None and record.epoch < known.epoch:
            return Offered.OLDER
        if before is not None and rank(signed) <= rank(before.signed()):
            return Offered.KNOWN if signed.to_bytes() == before.content else Offered.OLDER
        if known is not None and record.epoch > known.epoch:
            self._end_life(known)
        publisher = self._publisher(self._own_id, record.epoch)
        self._put(publisher, entry_of(signed, publisher.scope), signed)
        return Offered.NEW if before is None else Offered.NEWER

    # Keeping -----------------------------------------------------------------------------

    def expire(self) -> int:
        """Drop what has expired, some of it at a time; how many. Call again while there are any."""
        now = self._now_ms()
        gone = [
            (publisher, entry)
            for publisher in self._shelf.publishers.values()
            for entry in publisher.entries.values()
            if entry.exp + CLOCK_TOLERANCE_MS < now
        ][:EXPIRED_AT_ONCE]
        for publisher, entry in gone:
            self._drop(publisher, entry)
        return len(gone)

    def node_changed(self, node_id: str, epoch: int | None = None) -> None:
        """The node was seen in this epoch, left, moved, or was allowed or not: look at it again."""
        publisher = self._shelf.publishers.get(node_id)
        if publisher is None:
            return
        if epoch is not None and epoch > publisher.epoch and node_id != self._own_id:
            self._end_life(publisher)
            return
        self._look_at(publisher)
        most = self._judge.most_of(node_id)
        while most is not None and self._shelf.agents.of(publisher) > most:
            self._evict(publisher, weakest(publisher, of_node=False))

    def _publisher(self, node_id: str, epoch: int) -> Publisher:
        """Whose record it is; on the shelf only once one is put there."""
        publisher = self._shelf.publishers.get(node_id)
        if publisher is None:
            return Publisher(node_id, epoch, self._scope_of_node(node_id))
        self._look_at(publisher)
        return publisher

    def _look_at(self, publisher: Publisher) -> None:
        """Whether it is a member now, and who may hear of its agents."""
        scope = self._scope_of_node(publisher.node_id)
        if publisher.known is not (scope is not None):
            self._shelf.recognise(publisher, known=scope is not None)
        if scope is None:  # it says itself from where it can be reached
            said = (entry.scope for entry in publisher.kind(of_node=True))
            scope = max(said, key=WIDTH.__getitem__, default=Scope.LOOPBACK)
        if scope is not publisher.scope:
            publisher.scope = scope
            self._shelf.tell(publisher.kind(of_node=False), scope)

    def _put(self, publisher: Publisher, entry: Entry, signed: Signed) -> None:
        if not entry.of_node:
            entry.scope = publisher.scope
        before = self._shelf.put(publisher, entry)
        if entry.of_node:
            self._look_at(publisher)
        if before is None:
            self.on_change(Change(Event.PUT, None, signed))
        else:
            self.on_change(Change(Event.REPLACED, before.signed(), signed))

    def _drop(self, publisher: Publisher, entry: Entry) -> None:
        self._shelf.drop(publisher, entry)
        self.on_change(Change(Event.DROPPED, entry.signed(), None))

    def _evict(self, publisher: Publisher, entry: Entry) -> None:
        self._judge.crowd_out(entry)
        publisher.lost(entry)
        self._drop(publisher, entry)

    def _end_life(self, publisher: Publisher) -> None:
        """The node started again: what it said before is no more."""
        for entry in list(publisher.entries.values()):
            self._drop(publisher, entry)

    # Looking -----------------------------------------------------------------------------

    def get(self, key: str) -> Signed | None:
        entry = self._shelf.find(handle_of(key))
        return None if entry is None else entry.signed()

    def node_record(self, node_id: str, scope: Scope | None = None) -> Signed | None:
        """The node's record as seen from this scope, or the widest."""
        entries = [
            entry
            for entry in self._entries(node_id)
            if entry.of_node and scope in {None, entry.scope}
        ]
        widest = max(entries, key=lambda entry: WIDTH[entry.scope], default=None)
        return None if widest is None else widest.signed()

    def agents(self) -> Iterator[Signed]:
        """All that are offered, live or not. Others may come and go while this is read."""
        return (entry.signed() for entry in self._shelf if _is_offered(entry))

    def agents_named(self, name: str) -> Iterator[Signed]:
        return (entry.signed() for entry in self._shelf.named(name) if _is_offered(entry))

    def of(self, node_id: str) -> Iterator[Signed]:
        """All records of that node, withdrawals included."""
        return (entry.signed() for entry in self._entries(node_id))

    def has_equivocated(self, node_id: str) -> bool:
        """Whether its key signed two different things under one number."""
        publisher = self._shelf.publishers.get(node_id)
        return publisher is not None and publisher.equivocated

    def _entries(self, node_id: str) -> list[Entry]:
        publisher = self._shelf.publishers.get(node_id)
        return [] if publisher is None else list(publisher.entries.values())

    # Passing on --------------------------------------------------------------------------

    def handle(self, key: str) -> bytes:
        """How nodes speak of the record with this key."""
        return handle_of(key)

    def version(self, handle: bytes) -> bytes | None:
        entry = self._shelf.find(handle)
        return None if entry is None else entry.version

    def content(self, handle: bytes) -> bytes | None:
        """The record as it travels."""
        entry = self._shelf.find(handle)
        return None if entry is None else entry.content

    def scope(self, handle: bytes) -> Scope | None:
        """To peers of this scope or a narrower one the record may be told."""
        entry = self._shelf.find(handle)
        return None if entry is None else entry.scope

    def wants(self, handle: bytes, version: bytes) -> bool:
        """Whether that version is worth sending here: neither here nor refused lately."""
        if self.version(handle) == version:
            return False
        return not self._judge.refusals.holds(version, self._now_ms())

    def digest(self, scope: Scope) -> bytes:
        """What there is here for a peer of this scope, in a kilobyte."""
        return self._shelf.digest.to_bytes(scope)

    def differing_buckets(self, digest: bytes, scope: Scope) -> list[int]:
        """Where something is not the same as at a peer of this scope with that digest."""
        return self._shelf.digest.differing(digest, scope)

    def listing(self, buckets: Iterable[int], scope: Scope) -> list[tuple[bytes, bytes]]:
        """Handle and version of what is in these buckets for a peer of this scope."""
        return [
            (entry.handle, entry.version)
            for number in buckets
            for entry in self._shelf.bucket(number)
            if may_be_told(entry.scope, scope)
        ]


def _is_offered(entry: Entry) -> bool:
    return not entry.of_node and not entry.withdrawn
