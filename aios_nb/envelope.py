"""The messages of the house: what is logged, what an agent is asked, what it answers.

Also the paper's envelope (``aios.message``), whose field names are theirs.
"""

from __future__ import annotations

import functools
import os
import re
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from enum import StrEnum
from typing import Any, Literal

import msgspec

NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,47}")
"""Names of nodes and agents."""
ID = re.compile(r"[A-Za-z0-9._:-]{1,128}")
"""Message, conversation and other ids."""
NODE_ID = re.compile(r"[a-z2-7]{32}")
SENDER_ID = re.compile(r"[A-Za-z0-9._:-]{1,128}(@[a-z2-7]{32})?")

TEXT_LIMIT_BYTES = 1 << 20
"""Longest text of a message or a reply."""
DATA_LIMIT_BYTES = 1 << 20
FILES_PER_MESSAGE = 16
DEADLINE_DEFAULT_S = 60.0
DEADLINE_MAX_S = 86_400.0


class Kind(StrEnum):
    MESSAGE = "message"
    STATUS = "status"
    EDIT = "edit"
    REACTION = "reaction"
    JOIN = "join"
    LEAVE = "leave"


class Status(StrEnum):
    ACCEPTED = "accepted"
    RUNNING = "running"
    INPUT_REQUIRED = "input_required"
    DONE = "done"
    FAILED = "failed"
    CANCELLED = "cancelled"
    INTERRUPTED = "interrupted"

    @property
    def is_final(self) -> bool:
        return self in _FINAL


_FINAL = frozenset({Status.DONE, Status.FAILED, Status.CANCELLED, Status.INTERRUPTED})


class FileRef(msgspec.Struct, frozen=True, gc=False):
    """A file by its hash; the bytes are in ``/blobs/SHA256``."""

    name: str
    mime: str
    size: int
    sha256: str


class Sender(msgspec.Struct, frozen=True, gc=False):
    id: str
    type: Literal["human", "agent"]


class Event(msgspec.Struct, frozen=True, omit_defaults=False):
    """One row of a conversation's log. Rows never change; ``status`` is folded when read."""

    message_id: str
    seq: int
    kind: Kind
    sender: Sender
    text: str = ""
    data: Any = None
    files: tuple[FileRef, ...] = ()
    ref: str | None = None
    status: Status | None = None
    at: str = ""
    conversation: str = ""
    cursor: int = 0
    """Its place among all events of its node."""


class Task(msgspec.Struct, frozen=True, gc=False):
    """What one agent is asked, once."""

    agent: str
    """Agent id, ``name@nodeid``."""
    text: str
    message_id: str
    reply_id: str
    conversation: str
    sender: Sender
    caller: str
    """The id of the authenticated caller."""
    data: Any = None
    files: tuple[FileRef, ...] = ()
    path: tuple[str, ...] = ()
    """The opener's node id, then every agent id on the way here, without ``agent``."""
    max_hops: int = 3


class Outcome(msgspec.Struct, frozen=True, gc=False):
    """How a run ended well: what the agent answered."""

    text: str = ""
    data: Any = None
    files: tuple[FileRef, ...] = ()
    status: Status = Status.DONE


class Delta(msgspec.Struct, frozen=True, gc=False):
    """A piece of a reply as it is written; ``offset`` counts code points."""

    message_id: str
    reply_id: str
    offset: int
    text: str
    done: bool = False
    progress: str | msgspec.UnsetType = msgspec.UNSET
    """How far the agent says it has come, when that has changed."""


class AgentRow(msgspec.Struct, frozen=True):
    """One line of a listing or a search."""

    id: str
    name: str
    node_id: str
    title: str = ""
    about: str = ""
    tags: tuple[str, ...] = ()
    live: bool = True
    verified: bool = True
    access: str = "network"
    score: float = 0.0
    why: str = ""
    version: str = ""
    """What its author calls this state of it."""
    node_name: str = ""
    """What its node calls itself; others may call themselves the same."""
    changed: bool = False
    """Its card is another one than when it was last used from here."""
    talks: int = 0
    """How often an agent of another node was asked from here."""
    source: str = ""
    """``mcp`` or ``a2a``: a program of others, brought in by the owner of its node."""


class Seen(msgspec.Struct, frozen=True):
    """What a program of others says of itself, cleaned and bounded by who fetched it."""

    title: str
    about: str = ""
    tags: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()
    version: str = ""
    details: dict[str, Any] = msgspec.field(default_factory=dict)
    """mcp: ``protocol``, ``tools`` [{name, description, input_schema}];
    a2a: ``card``, ``signature`` (``valid``, ``none``, ``invalid``), ``key``."""
    pin: str = ""
    """SHA-256 of what must not change unnoticed."""


class CatalogEntry(msgspec.Struct, frozen=True):
    """One line of somebody else's catalog, cleaned and bounded; its word, nothing more."""

    name: str
    kind: str
    """``mcp`` or ``a2a``; empty for what we cannot speak with."""
    url: str
    about: str = ""
    identifier: str = ""


# The paper's envelope ------------------------------------------------------------------


class Party(msgspec.Struct, omit_defaults=True):
    id: str
    type: Literal["human", "agent"]
    node_id: str | None = None
    capabilities: Sequence[str] | None = None


class Routing(msgspec.Struct):
    path: list[str] = msgspec.field(default_factory=list)
    max_hops: int = 3
    deadline_ms: int | msgspec.UnsetType | None = msgspec.UNSET


class Content(msgspec.Struct, omit_defaults=True):
    task: str | None = None
    parameters: dict[str, Any] | None = None
    context: list[Event] | None = None
    result: Any = None
    status: str | None = None
    data: Any = None
    files: list[FileRef] | None = None
    question: str | None = None
    """With status ``input_required``: the id of the question in ``result``."""


class Envelope(msgspec.Struct, omit_defaults=True):
    """A request or a response in the form of *Planet as a Brain*, section 3."""

    sender: Party
    recipient: Party
    message_type: Literal["request", "response"]
    content: Content
    message_id: str | None = None
    conversation_id: str | None = None
    protocol_version: str = ""
    timestamp: str | None = None
    intent: str | None = None
    routing: Routing | None = None


def now_iso() -> str:
    """This moment, ISO 8601 UTC with milliseconds."""
    return iso_ms(int(time.time() * 1000))


def iso_ms(unix_ms: int) -> str:
    """That moment, ISO 8601 UTC with milliseconds."""
    return f"{_second(unix_ms // 1000)}.{unix_ms % 1000:03d}Z"


@functools.lru_cache(maxsize=1024)
def _second(unix: int) -> str:
    return datetime.fromtimestamp(unix, UTC).strftime("%Y-%m-%dT%H:%M:%S")


def new_id(prefix: str) -> str:
    """A fresh id: sortable by time, unguessable, valid everywhere an id is asked for."""
    return f"{prefix}{int(time.time() * 1000):011x}{_chance()}"


_POOL_BYTES = 4096
_ID_BYTES = 8
_pool: list[str] = []


def _chance() -> str:
    """Eight random bytes as hex, from a pool: asking the system each time costs a system call."""
    if not _pool:
        _pool.extend(os.urandom(_POOL_BYTES).hex(" ", _ID_BYTES).split())
    return _pool.pop()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_pool.clear)
