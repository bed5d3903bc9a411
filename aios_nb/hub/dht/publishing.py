"""A record on its way to those who shall keep it: everyone in the region of its key."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from aios_nb.hub.dht.codec import Answer, Found, Kept, Put
from aios_nb.hub.dht.contacts import Contact
from aios_nb.hub.dht.lookup import Candidate, Lookup, Step
from aios_nb.hub.dht.pending import Pending
from aios_nb.hub.dht.protocol import DhtProtocol


class Publishing:
    """Writes to each node as soon as it gave its token; nobody waits for the whole region."""

    def __init__(
        self,
        protocol: DhtProtocol,
        lookup: Lookup,
        key: bytes,
        content: bytes,
        *,
        wanted: int,
        may_hold: Callable[[Contact], bool],
    ) -> None:
        self.holders: set[bytes] = set()
        self._protocol = protocol
        self._lookup = lookup
        self._key = key
        self._content = content
        self._wanted = wanted
        self._may_hold = may_hold
        self._written: set[bytes] = set()
        self._waiting = 0
        self._over: asyncio.Future[None] | None = None

    def found(self, candidate: Candidate, answer: Found) -> None:  # noqa: ARG002
        """A node of the way answered; those in the region are written to at once."""
        if candidate.distance <= self._lookup.radius:
            self._write(candidate)

    async def complete(self) -> None:
        """Also write to the nearest beyond, if the region holds too few; then wait for all."""
        for candidate in self._lookup.nearest(Step.ANSWERED)[: self._wanted]:
            self._write(candidate)
        if self._waiting:
            self._over = asyncio.get_running_loop().create_future()
            await self._over

    def _write(self, candidate: Candidate) -> None:
        contact = candidate.contact
        if contact is None or candidate.point in self._written or not self._may_hold(contact):
            return
        self._written.add(candidate.point)
        pending = self._protocol.ask(
            contact, Put, self, _Writing(), self._key, candidate.token, self._content
        )
        if pending is not None:
            self._waiting += 1

    # What the protocol tells ---------------------------------------------------------------

    def answered(self, pending: Pending, answer: Answer) -> None:
        if isinstance(answer, Kept) and answer.kept:
            self.holders.add(pending.contact.id)
        self._done(pending)

    def slow(self, pending: Pending) -> None:
        """It has time."""

    def late(self, pending: Pending) -> None:
        """It may still keep it, but the publisher does not wait to hear so."""
        self._done(pending)

    def lost(self, pending: Pending) -> None:
        self._done(pending)

    def _done(self, pending: Pending) -> None:
        if pending.about.waited_for:
            pending.about.waited_for = False
            self._waiting -= 1
            if not self._waiting and self._over is not None and not self._over.done():
                self._over.set_result(None)


class _Writing:
    """Whether the publisher still waits for this one."""

    __slots__ = ("waited_for",)

    def __init__(self) -> None:
        self.waited_for = True
