"""What agents want to know from people: whose next message in a place is an answer."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import msgspec

from aios_bots.core.model import Place
from aios_nb.store import Store, Tx

KEPT_MS = 7 * 86_400_000
_COLUMNS = "question, conversation, request, reply, agent, person"


class Question(msgspec.Struct, frozen=True):
    """A question that was shown to somebody."""

    question: str
    """Its id: ``chat.answer`` takes it."""
    conversation: str
    request: str
    """The message that the agent is at work on."""
    reply: str
    """The reply that waits."""
    agent: str
    person: str = ""
    """Who is asked, ``tg:BOT:USER``; empty: whoever is there."""


class Questions:
    """The open questions of one bot."""

    def __init__(self, store: Store, account: str, clock: Callable[[], float]) -> None:
        self._store, self._account, self._clock = store, account, clock

    def ask(self, place: Place, question: Question) -> Awaitable[None]:
        """Remember it for that place; the same again is the same."""
        now = int(self._clock() * 1000)

        def apply(tx: Tx) -> None:
            tx.execute("DELETE FROM question WHERE at < ?", (now - KEPT_MS,))
            tx.execute(
                f"INSERT OR REPLACE INTO question (account, chat, topic, at, {_COLUMNS})"
                " VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    self._account,
                    place.chat,
                    place.topic,
                    now,
                    *msgspec.structs.astuple(question),
                ),
            )

        return self._store.write(apply)

    def waiting(self, place: Place, person: str, conversation: str = "") -> Question | None:
        """The oldest question there to that person; of one conversation, if it is named."""
        rows = self._store.read(
            f"SELECT {_COLUMNS} FROM question WHERE account = ? AND chat = ? AND topic = ?"
            " AND person IN ('', ?) AND (? = '' OR conversation = ?) ORDER BY at LIMIT 1",
            (self._account, place.chat, place.topic, person, conversation, conversation),
        )
        return Question(*rows[0]) if rows else None

    def any(self) -> bool:
        """Whether anything is asked at all."""
        return bool(
            self._store.read("SELECT 1 FROM question WHERE account = ? LIMIT 1", (self._account,))
        )

    def over(self, conversation: str, *, question: str = "", reply: str = "") -> Awaitable[None]:
        """It was answered, or the reply that waited for it has ended."""

        def apply(tx: Tx) -> None:
            tx.execute(
                "DELETE FROM question WHERE account = ? AND conversation = ?"
                " AND (question = ? OR reply = ?)",
                (self._account, conversation, question or "-", reply or "-"),
            )

        return self._store.write(apply)
