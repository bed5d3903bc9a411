"""Conversations as append-only logs.

The home gives out ``seq``, without gaps, at the moment of the commit; ``cursor`` counts over the
whole node. Rows never change: what a message's status is *now* is folded from the rows that refer
to it when somebody reads (``reading.py``).
"""

from __future__ import annotations

import asyncio
import sqlite3
import time
from collections.abc import Callable, Iterable, Sequence
from itertools import islice
from typing import Any

import msgspec

from aios_nb.access import Principal
from aios_nb.envelope import FileRef, Kind, Sender, Status, new_id
from aios_nb.errors import Busy, InvalidParams
from aios_nb.store import Insert, Store, Tx

LIVE_CONVERSATIONS = 4096
"""Conversations kept in memory; the others come back from the database when asked for."""

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode

_EVENTS = Insert(
    "events",
    (
        "cursor", "conversation", "seq", "message_id", "kind", "ref", "sender", "sender_type",
        "text", "data", "files", "status", "at", "caller", "call",
    ),
)
_CONVERSATIONS = Insert(
    "conversations",
    ("n", "id", "opener", "parent", "created", "title", "agents", "members"),
)
_CONVERSATION = "SELECT n, id, opener, title, agents, members, parent, created FROM conversations"


Place = tuple[int, int]
"""Where an event stands: ``seq`` in its conversation, ``cursor`` on its node."""


class DuplicateCall(Exception):
    """This caller used this message id before."""


class Draft(msgspec.Struct, gc=False):
    """An event before it has its place in the log."""

    message_id: str
    kind: Kind
    sender: Sender
    text: str = ""
    data: Any = None
    files: tuple[FileRef, ...] = ()
    ref: str = ""
    status: Status | None = None
    caller: int = 0
    """The number of the caller whose call this is; with it ``message_id`` is unique."""
    call: str = ""


class Conversation:
    """A conversation in memory. ``n`` is its number in the database, 0 before the first commit."""

    __slots__ = (
        "agents", "created", "holds", "id", "ids", "last_seq", "members", "n", "opener", "parent",
        "title",
    )  # fmt: skip

    def __init__(
        self,
        conversation_id: str,
        opener: str,
        agents: list[str],
        *,
        title: str = "",
        parent: str | None = None,
        members: Iterable[str] = (),
        created: int = 0,
        n: int = 0,
        last_seq: int = 0,
        ids: Iterable[str] = (),
    ) -> None:
        self.id = conversation_id
        self.opener = opener
        self.agents = agents
        self.title = title
        self.parent = parent
        self.members = set(members)
        self.created = created
        self.n = n
        self.last_seq = last_seq
        self.ids = set(ids)
        self.holds = 0
        """Writes and runs under way. Two copies in memory would give out the same ``seq``."""

    def visible_to(self, principal: Principal) -> bool:
        return principal.is_owner or principal.id == self.opener or principal.id in self.members


