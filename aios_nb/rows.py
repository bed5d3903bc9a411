"""What a node tells: small objects with the fields of the contract, and lists of them."""

from __future__ import annotations

import shlex
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

import msgspec

from aios_nb import parts
from aios_nb.envelope import AgentRow, Event
from aios_nb.errors import UsageError
from aios_nb.richtext import one_line, plain

if TYPE_CHECKING:
    from aios_nb.replies import Reply
    from aios_nb.site import Site

T = TypeVar("T")
_ABOUT_SHOWN = 60


class Info(msgspec.Struct, frozen=True):
    node_id: str
    name: str
    version: str
    url: str
    uptime_s: float
    agents: int
    peers: int = 0
    known_agents: int = 0
    superseded: bool = False


class Peer(msgspec.Struct, frozen=True):
    node_id: str
    name: str
    url: str
    state: str
    latency_ms: float | None = None
    link: bool = False
    agents: int = 0
    sent: int = 0
    received: int = 0

    def __str__(self) -> str:
        taken = "" if self.latency_ms is None else f", {self.latency_ms:.1f} ms"
        where = f"{self.name or 'a node'} at {self.url or 'an unknown address'}"
        return one_line(f"{where}: {self.state}{taken} ({self.node_id})")


class CallerRow(msgspec.Struct, frozen=True):
    id: str
    calls: int
    seconds: float
    last_at: str | None = None
    blocked: bool = False
    name: str = ""
    """What its node calls itself, if it is one and said so."""

    def __str__(self) -> str:
        shut = ", blocked" if self.blocked else ""
        return one_line(f"{self.id}: {self.calls} calls, {self.seconds:.1f} s{shut}")


class Import(msgspec.Struct, frozen=True):
    """A program of others that was brought in: one row of ``hub.list``."""

    agent: str
    name: str
    kind: str
    address: str | list[str]
    access: str
    title: str = ""
    about: str = ""
    version: str = ""
    pin: str = ""
    tools: list[str] = []
    signature: str = ""
    key: str = ""
    live: bool = False
    changed: bool = False
    differences: list[str] = []
    hidden: bool = False
    note: str = ""
    local: bool = False
    token_env: str | None = None
    added_at: str = ""
    looked_at: str | None = None

    @property
    def place(self) -> str:
        """Its URL or its command, in one line."""
        words = self.address if isinstance(self.address, str) else shlex.join(self.address)
        return one_line(words)

    @property
    def state(self) -> str:
        """How it stands, in a few words."""
        if self.changed:
            return "changed"
        if self.hidden:
            return "hidden by your agent"
        return "live" if self.live else "not answering"

    @property
    def vouched(self) -> str:
        """Who vouches for what it says of itself: never we."""
        what = "an MCP server" if self.kind == "mcp" else "an A2A agent"
        if self.signature == "valid":
            return one_line(f"{what}, not verified; its card is signed by {self.key or 'a key'}")
        wrong = "; the signature of its card is WRONG" if self.signature == "invalid" else ""
        return f"{what}, not verified{wrong}"

    def __str__(self) -> str:
        return one_line(f"{self.name}: {self.kind}, {self.state}, {self.place}")


class Listed(msgspec.Struct, frozen=True):
    """One line of somebody else's catalog."""

    name: str
    kind: str
    url: str
    about: str = ""
    identifier: str = ""
    added: bool = False

    def __str__(self) -> str:
        return one_line(f"{self.name}: {self.kind or 'nothing we speak'}, {self.url}")


class CardView(msgspec.Struct, frozen=True):
    """An agent's card with the state of its signature."""

    card: dict[str, Any]
    record: str | None
    verified: bool
    mine: bool = False
    """It is an agent of the node that was asked."""
    outside: Import | None = None
    """Of an import of that node: where it is, and what changed."""

    @property
    def signature(self) -> str:
        """Who vouches for this card, in a few words."""
        if self.outside is not None:
            return self.outside.vouched
        if self.mine:
            return "yours, signed and published" if self.record else "yours, not published"
        return "signed by its node" if self.verified else "not verified"


