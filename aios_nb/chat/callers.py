"""Who has called here: a small number for each, and how much they called."""

from __future__ import annotations

import time

from aios_nb.errors import Busy
from aios_nb.store import Store, Tx

Count = tuple[int, float, int]
"""Calls, seconds, and when the last one was (unix ms)."""


class Callers:
    """The callers of this node. Counts are kept in memory and written down now and then."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._numbers: dict[str, int] = dict(store.read("SELECT id, n FROM callers"))
        self.counted: dict[str, Count] = {}
        """What is not written down yet."""

    def known(self, caller: str) -> int | None:
        """Its number, if this caller was ever here."""
        return self._numbers.get(caller)

    async def number(self, caller: str) -> int:
        """Its number, kept for ever; given now if it is new."""

        def apply(tx: Tx) -> int:
            tx.execute("INSERT OR IGNORE INTO callers (id) VALUES (?)", (caller,))
            row = tx.execute("SELECT n FROM callers WHERE id = ?", (caller,)).fetchone()
            return int(row[0])

        def committed(n: int) -> None:
            self._numbers[caller] = n

        known = self._numbers.get(caller)
        return known if known is not None else await self._store.write(apply, committed)

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
