"""A bridge at work: from the lock of its bot to the last message on its way out."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
from collections.abc import Callable

from aios_bots.core.adapter import Adapter
from aios_bots.core.bridge import Bridge
from aios_bots.core.store import BotStore
from aios_nb.bridges.bot import Bot, Card
from aios_nb.bridges.tokens import voices_at
from aios_nb.errors import AiosError
from aios_nb.home import Home, RunInfo

log = logging.getLogger("aios_bots")

LOOK_S = 0.5
"""Between looks at what other programs left, and at what there is to tell them."""
TRIED_TOLD = 50


class Serving:
    """One bridge, for one loop. ``stop`` may be called before, while and after it works."""

    def __init__(self, home: Home, run: RunInfo, adapter: Adapter) -> None:
        self.bot = Bot(home, adapter.account)
        self.bridge: Bridge | None = None
        self._run, self._adapter = run, adapter
        self._stop = asyncio.Event()

    def stop(self) -> None:
        """End it in good order; on its loop."""
        self._stop.set()

    async def serve(self, up: Callable[[Bridge], None]) -> None:
        """Work until ``stop``, telling ``up`` when it has begun. Raises what will not pass."""
        with self.bot.claimed():
            self.bot.box.forget_stops()
            store = BotStore.open(self.bot.db, self.bot.account)
            try:
                async with contextlib.AsyncExitStack() as closing:
                    prefix = f"{self._adapter.platform}:{self.bot.account}:"
                    voices = await voices_at(self._run, self.bot, prefix)
                    closing.push_async_callback(voices.close)
                    closing.push_async_callback(self._adapter.close)
                    bridge = Bridge(self._adapter, store, voices, self.bot.box)
                    self.bridge = bridge
                    closing.callback(self._tell, bridge)
                    await self._work(bridge, up)
            finally:
                self.bridge = None
                await store.close()

    async def _work(self, bridge: Bridge, up: Callable[[Bridge], None]) -> None:
        async def say_up() -> None:
            await bridge.up.wait()
            try:
                self._tell(bridge)
            except AiosError as error:
                log.warning("other programs cannot be told how the bridge is: %s", error)
            up(bridge)

        wishes = [asyncio.create_task(wish.wait()) for wish in (self._stop, bridge.asked_to_stop)]
        work = asyncio.create_task(bridge.run())
        beside = [asyncio.create_task(say_up()), asyncio.create_task(self._attend(bridge))]
        tasks = [work, *wishes, *beside]
        try:
            done, _ = await asyncio.wait(tasks[:-2], return_when=asyncio.FIRST_COMPLETED)
            if work not in done:
                await bridge.stop()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
        if work in done:
            work.result()

    async def _attend(self, bridge: Bridge) -> None:
        """Hear what other programs left, tell them how it goes, and log what is wrong, once."""
        last, trouble = None, ""
        while True:
            await asyncio.sleep(LOOK_S)
            try:
                await bridge.listen()
                card = self._card(bridge)
                if card != last:
                    self.bot.tell(card)
                    last = card
            except (AiosError, OSError) as error:  # a full disk passes
                log.debug("other programs are not told: %s", error)
                continue
            if card.status.trouble != trouble:
                trouble = card.status.trouble
                log.log(
                    logging.WARNING if trouble else logging.INFO, trouble or "all is well again"
                )

    def _tell(self, bridge: Bridge) -> None:
        self.bot.tell(self._card(bridge))

    def _card(self, bridge: Bridge) -> Card:
        return Card(
            account=self.bot.account,
            node=self._run.name,
            status=bridge.status(),
            link=self._adapter.link(""),
            people=tuple(bridge.people()),
            tried=tuple(bridge.tried(TRIED_TOLD)),
            pid=os.getpid(),
        )
