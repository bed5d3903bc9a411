"""Calls that an app still has to get, in order within a chat or topic, across restarts.

An app has no name for a call that it might have got twice. So what was being sent when the process
died, or when the line broke, is uncertain: an edit is simply made again, a send once more for each
crash, and counted. One duplicate per crash and chat at most, never a loss.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import msgspec

from aios_bots.core.model import Op, Outgoing, Place
from aios_nb.store import Store, Tx

KEPT_MS = 7 * 86_400_000
REPEATS_MAX = 1
"""How often a send of unknown fate is made again, while the process lives."""
CRASHES_MAX = 5
"""How often it is made again because the process died: a duplicate for each, and no loss. One that
was on its way at more ends is what they come from."""
_COLUMNS = "seq, key, chat, topic, payload, repeats"


class Row(msgspec.Struct, frozen=True):
    """A call that waits."""

    seq: int
    out: Outgoing
    repeats: int = 0


class Fate(msgspec.Struct, frozen=True):
    """What became of a call."""

    state: str = ""
    """``new``, ``sending``, ``sent``, ``uncertain``, ``dead``; empty: not known, or forgotten."""
    msg_id: str = ""
    chat: str = ""

    @property
    def open(self) -> bool:
        """Whether it may still go."""
        return self.state in {"new", "sending"}


class Outbox:
    """The calls of one bot. What a method promises is committed when its future is done."""

    def __init__(self, store: Store, account: str, clock: Callable[[], float]) -> None:
        self._store, self._account, self._clock = store, account, clock

    def put(
        self, calls: Sequence[Outgoing], *, shown: tuple[Place, str, int] | None = None
    ) -> Awaitable[int]:
        """Keep these calls; gives how many are new. The same key is the same call.

        ``shown``: with them, that place has that conversation's events up to that ``seq``. Both
        are committed or neither, so no event is shown twice or never.
        """
        now = int(self._clock() * 1000)
        rows = [
            (
                out.key,
                self._account,
                out.place.chat,
                out.place.topic,
                out.op.value,
                msgspec.json.encode(out),
                now,
            )
            for out in calls
        ]

        def apply(tx: Tx) -> int:
            fresh = sum(
                tx.execute(
                    "INSERT OR IGNORE INTO outbox"
                    " (key, account, chat, topic, op, payload, state, at)"
                    " VALUES (?, ?, ?, ?, ?, ?, 'new', ?)",
                    row,
                ).rowcount
                for row in rows
            )
            if shown is not None:
                place, talk, seq = shown
                tx.execute(
                    "UPDATE binding SET last_seq = max(last_seq, ?)"
                    " WHERE account = ? AND chat = ? AND topic = ? AND conversation = ?",
                    (seq, place.account, place.chat, place.topic, talk),
                )
            return fresh

        return self._store.write(apply)

    def head(self, place: Place, *, answers: bool = False) -> Row | None:
        """The first open call of one place; None if there is none, or it is on its way.

        ``answers``: of those that answer a press or a search.
        Answers have their own order: whoever pressed a button does not wait for ten messages.
        """
        rows = self._store.read(
            f"SELECT state, {_COLUMNS} FROM outbox WHERE account = ? AND chat = ? AND topic = ?"
            " AND state IN ('new', 'sending') AND (op = 'answer') = ? ORDER BY seq LIMIT 1",
            (self._account, place.chat, place.topic, answers),
        )
        return self._row(*rows[0][1:]) if rows and rows[0][0] == "new" else None

    def places(self, chat: str | None = None) -> list[Place]:
        """Where calls are open: everywhere, or in that chat."""
        one = "" if chat is None else " AND chat = ?"
        rows = self._store.read(
            "SELECT DISTINCT chat, topic FROM outbox"
            f" WHERE account = ? AND state IN ('new', 'sending'){one}",
            (self._account,) if chat is None else (self._account, chat),
        )
        return [Place(self._account, *row) for row in rows]

    def _row(self, seq: int, key: str, chat: str, topic: str, payload: bytes, repeats: int) -> Row:
        out = msgspec.json.decode(payload, type=Outgoing)
        target = out.target
        if out.target_key and not target and out.op is not Op.SEND:
            target = self.fate(out.target_key).msg_id
        place = Place(self._account, chat, topic)  # the chat may have another id by now
        return Row(seq, msgspec.structs.replace(out, key=key, place=place, target=target), repeats)

    def fate(self, key: str) -> Fate:
        """What became of a call."""
        rows = self._store.read("SELECT state, msg_id, chat FROM outbox WHERE key = ?", (key,))
        return Fate(*rows[0]) if rows else Fate()

    def take(self, key: str) -> Awaitable[Row | None]:
        """It is on its way; to be committed before the app is called. None: it waits no more.

        The call as it reads now: whatever was rewritten is in it, and nothing can be after.
        """

        def apply(tx: Tx) -> tuple[Any, ...] | None:
            found: tuple[Any, ...] | None = tx.execute(
                f"UPDATE outbox SET state = 'sending' WHERE key = ? AND state = 'new'"
                f" RETURNING {_COLUMNS}",
                (key,),
            ).fetchone()
            return found

        async def taken() -> Row | None:
            found = await self._store.write(apply)
            return None if found is None else self._row(*found)

        return taken()

    def rewrite(self, key: str, out: Outgoing) -> Awaitable[bool]:
        """A call that is not on its way yet says this instead; False: it is too late."""
        payload = msgspec.json.encode(msgspec.structs.replace(out, key=key))

        def apply(tx: Tx) -> bool:
            return bool(
                tx.execute(
                    "UPDATE outbox SET op = ?, payload = ? WHERE key = ? AND state = 'new'",
                    (out.op.value, payload, key),
                ).rowcount
            )

        return self._store.write(apply)

    def instead(self, out: Outgoing) -> Awaitable[None]:
        """What was on its way under this key was refused, and becomes this: it waits again."""
        return self._set(
            out.key,
            "state = 'new', repeats = 0, op = ?, payload = ?",
            out.op.value,
            msgspec.json.encode(out),
        )

    def prune(self, chat: str, keep: int, why: str) -> Awaitable[int]:
        """Of what waits for that chat only the newest stays; gives how many were given up."""

        def apply(tx: Tx) -> int:
            return tx.execute(
                "UPDATE outbox SET state = 'dead', payload = x'', why = ? WHERE seq IN"
                " (SELECT seq FROM outbox WHERE account = ? AND chat = ?"
                "  AND state IN ('new', 'sending') ORDER BY seq DESC LIMIT -1 OFFSET ?)"
                " AND state = 'new'",
                (why, self._account, chat, keep),
            ).rowcount

        return self._store.write(apply)

    def sent(self, out: Outgoing, msg_id: str = "") -> Awaitable[None]:
        """The app has it, under that id. What it said is not kept, which event it showed is."""

        def apply(tx: Tx) -> None:
            tx.execute(
                "UPDATE outbox SET state = 'sent', msg_id = ?, payload = x'' WHERE key = ?",
                (msg_id, out.key),
            )
            if out.target_key and out.op is Op.SEND:  # an edit that had to become a message
                tx.execute("UPDATE outbox SET msg_id = ? WHERE key = ?", (msg_id, out.target_key))
            if msg_id and out.event_id and out.op is Op.SEND:
                tx.execute(
                    "INSERT OR REPLACE INTO msgmap VALUES (?, ?, ?, ?, ?, ?, ?)",
                    (
                        self._account,
                        out.place.chat,
                        msg_id,
                        out.place.topic,
                        out.conversation,
                        out.event_id,
                        out.part,
                    ),
                )

        return self._store.write(apply)

    def again(self, key: str) -> Awaitable[None]:
        """The app surely did not take it: it waits again, in its place."""
        return self._set(key, "state = 'new'")

    def uncertain(self, key: str) -> Awaitable[bool]:
        """Nobody knows whether the app took it; gives whether it goes out again."""
        return self._store.write(lambda tx: _unsure(tx, "key = ?", key, REPEATS_MAX) > 0)

    def dead(self, key: str, why: str) -> Awaitable[None]:
        """It will never go."""
        return self._set(key, "state = 'dead', payload = x'', why = ?", why)

    def _set(self, key: str, what: str, *values: object) -> Awaitable[None]:
        def apply(tx: Tx) -> None:
            tx.execute(f"UPDATE outbox SET {what} WHERE key = ?", (*values, key))

        return self._store.write(apply)

    def recover(self) -> int:
        """At the start: what was on its way when the process ended; gives how many go again."""
        mine = "account = ? AND state IN ('new', 'sending')"  # so that the index serves
        return self._store.now(lambda tx: _unsure(tx, mine, self._account, CRASHES_MAX))

    def move(self, old: str, new: str) -> Awaitable[None]:
        """The chat has another id from now on: a group became a larger one."""

        def apply(tx: Tx) -> None:
            for table in ("outbox", "msgmap", "binding", "gate", "question", "mute"):
                tx.execute(
                    f"UPDATE OR REPLACE {table} SET chat = ? WHERE account = ? AND chat = ?",
                    (new, self._account, old),
                )

        return self._store.write(apply)

    def odd(self) -> dict[str, int]:
        """How many did not go as they should; ``repeated``: those that may be there twice.

        It costs as much as there is of that, not as much as was ever sent.
        """
        found = dict(
            self._store.read(
                "SELECT state, count(*) FROM outbox WHERE account = ?"
                " AND state IN ('dead', 'uncertain') GROUP BY state",
                (self._account,),
            )
        )
        return {"dead": 0, "uncertain": 0, **found, "repeated": self._repeated()}

    def _repeated(self) -> int:
        found: int = self._store.read(
            "SELECT coalesce(sum(repeats), 0) FROM outbox"
            " WHERE account = ? AND repeats > 0 AND op = 'send'",
            (self._account,),
        )[0][0]
        return found

    def open(self) -> dict[str, tuple[int, float]]:
        """For each chat how many calls are open, and for how many seconds the oldest is."""
        rows = self._store.read(
            "SELECT chat, count(*), min(at) FROM outbox"
            " WHERE account = ? AND state IN ('new', 'sending') GROUP BY account, chat",
            (self._account,),
        )
        now = self._clock()
        return {chat: (count, max(0.0, now - at / 1000)) for chat, count, at in rows}

    def forget(self) -> Awaitable[int]:
        """Drop what was sent or given up long ago; gives how many."""
        before = int(self._clock() * 1000) - KEPT_MS

        def apply(tx: Tx) -> int:
            return tx.execute(
                "DELETE FROM outbox WHERE at < ? AND state IN ('sent', 'dead', 'uncertain')",
                (before,),
            ).rowcount

        return self._store.write(apply)


def _unsure(tx: Tx, where: str, value: str, most: int) -> int:
    """Edits go again, sends so often at most; a send that was repeated more is left as it is."""
    tx.execute(
        f"UPDATE outbox SET state = 'uncertain', payload = x'' WHERE {where}"
        " AND state = 'sending' AND op = 'send' AND repeats >= ?",
        (value, most),
    )
    return tx.execute(
        f"UPDATE outbox SET state = 'new', repeats = repeats + 1 WHERE {where}"
        " AND state = 'sending'",
        (value,),
    ).rowcount
