"""How many records each node has here, and who gives way when there is no room."""

from __future__ import annotations

from aios_nb.hub.catalogue.publisher import Publisher


class Sizes:
    """Nodes by how many records they have; the largest is found without looking at all."""

    def __init__(self) -> None:
        self.total = 0
        self._of: dict[str, int] = {}
        self._at: list[dict[str, None]] = [{}]
        """For each size the nodes that have it. No node has a size beyond the list's end."""

    def of(self, node_id: str) -> int:
        return self._of.get(node_id, 0)

    def change(self, node_id: str, by: int) -> None:
        before = self.of(node_id)
        after = before + by
        self.total += by
        if before:
            del self._at[before][node_id]
        if after:
            while len(self._at) <= after:
                self._at.append({})
            self._at[after][node_id] = None
            self._of[node_id] = after
        else:
            del self._of[node_id]
        while len(self._at) > 1 and not self._at[-1]:
            self._at.pop()

    def largest(self) -> tuple[int, str] | None:
        """The size of the largest, and who it is; None if there is nobody."""
        return (len(self._at) - 1, next(iter(self._at[-1]))) if self._of else None


class Crowd:
    """The records of one kind of all other nodes. Nodes nobody has seen alive give way first.

    A key costs nothing, so whoever floods us has as many as it likes: those of nodes that are not
    members of the network must not take the place of those that are.
    """

    def __init__(self, cap: int) -> None:
        self._cap = cap
        self._members, self._strangers = Sizes(), Sizes()

    def __len__(self) -> int:
        return self._members.total + self._strangers.total

    def is_full(self) -> bool:
        return len(self) >= self._cap

    def of(self, publisher: Publisher) -> int:
        return self._sizes(publisher).of(publisher.node_id)

    def add(self, publisher: Publisher) -> None:
        self._sizes(publisher).change(publisher.node_id, 1)

    def remove(self, publisher: Publisher) -> None:
        self._sizes(publisher).change(publisher.node_id, -1)

    def recognise(self, publisher: Publisher, *, known: bool) -> None:
        """It became a member of the network, or is none any more; its ``known`` is set after."""
        size = self.of(publisher)
        if size and publisher.known is not known:
            self._sizes(publisher).change(publisher.node_id, -size)
            (self._members if known else self._strangers).change(publisher.node_id, size)

    def gives_way_to(self, publisher: Publisher) -> str | None:
        """The node that loses a record so that this one can have one more; None if it may not.

        It must be larger than this one will be: fresh keys do not push out those of equal size.
        """
        if publisher.known:
            stranger = self._strangers.largest()
            if stranger is not None:
                return stranger[1]
        largest = self._sizes(publisher).largest()
        if largest is None or largest[0] <= self.of(publisher) + 1:
            return None
        return largest[1]

    def _sizes(self, publisher: Publisher) -> Sizes:
        return self._members if publisher.known else self._strangers
