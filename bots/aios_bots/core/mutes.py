"""Places that want to be left alone for a while."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec

from aios_bots.core.model import Place
from aios_nb.store import Store, Tx


class Mute(msgspec.Struct, frozen=True):
    """Nothing that was not asked for there is shown until then."""

    place: Place
    until: float
    """Unix seconds."""
    missed: int = 0
    """Messages that were not shown because of it."""


class Mutes:
    """The muted places of one bot."""

    def __init__(self, store: Store, account: str, clock: Callable[[], float]) -> None:
        self._store, self._account, self._clock = store, account, clock

    def mute(self, place: Place, seconds: float) -> Awaitable[None]:
        """Be quiet there for so long from now; another time replaces the last one."""
        until = int((self._clock() + seconds) * 1000)

        def apply(tx: Tx) -> None:
            tx.execute(
                "INSERT INTO mute (account, chat, topic, until) VALUES (?, ?, ?, ?)"
                " ON CONFLICT (account, chat, topic) DO UPDATE SET until = excluded.until",
                (self._account, place.chat, place.topic, until),
            )

        return self._store.write(apply)

    def of(self, place: Place) -> Mute | None:
        """Whether it is muted now."""
        found = self._read(
            "AND chat = ? AND topic = ? AND until > ?", place.chat, place.topic, self._now()
        )
        return found[0] if found else None

    def ended(self) -> list[Mute]:
        """Those whose time is over."""
        return self._read("AND until <= ?", self._now())

    def missed(self, place: Place) -> Awaitable[None]:
        """One message more was not shown there."""
        return self._run("UPDATE mute SET missed = missed + 1", place)

    def end(self, place: Place) -> Awaitable[None]:
        """It is not muted any more, and what was missed is forgotten."""
        return self._run("DELETE FROM mute", place)

    def _now(self) -> int:
        return int(self._clock() * 1000)

    def _read(self, more: str, *values: object) -> list[Mute]:
        rows = self._store.read(
            f"SELECT chat, topic, until, missed FROM mute WHERE account = ? {more}",
            (self._account, *values),
        )
        return [
            Mute(Place(self._account, chat, topic), until / 1000, missed)
            for chat, topic, until, missed in rows
        ]

    def _run(self, what: str, place: Place) -> Awaitable[None]:
        def apply(tx: Tx) -> None:
            tx.execute(
                f"{what} WHERE account = ? AND chat = ? AND topic = ?",
                (self._account, place.chat, place.topic),
            )

        return self._store.write(apply)
