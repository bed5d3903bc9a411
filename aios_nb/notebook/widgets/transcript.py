"""A conversation's log as items to show: messages, replies as they are written, questions, notes.

Takes rows of ``chat.history`` and ``chat.watch`` in any order of pages, and pieces of
``chat.stream``. Does no I/O. A reply stands under what it answers, in the page as in print, however
long it took: items are sorted by ``order``.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from typing import Any

from aios_nb.errors import AgentFailed, Cancelled, DeadlinePassed, from_wire
from aios_nb.notebook.widgets.contents import Blocks, data_view, said_by_agent, said_by_person
from aios_nb.notebook.widgets.items import Item, Who, Writing, as_plain
from aios_nb.people.naming import Names
from aios_nb.people.wording import NOTEBOOK, to_do, typed, what
from aios_nb.richtext import one_line, plain

RESENT = "resent:"
"""A reaction to one's own message that was sent again, in other words or the same."""
PARSED_AT_ONCE_CHARS = 8_000
"""Longer texts are parsed beside the loop: 8,000 characters of code take up to 20 ms."""
_UNDER_WAY = frozenset({"accepted", "running", "input_required"})
_AT_WORK = frozenset({"waits", "runs", "asks"})
_ENDED_BADLY = frozenset({"failed", "cancelled", "interrupted"})


