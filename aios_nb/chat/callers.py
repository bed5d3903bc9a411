"""Who has called here: a small number for each, and how much they called."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Sequence

from aios_nb.access import looks_strange
from aios_nb.config import Limits
from aios_nb.errors import Busy
from aios_nb.store import Store, Tx

Count = tuple[int, float, int]
"""Calls, seconds, and when the last one was (unix ms)."""
DAY_MS = 86_400_000
HOUR_MS = 3_600_000
"""A stranger is remembered at least this long, also when others want its place."""
ROWS_AT_ONCE = 200
"""Callers looked at in one step: each costs a look into the log, and the node must answer."""
ROOM_AGAIN = 0.8
"""A full list is made this full again."""

_PAGE = """
    SELECT n, id, last_at, last_at < ?
        AND n < (SELECT max(n) FROM callers) -- else the next caller would get it again
        AND NOT EXISTS (SELECT 1 FROM events WHERE caller > 0 AND caller = callers.n)
    FROM callers WHERE n > ? ORDER BY n LIMIT ?
"""


class Callers:
    """The callers of this node. Counts are kept in memory and written down now and then.

    The owner, tokens and known nodes stay. Strangers are ``limits.callers`` at once: one goes when
    no event of it is left and it has not called for days, or its place is needed.
    """

    def __init__(
        self,
        store: Store,
        limits: Limits | None = None,
        is_stranger: Callable[[str], bool] = looks_strange,
    ) -> None:
        limits = limits or Limits()
        self._store = store
        self._most = limits.callers
        self._days = limits.call_memory_days
        self._is_stranger = is_stranger
        self._numbers: dict[str, int] = dict(store.read("SELECT id, n FROM callers"))
        self._strangers = {caller for caller in self._numbers if is_stranger(caller)}
        self.counted: dict[str, Count] = {}
        """What is not written down yet."""
        self.ask_for_tidy: Callable[[], None] = lambda: None
        """Called when a stranger finds no place."""

    @property
    def is_full(self) -> bool:
        """Whether a new stranger finds no place."""
        return len(self._strangers) >= self._most

    def known(self, caller: str) -> int | None:
        """Its number, if this caller was here and is remembered."""
        return self._numbers.get(caller)

    async def number(self, caller: str) -> int:
        """Its number, given now if it is new. ``Busy`` for a stranger when the list is full."""
        known = self._numbers.get(caller)
        if known is not None:
            return known
        if caller not in self._strangers and self._is_stranger(caller):
            if self.is_full:
                self.ask_for_tidy()
                raise Busy(
                    "this node remembers as many strangers as it can",
                    hint="try again later; its owner can `allow` your node",
                    retry_after_s=60.0,
                )
            self._strangers.add(caller)  # before the commit: others come meanwhile
        now = int(time.time() * 1000)

        def apply(tx: Tx) -> int:
            sql = "INSERT OR IGNORE INTO callers (id, last_at) VALUES (?, ?)"
            tx.execute(sql, (caller, now))
            row = tx.execute("SELECT n FROM callers WHERE id = ?", (caller,)).fetchone()
            return int(row[0])

        def committed(n: int) -> None:
            self._numbers[caller] = n

        try:
            return await self._store.write(apply, committed)
        except Exception:
            if caller not in self._numbers:
                self._strangers.discard(caller)
            raise

    def count(self, caller: str, seconds: float) -> None:
        """One more call, that took so long."""
        calls, total, _ = self.counted.get(caller, (0, 0.0, 0))
        self.counted[caller] = (calls + 1, total + seconds, int(time.time() * 1000))

    async def save(self) -> None:
        """Write the counts down."""
        counted, self.counted = self.counted, {}

        def apply(tx: Tx) -> None:
            for caller, (calls, seconds, last_at) in counted.items():
                tx.execute(
                    "UPDATE callers SET calls = calls + ?, seconds = seconds + ?, last_at = ?"
                    " WHERE id = ?",
                    (calls, seconds, last_at, caller),
                )

        try:
            await self._store.write(apply)
        except Busy:
            for caller, (calls, seconds, last_at) in counted.items():
                more = self.counted.get(caller, (0, 0.0, last_at))
                self.counted[caller] = (calls + more[0], seconds + more[1], more[2])
            raise

    async def forget(self) -> int:
        """Drop the strangers that may go, the longest silent first; returns how many went."""
        await self.save()  # so that the times in the database are true
        now = int(time.time() * 1000)
        before = now - HOUR_MS
        silent = sorted(await self._silent(before))
        long_ago = now - int(self._days * DAY_MS)
        old = [caller for last_at, caller in silent if last_at < long_ago]
        gone = await self._drop_all(old, before)
        if self.is_full:
            needed = len(self._strangers) - int(self._most * ROOM_AGAIN)
            others = [caller for last_at, caller in silent if last_at >= long_ago]
            gone += await self._drop_all(others[:needed], before)
        return gone

    async def _silent(self, before_ms: int) -> list[tuple[int, str]]:
        """Strangers without any event, with the time of their last call; counts them all anew."""
        silent = []
        n = 0
        while rows := self._store.read(_PAGE, (before_ms, n, ROWS_AT_ONCE)):
            n = rows[-1][0]
            for _, caller, last_at, is_silent in rows:
                if not self._is_stranger(caller):
                    self._strangers.discard(caller)
                    continue
                self._strangers.add(caller)
                if is_silent:
                    silent.append((last_at, caller))
            await asyncio.sleep(0)
        return silent

    async def _drop_all(self, callers: Sequence[str], before_ms: int) -> int:
        gone = 0
        for start in range(0, len(callers), ROWS_AT_ONCE):
            gone += await self._drop(callers[start : start + ROWS_AT_ONCE], before_ms)
        return gone

    async def _drop(self, callers: Sequence[str], before_ms: int) -> int:
        """Drop these, unless they call in this very moment.

        Out of memory first: who calls now has its event in line before us, and then the row stays;
        or asks for a number behind us, and gets a new one.
        """
        taken = {one: self._numbers.pop(one) for one in callers if one in self._numbers}

        def apply(tx: Tx) -> list[str]:
            stay = []
            for caller in taken:
                done = tx.execute(
                    "DELETE FROM callers WHERE id = ? AND last_at < ? AND NOT EXISTS"
                    " (SELECT 1 FROM events WHERE caller > 0 AND caller = callers.n)",
                    (caller, before_ms),
                )
                if not done.rowcount:
                    stay.append(caller)
            return stay

        def committed(stay: list[str]) -> None:
            self._strangers.difference_update(taken)
            for caller in stay:
                self._numbers.setdefault(caller, taken[caller])
            self._strangers.update(caller for caller in taken if caller in self._numbers)

        try:
            stay = await self._store.write(apply, committed)
        except Exception:
            self._numbers = {**taken, **self._numbers}
            raise
        return len(taken) - len(stay)
