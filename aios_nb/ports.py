"""The small interfaces by which the rooms meet. ``node.py`` plugs them together.

Nothing here has a body: a room depends on what it needs, never on who gives it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from aios_nb.access import Access, Principal
from aios_nb.envelope import AgentRow, CatalogEntry, Event, FileRef, Outcome, Seen, Task

if TYPE_CHECKING:
    from aios_nb.records import Scope


class Run(Protocol):
    """What a running agent may ask of its node. Made by ``chat`` for one run."""

    why_late: Callable[[], tuple[str, str] | None] | None
    """Set by an engine that may not begin at once: why not, and what to do; None once it has."""

    @property
    def messages(self) -> Sequence[Event]:
        """The conversation so far, oldest first, without the request itself."""

    @property
    def seconds_left(self) -> float:
        """Until the deadline; never negative."""

    @property
    def cancelled(self) -> bool: ...

    @property
    def stranger(self) -> bool:
        """Asked for by someone nobody vouched for: gets what the owner leaves free."""

    @property
    def patient(self) -> bool:
        """Nobody waits at the other end: a host that is away is tried until the deadline."""

    @property
    def length(self) -> int:
        """Code points streamed so far."""

    def begin(self) -> None:
        """The agent's own code runs from now on; before this, nothing has happened."""

    def delta(self, text: str) -> None:
        """Stream a piece of the reply. Raises when the run is over or its output is too long."""

    def progress(self, note: str, fraction: float | None) -> None: ...

    async def call(
        self, agent: str, text: str, *, data: Any = None, files: Sequence[FileRef] = ()
    ) -> Outcome:
        """Ask another agent, in a child conversation, with the time and hops that are left."""

    async def search(self, words: str, limit: int) -> Sequence[AgentRow]: ...

    async def ask_user(self, question: str, question_id: str | None = None) -> str:
        """What the person answers; the same question, known by its id, is asked only once."""


class Carrier(Protocol):
    """Gets a task done: the agents of this node, or a link to another one."""

    async def carry(self, task: Task, run: Run) -> Outcome:
        """The agent's answer. Cancelling this call stops the work. Raises an ``RpcError``."""


class Target(Protocol):
    """An agent that was found, and who carries tasks to it."""

    @property
    def id(self) -> str: ...
    @property
    def access(self) -> Access: ...
    @property
    def idempotent(self) -> bool: ...
    @property
    def timeout_s(self) -> float: ...
    @property
    def may_call(self) -> Sequence[str] | None:
        """Agents it may call with its owner's rights instead of its caller's."""

    @property
    def is_remote(self) -> bool:
        """Hosted by another node, which alone says what it lets us do."""

    @property
    def carrier(self) -> Carrier: ...


class Offer(Target, Protocol):
    """An agent of this node as the hub sees it. ``agents`` makes it, or ``hub.imports``."""

    @property
    def name(self) -> str: ...
    @property
    def builtin(self) -> bool:
        """Answers its owner only and is not published."""

    @property
    def card(self) -> CardLike: ...
    @property
    def published(self) -> CardLike:
        """The card that other nodes get and whose hash is in the record.

        It has no version that only we count: offered again unchanged, it is the same card.
        """

    @property
    def source(self) -> str:
        """``mcp`` or ``a2a`` for a program of others; empty for an agent of our own."""

    @property
    def live(self) -> bool: ...
    @property
    def changed(self) -> bool:
        """It is not what its owner approved, and is not asked until they do."""


class CardLike(Protocol):
    """What the hub reads of a card."""

    @property
    def title(self) -> str: ...
    @property
    def about(self) -> str: ...
    @property
    def tags(self) -> Sequence[str]: ...
    @property
    def examples(self) -> Sequence[str]: ...
    @property
    def version(self) -> str: ...


class Finder(Protocol):
    """Turns what was typed into an agent. ``hub`` gives it, ``chat`` uses it."""

    def local(self, ref: str, caller: Principal) -> Target:
        """An agent of this node. Raises ``NoSuchAgent``, also when the caller may not call it."""

    def resolve(self, ref: str, caller: Principal) -> Target:
        """An agent of this node or, by its whole id or a name used before, of another one.

        Asks nobody. Raises ``NoSuchAgent``, with near names.
        """

    async def seek(self, ref: str, caller: Principal) -> Target:
        """The same, and asks the network for a name that is not known here."""

    async def check(self, ref: str, caller: Principal) -> Target:
        """The same, and asks its node whether it is there; one that is away is believed."""

    async def search(self, words: str, limit: int, caller: Principal) -> Sequence[AgentRow]: ...


class Blobs(Protocol):
    """Files by hash. A file that is missing and one that is not yours look the same."""

    def put(
        self, content: bytes, name: str, mime: str, owner: str, *, stranger: bool = False
    ) -> Awaitable[FileRef]:
        """Keep these bytes; ``stranger``: at the expense of the strangers' room."""

    def may_read(self, sha256: str, reader: Principal) -> bool: ...
    def read(self, sha256: str) -> bytes: ...


