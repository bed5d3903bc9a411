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
from typing import Any, TypeVar

import msgspec

from aios_nb.access import Principal
from aios_nb.bell import Bell
from aios_nb.chat.conversation import Conversation, Shelf
from aios_nb.chat.sides import Sides, side_id
from aios_nb.envelope import FileRef, Kind, Sender, Status, new_id
from aios_nb.errors import InvalidParams
from aios_nb.store import Insert, Store, Tx

T = TypeVar("T")

_encode = msgspec.json.Encoder().encode
_decode = msgspec.json.Decoder().decode
_decode_files = msgspec.json.Decoder(tuple[FileRef, ...]).decode
_NO_PLACE: tuple[int, int] | tuple[()] = ()
"""Nothing was written to this conversation in this transaction; ``None``: it was deleted."""

_EVENTS = Insert(
    "events",
    (
        "cursor",
        "conversation",
        "seq",
        "message_id",
        "kind",
        "ref",
        "sender",
        "sender_type",
        "text",
        "data",
        "files",
        "status",
        "at",
        "caller",
        "call",
    ),
)
_CONVERSATIONS = Insert(
    "conversations",
    ("n", "id", "opener", "parent", "created", "theirs", "title", "agents", "members"),
)


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
    shares: bool = True
    """Whoever sees the conversation may read its files; not if they are only named so far."""


