"""Who was let in, by which code, and what was tried: kept through a power cut."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from aios_bots.core.pairing import CODE_S, Offer, Role
from aios_bots.core.secret import scrubbed
from aios_nb.richtext import one_line
from aios_nb.store import Store, Tx

NAME_MAX_CHARS = 64
AUDIT_ROWS = 10_000
AUDIT_SPARE_ROWS = 500
"""The oldest lines are dropped, so many at a time."""
DETAIL_MAX_CHARS = 200
_OFFER = "hash, account, role, agents, conversation, expires, used_by, used_in, first"


class Person(msgspec.Struct, frozen=True):
    user_id: str
    role: Role
    agents: tuple[str, ...] = ()
    """The only agents for this person; none: all."""
    name: str = ""
    added: int = 0
    """Unix ms."""


class Line(msgspec.Struct, frozen=True):
    """What somebody did, or tried."""

    at: int
    who: str
    what: str
    detail: str


class People:
    """The people of one bot."""

    def __init__(self, store: Store, account: str, clock: Callable[[], float]) -> None:
        self._store, self._account, self._clock = store, account, clock
        self._noted = 0

    def _now(self) -> int:
        return int(self._clock() * 1000)

    # Who is in -------------------------------------------------------------------------------

    def get(self, user_id: str) -> Person | None:
        """Who that is; None for a stranger and for who was put out."""
        return next(iter(self._read("AND user_id = ?", user_id)), None)

    def all(self) -> list[Person]:
        return self._read("ORDER BY added, user_id")

    def _read(self, more: str, *values: str) -> list[Person]:
        rows = self._store.read(
            "SELECT user_id, role, agents, name, added FROM person"
            f" WHERE account = ? AND revoked = 0 {more}",
            (self._account, *values),
        )
        return [
            Person(user_id, Role(role), _names(agents), name, added)
            for user_id, role, agents, name, added in rows
        ]

    async def revoke(self, user_id: str) -> bool:
        """From the next update on this person is a stranger; gives whether there was one.

        Their own chat with the bot, which has their number, shows nothing any more.
        """

        def apply(tx: Tx) -> bool:
            gone = tx.execute(
                "UPDATE person SET revoked = ? WHERE account = ? AND user_id = ? AND revoked = 0",
                (self._now(), self._account, user_id),
            ).rowcount
            for table in ("binding", "question", "mute"):
                tx.execute(
                    f"DELETE FROM {table} WHERE account = ? AND chat = ?", (self._account, user_id)
                )
            return gone > 0

        return await self._store.write_through(apply)

    # Codes -----------------------------------------------------------------------------------

    async def keep(self, offer: Offer) -> None:
        """Keep what a code gives, once; those that are too old go."""

        def apply(tx: Tx) -> None:
            tx.execute("DELETE FROM paircode WHERE expires < ?", (self._now() - _ms(CODE_S),))
            tx.execute(
                "INSERT OR IGNORE INTO paircode"
                " (hash, account, role, agents, conversation, expires, first)"
                " VALUES (?, ?, ?, ?, ?, ?, ?)",
                (
                    offer.digest,
                    self._account,
                    offer.role.value,
                    _json(offer.agents),
                    offer.conversation,
                    _ms(offer.expires),
                    int(offer.first),
                ),
            )

        await self._store.write_through(apply)

    def offers(self) -> list[Offer]:
        """What can be had with a code now."""
        rows = self._store.read(
            f"SELECT {_OFFER} FROM paircode WHERE account = ? AND used_by = '' AND expires > ?",
            (self._account, self._now()),
        )
        return [_offer(row) for row in rows]

    async def admit(self, offer: Offer, user_id: str, name: str = "", update: str = "") -> bool:
        """Let this person in for that offer; False if somebody else was quicker, or time ran out.

        An owner stays owner, whatever the code gives. ``update``: the key of the one that says it.
        """

        def apply(tx: Tx) -> bool:
            now = self._now()
            if not self._spend(tx, offer, user_id, update):
                return False
            role = offer.role.value
            if offer.first and _has_owner(tx, self._account, user_id):
                role = Role.MEMBER.value
            tx.execute(
                "INSERT INTO person (account, user_id, role, agents, name, added)"
                " VALUES (?, ?, ?, ?, ?, ?)"
                " ON CONFLICT (account, user_id) DO UPDATE SET role = excluded.role,"
                " agents = excluded.agents, name = excluded.name, added = excluded.added,"
                " revoked = 0 WHERE revoked > 0 OR role <> 'owner'",
                (
                    self._account,
                    user_id,
                    role,
                    _json(offer.agents),
                    one_line(name, NAME_MAX_CHARS),
                    now,
                ),
            )
            return True

        return await self._store.write_through(apply)

    def taken(self, digest: bytes, user_id: str) -> Offer | None:
        """The offer of that code, if this person has used it already."""
        rows = self._store.read(
            f"SELECT {_OFFER} FROM paircode WHERE account = ? AND hash = ? AND used_by = ?",
            (self._account, digest, user_id),
        )
        return _offer(rows[0]) if rows else None

    async def use(self, offer: Offer, user_id: str, update: str) -> bool:
        """This person, who is in already, takes that offer for its conversation alone."""
        return await self._store.write_through(lambda tx: self._spend(tx, offer, user_id, update))

    def _spend(self, tx: Tx, offer: Offer, user_id: str, update: str) -> bool:
        spent = tx.execute(
            "UPDATE paircode SET used_by = ?, used_in = ?"
            " WHERE hash = ? AND account = ? AND used_by = '' AND expires > ?",
            (user_id, update, offer.digest, self._account, self._now()),
        ).rowcount
        return spent > 0

    # What was tried --------------------------------------------------------------------------

    async def note(self, who: str, what: str, detail: str = "") -> None:
        """Add a line to the audit. Text of strangers is cut, and a token in it masked."""
        row = (
            self._now(),
            self._account,
            one_line(who, NAME_MAX_CHARS),
            one_line(what, NAME_MAX_CHARS),
            one_line(scrubbed(detail[: 8 * DETAIL_MAX_CHARS]), DETAIL_MAX_CHARS),
        )
        self._noted += 1
        crowded = self._noted % AUDIT_SPARE_ROWS == 0

        def apply(tx: Tx) -> None:
            tx.execute("INSERT INTO audit (at, account, who, what, detail) VALUES (?,?,?,?,?)", row)
            if crowded:
                tx.execute(
                    "DELETE FROM audit WHERE n <= (SELECT max(n) FROM audit) - ?", (AUDIT_ROWS,)
                )

        await self._store.write(apply)

    def audit(self, limit: int = 50, what: str = "", since: float = 0.0) -> list[Line]:
        """The newest lines first; of one kind, and since a time in unix seconds, if asked."""
        rows = self._store.read(
            "SELECT at, who, what, detail FROM audit"
            " WHERE account = ? AND (? = '' OR what = ?) AND at >= ? ORDER BY n DESC LIMIT ?",
            (self._account, what, what, _ms(since), limit),
        )
        return [Line(*row) for row in rows]


def _offer(row: Sequence[Any]) -> Offer:
    digest, account, role, agents, talk, expires, used_by, used_in, first = row
    found = (digest, account, Role(role), _names(agents), talk, expires / 1000, used_by, used_in)
    return Offer(*found, first=bool(first))


def _has_owner(tx: Tx, account: str, beside: str) -> bool:
    found = tx.execute(
        "SELECT 1 FROM person WHERE account = ? AND role = 'owner' AND revoked = 0"
        " AND user_id <> ? LIMIT 1",
        (account, beside),
    )
    return found.fetchone() is not None


def _ms(seconds: float) -> int:
    return int(seconds * 1000)


def _json(names: tuple[str, ...]) -> str:
    return msgspec.json.encode(names).decode()


def _names(text: str) -> tuple[str, ...]:
    return msgspec.json.decode(text, type=tuple[str, ...])
