"""Updates on their way in: kept, then dealt with, in order within a chat or topic.

An update is done when its effects are. Until then it is in the inbox, and comes again after a
crash; its effects carry its key, so they happen once. While the node is away everything waits. An
update that fails by itself is tried three times and then put aside, so that it stops nothing.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import deque
from collections.abc import Awaitable, Callable, Sequence

from aios_bots.core.adapter import Adapter, NotTaken
from aios_bots.core.inbox import TRIES_MAX, Update
from aios_bots.core.model import Incoming
from aios_bots.core.secret import described
from aios_bots.core.store import BotStore
from aios_nb.errors import Busy, ConnectionLost, NotRunning

log = logging.getLogger("aios_bots.intake")

AT_ONCE = 64
"""Updates that are dealt with at the same time, each of another chat."""
HELD_MAX = 5000
"""Updates in memory. With more waiting, the app is not asked for new ones: it keeps them too."""
PAUSE_S = (0.1, 5.0)
"""Between two tries while the node is away: the first pause, and the longest."""
AWAY = (NotRunning, ConnectionLost, Busy, NotTaken)
"""It is not the update's fault: the node, the app, or a disk that is full."""

Handle = Callable[[Incoming], Awaitable[None]]
Lane = tuple[str, str]


class Intake:
    """Takes what an app hands over, and sees to it that ``handle`` deals with each update."""

    def __init__(self, store: BotStore, adapter: Adapter, handle: Handle) -> None:
        self._store, self._adapter, self._handle = store, adapter, handle
        self._lanes: dict[Lane, deque[tuple[Update, Incoming]]] = {}
        self._workers: set[asyncio.Task[None]] = set()
        self._at_once = asyncio.Semaphore(AT_ONCE)
        self._held = 0
        self._room = asyncio.Event()
        self._room.set()
        self.again = 0
        """Updates that came a second time, and did nothing."""
        self.away = ""
        """Why updates wait, in one line: the node does not answer."""

    @property
    def held(self) -> int:
        """Updates that are kept and not done."""
        return self._held

    async def take(self, batch: Sequence[tuple[int, str]]) -> None:
        """Keep these; done when they are safe. Waits while there is too much to do already."""
        await self._room.wait()
        fresh = set(await self._store.inbox.add(batch))
        self.again += len(batch) - len(fresh)
        for update_id, raw in batch:
            if update_id in fresh:
                fresh.discard(update_id)
                await self._begin(Update(update_id, raw, at=0))

    async def recover(self) -> int:
        """Begin with what was kept before the last end; gives how many there are."""
        after, count = -1, 0
        while waiting := self._store.inbox.waiting(after=after):
            for update in waiting:
                await self._room.wait()
                await self._begin(update)
            after = waiting[-1].update_id
            count += len(waiting)
        return count

    async def close(self) -> None:
        """Stop where we are; what is not done comes again."""
        for task in self._workers:
            task.cancel()
        await asyncio.gather(*self._workers, return_exceptions=True)

    async def _begin(self, update: Update) -> None:
        try:
            incoming = self._adapter.read(update.raw)
        except Exception as error:  # noqa: BLE001 - whatever a stranger's update makes of a reader
            with contextlib.suppress(Busy):  # a full disk: then it is tried at the next start
                await self._aside(update, error, for_good=True)
            return
        self._held += 1
        if self._held >= HELD_MAX:
            self._room.clear()
        lane = (incoming.place.chat, incoming.place.topic)
        waiting = self._lanes.get(lane)
        if waiting is not None:
            waiting.append((update, incoming))
            return
        self._lanes[lane] = deque([(update, incoming)])
        task = asyncio.get_running_loop().create_task(self._work(lane))
        self._workers.add(task)
        task.add_done_callback(self._workers.discard)

    async def _work(self, lane: Lane) -> None:
        """Deal with what waits in one lane, until nothing does."""
        waiting = self._lanes[lane]
        try:
            while waiting:
                update, incoming = waiting[0]
                await self._deal(update, incoming)
                waiting.popleft()
                self._held -= 1
                if self._held < HELD_MAX // 2:
                    self._room.set()
        finally:
            del self._lanes[lane]

    async def _deal(self, update: Update, incoming: Incoming) -> None:
        pause, longest = PAUSE_S
        while True:
            try:
                if await self._tried(update, incoming):
                    self.away = ""
                    return
            except AWAY as error:
                self.away = described(error)
            await asyncio.sleep(pause)
            pause = min(2 * pause, longest)

    async def _tried(self, update: Update, incoming: Incoming) -> bool:
        """Deal with it once; gives whether it is over: done, or put aside."""
        try:
            async with self._at_once:
                await self._handle(incoming)
        except AWAY:
            raise
        except Exception as error:
            log.warning("update %s failed: %s", update.update_id, described(error))
            log.debug("it failed here", exc_info=True)
            return await self._aside(update, error)
        await self._store.inbox.done(update.update_id)
        return True

    async def _aside(self, update: Update, error: Exception, *, for_good: bool = False) -> bool:
        """Count a failure; gives whether the update is put aside now."""
        aside = False
        for _ in range(TRIES_MAX if for_good else 1):  # reading it again would give the same
            aside = await self._store.inbox.failed(update.update_id)
        if aside:
            await self._store.people.note("", "put aside", f"{update.update_id}: {error}")
        return aside
