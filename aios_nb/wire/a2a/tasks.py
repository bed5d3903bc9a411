"""Tasks as the log has them: one for each thing a caller asked of an agent.

Pure: rows of ``chat.history`` in, tasks out. A task's id names its conversation and its message, so
that it is found again in the log, also after a restart, and nothing is kept beside it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from aios_nb.access import Caller, Principal
from aios_nb.envelope import ID, now_iso
from aios_nb.errors import RpcError, from_wire
from aios_nb.wire.a2a import refusals
from aios_nb.wire.a2a.parts import told
from aios_nb.wire.a2a.shapes import Artifact, Message, Part, State, Status, Task
from aios_nb.wire.translated import told as line

Row = Mapping[str, Any]
_PREFIX = "a2a:"
_HASH_CHARS = 32
STATES: Mapping[str, State] = {
    "accepted": State.SUBMITTED,
    "running": State.WORKING,
    "input_required": State.INPUT_REQUIRED,
    "done": State.COMPLETED,
    "failed": State.FAILED,
    "interrupted": State.FAILED,
    "cancelled": State.CANCELED,
}


class Place(msgspec.Struct, frozen=True, gc=False):
    """Where in the log a task is."""

    conversation: str
    message_id: str

    @property
    def task_id(self) -> str:
        return f"{self.conversation}:{self.message_id}"


def place_of(task_id: str) -> Place:
    """Raises ``Refused`` for an id that no task of ours can have."""
    conversation, _, message_id = task_id.partition(":")
    if not ID.fullmatch(conversation) or not ID.fullmatch(message_id):
        raise refusals.task_not_found()
    return Place(conversation, message_id)


def message_id_for(who: Principal, agent: str, theirs: str) -> str | None:
    """The id under which a caller's message is logged; None: a new one each time.

    The same id again is the same message again, so that a client may repeat itself. Not for those
    without a token: they are all one caller to us, and would hear each other's answers.
    """
    if who.kind is Caller.ANYONE:
        return None
    prefix = f"{_PREFIX}{agent.partition('@')[0]}:"
    if ID.fullmatch(prefix + theirs):
        return prefix + theirs
    return prefix + digest_of(theirs)


def digest_of(theirs: str) -> str:
    """What stands for an id of a client, which may be of any length and form."""
    return hashlib.sha256(theirs.encode(errors="surrogatepass")).hexdigest()[:_HASH_CHARS]


def their_id(message_id: str) -> str:
    """What a client called the message that is logged under this id."""
    return message_id.split(":", 2)[2] if message_id.startswith(_PREFIX) else message_id


class View(msgspec.Struct):
    """One task, with the rows that speak of it."""

    place: Place
    request: Row
    state: State
    at: str
    cursor: int
    """Of its last row: what was changed last is listed first."""
    rows: list[Row] = []
    agents: set[str] = set()
    """Who was at work on it, as far as the log tells."""
    question: Row | None = None
    """The row that asks, while it waits for an answer."""
    reply: Row | None = None
    error: RpcError | None = None

    def add(self, row: Row) -> None:
        """A row that refers to it."""
        self.rows.append(row)
        self.at, self.cursor = row["at"], row["cursor"]
        if row["kind"] == "status":
            data = row["data"] or {}
            if row["status"] == "input_required":
                self.question = row
            elif "error" in data:
                self.error = from_wire(data["error"])
        elif row["sender"]["type"] == "agent":
            self.reply = row

    @property
    def question_id(self) -> str:
        asked = self.question if self.state is State.INPUT_REQUIRED else None
        return "" if asked is None else str((asked["data"] or {}).get("question", ""))

    def status(self) -> Status:
        """Its state, with the question it asks or what went wrong."""
        asked = self.question
        if self.state is State.INPUT_REQUIRED and asked is not None:
            return self._status(self.question_id or asked["message_id"], asked["text"])
        if self.state in (State.FAILED, State.CANCELED) and self.error is not None:
            return self._status(self.rows[-1]["message_id"], line(self.error))
        return Status(self.state, timestamp=self.at)

    def _status(self, message_id: str, text: str) -> Status:
        return Status(self.state, agent_message(self.place, message_id, text), self.at)

    def history(self, base: str) -> list[Message]:
        """What the caller said, what it was asked, and what it answered."""
        said = [self._said(self.request, base)]
        for row in self.rows:
            if row["kind"] == "status" and row["status"] == "input_required":
                asked = str((row["data"] or {}).get("question", "")) or row["message_id"]
                said.append(agent_message(self.place, asked, row["text"]))
            elif row["kind"] == "message" and row["sender"]["type"] == "human":
                said.append(self._said(row, base))
        return said

    def _said(self, row: Row, base: str) -> Message:
        parts = told(row["text"], row["data"], row["files"], base)
        return Message(
            their_id(row["message_id"]),
            "ROLE_USER",
            parts or [Part(text="")],
            self.place.conversation,
            self.place.task_id,
        )

    def task(self, base: str, parts: list[Part]) -> Task:
        """As A2A has it; ``parts`` are what the agent answered."""
        artifacts = [Artifact(artifact_id(self.reply), parts)] if self.reply and parts else None
        history = self.history(base)
        place = self.place
        return Task(place.task_id, place.conversation, self.status(), artifacts, history)


def views(
    rows: Iterable[Row], conversation: str, agents: list[str], agent: str, who: Principal
) -> list[View]:
    """What this caller asked of this agent in a conversation, oldest first."""
    found: dict[str, View] = {}
    for row in rows:
        kind, ref, message_id = row["kind"], row["ref"], row["message_id"]
        if kind == "message" and not ref and row["sender"]["id"] == who.id and row["status"]:
            state = STATES[row["status"]]
            place = Place(conversation, message_id)
            found[message_id] = View(place, row, state, row["at"], row["cursor"])
        elif kind in ("message", "status") and ref in found:
            sender = row["sender"]
            if sender["type"] == "agent":
                found[ref].agents.add(sender["id"])
            if sender["id"] in (agent, who.id):
                found[ref].add(row)
    return [view for view in found.values() if agent in (view.agents or agents[:1])]


def agent_message(place: Place, message_id: str, text: str) -> Message:
    parts = [Part(text=text, media_type="text/plain")]
    return Message(message_id, "ROLE_AGENT", parts, place.conversation, place.task_id)


def artifact_id(reply: Row | str) -> str:
    """An answer is one artifact, under the id it has in the log."""
    return reply if isinstance(reply, str) else str(reply["message_id"])


def over(error: RpcError) -> Status | None:
    """The state of a task that ended so; None if there is no task: it was refused."""
    data = error.data
    if "conversation" not in data or "message_id" not in data or "status" not in data:
        return None
    place = Place(str(data["conversation"]), str(data["message_id"]))
    state = STATES.get(str(data["status"]), State.FAILED)
    about = agent_message(place, f"{data.get('reply_id', place.message_id)}", line(error))
    return Status(state, about, now_iso())