class ChatRow(msgspec.Struct, frozen=True):
    conversation: str
    title: str
    agents: list[str]
    parent: str | None
    created_at: str
    updated_at: str
    messages: int
    last: str = ""
    opener: str = ""
    members: list[str] = []


class History(msgspec.Struct, frozen=True):
    conversation: str
    messages: list[Event]
    title: str = ""
    agents: list[str] = []
    node_id: str = ""
    """Of the node that keeps it: its owner is you."""

    def df(self) -> Any:
        """The log as a pandas DataFrame."""
        if not self.messages:
            return parts.as_frame({"columns": list(Event.__struct_fields__), "rows": []})
        rows = [msgspec.to_builtins(event) for event in self.messages]
        return parts.as_frame([{**row, "sender": row["sender"]["id"]} for row in rows])

    def __str__(self) -> str:
        return plain(
            "\n".join(
                f"{event.sender.id.split('@')[0]}: {event.text}"
                for event in self.messages
                if event.kind == "message"
            )
        )


class Rows(list[T]):
    """A list of rows; shows itself as a table."""

    nothing = "nothing"
    """What is said when there are none."""
    made_of: ClassVar[type[msgspec.Struct]]
    """Whose fields are the columns."""

    def df(self) -> Any:
        """The rows as a pandas DataFrame; without rows it has its columns."""
        if not self:
            return parts.as_frame({"columns": list(self.made_of.__struct_fields__), "rows": []})
        plain = [row.row if isinstance(row, Hit) else row for row in self]
        return parts.as_frame([msgspec.to_builtins(row) for row in plain])

    def __str__(self) -> str:
        return "\n".join(str(row) for row in self) or self.nothing


class Hits(Rows["Hit"]):
    """Agents: those of this node, or those that a search found (then ``query`` says for what)."""

    query: str | None = None
    made_of = AgentRow

    @property
    def nothing(self) -> str:  # type: ignore[override]
        return "no agents yet" if self.query is None else "nothing found; try other words"


class Peers(Rows[Peer]):
    """Other nodes; says how to link to one when there is none."""

    nothing = "no other node yet; aios.up(join=URL) links to one"
    made_of = Peer


class Chats(Rows[ChatRow]):
    """Conversations, the latest first."""

    nothing = "no conversation yet"
    made_of = ChatRow


class Imports(Rows[Import]):
    """Programs of others that were brought in."""

    nothing = "no program of others yet; aios.node().hub_add(URL) brings one in"
    made_of = Import


class Catalog(Rows[Listed]):
    """What somebody else's catalog lists; nothing of it is here yet."""

    nothing = "the catalog lists nothing"
    made_of = Listed


class Callers(Rows[CallerRow]):
    """Who called, busiest first."""

    nothing = "nobody has called yet"
    made_of = CallerRow


class Hit:
    """An agent that was found; ``ask`` it, ``chat`` with it. It has the fields of its row."""

    def __init__(self, row: AgentRow, site: Site) -> None:
        self.row = row
        self.site = site

    def __getattr__(self, field: str) -> Any:
        if field == "row":  # not made yet
            raise AttributeError(field)
        return getattr(self.row, field)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self.row.__struct_fields__]

    def ask(self, text: str, **options: Any) -> Reply:
        return self.site.ask(self.row.id, text, **options)

    async def ask_async(self, text: str, **options: Any) -> Reply:
        return await self.site.ask_async(self.row.id, text, **options)

    def chat(self) -> Any:
        """A chat with it, under the cell. Needs a notebook with the extension."""
        face: Callable[[str], Any] | None = self.site.chat_face  # of a class: it knows the site
        if face is None:
            raise UsageError("a chat needs a notebook", hint="%load_ext aios_nb")
        return face(self.row.id)

    def __repr__(self) -> str:
        about = self.row.about[:_ABOUT_SHOWN]
        why = f" ({self.row.why})" if self.row.why else ""
        return one_line(f"<{self.row.id}: {about}{why}>" if about or why else f"<{self.row.id}>")
