"""A node whose records are on the shelf."""

from __future__ import annotations

from collections.abc import Iterator

from aios_nb.hub.catalogue.entry import Entry
from aios_nb.records import Scope


class Publisher:
    """One node's records, all of one epoch."""

    __slots__ = ("entries", "epoch", "equivocated", "floor", "known", "node_id", "scope")

    def __init__(self, node_id: str, epoch: int, scope: Scope | None) -> None:
        self.node_id = node_id
        self.epoch = epoch
        self.scope = scope or Scope.LOOPBACK
        """From where it can be reached, so who may hear of its agents."""
        self.known = scope is not None
        """Whether it is a member of the network, as far as this node sees."""
        self.entries: dict[bytes, Entry] = {}
        self.floor = -1
        """Agents that are not here and have no higher ``seq`` stay out: a withdrawal had no place
        any more, and what it ended must not come back."""
        self.equivocated = False

    def kind(self, *, of_node: bool) -> Iterator[Entry]:
        """Its agents, or its records of itself."""
        return (entry for entry in self.entries.values() if entry.of_node is of_node)

    def lost(self, entry: Entry) -> None:
        """There is no room for this one of its records."""
        if entry.withdrawn:
            self.floor = max(self.floor, entry.seq)
