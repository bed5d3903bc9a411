"""Updates as they came from an app, kept before the app is told that we have them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

import msgspec

from aios_nb.store import Store, Tx

TRIES_MAX = 3
"""An update that fails so often is put aside: it would be tried for ever."""
KEPT_MS = 7 * 86_400_000
"""A done update is known for so long, so that it has its effect once."""


class Update(msgspec.Struct, frozen=True):
    update_id: int
    raw: str
    at: int
    """When it came, unix ms."""
    tries: int = 0


class Inbox:
    """The updates of one bot. What a method promises is committed when its future is done."""

    def __init__(self, store: Store, account: str, clock: Callable[[], float]) -> None:
        self._store, self._account, self._clock = store, account, clock

    def add(self, updates: Sequence[tuple[int, str]]) -> Awaitable[list[int]]:
        """Keep these (id, raw); gives the ids that are new. Then the app may forget them."""
        now = int(self._clock() * 1000)

        def apply(tx: Tx) -> list[int]:
            return [
                update_id
                for update_id, raw in updates
                if tx.execute(
                    "INSERT OR IGNORE INTO inbox (account, update_id, at, raw, state)"
                    " VALUES (?, ?, ?, ?, 'new')",
                    (self._account, update_id, now, raw),
                ).rowcount
            ]

        return self._store.write(apply)

    def waiting(self, limit: int = 1000, after: int = -1) -> list[Update]:
        """What was kept and is not done, in the order of the app; after a start all there is."""
        rows = self._store.read(
            "SELECT update_id, raw, at, tries FROM inbox"
            " WHERE account = ? AND update_id > ? AND state = 'new' ORDER BY update_id LIMIT ?",
            (self._account, after, limit),
        )
        return [Update(*row) for row in rows]

    def raw(self, update_id: int) -> str:
        """What an update said, as long as it is not done."""
        rows = self._store.read(
            "SELECT raw FROM inbox WHERE account = ? AND update_id = ?",
            (self._account, update_id),
        )
        return rows[0][0] if rows else ""

    def done(self, update_id: int) -> Awaitable[None]:
        """It has had its effect. Its id is kept for a week, what it said is not."""

        def apply(tx: Tx) -> None:
            tx.execute(
                "UPDATE inbox SET state = 'done', raw = '' WHERE account = ? AND update_id = ?",
                (self._account, update_id),
            )

        return self._store.write(apply)

    def failed(self, update_id: int) -> Awaitable[bool]:
        """It could not be dealt with; gives whether it is put aside now."""

        def apply(tx: Tx) -> bool:
            row = tx.execute(
                "UPDATE inbox SET tries = tries + 1,"
                " state = CASE WHEN tries + 1 >= ? THEN 'quarantine' ELSE state END"
                " WHERE account = ? AND update_id = ? AND state = 'new' RETURNING state",
                (TRIES_MAX, self._account, update_id),
            ).fetchone()
            return row is None or row[0] == "quarantine"  # None: it was put aside before

        return self._store.write(apply)

    def aside(self) -> list[Update]:
        """What was put aside, for the owner."""
        rows = self._store.read(
            "SELECT update_id, raw, at, tries FROM inbox WHERE account = ?"
            " AND state = 'quarantine' ORDER BY update_id",
            (self._account,),
        )
        return [Update(*row) for row in rows]

    def forget(self) -> Awaitable[int]:
        """Drop what was done long ago; gives how many."""
        before = int(self._clock() * 1000) - KEPT_MS

        def apply(tx: Tx) -> int:
            return tx.execute(
                "DELETE FROM inbox WHERE at < ? AND state = 'done'", (before,)
            ).rowcount

        return self._store.write(apply)
