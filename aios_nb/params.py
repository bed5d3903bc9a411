"""What each JSON-RPC method takes. Field order is the order of positional parameters."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

import msgspec
from msgspec import Meta

from aios_nb.envelope import DEADLINE_DEFAULT_S, DEADLINE_MAX_S, ID, Envelope, FileRef
from aios_nb.errors import InvalidParams

Id = Annotated[str, Meta(pattern=r"^[A-Za-z0-9._:-]{1,128}$")]
AgentRef = Annotated[str, Meta(min_length=1, max_length=96)]
NodeId = Annotated[str, Meta(pattern=r"^[a-z2-7]{32}$")]
SenderId = Annotated[str, Meta(max_length=170)]
Title = Annotated[str, Meta(max_length=200)]
Deadline = Annotated[float, Meta(gt=0, le=DEADLINE_MAX_S)]
Cursor = Annotated[int, Meta(ge=0, le=(1 << 63) - 1)]  # what the database can hold


def check_id(text: str) -> str:
    """The same check for ids that come inside an envelope."""
    if not ID.fullmatch(text):
        raise InvalidParams(f"not an id: {text[:40]!r}", hint="1 to 128 of A-Z a-z 0-9 . _ : -")
    return text


class Params(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    """Base: unknown names are refused (JSON-RPC -32602)."""

    other_order: ClassVar[tuple[str, ...]] = ()
    """Another meaning of exactly so many positional params, tried when the first does not fit."""


class Nothing(Params, frozen=True):
    pass


class NodeRef(Params, frozen=True):
    node: NodeId


class NewToken(Params, frozen=True):
    scope: Annotated[str, Meta(max_length=40)]
    prefix: Annotated[str, Meta(max_length=128)]
    as_: Literal["owner"] | None = msgspec.field(default=None, name="as")
    """With the rights of the owner instead of those of a known node."""


class TokenRef(Params, frozen=True):
    id: Id


class Search(Params, frozen=True):
    query: Annotated[str, Meta(max_length=4000)]
    limit: Annotated[int, Meta(ge=1, le=200)] = 10
    offset: Annotated[int, Meta(ge=0, le=100_000)] = 0
    """How many of the best to leave out: those one has."""


class Agent(Params, frozen=True):
    agent: AgentRef


class AgentName(Params, frozen=True):
    name: AgentRef


Address = Annotated[str, Meta(min_length=1, max_length=2000)]


class HubAdd(Params, frozen=True):
    """A program of others: its URL, or a command with its arguments."""

    address: Address | Annotated[list[Address], Meta(min_length=1, max_length=64)]
    name: Annotated[str, Meta(max_length=96)] | None = None
    kind: Literal["mcp", "a2a"] | None = None
    local: bool = False
    """It may be on this machine."""
    access: Literal["private", "known", "network", "public"] = "private"
    token_env: Annotated[str, Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,127}$")] | None = None
    """The variable of the node's environment that holds its token."""


class HubApprove(Params, frozen=True):
    name: AgentRef
    pin: Annotated[str, Meta(max_length=128)] | None = None
    """Of what was shown: approve that and nothing newer."""


class HubRefresh(Params, frozen=True):
    name: AgentRef | None = None


class HubImport(Params, frozen=True):
    url: Address
    local: bool = False


class Open(Params, frozen=True):
    agents: Annotated[list[AgentRef], Meta(min_length=1, max_length=32)]
    title: Title | None = None


class Send(Params, frozen=True):
    agent: AgentRef
    text: str
    conversation: Id | None = None
    message_id: Id | None = None
    data: Any = None
    files: list[FileRef] = []
    wait: bool = True
    deadline_s: Deadline = DEADLINE_DEFAULT_S
    sender: SenderId | None = None


class Stream(Params, frozen=True):
    """As ``Send``; or a message id and an offset, to go on listening."""

    other_order: ClassVar[tuple[str, ...]] = ("message_id", "offset")

    agent: AgentRef | None = None
    text: str | None = None
    conversation: Id | None = None
    message_id: Id | None = None
    data: Any = None
    files: list[FileRef] = []
    wait: bool = True
    """As in ``Send``; a stream is waited for anyway."""
    deadline_s: Deadline = DEADLINE_DEFAULT_S
    offset: Annotated[int, Meta(ge=0)] = 0
    question: Id | None = None
    """A question that is known already: go on beyond it instead of ending with it."""


class Post(Params, frozen=True):
    conversation: Id
    text: str
    sender: SenderId | None = None
    message_id: Id | None = None
    files: list[FileRef] = []
    deadline_s: Deadline = DEADLINE_DEFAULT_S


class Answer(Params, frozen=True):
    message_id: Id
    text: str
    wait: bool = True
    question: Id | None = None
    """Which question is answered; one that was answered before is not answered again."""
    sender: SenderId | None = None
    event_id: Id | None = None
    """Of the new row. A repeat with the same id adds nothing; so in ``Edit`` and ``React``."""


class MessageRef(Params, frozen=True):
    message_id: Id


class Edit(Params, frozen=True):
    conversation: Id
    message_id: Id
    text: str
    event_id: Id | None = None


class React(Params, frozen=True):
    conversation: Id
    message_id: Id
    reaction: Annotated[str, Meta(max_length=64)]
    sender: SenderId | None = None
    event_id: Id | None = None


class Member(Params, frozen=True):
    """``who`` is an agent (joined as another default) or a sender id."""

    conversation: Id
    who: Annotated[str, Meta(min_length=1, max_length=170)]


class Join(Member, frozen=True):
    name: Annotated[str, Meta(max_length=64)] = ""
    """What a person is called, by the word of who brings them in."""


class Rename(Params, frozen=True):
    conversation: Id
    title: Title


class Conversation(Params, frozen=True):
    conversation: Id


class Export(Params, frozen=True):
    conversation: Id
    format: str = "md"


class List(Params, frozen=True):
    limit: Annotated[int, Meta(ge=1, le=1000)] = 100
    before: Annotated[str, Meta(pattern=r"^[0-9]{1,18}\.[0-9]{1,18}$")] | None = None
    """The ``cursor`` of the last row one has."""


class History(Params, frozen=True):
    conversation: Id
    after: Cursor = 0
    limit: Annotated[int, Meta(ge=1, le=5000)] = 1000


class Watch(Params, frozen=True):
    conversation: Id | None = None
    after: Cursor | None = None


class Unwatch(Params, frozen=True):
    watch: Id


class Message(Params, frozen=True):
    envelope: Envelope
    stream: bool = False
    """Send ``chat.delta`` notifications before the response."""


class BlobPut(Params, frozen=True):
    """A piece of a file, in order; the last one makes it a file."""

    sha256: Annotated[str, Meta(pattern=r"^[0-9a-f]{64}$")]
    offset: Cursor
    chunk: bytes
    """Base64 in JSON."""
    last: bool = False


class BlobGet(Params, frozen=True):
    """A piece of a file. Between nodes ``message_id`` names the message it belongs to."""

    message_id: Id | None = None
    sha256: Annotated[str, Meta(pattern=r"^[0-9a-f]{64}$")] = ""
    offset: Cursor = 0


class Packet(Params, frozen=True):
    """A packet of the gossip, where datagrams do not pass."""

    data: Annotated[bytes, Meta(max_length=4096)]
    """Base64 in JSON."""


class Sync(Params, frozen=True):
    """What a node lacks, by the digest of what it has; ``after`` asks for the next page."""

    digest: Annotated[bytes, Meta(max_length=4096)]
    after: Annotated[str, Meta(max_length=128)] = ""
