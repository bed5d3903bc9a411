"""What a node of the DHT does unasked: keeps its table alive, and its own records known."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
from typing import TYPE_CHECKING

from aios_nb.errors import RecordError
from aios_nb.hub.dht.keys import ID_BYTES

if TYPE_CHECKING:
    from aios_nb.hub.dht.engine import KademliaDht

log = logging.getLogger("aios_nb.hub")

_REFRESH_ASKS = 4
"""A few nodes of a far part of the key space are enough to know some there."""
_SLOWER = 36.0
"""Each look around comes that much later than the one before, until once an hour."""


class Upkeep:
    """One task, started when there is first something to do."""

    def __init__(self, dht: KademliaDht, rng: random.Random) -> None:
        self._dht = dht
        self._rng = rng
        self._task: asyncio.Task[None] | None = None
        self._closed = False
        self._changed = asyncio.Event()
        self._first_s = self._settle_s = dht.tuning.first_refresh_s
        self._settle_at = 0.0
        self._refresh_at = 0.0
        self._republish_at: float | None = None

    def wake(self) -> None:
        """Somebody was met."""
        if self._closed:
            return
        now = asyncio.get_running_loop().time()
        if self._task is None:
            self._settle_at = now + self._settle_s
            self._refresh_at = now + self._dht.tuning.refresh_s
            self._task = asyncio.create_task(self._run(), name="dht upkeep")
        elif self._dht.is_alone() and self._settle_at > now + self._first_s:
            self._settle_s = self._first_s
            self._settle_at = now + self._first_s
            self._changed.set()

    def published(self) -> None:
        """Something of this node's own is in the network, and stays there only if it is said."""
        if self._closed:
            return
        tuning = self._dht.tuning
        spread = 1 + tuning.republish_jitter * (2 * self._rng.random() - 1)
        self._republish_at = asyncio.get_running_loop().time() + tuning.republish_s * spread
        self.wake()
        self._changed.set()

    async def close(self) -> None:
        self._closed = True
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        while not self._closed:
            due = min(self._settle_at, self._refresh_at, self._republish_at or self._settle_at)
            self._changed.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(due):
                    await self._changed.wait()
            try:
                await self._do_what_is_due(loop.time())
            except Exception:
                log.exception("the upkeep of the DHT failed, and goes on")

    async def _do_what_is_due(self, now: float) -> None:
        """Each thing is put off before it is done, so that one that fails is not done at once."""
        if self._republish_at is not None and self._republish_at <= now:
            self.published()
            await self.republish()
        if self._settle_at <= now:
            self._settle_s = min(self._settle_s * _SLOWER, self._dht.tuning.refresh_s)
            self._settle_at = now + self._settle_s
            await self.settle()
        if self._refresh_at <= now:
            self._refresh_at = now + self._dht.tuning.refresh_s
            self._dht.storage.expire()
            await self.refresh()

    async def settle(self) -> None:
        """Get to know one's own neighbours, then some nodes of every other part."""
        dht = self._dht
        await dht.walk_to(dht.node.id)
        for bucket in list(dht.protocol.router.buckets):
            if not bucket.has_in_range(dht.node) and len(bucket) < dht.ksize // 2:
                await dht.walk_to(self._point_in(bucket.range), _REFRESH_ASKS)

    async def refresh(self) -> None:
        """The same for parts of the key space in which nothing was looked for lately."""
        lonely = [bucket.range for bucket in self._dht.protocol.router.lonely_buckets()]
        self._dht.resize([await self._dht.walk_to(self._point_in(each)) for each in lonely])

    async def republish(self) -> None:
        """Own records once more, for those who came to their region since."""
        for key, signed in list(self._dht.published.items()):
            with contextlib.suppress(RecordError):  # it has expired; the node makes another
                await self._dht.set_digest(key, signed.to_bytes())

    def _point_in(self, bounds: tuple[int, int]) -> bytes:
        return self._rng.randint(*bounds).to_bytes(ID_BYTES, "big")
