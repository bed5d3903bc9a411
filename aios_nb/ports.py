"""The small interfaces by which the rooms meet. ``node.py`` plugs them together.

Nothing here has a body: a room depends on what it needs, never on who gives it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Sequence
from typing import Any, Protocol

from aios_nb.access import Access, Principal
from aios_nb.envelope import AgentRow, Event, FileRef, Outcome, Task


class Run(Protocol):
    """What a running agent may ask of its node. Made by ``chat`` for one run."""

    @property
    def messages(self) -> Sequence[Event]:
        """The conversation so far, oldest first, without the request itself."""

    @property
    def seconds_left(self) -> float:
        """Until the deadline; never negative."""

    @property
    def cancelled(self) -> bool: ...

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

    async def ask_user(self, question: str) -> str: ...


class Carrier(Protocol):
    """Gets a task done: the agents of this node, or later a link to another one."""

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
    def carrier(self) -> Carrier: ...


class Offer(Target, Protocol):
    """An agent of this node as the hub sees it. ``agents`` makes it."""

    @property
    def name(self) -> str: ...
    @property
    def builtin(self) -> bool:
        """Answers its owner only and is not published."""

    @property
    def card(self) -> CardLike: ...


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

    def resolve(self, ref: str, caller: Principal) -> Target:
        """Raises ``NoSuchAgent``, with near names, also when the caller may not call it."""

    def search(self, words: str, limit: int, caller: Principal) -> Sequence[AgentRow]: ...


class Blobs(Protocol):
    """Files by hash. A file that is missing and one that is not yours look the same."""

    def put(self, content: bytes, name: str, mime: str, owner: str) -> Awaitable[FileRef]: ...
    def may_read(self, sha256: str, reader: Principal) -> bool: ...
    def read(self, sha256: str) -> bytes: ...


class Notices(Protocol):
    """A method's answer that comes in pieces: notifications around one result."""

    notification: str
    """``chat.delta``, ``chat.event`` or ``agents.event``."""
    result_first: bool
    """True: the result opens the flow (watch). False: it closes it (stream)."""

    def __aiter__(self) -> AsyncIterator[Any]: ...
    async def result(self) -> Any: ...
    def close(self) -> None: ...
