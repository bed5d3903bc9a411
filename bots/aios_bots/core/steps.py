"""Steps of an update that must be taken once, where the node has no name for a repeat.

A step is written down before it is taken and again with what came of it. One that was begun and
has no result was cut by a crash: whoever takes it again looks for what it left behind.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable

from aios_nb.store import Store, Tx

KEPT_MS = 8 * 86_400_000
"""Longer than an update is known."""


class Steps:
    """The steps of one bot's updates; keys begin with the key of the update."""

    def __init__(self, store: Store, clock: Callable[[], float]) -> None:
        self._store, self._clock = store, clock

    def result(self, key: str) -> str | None:
        """What came of it; '' if it was begun only, None if not even that."""
        rows = self._store.read("SELECT result FROM step WHERE key = ?", (key,))
        return rows[0][0] if rows else None

    def has(self, result: str) -> bool:
        """Whether a step gave this."""
        return bool(self._store.read("SELECT 1 FROM step WHERE result = ? LIMIT 1", (result,)))

    def keep(self, key: str, result: str = "") -> Awaitable[None]:
        """It is begun, or this came of it."""
        now = int(self._clock() * 1000)

        def apply(tx: Tx) -> None:
            tx.execute("DELETE FROM step WHERE at < ?", (now - KEPT_MS,))
            tx.execute("INSERT OR REPLACE INTO step VALUES (?, ?, ?)", (key, result, now))

        return self._store.write(apply)