class Log:
    """All conversations of this node, and the order of their events."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._live: dict[str, Conversation] = {}
        self._callers: dict[str, int] = dict(store.read("SELECT id, n FROM callers"))
        self._touched: dict[int, int] = {}
        self._waiters: set[asyncio.Future[None]] = set()
        newest = store.read("SELECT coalesce(max(cursor), 0) FROM events")[0][0]
        self.cursor: int = max(newest, int(self.meta("cursor_floor") or 0))
        """The place of the newest committed event."""
        self._last_n: int = store.read("SELECT coalesce(max(n), 0) FROM conversations")[0][0]
        self._repair_touched()

    def meta(self, key: str) -> Any:
        rows = self.store.read("SELECT value FROM meta WHERE key = ?", (key,))
        return rows[0][0] if rows else None

    async def caller_number(self, caller: str) -> int:
        """A small number for a caller's id, kept for ever."""
        number = self._callers.get(caller)
        if number is None:

            def apply(tx: Tx) -> int:
                tx.execute("INSERT OR IGNORE INTO callers (id) VALUES (?)", (caller,))
                row = tx.execute("SELECT n FROM callers WHERE id = ?", (caller,)).fetchone()
                return int(row[0])

            number = self._callers[caller] = await self.store.write(apply)
        return number

    def known_caller(self, caller: str) -> int | None:
        """The same, if this caller was ever here."""
        return self._callers.get(caller)

    def has_call(self, caller: int, message_id: str) -> bool:
        return bool(
            self.store.read(
                # The first condition is the index's own: without it the whole log is read.
                "SELECT 1 FROM events WHERE caller > 0 AND caller = ? AND message_id = ?",
                (caller, message_id),
            )
        )

    # Conversations ---------------------------------------------------------------------

    def new(
        self,
        opener: str,
        agents: list[str],
        *,
        title: str = "",
        parent: str | None = None,
        conversation_id: str | None = None,
    ) -> Conversation:
        """A conversation that is stored with its first event."""
        conversation = Conversation(
            conversation_id or new_id("c"),
            opener,
            agents,
            title=title,
            parent=parent,
            created=int(time.time() * 1000),
        )
        self._keep(conversation)
        return conversation

    def get(self, conversation_id: str) -> Conversation | None:
        found = self._live.get(conversation_id)
        if found is not None:
            self._live[conversation_id] = self._live.pop(conversation_id)  # used last
        else:
            rows = self.store.read(f"{_CONVERSATION} WHERE id = ?", (conversation_id,))
            found = self._load(rows[0]) if rows else None
        return found

    def visible(self, conversation_id: str, principal: Principal) -> Conversation:
        """The conversation. One that is missing and one that is not yours look the same."""
        found = self.get(conversation_id)
        if found is None or not found.visible_to(principal):
            raise InvalidParams(
                f"no such conversation: {conversation_id}", hint="chat.list shows yours"
            )
        return found

    def forget(self, conversation: Conversation) -> None:
        """Drop it from memory: it was never stored, or it is deleted."""
        if self._live.get(conversation.id) is conversation:
            del self._live[conversation.id]

    def forget_unstored(self, conversation: Conversation) -> None:
        """Drop one that came to nothing: never stored, and nobody is at it."""
        if conversation.n == 0 and conversation.holds == 0:
            self.forget(conversation)

    def _keep(self, conversation: Conversation) -> None:
        self._live[conversation.id] = conversation
        if len(self._live) > LIVE_CONVERSATIONS:
            free = (old for old in self._live.values() if not old.holds)
            for old in list(islice(free, LIVE_CONVERSATIONS // 8)):
                self.forget(old)

    def _load(self, row: Sequence[Any]) -> Conversation:
        n, conversation_id, opener, title, agents, members, parent, created = row
        rows = self.store.read("SELECT seq, message_id FROM events WHERE conversation = ?", (n,))
        conversation = Conversation(
            conversation_id,
            opener,
            _decode(agents),
            title=title,
            parent=parent,
            members=_decode(members),
            created=created,
            n=n,
            last_seq=max((seq for seq, _ in rows), default=0),
            ids=(message_id for _, message_id in rows),
        )
        self._keep(conversation)
        return conversation

    async def save(self, conversation: Conversation) -> None:
        """Store a new conversation before anything is said in it."""

        def apply(tx: Tx) -> int:
            n = _insert(tx, conversation, self._last_n)
            tx.scratch[conversation] = n, 0
            return n

        conversation.holds += 1
        try:
            n = conversation.n = await self.store.write(apply)
        finally:
            conversation.holds -= 1
            self.forget_unstored(conversation)
        self._last_n = max(self._last_n, n)
        self._touched[n] = max(1, self.cursor)

    async def change(
        self,
        conversation: Conversation,
        *,
        title: str | None = None,
        agents: list[str] | None = None,
        members: set[str] | None = None,
    ) -> None:
        """Give it another title, other agents or members, once that is stored."""
        title = conversation.title if title is None else title
        agents = conversation.agents if agents is None else agents
        members = conversation.members if members is None else members
        if conversation.n == 0:
            raise Busy("this conversation is being opened")

        def apply(tx: Tx) -> None:
            tx.execute(
                "UPDATE conversations SET title = ?, agents = ?, members = ? WHERE n = ?",
                (*_columns(title, agents, members), conversation.n),
            )

        conversation.holds += 1
        try:
            await self.store.write(apply)
            conversation.title, conversation.agents, conversation.members = title, agents, members
        finally:
            conversation.holds -= 1
        self._touched[conversation.n] = max(1, self.cursor)

    async def delete(self, conversation: Conversation, keep_calls_after_ms: int) -> None:
        """Remove it and its events; call ids younger than the limit stay known, blanked."""
        n = conversation.n

        def apply(tx: Tx) -> None:
            tx.execute(
                "UPDATE events SET conversation = NULL, kind = 'deleted', text = '', data = '',"
                " files = '', sender = '' WHERE conversation = ? AND caller > 0"
                " AND at > ?",
                (n, keep_calls_after_ms),
            )
            tx.execute("DELETE FROM events WHERE conversation = ?", (n,))
            tx.execute("DELETE FROM conversations WHERE n = ?", (n,))
            # A cursor is never given out twice, even if the newest rows are gone.
            tx.execute("INSERT OR REPLACE INTO meta VALUES ('cursor_floor', ?)", (self.cursor,))

        await self.store.write(apply)
        self._touched.pop(n, None)
        self.forget(conversation)

    # Appending -------------------------------------------------------------------------

    def append(self, conversation: Conversation, *drafts: Draft) -> asyncio.Future[Place]:
        """Commit these events next to each other; stores the conversation too if it is new.

        The future holds the place of the last one. It raises ``Busy`` or ``DuplicateCall``, and
        then nothing was stored.
        """
        future: asyncio.Future[Place] = asyncio.get_running_loop().create_future()

        def done(place: Place | None, error: Exception | None) -> None:
            if future.done():
                return
            if place is None:
                future.set_exception(error or DuplicateCall())
            else:
                future.set_result(place)

        self.submit(conversation, drafts, done)
        return future

    def submit(
        self,
        conversation: Conversation,
        drafts: Sequence[Draft],
        done: Callable[[Place | None, Exception | None], None],
    ) -> None:
        """The same with a callback, called in the moment of the commit."""
        at = int(time.time() * 1000)

        def apply(tx: Tx) -> tuple[int, Place]:
            scratch = tx.scratch
            n, seq = scratch.get(conversation) or (conversation.n, conversation.last_seq)
            if n == 0:
                n = _insert(tx, conversation, self._last_n)
            cursor = scratch.get("cursor", self.cursor)
            for d in drafts:
                seq += 1
                cursor += 1
                sender, data, files, status = d.sender, d.data, d.files, d.status
                tx.insert(
                    _EVENTS,
                    (
                        cursor, n, seq, d.message_id, d.kind._value_, d.ref, sender.id,
                        sender.type, d.text, "" if data is None else _encode(data).decode(),
                        _encode(files).decode() if files else "",
                        "" if status is None else status._value_, at, d.caller, d.call,
                    ),  # fmt: skip
                )
                if files:
                    _share(tx, conversation, files)
            scratch[conversation] = n, seq
            scratch["cursor"] = cursor
            return n, (seq, cursor)

        conversation.holds += 1

        def committed(placed: tuple[int, Place] | None, error: Exception | None) -> None:
            conversation.holds -= 1
            if placed is None:
                taken = isinstance(error, sqlite3.IntegrityError)
                done(None, DuplicateCall() if taken else error)
                return
            n, place = placed
            conversation.n = n
            conversation.last_seq, self.cursor = place
            for d in drafts:
                conversation.ids.add(d.message_id)
            self._last_n = max(self._last_n, n)
            self._touched[n] = self.cursor
            if self._waiters:
                self._wake()
            done(place, None)

        self.store.submit(apply, committed)

    # News ------------------------------------------------------------------------------

    async def news(self, after: int) -> None:
        """Return when there is an event beyond ``after``."""
        while self.cursor <= after:
            waiter = asyncio.get_running_loop().create_future()
            self._waiters.add(waiter)
            try:
                await waiter
            finally:
                self._waiters.discard(waiter)

    def _wake(self) -> None:
        waiters, self._waiters = self._waiters, set()
        for waiter in waiters:
            if not waiter.done():
                waiter.set_result(None)

    async def forget_calls(self, days: float) -> None:
        """Drop the blanked rows of deleted conversations whose ids need not be known any more."""
        before = int((time.time() - days * 86_400) * 1000)

        def apply(tx: Tx) -> None:
            tx.execute("DELETE FROM events WHERE conversation IS NULL AND at < ?", (before,))

        await self.store.write(apply)

    # When was it last used? Kept in memory and written now and then, not once per event.

    async def save_touched(self) -> None:
        """Write down which conversations were used last; ``chat.list`` sorts by it."""
        if not self._touched:
            return
        touched, self._touched = self._touched, {}
        upto = self.cursor

        def apply(tx: Tx) -> None:
            for n, cursor in touched.items():
                tx.execute("UPDATE conversations SET touched = ? WHERE n = ?", (cursor, n))
            tx.execute("INSERT OR REPLACE INTO meta VALUES ('touched_upto', ?)", (upto,))

        try:
            await self.store.write(apply)
        except BaseException:
            self._touched = {**touched, **self._touched}
            raise

    def _repair_touched(self) -> None:
        """After a crash: use the events since the last time it was written down."""
        upto = int(self.meta("touched_upto") or 0)
        rows = self.store.read(
            "SELECT conversation, max(cursor) FROM events WHERE cursor > ?"
            " AND conversation IS NOT NULL GROUP BY conversation",
            (upto,),
        )
        self._touched.update(rows)


def _share(tx: Tx, conversation: Conversation, files: Iterable[FileRef]) -> None:
    """Whoever sees a conversation may read its files."""
    for file in files:
        for reader in (conversation.opener, *conversation.members):
            tx.execute("INSERT OR IGNORE INTO blob_readers VALUES (?, ?)", (file.sha256, reader))


def _columns(title: str, agents: list[str], members: set[str]) -> tuple[str, str, str]:
    return title, _encode(agents).decode(), _encode(sorted(members)).decode()


def _insert(tx: Tx, conversation: Conversation, last_n: int) -> int:
    """Add a new conversation under the next number."""
    n: int = tx.scratch.get("n", last_n) + 1
    tx.scratch["n"] = n
    row = (n, conversation.id, conversation.opener, conversation.parent, conversation.created)
    more = _columns(conversation.title, conversation.agents, conversation.members)
    tx.insert(_CONVERSATIONS, (*row, *more))
    return n
