"""The database of one bot's bridge: what came, what goes, who is in, and what is shown where.

One file per bot, ``telegram-BOTID.db`` in the home folder, written by one connection on the
bridge's loop (``aios_nb.store``). A promise is kept before it is given: an update is committed
before the app is told, a call before it is made.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from enum import StrEnum
from pathlib import Path

import msgspec

from aios_bots.core.buttons import Buttons
from aios_bots.core.inbox import Inbox
from aios_bots.core.model import Place
from aios_bots.core.mutes import Mutes
from aios_bots.core.outbox import Outbox
from aios_bots.core.people import People
from aios_bots.core.questions import Questions
from aios_bots.core.schema import STEPS
from aios_bots.core.steps import Steps
from aios_nb.store import Store, Tx

CACHE_KIB = 2048
"""What a bridge looks at is new: more would only grow with all that was ever sent."""
_BINDING = "account, chat, topic, conversation, agent, mode, last_seq, parked"


class Mode(StrEnum):
    CHAT = "chat"
    WATCH = "watch"


class Binding(msgspec.Struct, frozen=True):
    """A place, and the conversation that it shows."""

    place: Place
    conversation: str = ""
    agent: str = ""
    mode: Mode = Mode.CHAT
    last_seq: int = 0
    """The events up to this are in the outbox, or shown."""
    parked: str = ""
    """Why nothing goes there now: the bot was blocked or removed."""

    @property
    def is_watch(self) -> bool:
        """It is told in short what happens, now and then."""
        return self.mode is Mode.WATCH


class Shown(msgspec.Struct, frozen=True):
    """Which event a message of an app is."""

    conversation: str
    event_id: str
    part: int = 0


class BotStore:
    """All that a bridge has to remember for one bot. ``clock`` gives unix seconds."""

    def __init__(self, store: Store, account: str, clock: Callable[[], float] = time.time) -> None:
        self._store, self._account, self._clock = store, account, clock
        self.inbox = Inbox(store, account, clock)
        self.outbox = Outbox(store, account, clock)
        self.people = People(store, account, clock)
        self.questions = Questions(store, account, clock)
        self.mutes = Mutes(store, account, clock)
        self.buttons = Buttons(store, account, clock)
        self.steps = Steps(store, clock)

    @classmethod
    def open(cls, path: Path, account: str, clock: Callable[[], float] = time.time) -> BotStore:
        """The database at ``path``, made or brought up to date."""
        return cls(Store.open(path, STEPS, CACHE_KIB), account, clock)

    async def close(self) -> None:
        await self._store.close()

    def close_now(self) -> None:
        """The same when no loop runs."""
        self._store.close_now()

    # What is shown where ---------------------------------------------------------------------

    def bind(self, binding: Binding) -> Awaitable[None]:
        """From now on this place shows that conversation."""
        place = binding.place

        def apply(tx: Tx) -> None:
            tx.execute(
                f"INSERT OR REPLACE INTO binding ({_BINDING}) VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    self._account,
                    place.chat,
                    place.topic,
                    binding.conversation,
                    binding.agent,
                    binding.mode.value,
                    binding.last_seq,
                    binding.parked,
                ),
            )

        return self._store.write(apply)

    def unbind(self, place: Place) -> Awaitable[None]:
        """This place shows nothing any more; a group is not enabled any more."""

        def apply(tx: Tx) -> None:
            tx.execute(
                "DELETE FROM binding WHERE account = ? AND chat = ? AND topic = ?",
                (self._account, place.chat, place.topic),
            )

        return self._store.write(apply)

    def park(self, chat: str, why: str) -> Awaitable[None]:
        """Nothing can go to that chat now, because…; ``''``: it can again."""

        def apply(tx: Tx) -> None:
            tx.execute(
                "UPDATE binding SET parked = ? WHERE account = ? AND chat = ?",
                (why, self._account, chat),
            )

        return self._store.write(apply)

    def binding(self, place: Place) -> Binding | None:
        found = self._bindings("AND chat = ? AND topic = ?", place.chat, place.topic)
        return found[0] if found else None

    def shows(self, chat: str) -> bool:
        """Whether any topic of that chat shows something: then its group is enabled."""
        return bool(self._bindings("AND chat = ? LIMIT 1", chat))

    def bindings(self, conversation: str = "") -> list[Binding]:
        """All, or those that show this conversation."""
        if conversation:
            return self._bindings("AND conversation = ?", conversation)
        return self._bindings("ORDER BY chat, topic")

    def _bindings(self, more: str, *values: str) -> list[Binding]:
        rows = self._store.read(
            f"SELECT {_BINDING} FROM binding WHERE account = ? {more}", (self._account, *values)
        )
        return [
            Binding(Place(account, chat, topic), talk, agent, Mode(mode), seq, parked)
            for account, chat, topic, talk, agent, mode, seq, parked in rows
        ]

    # Which message is which event --------------------------------------------------------------

    def show(self, place: Place, msg_id: str, shown: Shown) -> Awaitable[None]:
        """This message of the app is that event: one that a person wrote there."""

        def apply(tx: Tx) -> None:
            tx.execute(
                "INSERT OR REPLACE INTO msgmap VALUES (?, ?, ?, ?, ?, ?, ?)",
                (
                    self._account,
                    place.chat,
                    msg_id,
                    place.topic,
                    shown.conversation,
                    shown.event_id,
                    shown.part,
                ),
            )

        return self._store.write(apply)

    def event_of(self, chat: str, msg_id: str) -> Shown | None:
        rows = self._store.read(
            "SELECT conversation, event_id, part FROM msgmap"
            " WHERE account = ? AND chat = ? AND msg_id = ?",
            (self._account, chat, msg_id),
        )
        return Shown(*rows[0]) if rows else None

    def messages_of(self, conversation: str, event_id: str, place: Place) -> dict[int, str]:
        """The messages that show this event there, by the number of their part, in its order."""
        rows = self._store.read(
            "SELECT part, msg_id FROM msgmap WHERE conversation = ? AND event_id = ?"
            " AND account = ? AND chat = ? AND topic = ? ORDER BY part",
            (conversation, event_id, self._account, place.chat, place.topic),
        )
        return dict(rows)

    def first_of(self, conversation: str, event_id: str, place: Place) -> str:
        """The first of them; empty if there is none."""
        return next(iter(self.messages_of(conversation, event_id, place).values()), "")

    # Chats that the app closed -----------------------------------------------------------------

    def shut(self, chat: str, seconds: float) -> Awaitable[None]:
        """Nothing may go to that chat for so long, also after a restart."""
        now = self._clock()

        def apply(tx: Tx) -> None:
            tx.execute("DELETE FROM gate WHERE until <= ?", (int(now * 1000),))
            tx.execute(
                "INSERT INTO gate VALUES (?, ?, ?) ON CONFLICT (account, chat)"
                " DO UPDATE SET until = max(until, excluded.until)",
                (self._account, chat, int((now + seconds) * 1000)),
            )

        return self._store.write(apply)

    def gates(self) -> dict[str, float]:
        """The chats that are still shut, and for how many seconds."""
        now = self._clock()
        rows = self._store.read(
            "SELECT chat, until FROM gate WHERE account = ? AND until > ?",
            (self._account, int(now * 1000)),
        )
        return {chat: until / 1000 - now for chat, until in rows}