class Transcript:
    """The items of one conversation, and what of them a page has not been told yet."""

    def __init__(self, me: str, node_name: Callable[[str], str]) -> None:
        """``me``: the sender id of the person here. ``node_name``: of another node, for people."""
        self.me = me
        self._node_name = node_name
        self.items: dict[str, Item] = {}
        self.writing: dict[str, Writing] = {}
        """By reply id."""
        self.rows: list[dict[str, Any]] = []
        self.default = ""
        """The agent that answers what names nobody."""
        self._after: dict[str, tuple[int, str]] = {}
        """Of a request: place and time of it, or of the last answer to a question about it."""
        self._began: dict[str, str] = {}
        """Of a reply that waited for its turn: when it began."""
        self._names = Names()
        self._edits: dict[str, str] = {}
        self._resent: dict[str, str] = {}
        self._reactions: dict[str, list[str]] = {}
        self._to: dict[str, list[str]] = {}
        """Whom a request went to, where that does not go without saying."""
        self._asked_of: dict[str, set[str]] = {}
        """The names of all whom a request went to: those are shown as names in its text."""
        self._told_by: dict[str, str] = {}
        """Of a reply that failed without a word: by the id of the row that says so."""
        self._touched: dict[str, None] = {}
        self.unparsed: set[str] = set()
        """Items whose text is too long to be parsed at once."""

    # What comes in -----------------------------------------------------------------------------

    @property
    def first_seq(self) -> int:
        return self.rows[0]["seq"] if self.rows else 0

    @property
    def last_seq(self) -> int:
        return self.rows[-1]["seq"] if self.rows else 0

    def take(self, row: dict[str, Any]) -> None:
        """One row more, behind those that are here."""
        if row["seq"] <= self.last_seq:
            return
        self.rows.append(row)
        self._fold(row)

    def prepend(self, rows: Iterable[dict[str, Any]]) -> Transcript:
        """The same with earlier rows; what is being written goes on in it."""
        whole = Transcript(self.me, self._node_name)
        whole.default = self.default
        for row in (*rows, *self.rows):
            whole.rows.append(row)
            whole._fold(row, self.items.get(row["message_id"]))
        for reply_id, writing in self.writing.items():
            whole.writing[reply_id] = writing
            whole._put(writing.item)
            whole._say_to(writing.item.re, writing.item.who.id)
        return whole

    def _fold(self, row: dict[str, Any], known: Item | None = None) -> None:
        kind, ref = row["kind"], row["ref"]
        if kind == "message":
            self._message(row, known)
        elif kind == "status":
            self._status(row)
        elif kind == "edit":
            self._edits[ref] = row["text"]
            self._mark(ref)
        elif kind == "reaction":
            ref = self._told_by.get(ref, ref)
            if row["text"].startswith(RESENT) and row["sender"]["id"] == self.me:
                self._resent[ref] = row["text"].removeprefix(RESENT)
            elif not row["text"].startswith(RESENT):
                self._reactions.setdefault(ref, []).append(one_line(row["text"]))
            self._mark(ref)
        elif kind in {"join", "leave"}:
            self._names.hear(row)
            who = self.who({"id": ref, "type": "agent" if is_agent(ref) else "human"})
            note = "joined" if kind == "join" else "left"
            self._put(self._item(row, row["message_id"], who=who, kind="note", text=note))

    def _message(self, row: dict[str, Any], known: Item | None) -> None:
        item = self._item(row, row["message_id"])
        ref, from_agent = row["ref"], row["sender"]["type"] == "agent"
        item.text = plain(row["text"])
        item.files = row["files"]
        item.data, repeats = data_view(row["text"], row["data"])
        if repeats:
            item.text, item.blocks = "", []
        if from_agent and ref is not None:
            self._reply(row, item)
        else:
            item.re = ref or ""
            self._asked(ref or item.id, row)
            if row["status"] == "running":  # all of it: what waits is told as accepted
                self._runs(self.replies_to(item.id), row["at"])
        if known is not None and known.text == item.text:
            item.blocks = known.blocks
        elif not repeats:
            self._parse(item, from_agent=from_agent)
        self._put(item)
        self._mark(item.id)

    def _reply(self, row: dict[str, Any], item: Item) -> None:
        ref = row["ref"]
        asked = self._after.get(ref)
        item.re = ref
        item.status = row["status"] if row["status"] in _ENDED_BADLY else ""
        if asked is not None:
            item.order = (asked[0], 1, row["seq"])
            item.took_s = self._took(item.id, asked[1], row["at"])
        self._say_to(ref, row["sender"]["id"])
        written = self.writing.pop(item.id, None)
        if written is not None and item.blocks is None:
            item.blocks = written.item.blocks  # until the whole of it is parsed

    def _asked(self, request: str, row: dict[str, Any]) -> None:
        """What is written in answer to this stands below it."""
        self._after[request] = (row["seq"], row["at"])
        for writing in self.writing.values():
            if writing.item.re == request:
                writing.item.order = (row["seq"], *writing.item.order[1:])
                self._touch(writing.item.id)

    def _status(self, row: dict[str, Any]) -> None:
        status, data, ref = row["status"], row["data"] or {}, row["ref"]
        reply_id = data.get("reply_id", "")
        if status == "running":
            self._began[reply_id] = row["at"]
            if reply_id in self.writing:
                self._runs([self.writing[reply_id].item], row["at"])
            self._answered(data.get("question", ""))
        elif status == "input_required":
            item = self._item(row, row["message_id"], kind="asks", text=plain(row["text"]))
            item.re, item.reply, item.question = ref, reply_id, data.get("question", "")
            asked = self._after.get(ref)
            if asked is not None:  # what comes of it stands below the question
                self._after[ref] = (row["seq"], asked[1])
            if reply_id in self.writing:
                self.writing[reply_id].item.status = "asks"
                self._touch(reply_id)
            self._parse(item, from_agent=True)
            self._put(item)
        elif status in _ENDED_BADLY:
            self._failed(row, status, reply_id, ref, data)

    def _failed(
        self, row: dict[str, Any], status: str, reply_id: str, ref: str, data: Mapping[str, Any]
    ) -> None:
        for item in self.items.values():
            if item.kind == "asks" and item.reply == reply_id:
                self._answered(item.question)
        self.writing.pop(reply_id, None)
        self._told_by[row["message_id"]] = reply_id
        said = self.items.get(reply_id)
        if said is None or said.status in _AT_WORK:
            said = self._item(row, reply_id, blocks=[])
            asked = self._after.get(ref)
            if asked is not None:
                said.order = (asked[0], 1, row["seq"])
                if status != "interrupted":  # nobody knows when
                    said.took_s = self._took(reply_id, asked[1], row["at"])
            said.re = ref
            self._say_to(ref, row["sender"]["id"])
        said.status = status
        error = from_wire(data.get("error") or {"message": row["text"]})
        said.problem = one_line(what(error)).removeprefix(f"{said.who.name} failed: ")
        if error.hint == AgentFailed.what_to_do and not said.who.node:
            said.hint = "%aios log has the details"
        elif status == "interrupted":  # ids are for programs: Retry gives it a new one
            said.hint = to_do(error, NOTEBOOK)
        elif not isinstance(error, Cancelled | DeadlinePassed):
            said.hint = one_line(typed(error.hint or "", NOTEBOOK))
        self._put(said)
        self._mark(said.id)

    # What is under way -------------------------------------------------------------------------

    def begin(self, ref: str, agent: str, reply_id: str, at: str, *, waits: bool) -> Writing | None:
        """That agent answers that message from now on; None if that is known already."""
        if reply_id in self.items:
            return None
        self._say_to(ref, agent)
        asked = self._after.get(ref, (1 << 52, at))
        who = self.who({"id": agent, "type": "agent"})
        item = Item(reply_id, who, at, (asked[0], 1, 1 << 52), blocks=[], re=ref)
        item.status = "waits" if waits else "runs"
        writing = self.writing[reply_id] = Writing(item)
        self._put(item)
        return writing

    def waits_for_turn(self, ref: str, agent: str) -> bool:
        """Whether that message waits until the agent has answered another one here."""
        row = next((row for row in reversed(self.rows) if row["message_id"] == ref), None)
        if row is not None and row["status"] != "accepted":
            return False
        return any(writing.item.who.id == agent for writing in self.writing.values())

    def write(self, reply_id: str, text: str, progress: str | None) -> None:
        """A piece of a reply, and how far its agent says it has come."""
        writing = self.writing.get(reply_id)
        if writing is None:
            return
        item = writing.item
        if item.status == "waits":
            item.status = "runs"
            self._touch(reply_id)
        if progress is not None and one_line(progress) != item.progress:
            item.progress = one_line(progress)
            self._touch(reply_id)
        if text:
            writing.add(text)

    def question(self) -> Item | None:
        """What an agent wants to know from the person, the oldest first."""
        asking = [item for item in self.items.values() if item.kind == "asks" and item.question]
        return min(asking, key=lambda item: item.order, default=None)

    def request_of(self, item_id: str) -> dict[str, Any] | None:
        """The row of the message that an item is, or answers."""
        item = self.items.get(item_id)
        wanted = item.re if item is not None and item.who.agent else item_id
        return next((row for row in self.rows if row["message_id"] == wanted), None)

    def row_of(self, item_id: str) -> str:
        """The id of the row that tells of an item: its own, or that of the status in its place."""
        for row in reversed(self.rows):
            about = row["data"].get("reply_id") if row["kind"] == "status" else row["message_id"]
            if about == item_id:
                return str(row["message_id"])
        return item_id

    def file(self, sha256: str) -> dict[str, Any] | None:
        """A file of some message, by its hash."""
        files = (file for item in self.items.values() for file in item.files)
        return next((file for file in files if file["sha256"] == sha256), None)

    def replies_to(self, request_id: str) -> list[Item]:
        return [item for item in self.items.values() if item.re == request_id and item.who.agent]

    # What a page is told -----------------------------------------------------------------------

    def news(self) -> tuple[list[dict[str, Any]], bool]:
        """Messages that bring a page up to date; and whether more is ready, for a little later."""
        messages: list[dict[str, Any]] = []
        if self._touched:
            touched = [self.items[one] for one in self._touched if one in self.items]
            messages.append({"type": "items", "items": [as_plain(item) for item in touched]})
            self._touched.clear()
        shown = [writing.show() for writing in self.writing.values()]
        messages += filter(None, shown)
        return messages, self.lags

    @property
    def lags(self) -> bool:
        """Whether more was written than was shown."""
        return any(writing.lags for writing in self.writing.values())

    def whole(self) -> list[Item]:
        """All items in order, as they were last shown; a page that gets them is up to date."""
        self._touched.clear()
        return self.sorted()

    def sorted(self) -> list[Item]:
        return sorted(self.items.values(), key=lambda item: item.order)

    def parsed(self, item_id: str, text: str, blocks: Blocks) -> None:
        """A long text has been parsed."""
        self.unparsed.discard(item_id)
        item = self.items.get(item_id)
        if item is not None and item.text == text:
            item.blocks = blocks
            self._touch(item_id)

    def who(self, sender: Mapping[str, Any]) -> Who:
        """Somebody as people know them."""
        sender_id = str(sender["id"])
        name, _, node = sender_id.partition("@")
        ours = self.me.partition("@")[2]
        if sender_id == self.me:
            return Who(sender_id, "you", mine=True)
        elsewhere = "" if not node or node == ours else self._node_name(node)
        if sender["type"] == "agent":
            return Who(sender_id, one_line(name), agent=True, node=elsewhere)
        if name.startswith("tg:"):
            return Who(sender_id, self._names.called(name), node=elsewhere)
        return Who(sender_id, one_line(name), node=elsewhere)

    # Plumbing ----------------------------------------------------------------------------------

    def _item(self, row: Mapping[str, Any], item_id: str, **fields: Any) -> Item:
        given = {"who": self.who(row["sender"]), "at": row["at"], "seq": row["seq"], **fields}
        return Item(item_id, order=(row["seq"], 0, 0), **given)

    def _parse(self, item: Item, *, from_agent: bool) -> None:
        if not from_agent:
            item.blocks = said_by_person(item.text, self._asked_of.get(item.id, ()))
        elif len(item.text) <= PARSED_AT_ONCE_CHARS:
            item.blocks = said_by_agent(item.text)
        else:
            item.blocks = item.blocks or [["lines", {}, [item.text]]]
            self.unparsed.add(item.id)

    def _put(self, item: Item) -> None:
        self.items[item.id] = item
        self._touch(item.id)

    def _touch(self, item_id: str) -> None:
        self._touched[item_id] = None

    def _mark(self, item_id: str) -> None:
        """Put on an item what later rows say of it."""
        item = self.items.get(item_id)
        if item is None:
            return
        if item_id in self._edits:
            item.text, item.edited = plain(self._edits[item_id]), True
            self._parse(item, from_agent=item.who.agent)
        item.resent = self._resent.get(item_id, "")
        item.reactions = self._reactions.get(item_id, [])
        item.to = [name for name in self._to.get(item_id, ()) if f"@{name}" not in item.text]
        self._touch(item_id)

    def _say_to(self, ref: str, agent: str) -> None:
        """Show at a request whom it went to; its row may come later."""
        name = one_line(agent.partition("@")[0])
        known = self._asked_of.setdefault(ref, set())
        if name not in known:
            known.add(name)
            asked = self.items.get(ref)
            if asked is not None and f"@{name}" in asked.text:
                self._parse(asked, from_agent=asked.who.agent)
                self._touch(ref)
        if agent != self.default and name not in self._to.setdefault(ref, []):
            self._to[ref].append(name)
            self._mark(ref)

    def _runs(self, items: Iterable[Item], at: str) -> None:
        """They are at work, from now on; what waited before does not count."""
        for item in items:
            if item.status in _AT_WORK:
                item.at = at if item.status == "waits" else item.at
                item.status = "runs"
                self._touch(item.id)

    def _took(self, reply_id: str, asked: str, ended: str) -> float | None:
        return _seconds(max(asked, self._began.get(reply_id, asked)), ended)

    def _answered(self, question: str) -> None:
        for item in self.items.values():
            if question and item.question == question:
                item.question = ""
                self._touch(item.id)


def is_under_way(row: Mapping[str, Any]) -> bool:
    """Whether this is a request that is not answered yet."""
    asked = row["kind"] == "message" and row["sender"]["type"] == "human" and row["ref"] is None
    return asked and row["status"] in _UNDER_WAY


def is_agent(who: str) -> bool:
    """And not a person, such as ``owner@NODEID`` or ``tg:1:2``."""
    return "@" in who and ":" not in who and not who.startswith("owner@")


def _seconds(begun: str, ended: str) -> float | None:
    try:
        took = datetime.fromisoformat(ended) - datetime.fromisoformat(begun)
    except ValueError:
        return None
    return max(0.0, took.total_seconds())
