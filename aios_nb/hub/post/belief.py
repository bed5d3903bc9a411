"""Whose word to take for what it says: that of a key on its own address, heard from there.

No I/O; the time is given.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable

from aios_nb.errors import RecordError
from aios_nb.hub.post import budgets
from aios_nb.hub.post.acquaintances import Acquaintance, Acquaintances
from aios_nb.hub.post.datagram import SENDER_BYTES
from aios_nb.hub.post.places import Place, signed_place
from aios_nb.hub.presence import Presence, State, peek
from aios_nb.identity import PUBLIC_KEY_BYTES


class Belief:
    """Reads presences, cheap checks first, and remembers those it has proven."""

    def __init__(
        self, network: str, own_presence: Callable[[], Presence], counts: Counter[str]
    ) -> None:
        self._network = network
        self._own_presence = own_presence
        self._counts = counts
        self._checks = budgets.SourceBudget(budgets.CHECKS, budgets.ALL_CHECKS)
        self.acquaintances = Acquaintances()

    def read(self, content: bytes, node: bytes, place: Place) -> Presence | None:
        """The presence of that node at that place, not proven yet; None if it is not one."""
        presence = self._parsed(content, node)
        why = "junk" if presence is None else self._objection(presence, place)
        if why is not None:
            self._counts[why] += 1
            return None
        return presence

    def believe(self, node: bytes, presence: Presence, place: Place, now: float) -> bool | None:
        """Whether it is news to us; None if it is not to be believed."""
        known = self.acquaintances.get(node)
        news = known is None or known.presence != presence
        if known is not None and known.genuine and not news:
            return False
        why = self._doubt(node, presence, place, now)
        if why is not None:
            self._counts[why] += 1
            return None
        self.acquaintances.know(presence, genuine=True)
        return news

    def later_word(self, node: bytes, presence: Presence) -> Presence | None:
        """What that node said after this and against it, if anything."""
        known = self.acquaintances.get(node)
        contradicted = known is not None and self.acquaintances.contradicts(node, presence)
        return known.presence if known is not None and contradicted else None

    def later_of_ours(self, content: bytes, place: Place, now: float) -> Presence | None:
        """A genuine word of our own key that we did not say: somebody else has it."""
        ours = self._own_presence()
        if not content.startswith(ours.pk):
            return None
        try:
            presence = peek(content)
        except RecordError:
            return None
        if presence.said.net != self._network or presence.rank <= ours.rank:
            return None
        return presence if self._checks.take(place, now) and presence.is_genuine() else None

    def place_of(self, known: Acquaintance) -> Place | None:
        """Where to greet that node, if its own key says so and it is as near as we are.

        From another scope we would be seen under another address than the one we sign; and nobody
        out there may make us knock on doors in here.
        """
        theirs, ours = known.presence, self._own_presence()
        if theirs.said.state is not State.ALIVE or theirs.address is None or ours.address is None:
            return None
        if theirs.said.scope is not ours.said.scope:
            self._counts["scope"] += 1
            return None
        if not known.is_genuine():
            self._counts["forged"] += 1
            return None
        return signed_place(theirs.address)

    def _parsed(self, content: bytes, node: bytes) -> Presence | None:
        if hashlib.sha256(content[:PUBLIC_KEY_BYTES]).digest()[:SENDER_BYTES] != node:
            return None
        known = self.acquaintances.get(node)
        if known is not None and known.presence.to_bytes() == content:
            return known.presence
        try:
            return peek(content)
        except RecordError:
            return None

    def _objection(self, presence: Presence, place: Place) -> str | None:
        said = presence.said
        if said.net != self._network or said.state is not State.ALIVE:
            return "junk"
        if presence.address is None or signed_place(presence.address) != place:
            return "address"
        return None if said.scope is self._own_presence().said.scope else "scope"

    def _doubt(self, node: bytes, presence: Presence, place: Place, now: float) -> str | None:
        if not self._checks.take(place, now):
            return "busy"
        if not presence.is_genuine():
            return "forged"
        return "stale" if self.acquaintances.contradicts(node, presence) else None
