"""Where calls wait for their turn and go: each at the gate of its chat, a bounded number at a time.

It knows nothing of what a call says. No chat waits for another: a gate is one chat's own
(``pacing``), and a chat that is slow has a few calls out and no more.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections import Counter, defaultdict, deque
from collections.abc import Awaitable, Callable
from typing import NamedTuple

from aios_bots.core.pacing import Call, Pacer, Rank, Rates
from aios_bots.core.rates import Turnstile
from aios_bots.core.reach import Reach
from aios_bots.core.secret import described

log = logging.getLogger("aios_bots.postman")

AT_ONCE = 32
"""Calls that are out at the same time."""
AT_ONCE_CHAT = 4
"""Of those, for one chat."""
SPARE = 3
"""So many more than its rate may reach an app in a second, after a stretch in which nothing did."""
REFUSED_IN_A_ROW = 3
"""So many chats that want a pause, and none that takes anything: the app means the whole bot, and
counts every call that comes before the pause is over."""
_TICK_S = 0.001


def nothing() -> None:
    """For who need not know."""


class _Errand(NamedTuple):
    work: Callable[[], Awaitable[object]]
    dropped: Callable[[], None]


class Gatehouse:
    """The gates of one bot. ``load`` is called before each round: it may ``enter`` more calls."""

    def __init__(
        self,
        clock: Callable[[], float],
        rates: Rates | None,
        is_group: Callable[[str], bool],
        load: Callable[[], None],
    ) -> None:
        self.reach = Reach(clock)
        self._pacer = Pacer(clock, rates)
        self._clock = clock
        self._line = Turnstile((rates or Rates()).all_per_s + SPARE, 1.0)
        self._refused: set[str] = set()
        """The chats that want a pause, since the app last took a call."""
        self._shut_until = float("-inf")
        self._is_group, self._load = is_group, load
        self._errands: dict[Call, _Errand] = {}
        self._out: set[asyncio.Task[None]] = set()
        self._per_chat: Counter[str] = Counter()
        self._held: dict[str, deque[Call]] = defaultdict(deque)
        """Calls whose turn it is, of chats that have enough of them out."""
        self._changing: dict[str, asyncio.Task[None]] = {}
        """The last call that is out about each message: the next waits for it."""
        self._probe: asyncio.Task[None] | None = None
        self._back = asyncio.Event()
        """Something came back, or was looked at."""
        self._timer: asyncio.TimerHandle | None = None
        self._scheduled = False
        self.running = False
        self.closing = False
        """Nothing new is begun."""

    # Calls -------------------------------------------------------------------------------------

    def enter(
        self,
        key: str,
        chat: str,
        rank: Rank,
        work: Callable[[], Awaitable[object]],
        *,
        name: str = "",
        dropped: Callable[[], None] = nothing,
        first: bool = False,
    ) -> bool:
        """Have ``work`` done when it is its turn. False: it is not wanted now.

        ``key``: the message that it is about; two calls about one do not overtake each other, and
        what comes later replaces a preview that waits. ``dropped`` is told when it will not be
        done. ``first``: before what waits in that chat.
        """
        self.drop(key, chat, Rank.PREVIEW)
        call = Call(key, chat, rank, self._is_group(chat), name)
        if first:
            self._pacer.again(call)
        elif not self._pacer.put(call):
            return False
        self._errands[call] = _Errand(work, dropped)
        self.soon()
        return True

    def drop(self, key: str, chat: str, rank: Rank) -> None:
        """A preview or typing is not wanted any more."""
        call = Call(key, chat, rank, self._is_group(chat))
        if self._pacer.drop(call):
            self._dropped(call)

    def close(self, chat: str, seconds: float) -> None:
        """Nothing goes there for so long; previews and typing are dropped."""
        for call in self._pacer.close(chat, seconds, group=self._is_group(chat)):
            self._dropped(call)

    def refused(self, chat: str, seconds: float) -> None:
        """The app wants nothing for that chat for so long; and perhaps for none."""
        self.close(chat, seconds)
        self._refused.add(chat)
        if len(self._refused) >= REFUSED_IN_A_ROW:
            log.warning("the app wants a pause of %g s from the whole bot", seconds)
            self._shut_until = max(self._shut_until, self._clock() + seconds)

    def forget(self, chat: str) -> None:
        """Drop everything that waits for that chat."""
        for call in (*self._pacer.forget(chat), *self._held.pop(chat, ())):
            self._dropped(call)

    def busy(self, chat: str) -> bool:
        return bool(self._held.get(chat)) or self._pacer.busy(chat)

    def closed(self) -> dict[str, float]:
        return self._pacer.closed()

    def _dropped(self, call: Call) -> None:
        errand = self._errands.pop(call, None)
        if errand is not None:
            errand.dropped()

    def went(self) -> None:
        """The app took a call: what it refuses is a matter of single chats."""
        self._refused.clear()

    def _shut(self) -> float:
        """For how many seconds nothing goes at all."""
        return max(0.0, self._shut_until - self._clock())

    # Rounds ------------------------------------------------------------------------------------

    def soon(self) -> None:
        """Look at what may go."""
        if self.running and not self._scheduled:
            self._scheduled = True
            asyncio.get_running_loop().call_soon(self._round)

    def _round(self) -> None:
        self._scheduled = False
        if not self.running:
            return
        self._load()
        while len(self._out) < AT_ONCE and not self.closing and self._may_go:
            call = self._pacer.take()
            if call is None:
                break
            if self._per_chat[call.chat] < AT_ONCE_CHAT:
                self._launch(call)
            else:
                self._held[call.chat].append(call)
        self._arm()
        self._back.set()

    @property
    def _may_go(self) -> bool:
        return self.reach.wait() == 0 and self._shut() == 0 and self._line.wait(self._clock()) == 0

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        wait = self._wait()
        if wait is not None and not self.closing and len(self._out) < AT_ONCE:
            loop = asyncio.get_running_loop()
            self._timer = loop.call_later(max(wait, _TICK_S), self._round)

    def _wait(self) -> float | None:
        """Seconds until something may go; None: when something has come back, or in."""
        waits = (self._pacer.wait(), self.reach.wait(), self._line.wait(self._clock()))
        known = [wait for wait in waits if wait is not None]
        return max(*known, self._shut()) if len(known) == len(waits) else None

    def _launch(self, call: Call) -> None:
        errand = self._errands.pop(call, None)
        if errand is None:
            return
        before = None if call.rank is Rank.TYPING else self._changing.get(call.key)

        async def fly() -> None:
            try:
                if before is not None:
                    await asyncio.wait([before])
                await errand.work()
            except Exception as error:  # one call must not stop all
                log.warning("a call failed: %s", described(error))
                log.debug("it failed here", exc_info=True)

        self._line.enter()
        task = asyncio.get_running_loop().create_task(fly())
        if self.reach.down:
            self.reach.trying()
            self._probe = task
        self._out.add(task)
        self._per_chat[call.chat] += 1
        if call.rank is not Rank.TYPING:
            self._changing[call.key] = task
        task.add_done_callback(lambda task: self._came_back(call, task))

    def _came_back(self, call: Call, task: asyncio.Task[None]) -> None:
        self._out.discard(task)
        self._line.leave(self._clock())
        if self._changing.get(call.key) is task:
            del self._changing[call.key]
        if self._probe is task:
            self._probe = None
            self.reach.tried()
        self._per_chat[call.chat] -= 1
        if not self._per_chat[call.chat]:
            del self._per_chat[call.chat]
        held = self._held.get(call.chat)
        if held is not None:
            if held and self.running:
                self._launch(held.popleft())
            if not held:
                self._held.pop(call.chat, None)
        self._back.set()
        self.soon()

    # The end -----------------------------------------------------------------------------------

    async def drain(self, within_s: float) -> None:
        """Wait until nothing is out and nothing more can go in that time.

        In the second half of it nothing new is begun, so that what was begun can come to its end.
        """
        loop = asyncio.get_running_loop()
        half, end = loop.time() + within_s / 2, loop.time() + within_s
        while self.running and (now := loop.time()) < end:
            self.closing = now >= half
            if not self._out and (self.closing or not self._more(half - now)):
                return
            self._back.clear()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout_at(end if self.closing else half):
                    await self._back.wait()

    def _more(self, within_s: float) -> bool:
        wait = self._wait()
        return self._scheduled or (wait is not None and wait <= within_s)

    async def stop(self) -> None:
        """Cancel what is out, and drop what waits."""
        self.running = False
        if self._timer is not None:
            self._timer.cancel()
        out = list(self._out)
        for task in out:
            task.cancel()
        await asyncio.gather(*out, return_exceptions=True)
        for chat in {call.chat for call in self._errands}:
            self.forget(chat)
