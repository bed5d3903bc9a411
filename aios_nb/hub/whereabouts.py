"""Where nodes are: as their records tell, as they were when last seen, and as the DHT has it."""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, NoReturn

from aios_nb.addresses import urls_of
from aios_nb.hub.remembered import Remembered
from aios_nb.records import NodeRecord, Scope, Signed, may_be_told

if TYPE_CHECKING:
    from aios_nb.hub.catalogue import Catalogue
    from aios_nb.hub.dht.interface import Dht
    from aios_nb.hub.presence import Presence

log = logging.getLogger("aios_nb.hub")

STORE_AFTER_S = 1.0
"""About how long our record waits before it is stored: others come at the same moment."""
ASK_AROUND_S = 3.0
"""How long the DHT may take to say where a node is."""


class Whereabouts:
    """The addresses of other nodes, and ours for them. Without a ``dht`` nobody else is asked."""

    def __init__(
        self, catalogue: Catalogue, remembered: Remembered, among: Callable[[], int]
    ) -> None:
        """``among`` says how many other nodes there are."""
        self._catalogue = catalogue
        self._remembered = remembered
        self._among = among
        self._scope = Scope.LOOPBACK
        self._dht: Dht | None = None
        self._ours: Signed | None = None
        self._stored_among = 0
        """How many nodes there were when our record was last given to the DHT."""
        self._wanted = asyncio.Event()

    def open(self, scope: Scope, dht: Dht | None) -> None:
        """We can be reached from ``scope``, and that is how far we reach."""
        self._scope = scope
        self._dht = dht

    async def close(self) -> None:
        if self._dht is not None:
            await self._dht.close()

    # Of others -------------------------------------------------------------------------------

    def places(self, node_id: str) -> Mapping[str, Scope]:
        """The URLs at which that node says it is, as far as we may dial them."""
        signed = self._catalogue.node_record(node_id)
        record = signed.record if signed is not None else self._remembered.record(node_id)
        return _urls(record)

    async def ask_around(self, node_id: str) -> Mapping[str, Scope]:
        """The same, as the DHT has it."""
        if self._dht is None:
            return {}
        try:
            async with asyncio.timeout(ASK_AROUND_S):
                signed = await self._dht.get(node_id)
        except TimeoutError:
            return {}
        if signed is None or not isinstance(signed.record, NodeRecord):
            return {}
        # Whoever keeps it may be as far away as we can reach.
        told = may_be_told(signed.record.scope, self._scope)
        return _urls(signed.record) if told else {}

    def meet(self, presence: Presence) -> None:
        """That node is there, and may keep records."""
        if self._dht is not None:
            self._dht.meet(presence, proven=True)
            if self._among() >= 2 * self._stored_among:
                self._wanted.set()

    # Of ours ---------------------------------------------------------------------------------

    def publish(self, ours: Signed) -> None:
        """This is where we are from now on."""
        self._ours = ours
        self._stored_among = 0
        self._wanted.set()

    async def keep_stored(self, rng: random.Random) -> NoReturn:
        """Give our record to the DHT: when it is new, and as the network grows around us.

        After that it is the DHT's business to keep it there.
        """
        while True:
            await self._wanted.wait()
            await asyncio.sleep(STORE_AFTER_S * rng.uniform(0.5, 1.5))
            self._wanted.clear()
            among = self._among()
            if self._dht is not None and self._ours is not None and among:
                self._stored_among = among
                stored = await self._dht.put(self._ours)
                log.debug("our record is kept by %d other nodes", stored.holders)


def _urls(record: object) -> dict[str, Scope]:
    """A record that is here came over a link of its scope or a narrower one."""
    if not isinstance(record, NodeRecord):
        return {}
    return dict.fromkeys(urls_of(record, record.scope), record.scope)
