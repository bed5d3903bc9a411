"""Reading the log: rows to events, statuses folded, listings, what an agent may see."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any

import msgspec

from aios_nb.access import Principal
from aios_nb.chat.conversation import Conversation
from aios_nb.chat.log import Log
from aios_nb.envelope import Event, FileRef, Kind, Sender, Status, Task, iso_ms

CONTEXT_BYTES = 32 * 1024
"""What an agent is shown of its conversation, newest messages first to be kept."""
CONTEXT_ROWS, CONTEXT_STEPS = 50, 8
"""Rows that are read at a time to find them, and how often at most."""

PAGE_BYTES = 4 << 20
TITLE_CHARS = 60
"""Of its first message, for a conversation without a title."""

_decode = msgspec.json.Decoder().decode
_encode = msgspec.json.Encoder().encode
_decode_files = msgspec.json.Decoder(tuple[FileRef, ...]).decode
_SEQ, _TEXT, _DATA = 1, 5, 6
"""Places in a row of ``_FIELDS``."""
_FIELDS = (
    "SELECT e.message_id, e.seq, e.kind, e.sender, e.sender_type, e.text, e.data, e.files, e.ref,"
    " e.status, e.at, c.id, e.cursor"
    " FROM events e JOIN conversations c ON c.n = e.conversation"
)


def to_event(row: Sequence[Any]) -> Event:
    (message_id, seq, kind, sender, sender_type, text, data, files, ref, status, at, conversation,
     cursor) = row  # fmt: skip
    return Event(
        message_id,
        seq,
        Kind(kind),
        Sender(sender, sender_type),
        text,
        _decode(data) if data else None,
        _decode_files(files) if files else (),
        ref or None,
        Status(status) if status else None,
        iso_ms(at),
        conversation,
        cursor,
    )


class Reader:
    """What is in the log, as people and agents see it."""

    def __init__(self, log: Log) -> None:
        self._read = log.store.read
        self.live: Callable[[str], Mapping[str, Mapping[str, Status]]] = lambda _: {}
        """Of a conversation, what is under way: message id → agent → status."""

    def history(
        self, conversation: Conversation, after: int = 0, limit: int = 1000
    ) -> tuple[list[Event], bool]:
        """Events beyond ``after``, each with the status it has now; and whether there are more.

        A page ends early when its texts are long, so that it fits into one answer.
        """
        rows = self._read(
            f"{_FIELDS} WHERE e.conversation = ? AND e.seq > ? ORDER BY e.seq LIMIT ?",
            (conversation.n, after, limit),
        )
        events: list[Event] = []
        room = PAGE_BYTES
        for row in rows:
            room -= len(row[_TEXT]) + len(row[_DATA])
            if room < 0 and events:
                break
            events.append(to_event(row))
        more = len(events) < len(rows) or len(rows) == limit
        return self._folded(events), more

    def _folded(self, events: Sequence[Event]) -> list[Event]:
        """The same with the status each message has now."""
        first: dict[str, int] = {}
        for event in events:
            if event.kind is Kind.MESSAGE:
                first.setdefault(event.conversation, event.seq)
        now = {name: self._statuses(name, seq) for name, seq in first.items()}
        return [
            msgspec.structs.replace(event, status=now[event.conversation][event.message_id])
            if event.kind is Kind.MESSAGE and event.message_id in now[event.conversation]
            else event
            for event in events
        ]

    def _statuses(self, conversation_id: str, after: int) -> dict[str, Status]:
        """Status by message id, from the rows that refer to it and from what is under way.

        With several agents answering one message, it is the worst of theirs.
        """
        runs: dict[str, dict[str, Status]] = {}
        for ref, sender, status in self._read(
            "SELECT e.ref, e.sender, e.status FROM conversations c"
            " JOIN events e ON e.conversation = c.n"
            " WHERE c.id = ? AND e.seq > ? AND e.ref != '' AND e.status != ''"
            " AND e.kind IN ('message', 'status') ORDER BY e.seq",
            (conversation_id, after),
        ):
            runs.setdefault(ref, {})[sender] = Status(status)
        for message_id, live in self.live(conversation_id).items():
            runs.setdefault(message_id, {}).update(live)
        return {ref: fold(statuses.values()) for ref, statuses in runs.items()}

    def call(self, caller: int, message_id: str) -> tuple[int, Event | None, str] | None:
        """A caller's earlier call: its conversation's number, its event and its note.

        The event is ``None`` when the conversation is deleted.
        """
        rows = self._read(
            "SELECT cursor, conversation, call FROM events"
            " WHERE caller > 0 AND caller = ? AND message_id = ?",
            (caller, message_id),
        )
        if not rows:
            return None
        cursor, n, blob = rows[0]
        found = self._read(f"{_FIELDS} WHERE e.cursor = ?", (cursor,))
        return n or 0, to_event(found[0]) if found else None, blob

    def unsettled(self, cursor: int) -> list[tuple[int, int, str]]:
        """Calls beyond a cursor with their place, caller and note; see ``run_states`` for ends."""
        return self._read(
            "SELECT cursor, caller, call FROM events"
            " WHERE cursor > ? AND caller > 0 AND conversation IS NOT NULL"
            " ORDER BY cursor",
            (cursor,),
        )

    def run_states(self, cursor: int) -> dict[str, Status]:
        """The last word beyond a cursor about each run, by its reply id. One pass over the log."""
        states: dict[str, Status] = {}
        for message_id, kind, status, data in self._read(
            "SELECT message_id, kind, status, data FROM events"
            " WHERE cursor > ? AND ref != '' AND status != '' ORDER BY cursor",
            (cursor,),
        ):
            reply_id = message_id if kind == Kind.MESSAGE else _decode(data)["reply_id"]
            states[reply_id] = Status(status)
        return states

    def at(self, cursor: int) -> Event | None:
        rows = self._read(f"{_FIELDS} WHERE e.cursor = ?", (cursor,))
        return to_event(rows[0]) if rows else None

    def event(self, conversation: Conversation, message_id: str) -> Event | None:
        rows = self._read(
            f"{_FIELDS} WHERE e.conversation = ? AND e.message_id = ?",
            (conversation.n, message_id),
        )
        return to_event(rows[0]) if rows else None

    def seq_of(self, conversation: Conversation, message_id: str) -> int:
        return self._one(conversation, message_id, "seq") or 0

    def sender_of(self, conversation: Conversation, message_id: str) -> str:
        return self._one(conversation, message_id, "sender") or ""

    def _one(self, conversation: Conversation, message_id: str, column: str) -> Any:
        rows = self._read(
            f"SELECT {column} FROM events WHERE conversation = ? AND message_id = ?",
            (conversation.n, message_id),
        )
        return rows[0][0] if rows else None

    def cursor_of(self, conversation: Conversation, seq: int) -> int:
        """The cursor just before the first event beyond ``seq``."""
        rows = self._read(
            "SELECT max(cursor) FROM events WHERE conversation = ? AND seq <= ?",
            (conversation.n, seq),
        )
        return rows[0][0] or 0

    def seq_at(self, conversation: Conversation, cursor: int) -> int:
        """The ``seq`` a conversation had come to at a cursor."""
        rows = self._read(
            "SELECT max(seq) FROM events WHERE conversation = ? AND cursor <= ?",
            (conversation.n, cursor),
        )
        return rows[0][0] or 0

    def outcome(self, conversation_n: int, seq: int, reply_id: str) -> list[Event]:
        """The rows by which one run ended: the reply, or its last status."""
        rows = self._read(
            f"{_FIELDS} WHERE e.conversation = ? AND e.seq > ? AND (e.message_id = ?"
            " OR (e.kind = 'status' AND json_extract(nullif(e.data, ''), '$.reply_id') = ?))"
            " ORDER BY e.seq",
            (conversation_n, seq, reply_id, reply_id),
        )
        return [to_event(row) for row in rows]

    def question(
        self, conversation: Conversation, task: Task, question_id: str
    ) -> tuple[str | None, str | None]:
        """A question of a run as far as the log knows it: its text, and its answer."""
        asked = answer = None
        for event in self.outcome(conversation.n, 0, task.reply_id):
            if event.kind is not Kind.STATUS or event.data.get("question") != question_id:
                continue
            if event.status is Status.INPUT_REQUIRED:
                asked = event.text
            elif "answer" in event.data:
                answer = self._one(conversation, event.data["answer"], "text")
        return asked, answer

    def context(self, conversation: Conversation, agent: str, before_seq: int) -> list[Event]:
        """What an agent is shown: the newest messages since it joined, edits applied."""
        if before_seq <= 1:
            return []
        edits: dict[str, str] = {}
        kept: list[Event] = []
        room = CONTEXT_BYTES
        for event in self._backwards(conversation, agent, before_seq):
            if event.kind is Kind.EDIT and event.ref is not None:
                edits.setdefault(event.ref, event.text)
                continue
            text = edits.get(event.message_id, event.text)
            room -= len(text.encode()) + len(_encode(event.data)) + 200
            if room < 0:
                break
            kept.append(msgspec.structs.replace(event, text=text))
        return self._folded(kept[::-1])

    def _backwards(
        self, conversation: Conversation, agent: str, before_seq: int
    ) -> Iterator[Event]:
        """Messages and edits that an agent may see, the newest first, read as far as needed."""
        since = self._joined(conversation, agent, before_seq)
        for _ in range(CONTEXT_STEPS):
            rows = self._read(
                f"{_FIELDS} WHERE e.conversation = ? AND e.seq > ? AND e.seq < ?"
                " AND e.kind IN ('message', 'edit') ORDER BY e.seq DESC LIMIT ?",
                (conversation.n, since, before_seq, CONTEXT_ROWS),
            )
            yield from map(to_event, rows)
            if len(rows) < CONTEXT_ROWS:
                return
            before_seq = rows[-1][_SEQ]

    def _joined(self, conversation: Conversation, agent: str, before_seq: int) -> int:
        """The ``seq`` behind which this agent may see.

        It was there from the start, or joined later, or was only ever asked.
        """
        rows = self._read(
            "SELECT max(seq) FROM events WHERE conversation = ? AND kind = 'join' AND ref = ?",
            (conversation.n, agent),
        )
        if rows[0][0] is not None:
            return int(rows[0][0])
        if agent in conversation.agents:
            return 0
        rows = self._read(
            "SELECT a.seq FROM events r JOIN events a ON a.conversation = r.conversation"
            " AND a.message_id = r.ref WHERE r.conversation = ? AND r.sender = ?"
            " ORDER BY r.seq LIMIT 1",
            (conversation.n, agent),
        )
        return int(rows[0][0]) - 1 if rows else before_seq

    def since(
        self, cursor: int, conversation: Conversation | None, principal: Principal, limit: int = 200
    ) -> list[Event]:
        """Events beyond a cursor that this caller may see, oldest first."""
        where = "e.cursor > ?"
        params: list[Any] = [cursor]
        if conversation is not None:
            where += " AND e.conversation = ?"
            params.append(conversation.n)
        # In one conversation too: who was taken out of it hears no more.
        seen, whose = _seen_by(principal, "c.")
        params += whose
        where += seen
        rows = self._read(f"{_FIELDS} WHERE {where} ORDER BY e.cursor LIMIT ?", (*params, limit))
        return self._folded([to_event(row) for row in rows])

    def files(self) -> set[str]:
        """The hashes of all files that some message refers to."""
        rows = self._read("SELECT files FROM events WHERE files != ''")
        return {file.sha256 for (files,) in rows for file in _decode_files(files)}

    def listing(self, principal: Principal, limit: int, before: str | None) -> list[dict[str, Any]]:
        """Conversations, last used first. ``save_touched`` first, or the order may lag."""
        touched, _, n = (before or "").partition(".")
        where = "touched > 0 AND (touched, n) < (?, ?)"
        params: list[Any] = [int(touched or 1 << 62), int(n or 1 << 62)]
        seen, whose = _seen_by(principal)
        where += seen
        params += whose
        rows = self._read(
            "SELECT n, id, title, agents, members, parent, opener, created, touched"
            " FROM conversations"
            f" WHERE {where} ORDER BY touched DESC, n DESC LIMIT ?",
            (*params, limit),
        )
        found = []
        for n, conversation_id, title, agents, members, parent, opener, created, touched in rows:
            last = self._read(
                "SELECT seq, text, at FROM events WHERE conversation = ? AND kind = 'message'"
                " ORDER BY seq DESC LIMIT 1",
                (n,),
            )
            first = title or self._first_words(n)
            found.append(
                {
                    "conversation": conversation_id,
                    "title": first,
                    "agents": _decode(agents),
                    "members": sorted(_decode(members)),
                    "parent": parent,
                    "opener": opener,
                    "created_at": iso_ms(created),
                    "updated_at": iso_ms(last[0][2] if last else created),
                    "messages": last[0][0] if last else 0,
                    "last": last[0][1][:200] if last else "",
                    "cursor": f"{touched}.{n}",
                }
            )
        return found

    def _first_words(self, n: int) -> str:
        rows = self._read(
            "SELECT text FROM events WHERE conversation = ? AND kind = 'message'"
            " ORDER BY seq LIMIT 1",
            (n,),
        )
        words = " ".join(rows[0][0].split()) if rows else ""
        return words if len(words) <= TITLE_CHARS else words[: TITLE_CHARS - 1] + "…"


def _seen_by(principal: Principal, table: str = "") -> tuple[str, list[Any]]:
    """The same as ``Conversation.visible_to``, as a condition."""
    if principal.is_owner:
        return "", []
    member = "value = ?"
    params: list[Any] = [principal.id, principal.id]
    if principal.prefix:
        member += " OR (substr(value, 1, ?) = ? AND instr(value, '@') = 0)"
        params += [len(principal.prefix), principal.prefix]
    members = f"EXISTS (SELECT 1 FROM json_each({table}members) WHERE {member})"
    return f" AND ({table}opener = ? OR {members})", params


_WORST = (
    Status.INPUT_REQUIRED,
    Status.RUNNING,
    Status.ACCEPTED,
    Status.FAILED,
    Status.INTERRUPTED,
    Status.CANCELLED,
    Status.DONE,
)


def fold(statuses: Iterable[Status]) -> Status:
    """One status for a message that several agents answer."""
    return min(statuses, key=_WORST.index)
