"""A node as people use it from Python: plain verbs, each with an ``_async`` twin.

The verbs are the methods of the contract; what they give back are small objects with the fields
of the contract (``rows.py``), and a ``Reply`` that is a ``str`` (``replies.py``).
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager, suppress
from typing import Any, ClassVar, Protocol, Self, TypeVar

import msgspec

from aios_nb import parts
from aios_nb.client.files import put_file
from aios_nb.client.history import pages
from aios_nb.client.interface import SiteClient
from aios_nb.current import program
from aios_nb.envelope import DEADLINE_DEFAULT_S, AgentRow, new_id
from aios_nb.errors import AiosError, NotRunning, UsageError
from aios_nb.guests import GuestVerbs
from aios_nb.loop import LoopThread
from aios_nb.replies import Reply, ReplyFile
from aios_nb.rows import (
    CallerRow,
    Callers,
    CardView,
    Catalog,
    ChatRow,
    Chats,
    History,
    Hit,
    Hits,
    Import,
    Imports,
    Info,
    Listed,
    Peer,
    Peers,
    Rows,
)

__all__ = [
    "CallerRow", "Callers", "CardView", "Catalog", "ChatRow", "Chats", "History", "Hit", "Hits",
    "Import", "Imports", "Info", "Listed", "Peer", "Peers", "Reply", "ReplyFile", "Rows", "Site",
    "Waiting",
]  # fmt: skip

T = TypeVar("T")

SILENT_S = 1.0
"""A wait that is longer than this is worth a word."""


class Waiting(Protocol):
    """Shows a person what is waited for."""

    def note(self, text: str) -> None:
        """What the agent says about how far it is."""


class Site(GuestVerbs):
    """The verbs of a node. ``client`` lives on ``loop``; call from anywhere else.

    Answers outlive their node, which may be started anew at any time. So the verbs of one that was
    stopped are those of the program's node, if that has the same id.
    """

    chat_face: ClassVar[Callable[[Site, str], Any] | None] = None
    """Opens a chat with an agent, where there is a page to show it on."""
    wait_face: ClassVar[Callable[[str], AbstractAsyncContextManager[Waiting]] | None] = None
    """Shows what somebody waits for, while it is open; None: nobody looks."""
    stop_face: ClassVar[Callable[[KeyboardInterrupt, str], None] | None] = None
    """Has an interrupt shown as the end of what was waited for, not as a place in our code."""

    def __init__(self, loop: LoopThread) -> None:
        self.loop = loop
        self._client: SiteClient | None = None
        self._node_id = ""
        """Whose verbs these are, from its first start on."""

    def __copy__(self) -> Self:
        """A copy of an answer belongs to the same node."""
        return self

    def __deepcopy__(self, memo: Any) -> Self:
        return self

    def __reduce__(self) -> tuple[type[Later], tuple[str]]:
        """An answer may be kept in a file; its node is looked for when it is used again."""
        return Later, (self._node_id,)

    @property
    def client(self) -> SiteClient:
        if self._client is not None:
            return self._client
        running: Site | None = program.running
        if running is None or not self._is_stopped():
            raise UsageError("the node is not running", hint="start it with aios.up()")
        return self._next(running).client

    def _is_stopped(self) -> bool:
        """It ran and does not any more. In a forked child it still does, elsewhere."""
        return bool(self._node_id) and self._client is None and not self.loop.running

    def _next(self, running: Site) -> Site:
        """The program's node, if that is this one anew."""
        if running._node_id != self._node_id:
            raise NotRunning(
                f"this is of node {self._node_id}, which was stopped",
                hint="the one that runs: aios.node().ask(…)",
            )
        return running

    def _turning(self) -> LoopThread:
        """The loop for its work; waits for a node that is starting if it has none of its own."""
        return self._next(program.there()).loop if self._is_stopped() else self.loop

    def run(
        self,
        make: Callable[[], Coroutine[Any, Any, T]],
        doing: str = "",
        message_id: str | None = None,
    ) -> T:
        """Wait for work on the node's loop; an interrupt cancels it.

        ``doing`` says what is waited for; with a ``message_id`` the agent's own notes are shown.
        """
        face = Site.wait_face
        # What a thread waits for is not the business of the cell that happens to run.
        beside = threading.current_thread() is not threading.main_thread()
        try:
            if face is None or not doing or beside:
                return self._turning().sync(make)
            return self._turning().sync(lambda: self._shown(face(doing), make, message_id))
        except KeyboardInterrupt as stop:
            if doing and Site.stop_face is not None:
                Site.stop_face(stop, doing)
            raise

    async def _shown(
        self,
        face: AbstractAsyncContextManager[Waiting],
        make: Callable[[], Coroutine[Any, Any, T]],
        message_id: str | None,
    ) -> T:
        async with face as waiting:
            if message_id is None:
                return await make()
            hearing = asyncio.create_task(self._hear(message_id, waiting))
            try:
                return await make()
            finally:
                hearing.cancel()

    async def _hear(self, message_id: str, waiting: Waiting) -> None:
        """Pass on what the agent says about its progress. A quick answer is not listened to."""
        while True:
            await asyncio.sleep(SILENT_S)
            flow = self.client.notices("chat.stream", message_id=message_id, offset=0)
            with suppress(AiosError):  # not taken yet, or over: whoever waits is told
                try:
                    async for piece in flow:
                        if piece.get("progress"):
                            waiting.note(str(piece["progress"]))
                    return
                finally:
                    flow.close()

    async def on_loop(self, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Await work on the node's loop from any other."""
        stopped = self._is_stopped()  # the wait for another node is not for the caller's loop
        loop = await asyncio.to_thread(self._turning) if stopped else self.loop
        return await loop.bridge(make)

    # One verb after another ------------------------------------------------------------------

    def info(self) -> Info:
        return self.run(self._info)

    async def info_async(self) -> Info:
        return await self.on_loop(self._info)

    async def _info(self) -> Info:
        return msgspec.convert(await self.client.call("node.info"), Info)

    def peers(self) -> Peers:
        return self.run(self._peers, "looking for other nodes")

    async def peers_async(self) -> Peers:
        return await self.on_loop(self._peers)

    async def _peers(self) -> Peers:
        result = await self.client.call("node.peers")
        return Peers(msgspec.convert(result["peers"], list[Peer]))

    def callers(self) -> Callers:
        """Who called, how often and how long."""
        return self.run(self._callers)

    async def callers_async(self) -> Callers:
        return await self.on_loop(self._callers)

    async def _callers(self) -> Callers:
        result = await self.client.call("node.callers")
        return Callers(msgspec.convert(result["callers"], list[CallerRow]))

    def allow(self, node_id: str) -> None:
        """From now on that node may call agents with access ``known``."""
        self.run(lambda: self._rule("nodes.allow", node_id))

    async def allow_async(self, node_id: str) -> None:
        await self.on_loop(lambda: self._rule("nodes.allow", node_id))

    def block(self, node_id: str) -> None:
        """From now on that node gets no link, and no agent."""
        self.run(lambda: self._rule("nodes.block", node_id))

    async def block_async(self, node_id: str) -> None:
        await self.on_loop(lambda: self._rule("nodes.block", node_id))

    async def _rule(self, method: str, node_id: str) -> None:
        await self.client.call(method, node=node_id)

    def agents(self) -> Hits:
        return self.run(self._agents)

    async def agents_async(self) -> Hits:
        return await self.on_loop(self._agents)

    async def _agents(self) -> Hits:
        return self._hits(await self.client.call("agents.list"))

    def search(self, words: str, limit: int = 10) -> Hits:
        return self.run(lambda: self._search(words, limit), "searching")

    async def search_async(self, words: str, limit: int = 10) -> Hits:
        return await self.on_loop(lambda: self._search(words, limit))

    async def _search(self, words: str, limit: int) -> Hits:
        hits = self._hits(await self.client.call("agents.search", query=words, limit=limit))
        hits.query = words
        return hits

    def _hits(self, result: dict[str, Any]) -> Hits:
        rows = msgspec.convert(result["agents"], list[AgentRow])
        return Hits(Hit(row, self) for row in rows)

    def card(self, agent: Any) -> CardView:
        """What it says of itself, and who vouches for that. ``agent``: as ``ask`` takes it."""
        ref = _ref(agent)
        return self.run(lambda: self._card(ref), f"asking for the card of {ref}")

    async def card_async(self, agent: Any) -> CardView:
        ref = _ref(agent)
        return await self.on_loop(lambda: self._card(ref))

    async def _card(self, agent: str) -> CardView:
        view = msgspec.convert(await self.client.call("agents.card", agent=agent), CardView)
        mine = str(view.card.get("id", "")).endswith(f"@{self.client.node_id}")
        return msgspec.structs.replace(view, mine=mine)

    def ask(
        self,
        agent: Any,
        text: str,
        *,
        conversation: str | None = None,
        data: Any = None,
        files: parts.Files = (),
        deadline_s: float = DEADLINE_DEFAULT_S,
        wait: bool = True,
    ) -> Reply:
        """One question; waits for the answer. Opens a conversation, or goes on in one.

        ``agent``: its name, its id, a row of ``search``, or the declared function itself.
        ``files``: paths or ``File``s, or one of them.
        ``wait=False``: at once, with status ``accepted``; an agent whose node is away gets it when
        that is back, until the deadline.
        """
        ref, message_id = _ref(agent), new_id("m")
        said, read = spoken(text, files)
        return self.run(
            lambda: self._ask(
                ref, said, message_id, conversation, data, read, deadline_s, wait=wait
            ),
            f"asking {ref}",
            message_id,
        )

    async def ask_async(
        self,
        agent: Any,
        text: str,
        *,
        conversation: str | None = None,
        data: Any = None,
        files: parts.Files = (),
        deadline_s: float = DEADLINE_DEFAULT_S,
        wait: bool = True,
    ) -> Reply:
        ref, message_id = _ref(agent), new_id("m")
        said, read = await spoken_async(text, files)
        return await self.on_loop(
            lambda: self._ask(
                ref, said, message_id, conversation, data, read, deadline_s, wait=wait
            )
        )

    async def _ask(
        self,
        agent: str,
        text: str,
        message_id: str,
        conversation: str | None,
        data: Any,
        files: list[parts.File],
        deadline_s: float,
        *,
        wait: bool,
    ) -> Reply:
        client = self.client
        sent = [await put_file(client, file.content, file.name, file.mime) for file in files]
        given: dict[str, Any] = {"conversation": conversation, "data": data, "files": sent or None}
        try:
            result = await client.call(
                "chat.send",
                agent=agent,
                text=text,
                message_id=message_id,
                deadline_s=deadline_s,
                wait=wait,
                **{name: value for name, value in given.items() if value is not None},
            )
        except asyncio.CancelledError:
            # Whoever asked was interrupted: the work is not wanted any more.
            await asyncio.shield(cancel(client, message_id))
            raise
        return Reply.made(result, agent, self)

    def chats(self, limit: int = 100) -> Chats:
        return self.run(lambda: self._chats(limit))

    async def chats_async(self, limit: int = 100) -> Chats:
        return await self.on_loop(lambda: self._chats(limit))

    async def _chats(self, limit: int) -> Chats:
        result = await self.client.call("chat.list", limit=limit)
        return Chats(msgspec.convert(result["conversations"], list[ChatRow]))

    def history(self, conversation: str | Reply | ChatRow, after: int = 0) -> History:
        """What was said in it. ``conversation``: its id, an answer in it, or a row of ``chats``."""
        which = _id_of(conversation)
        return self.run(lambda: self._history(which, after))

    async def history_async(self, conversation: str | Reply | ChatRow, after: int = 0) -> History:
        which = _id_of(conversation)
        return await self.on_loop(lambda: self._history(which, after))

    async def _history(self, conversation: str, after: int) -> History:
        client = self.client
        found = History(conversation, [], node_id=client.node_id)
        async for page in pages(client, conversation, after):
            part = msgspec.convert(page, History)
            messages = [*found.messages, *part.messages]
            found = History(conversation, messages, part.title, part.agents, client.node_id)
        return found


class Later(Site):
    """The node of an answer that was kept in a file."""

    def __init__(self, node_id: str) -> None:
        super().__init__(LoopThread("aios-later"))  # it never turns
        self._node_id = node_id


def _ref(agent: Any) -> str:
    """How the contract names this agent. Raises ``UsageError`` for what is none."""
    if isinstance(agent, str):
        return agent
    if isinstance(agent, Hit | AgentRow):
        return agent.id
    from aios_nb.agents.decorator import name_of

    name = name_of(agent)
    if name is None:
        called = getattr(agent, "__name__", type(agent).__name__)
        raise UsageError(f"{called} is not an agent of this program", hint="name it as a text")
    return name


def _id_of(conversation: str | Reply | ChatRow) -> str:
    """An answer is a text too, but none that names a conversation."""
    return conversation.conversation if isinstance(conversation, Reply | ChatRow) else conversation


def spoken(text: Any, files: parts.Files) -> tuple[str, list[parts.File]]:
    """A message's text and files, made here: a slow disk must not hold up the node's loop."""
    return str(text), parts.read_files(files)


async def spoken_async(text: Any, files: parts.Files) -> tuple[str, list[parts.File]]:
    """The same, and the caller's loop is free meanwhile."""
    if isinstance(text, str) and files == ():
        return str(text), []  # nothing that could take its time
    return await asyncio.to_thread(spoken, text, files)


async def cancel(client: SiteClient, message_id: str) -> None:
    """Stop what this message asked for; it may never have begun."""
    with suppress(Exception):
        await client.call("chat.cancel", message_id=message_id)
