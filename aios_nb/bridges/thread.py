"""A bridge in a program that does other things: a thread with a loop of its own.

On the kernel's loop no update would be heard while a cell runs; on the node's the bridge could hold
the node up.
"""

from __future__ import annotations

import atexit
import contextlib
import threading
from concurrent.futures import Future

from aios_bots.core.adapter import Adapter
from aios_bots.core.bridge import Bridge
from aios_nb.bridges.bot import Card
from aios_nb.bridges.serving import Serving
from aios_nb.home import Home, RunInfo
from aios_nb.loop import LoopThread

END_S = 10.0
_LOOK_S = 0.2


class BridgeThread:
    """One bridge of this program."""

    def __init__(self, home: Home, run: RunInfo, adapter: Adapter) -> None:
        self._home, self._run, self._adapter = home, run, adapter
        self._loop = LoopThread("aios-bridge")
        self._serving: Serving | None = None
        self._work: Future[None] | None = None
        self._up = threading.Event()

    @property
    def account(self) -> str:
        return self._adapter.account

    @property
    def address(self) -> str:
        return self._adapter.address

    @property
    def running(self) -> bool:
        return self._work is not None and not self._work.done()

    @property
    def problem(self) -> str:
        """Why it ended by itself, in one line; empty: it did not."""
        if self._work is None or not self._work.done() or self._work.cancelled():
            return ""
        error = self._work.exception()
        return "" if error is None else str(error)

    def start(self) -> None:
        """Returns when it works, or raises why it cannot; an interrupt ends it again."""
        self._loop.start()
        try:
            self._work = self._loop.submit(self._serve())
            while not self._up.wait(_LOOK_S):  # short waits can be interrupted everywhere
                if self._work.done():
                    self._work.result()
                    break  # asked to end before it began
        except BaseException:
            self.stop()
            raise
        atexit.register(self.stop)

    async def _serve(self) -> None:
        self._serving = Serving(self._home, self._run, self._adapter)
        await self._serving.serve(self._began)

    def _began(self, _: Bridge) -> None:
        self._up.set()

    def stop(self) -> None:
        """End it: what is on its way out goes, for a moment. Twice does no harm."""
        atexit.unregister(self.stop)
        if not self._loop.running:
            return
        if self._serving is not None and self._work is not None:
            self._loop.loop.call_soon_threadsafe(self._serving.stop)
            with contextlib.suppress(BaseException):  # why it failed was told when it did
                self._work.result(END_S)
        self._loop.stop()

    def card(self) -> Card | None:
        """How it is doing, as other programs see it too."""
        return None if self._serving is None else self._serving.bot.card()


bridges: dict[str, BridgeThread] = {}
"""The bridges of this program, by the bot's id."""


def start(home: Home, run: RunInfo, adapter: Adapter) -> tuple[BridgeThread, bool]:
    """The bridge of that bot in this program, and whether it was started now."""
    there = bridges.get(adapter.account)
    if there is not None and there.running:
        return there, False
    made = BridgeThread(home, run, adapter)
    made.start()
    bridges[adapter.account] = made
    return made, True


def stop_all() -> list[str]:
    """End all bridges of this program; gives the bots that were bridged."""
    ended = [account for account, one in bridges.items() if one.running]
    for one in list(bridges.values()):
        one.stop()
    bridges.clear()
    return ended
