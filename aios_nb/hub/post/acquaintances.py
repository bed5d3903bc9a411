"""Whose word on an address we have, and whether it is true. No I/O.

Words come by the thousand when a node joins, and few of them are ever used: a signature is checked
when it matters, which is before the first datagram, or when two words disagree.
"""

from __future__ import annotations

from collections import OrderedDict

from aios_nb.hub.post.datagram import raw_of
from aios_nb.hub.presence import Presence, State

MOST_ACQUAINTANCES = 32_768
SILENT_S, SILENT_MOST_S = 5.0, 60.0
"""Not greeted for this long after it did not answer; twice as long each time."""
_SILENCES_COUNTED = 8


class Acquaintance:
    """A node's latest word, and how it went when we tried to reach it."""

    __slots__ = ("genuine", "presence", "silences", "silent_until")

    def __init__(self, presence: Presence, *, genuine: bool) -> None:
        self.presence = presence
        self.genuine: bool | None = genuine or None
        """None: not checked yet."""
        self.silent_until = 0.0
        self.silences = 0

    def is_genuine(self) -> bool:
        """Whether its own key signed it; checked once."""
        if self.genuine is None:
            self.genuine = self.presence.is_genuine()
        return self.genuine

    def did_not_answer(self, now: float) -> None:
        self.silent_until = now + min(SILENT_S * 2**self.silences, SILENT_MOST_S)
        self.silences = min(self.silences + 1, _SILENCES_COUNTED)

    def answered(self) -> None:
        self.silent_until, self.silences = 0.0, 0


class Acquaintances:
    """By the 20 bytes of the node id; those not used for longest are forgotten first."""

    __slots__ = ("_known",)

    def __init__(self) -> None:
        self._known: OrderedDict[bytes, Acquaintance] = OrderedDict()

    def __len__(self) -> int:
        return len(self._known)

    def get(self, node: bytes) -> Acquaintance | None:
        found = self._known.get(node)
        if found is not None:
            self._known.move_to_end(node)
        return found

    def know(self, presence: Presence, *, genuine: bool = False) -> bool:
        """Keep it if it is the latest word of its node; whether it is now the one we have."""
        node = raw_of(presence.node_id)
        before = self._known.get(node)
        if before is None:
            self._keep(node, Acquaintance(presence, genuine=genuine))
            return True
        if before.presence == presence:
            before.genuine = before.genuine or genuine or None
            return True
        later = presence.rank > before.presence.rank
        if later and not (genuine or presence.is_genuine()):
            return False
        if not later and before.is_genuine():
            return False
        after = Acquaintance(presence, genuine=genuine or later)
        if after.presence.address == before.presence.address:
            after.silent_until, after.silences = before.silent_until, before.silences
        self._keep(node, after)
        return True

    def forget(self, node: bytes) -> None:
        self._known.pop(node, None)

    def contradicts(self, node: bytes, presence: Presence) -> bool:
        """Whether that node said later that it is gone, or elsewhere."""
        known = self._known.get(node)
        if known is None or known.presence.rank <= presence.rank:
            return False
        said = known.presence.said
        gone = said.state is State.LEFT or known.presence.address != presence.address
        return gone and known.is_genuine()

    def _keep(self, node: bytes, acquaintance: Acquaintance) -> None:
        self._known[node] = acquaintance
        self._known.move_to_end(node)
        if len(self._known) > MOST_ACQUAINTANCES:
            self._known.popitem(last=False)