class Stream(Protocol):
    """A call on a link that is answered in pieces: notifications, then one result."""

    def __aiter__(self) -> AsyncIterator[Any]:
        """The params of each notification, as builtins."""

    async def result(self) -> Any:
        """Raises the ``RpcError`` it was answered with, or ``ConnectionLost``."""

    def close(self) -> None:
        """Stop listening. What was asked for goes on over there."""


class Link(Protocol):
    """A live, encrypted connection to another node."""

    @property
    def node_id(self) -> str: ...
    @property
    def epoch(self) -> int:
        """When that node started: another number than before means it was restarted."""

    @property
    def is_open(self) -> bool: ...

    async def call(self, method: str, params: Mapping[str, Any]) -> Any:
        """The result as builtins. Raises its ``RpcError``, or ``ConnectionLost``."""

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Say it and wait for nothing; lost if the link breaks."""

    def stream(self, method: str, params: Mapping[str, Any]) -> Stream:
        """Ask for what comes in pieces. It is sent at once."""


class Links(Protocol):
    """The way to other nodes. ``wire`` gives it; ``chat`` and ``hub`` use it."""

    async def reach(self, node_id: str) -> Link:
        """The link to that node, dialled if there is none: one attempt.

        Raises ``Unreachable`` with ``data.reason``: ``left``, ``no address``, ``no answer``,
        ``refused`` (blocked, another network, not who it should be).
        """

    def link(self, node_id: str) -> Link | None:
        """The link to that node, if there is one now."""

    def linked(self) -> Sequence[str]:
        """The nodes that have a link now, by id."""

    def scope(self, node_id: str) -> Scope | None:
        """How far that node is away, by the address of its link; None without a link."""

    async def news(self, node_id: str, within_s: float) -> None:
        """Return when that node may have become reachable, or after so many seconds."""

    async def met(self, within_s: float) -> None:
        """Return when every joined node was dialled once, or after so many seconds."""

    def joined(self) -> Sequence[str]:
        """The nodes to ask for agents that are not here, by id, as far as known yet."""


class Notices(Protocol):
    """A method's answer that comes in pieces: notifications around one result."""

    notification: str
    """``chat.delta``, ``chat.event`` or ``agents.event``."""
    result_first: bool
    """True: the result opens the flow (watch). False: it closes it (stream)."""

    def __aiter__(self) -> AsyncIterator[Any]: ...
    async def result(self) -> Any: ...
    def close(self) -> None: ...


class ContextMemory(Protocol):
    """What another program calls the conversations we have with it; kept over restarts."""

    def get(self, conversation: str) -> str | None: ...
    async def put(self, conversation: str, context: str) -> None: ...


class Outsider(Protocol):
    """A program of others that answers at a URL or behind a command. ``wire`` makes it."""

    @property
    def kind(self) -> str:
        """``mcp`` or ``a2a``."""

    @property
    def address(self) -> str | Sequence[str]:
        """Where it was found, redirects and tried paths included: what ``known`` takes."""

    async def look(self) -> Seen:
        """What it says of itself now, by a real handshake.

        Raises ``Unreachable`` (nobody answers) or ``AgentFailed`` (answers nonsense).
        """

    def carrier(self, seen: Seen, memory: ContextMemory) -> Carrier:
        """Who carries tasks to it. ``seen`` is what its owner approved: another pin is refused."""

    async def close(self) -> None:
        """End its sessions and processes."""


class Outside(Protocol):
    """The way to programs of others. ``wire`` gives it; ``hub`` uses it."""

    async def meet(
        self,
        address: str | Sequence[str],
        *,
        kind: str | None = None,
        local: bool = False,
        headers: Mapping[str, str] | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Outsider:
        """Find out what answers at a URL or behind a command.

        ``kind`` says what it must be, ``local`` allows loopback addresses; ``headers`` are sent
        with each request to a URL, ``env`` is added to a command's environment. Raises
        ``UsageError``, ``Unreachable``.
        """

    def known(
        self,
        address: str | Sequence[str],
        *,
        kind: str,
        local: bool = False,
        headers: Mapping[str, str] | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Outsider:
        """The one that was met before, from what was kept of it; asks nobody yet."""

    async def entries(self, url: str, *, local: bool = False) -> Sequence[CatalogEntry]:
        """What a catalog or registry at that URL lists. Nothing in it is trusted or called."""

    async def close(self) -> None:
        """Leave no connection, process or task behind."""


class AgentNews(Protocol):
    """Who comes and goes, numbered. ``hub`` gives it; other protocols tell their callers."""

    last: int
    """The number of the last change."""

    async def wait(self, number: int) -> None:
        """Return when there is a change after this one."""

    def since(self, number: int) -> Sequence[Mapping[str, Any]] | None:
        """``{"event", "agent": AgentRow}`` after this number; None: some are forgotten already."""
