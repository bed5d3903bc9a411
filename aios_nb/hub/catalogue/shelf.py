"""The records themselves, by handle, by node and by name, with their digest and their counts."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from aios_nb.hub.catalogue.crowd import Crowd
from aios_nb.hub.catalogue.digest import BUCKETS, Digest, bucket_of
from aios_nb.hub.catalogue.entry import Entry
from aios_nb.hub.catalogue.publisher import Publisher
from aios_nb.records import Scope


class Shelf:
    """Puts and drops, and keeps every index true. It judges nothing."""

    def __init__(self, own_id: str, cap: int) -> None:
        self._own_id = own_id
        self._buckets: list[dict[bytes, Entry]] = [{} for _ in range(BUCKETS)]
        self._named: dict[str, list[Entry]] = {}
        self.publishers: dict[str, Publisher] = {}
        self.digest = Digest()
        self.agents, self.nodes = Crowd(cap), Crowd(cap)
        """Of other nodes; ours are not counted."""

    def __len__(self) -> int:
        return sum(map(len, self._buckets))

    # Looking -----------------------------------------------------------------------------

    def find(self, handle: bytes) -> Entry | None:
        return self._buckets[bucket_of(handle)].get(handle) if handle else None

    def bucket(self, number: int) -> list[Entry]:
        """Empty for a number there is not: others may ask for any."""
        return list(self._buckets[number].values()) if 0 <= number < BUCKETS else []

    def __iter__(self) -> Iterator[Entry]:
        """All entries; records may come and go meanwhile."""
        for number in range(BUCKETS):
            yield from self.bucket(number)

    def named(self, name: str) -> list[Entry]:
        """Agents of that name, withdrawn ones included."""
        return list(self._named.get(name, ()))

    def crowd_of(self, entry: Entry) -> Crowd:
        return self.nodes if entry.of_node else self.agents

    # Changing ----------------------------------------------------------------------------

    def put(self, publisher: Publisher, entry: Entry) -> Entry | None:
        """Keep it; returns the one whose place it took."""
        before = publisher.entries.get(entry.handle)
        if before is not None:
            self._forget(before)
        elif publisher.node_id != self._own_id:
            self.crowd_of(entry).add(publisher)
        self.publishers[publisher.node_id] = publisher
        publisher.entries[entry.handle] = entry
        self._buckets[bucket_of(entry.handle)][entry.handle] = entry
        if not entry.of_node:
            self._named.setdefault(entry.name, []).append(entry)
        self.digest.toggle(entry.handle, entry.version, entry.scope)
        return before

    def drop(self, publisher: Publisher, entry: Entry) -> None:
        del publisher.entries[entry.handle]
        del self._buckets[bucket_of(entry.handle)][entry.handle]
        self._forget(entry)
        if publisher.node_id != self._own_id:
            self.crowd_of(entry).remove(publisher)
        if not publisher.entries:
            del self.publishers[publisher.node_id]

    def _forget(self, entry: Entry) -> None:
        """What is the same for one that goes and one that is replaced."""
        self.digest.toggle(entry.handle, entry.version, entry.scope)
        if entry.of_node:
            return
        same_name = self._named[entry.name]
        same_name.remove(entry)
        if not same_name:
            del self._named[entry.name]

    def tell(self, entries: Iterable[Entry], scope: Scope) -> None:
        """From now on they may be told to peers of this scope or a narrower one."""
        for entry in entries:
            if entry.scope is not scope:
                self.digest.toggle(entry.handle, entry.version, entry.scope)
                entry.scope = scope
                self.digest.toggle(entry.handle, entry.version, entry.scope)

    def recognise(self, publisher: Publisher, *, known: bool) -> None:
        """It is a member of the network, or is none any more."""
        self.agents.recognise(publisher, known=known)
        self.nodes.recognise(publisher, known=known)
        publisher.known = known