class Log:
    """All conversations of this node, and the order of their events."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._shelf = Shelf()
        self._sides = Sides(store)
        self._touched: dict[int, int] = {}
        self._touching: asyncio.Future[None] | None = None
        self._news = Bell()
        newest = store.read("SELECT coalesce(max(cursor), 0) FROM events")[0][0]
        self.cursor: int = max(newest, int(self.meta("cursor_floor") or 0))
        """The place of the newest committed event."""
        highest = store.read("SELECT coalesce(max(n), 0) FROM conversations")[0][0]
        self._last_n: int = max(highest, int(self.meta("n_floor") or 0))
        self._repair_touched()

    def meta(self, key: str) -> Any:
        rows = self.store.read("SELECT value FROM meta WHERE key = ?", (key,))
        return rows[0][0] if rows else None

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
        theirs: str = "",
    ) -> Conversation:
        """A conversation that is stored with its first event."""
        conversation = Conversation(
            conversation_id or new_id("c"),
            opener,
            agents,
            title=title,
            parent=parent,
            created=int(time.time() * 1000),
            theirs=theirs,
        )
        self._shelf.put(conversation)
        if theirs:
            self._sides.seen(opener, conversation.id)
        return conversation

    def side(self, opener: str, theirs: str) -> tuple[str, Conversation | None]:
        """Our name for a conversation of that home, and the conversation if there is one."""
        name = side_id(opener, theirs)
        found = self._shelf.get(name)
        if found is None and not self._sides.is_new(opener, name):
            found = self.get(name)
        return name, found

    def get(self, conversation_id: str) -> Conversation | None:
        found = self._shelf.get(conversation_id)
        if found is None:
            rows = self.store.read(
                "SELECT n, id, opener, title, agents, members, parent, created, theirs"
                " FROM conversations WHERE id = ?",
                (conversation_id,),
            )
            found = self._load(rows[0]) if rows else None
        return found

    def visible(self, conversation_id: str, principal: Principal) -> Conversation:
        """The conversation. One that is missing and one that is not yours look the same."""
        found = self.get(conversation_id)
        if found is None or not found.visible_to(principal):
            raise no_such(conversation_id)
        return found

    def forget_unstored(self, conversation: Conversation) -> None:
        """Drop one that came to nothing."""
        self._shelf.drop_unstored(conversation)

    def _load(self, row: Sequence[Any]) -> Conversation:
        n, conversation_id, opener, title, agents, members, parent, created, theirs = row
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
            theirs=theirs,
        )
        self._shelf.put(conversation)
        return conversation

    async def save(self, conversation: Conversation) -> None:
        """Store a new conversation before anything is said in it."""

        def apply(tx: Tx) -> int:
            n = _insert(tx, conversation, self._last_n)
            tx.scratch[conversation] = n, 0
            return n

        def committed(n: int) -> None:
            conversation.n = n
            self._last_n = max(self._last_n, n)
            self._touched[n] = max(1, self.cursor)

        await self._held(conversation, apply, committed)

    async def change(
        self,
        conversation: Conversation,
        *,
        title: str | None = None,
        agents: list[str] | None = None,
        members: set[str] | None = None,
    ) -> None:
        """Give it another title, other agents or members, once that is stored.

        New members may read the files so far. Hold ``conversation.changing()`` meanwhile.
        """
        title = conversation.title if title is None else title
        agents = conversation.agents if agents is None else agents
        members = conversation.members if members is None else members
        joined = members - conversation.members

        def apply(tx: Tx) -> None:
            n = _number(tx, conversation)
            tx.execute(
                "UPDATE conversations SET title = ?, agents = ?, members = ? WHERE n = ?",
                (*_columns(title, agents, members), n),
            )
            if joined:
                rows = tx.execute(
                    "SELECT files FROM events WHERE conversation = ? AND files != ''", (n,)
                ).fetchall()
                for (files,) in rows:
                    _share(tx, joined, _decode_files(files))

        def committed(_: None) -> None:
            conversation.title, conversation.agents, conversation.members = title, agents, members
            self._touched[conversation.n] = max(1, self.cursor)

        await self._held(conversation, apply, committed)

    async def delete(self, conversation: Conversation, keep_calls_after_ms: int) -> None:
        """Remove it and its events; call ids younger than the limit stay known, blanked.

        Mark it ``gone`` first, and see that nothing runs in it.
        """

        def apply(tx: Tx) -> None:
            n = _number(tx, conversation)
            tx.execute(
                # Of the note only the deadline is of use: what was said before may be in it.
                "UPDATE events SET conversation = NULL, kind = 'deleted', text = '', data = '',"
                " files = '', sender = '', call = CASE WHEN call = '' THEN '' ELSE"
                " json_array(json('[]'), json_extract(call, '$[1]'), 'anyone', '', json('[]'), 0)"
                " END WHERE conversation = ? AND caller > 0 AND at > ?",
                (n, keep_calls_after_ms),
            )
            tx.execute("DELETE FROM events WHERE conversation = ?", (n,))
            tx.execute("DELETE FROM conversations WHERE n = ?", (n,))
            # Neither is ever given out twice, even if the newest rows are gone.
            floors = {"cursor_floor": tx.scratch.get("cursor", self.cursor), "n_floor": n}
            for key, floor in floors.items():
                tx.execute(
                    "INSERT INTO meta VALUES (?, ?) ON CONFLICT (key)"
                    " DO UPDATE SET value = max(value, excluded.value)",
                    (key, floor),
                )
            tx.scratch[conversation] = None  # for writes behind this one

        def committed(_: None) -> None:
            self._touched.pop(conversation.n, None)
            conversation.n = -1
            self._shelf.drop(conversation)

        await self._held(conversation, apply, committed)

    async def _held(
        self,
        conversation: Conversation,
        apply: Callable[[Tx], T],
        committed: Callable[[T], None],
    ) -> None:
        """Write, and keep the conversation in memory until it is done, whoever waits or not."""
        conversation.holds += 1

        def done(_: object) -> None:
            conversation.holds -= 1
            self._shelf.drop_unstored(conversation)

        writing = self.store.write(apply, committed)
        writing.add_done_callback(done)
        await asyncio.shield(writing)

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
            place = scratch.get(conversation, _NO_PLACE)
            if place is None or conversation.n < 0:
                raise no_such(conversation.id)  # it was deleted meanwhile
            n, seq = place or (conversation.n, conversation.last_seq)
            if n == 0:
                n = _insert(tx, conversation, self._last_n)
            cursor = scratch.get("cursor", self.cursor)
            for d in drafts:
                seq += 1
                cursor += 1
                sender, data, files, status = d.sender, d.data, d.files, d.status
                row = (
                    cursor, n, seq, d.message_id, d.kind._value_, d.ref, sender.id, sender.type,
                    d.text, "" if data is None else _encode(data).decode(),
                    _encode(files).decode() if files else "",
                    "" if status is None else status._value_, at, d.caller, d.call,
                )  # fmt: skip
                tx.insert(_EVENTS, row)
                if files and d.shares:
                    _share(tx, {conversation.opener, *conversation.members}, files)
            scratch[conversation] = n, seq
            scratch["cursor"] = cursor
            return n, (seq, cursor)

        conversation.holds += 1

        def committed(placed: tuple[int, Place] | None, error: Exception | None) -> None:
            conversation.holds -= 1
            if placed is None:
                taken = isinstance(error, sqlite3.IntegrityError) and drafts[0].caller
                done(None, DuplicateCall() if taken else error)
                return
            n, place = placed
            if conversation.n != n:
                conversation.n = n
                self._last_n = max(self._last_n, n)
            conversation.last_seq, self.cursor = place
            for d in drafts:
                conversation.ids.add(d.message_id)
            self._touched[n] = self.cursor
            self._news.ring()
            done(place, None)

        self.store.submit(apply, committed)

    # News ------------------------------------------------------------------------------

    async def news(self, after: int) -> None:
        """Return when there is an event beyond ``after``."""
        while self.cursor <= after:
            await self._news.wait()

    async def forget_calls(self, days: float) -> None:
        """Drop the blanked rows of deleted conversations whose ids need not be known any more."""
        before = int((time.time() - days * 86_400) * 1000)

        def apply(tx: Tx) -> None:
            tx.execute("DELETE FROM events WHERE conversation IS NULL AND at < ?", (before,))

        await self.store.write(apply)

    async def forget_rows(self, cursors: Sequence[int]) -> None:
        """Drop these blanked rows."""

        def apply(tx: Tx) -> None:
            for cursor in cursors:
                tx.execute(
                    "DELETE FROM events WHERE cursor = ? AND conversation IS NULL", (cursor,)
                )

        await self.store.write(apply)

    # When was it last used? Kept in memory and written now and then, not once per event.

    async def save_touched(self) -> None:
        """Write down which conversations were used last; ``chat.list`` sorts by it."""
        if not self._touched:
            if self._touching is not None:  # by another call: read when it is written
                await asyncio.wait([self._touching])
            return
        touched, self._touched = self._touched, {}
        upto = self.cursor

        def apply(tx: Tx) -> None:
            for n, cursor in touched.items():
                tx.execute("UPDATE conversations SET touched = ? WHERE n = ?", (cursor, n))
            tx.execute("INSERT OR REPLACE INTO meta VALUES ('touched_upto', ?)", (upto,))

        self._touching = writing = self.store.write(apply)
        try:
            await writing
        except BaseException:
            self._touched = {**touched, **self._touched}
            raise
        finally:
            if self._touching is writing:
                self._touching = None

    def _repair_touched(self) -> None:
        """After a crash: use the events since the last time it was written down."""
        upto = int(self.meta("touched_upto") or 0)
        rows = self.store.read(
            "SELECT conversation, max(cursor) FROM events WHERE cursor > ?"
            " AND conversation IS NOT NULL GROUP BY conversation",
            (upto,),
        )
        self._touched.update(rows)


def no_such(conversation_id: str) -> InvalidParams:
    return InvalidParams(
        f"no such conversation: {conversation_id}", hint="`aios-nb chats` lists yours"
    )


def _number(tx: Tx, conversation: Conversation) -> int:
    """Its number in the database, also when it was stored earlier in this transaction."""
    place = tx.scratch.get(conversation, _NO_PLACE)
    n: int = place[0] if place else conversation.n
    if place is None or n <= 0:
        raise no_such(conversation.id)
    return n


def _share(tx: Tx, readers: Iterable[str], files: Iterable[FileRef]) -> None:
    """Whoever sees a conversation may read its files."""
    for file in files:
        for reader in readers:
            tx.execute("INSERT OR IGNORE INTO blob_readers VALUES (?, ?)", (file.sha256, reader))


def _columns(title: str, agents: list[str], members: set[str]) -> tuple[str, str, str]:
    joined = _encode(sorted(members)).decode() if members else "[]"
    return title, _encode(agents).decode(), joined


def _insert(tx: Tx, conversation: Conversation, last_n: int) -> int:
    """Add a new conversation under the next number."""
    n: int = tx.scratch.get("n", last_n) + 1
    tx.scratch["n"] = n
    c = conversation
    title, agents, members = _columns(c.title, c.agents, c.members)
    row = (n, c.id, c.opener, c.parent, c.created, c.theirs, title, agents, members)
    tx.insert(_CONVERSATIONS, row)
    return n
