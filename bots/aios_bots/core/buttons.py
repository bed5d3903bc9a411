"""Buttons under messages: the app gets an id that says nothing, we know what it stands for.

A button is for one person and is used once. Those of one sheet are one choice: who takes one has
decided about all of them.
"""

from __future__ import annotations

import secrets
from collections.abc import Awaitable, Callable, Sequence
from enum import StrEnum

import msgspec

from aios_bots.core.model import Incoming
from aios_nb.store import Store, Tx

KEPT_MS = 7 * 86_400_000
_ID_BYTES = 15
"""20 characters; nobody guesses one."""


class Action(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a button does when it is pressed, by whoever it is for."""

    do: str
    agent: str = ""
    conversation: str = ""
    words: str = ""
    number: int = 0
    held: Incoming | None = None
    """A message that waits for this."""


class Draft(msgspec.Struct, frozen=True):
    """A button that is not kept yet."""

    id: str
    person: str
    action: Action
    sheet: str = ""


class Pressed(StrEnum):
    TAKEN = "taken"
    SPENT = "spent"
    FOREIGN = "foreign"
    UNKNOWN = "unknown"


def new_id() -> str:
    return secrets.token_urlsafe(_ID_BYTES)


class Buttons:
    """The buttons of one bot."""

    def __init__(self, store: Store, account: str, clock: Callable[[], float]) -> None:
        self._store, self._account, self._clock = store, account, clock

    def keep(self, drafts: Sequence[Draft]) -> Awaitable[None]:
        """From now on these can be pressed; those of last week no more."""
        now = int(self._clock() * 1000)
        rows = [
            (one.id, self._account, one.person, one.sheet, msgspec.json.encode(one.action), now)
            for one in drafts
        ]

        def apply(tx: Tx) -> None:
            tx.execute("DELETE FROM button WHERE at < ?", (now - KEPT_MS,))
            for row in rows:
                tx.execute(
                    "INSERT INTO button (id, account, person, sheet, action, at)"
                    " VALUES (?, ?, ?, ?, ?, ?)",
                    row,
                )

        return self._store.write(apply)

    def press(self, button_id: str, person: str, key: str) -> Awaitable[tuple[Pressed, Action]]:
        """Use a button; the same update may come again, and uses it once."""

        def apply(tx: Tx) -> tuple[Pressed, Action]:
            row = tx.execute(
                "SELECT person, sheet, action, used FROM button WHERE id = ? AND account = ?",
                (button_id, self._account),
            ).fetchone()
            if row is None:
                return Pressed.UNKNOWN, Action("")
            owner, sheet, action, used = row
            if owner != person:
                return Pressed.FOREIGN, Action("")
            if used not in {"", key}:
                return Pressed.SPENT, Action("")
            tx.execute("UPDATE button SET used = ? WHERE id = ?", (key, button_id))
            if sheet:
                tx.execute(
                    "UPDATE button SET used = 'other' WHERE sheet = ? AND id <> ? AND used = ''",
                    (sheet, button_id),
                )
            return Pressed.TAKEN, msgspec.json.decode(action, type=Action)

        return self._store.write(apply)
