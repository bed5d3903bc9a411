"""A lookup on its way through the network: asks whom it names, and tells it what came of it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from aios_nb.hub.dht.codec import Answer, Find, Found, Get
from aios_nb.hub.dht.lookup import Candidate, Lookup
from aios_nb.hub.dht.pending import Pending
from aios_nb.hub.dht.protocol import DhtProtocol


class Walk:
    """Runs one lookup. ``found`` hears each answer; it ends the walk by calling ``finish``."""

    def __init__(
        self,
        protocol: DhtProtocol,
        lookup: Lookup,
        kind: type[Find | Get],
        target: bytes,
        found: Callable[[Candidate, Found], None],
        *,
        patient: Callable[[], bool] = lambda: False,
    ) -> None:
        self.lookup = lookup
        self.finished = False
        self._protocol = protocol
        self._kind = kind
        self._target = target
        self._found = found
        self._patient = patient
        """Wait for whoever may still answer, not only for whoever probably will."""
        self._over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._pumping = False

    async def run(self) -> None:
        """Until there is enough, or nothing left.

        Questions that are still out then run to their own end: so it is learned who is gone.
        """
        try:
            self._pump()
            await self._over
        finally:
            self.finish()

    def finish(self) -> None:
        """Ask nobody else."""
        self.finished = True
        if not self._over.done():
            self._over.set_result(None)

    def _pump(self) -> None:
        if self._pumping:
            return
        self._pumping = True
        try:
            while not self.finished and (candidate := self.lookup.next()) is not None:
                self._ask(candidate)
        finally:
            self._pumping = False
        if not self.finished and (self.lookup.over if self._patient() else self.lookup.settled):
            self.finish()

    def _ask(self, candidate: Candidate) -> None:
        contact = candidate.contact or self._protocol.contacts.read(candidate.content)
        if contact is None or contact.id != candidate.point:
            self.lookup.lost(candidate)
            return
        candidate.contact = contact
        pending = self._protocol.ask(
            contact, self._kind, self, candidate, self._target, candidate.beyond
        )
        if pending is None:
            self.lookup.lost(candidate)

    # What the protocol tells ---------------------------------------------------------------

    def answered(self, pending: Pending, answer: Answer) -> None:
        candidate: Candidate = pending.about
        if self.finished or not isinstance(answer, Found):
            return
        self.lookup.answered(candidate, answer.contacts, token=answer.token, more=answer.more)
        self._found(candidate, answer)
        self._pump()

    def slow(self, pending: Pending) -> None:
        if not self.finished:
            self.lookup.slow(pending.about)
            self._pump()

    def late(self, pending: Pending) -> None:
        if not self.finished:
            self.lookup.late(pending.about)
            self._pump()

    def lost(self, pending: Pending) -> None:
        if not self.finished:
            self.lookup.lost(pending.about)
            self._pump()
