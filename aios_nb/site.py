"""A node as people use it from Python: plain verbs, each with an ``_async`` twin.

The verbs are the methods of the contract; what they give back are small objects with the fields
of the contract, and a ``Reply`` that is a ``str``.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from aios_nb import parts
from aios_nb.client.files import get_file, put_file
from aios_nb.client.interface import SiteClient
from aios_nb.envelope import DEADLINE_DEFAULT_S, AgentRow, Event, FileRef, new_id
from aios_nb.errors import UsageError
from aios_nb.loop import LoopThread

T = TypeVar("T")


class Info(msgspec.Struct, frozen=True):
    node_id: str
    name: str
    version: str
    url: str
    uptime_s: float
    agents: int


class Peer(msgspec.Struct, frozen=True):
    node_id: str
    name: str
    url: str
    state: str
    latency_ms: float | None = None

    def __str__(self) -> str:
        taken = "" if self.latency_ms is None else f", {self.latency_ms:.1f} ms"
        where = f"{self.name or 'a node'} at {self.url or 'an unknown address'}"
        return f"{where}: {self.state}{taken} ({self.node_id})"


class CardView(msgspec.Struct, frozen=True):
    """An agent's card with the state of its signature."""

    card: dict[str, Any]
    record: str | None
    verified: bool


class ChatRow(msgspec.Struct, frozen=True):
    conversation: str
    title: str
    agents: list[str]
    parent: str | None
    created_at: str
    updated_at: str
    messages: int
    last: str = ""


class History(msgspec.Struct, frozen=True):
    conversation: str
    messages: list[Event]
    title: str = ""
    agents: list[str] = []

    def __str__(self) -> str:
        return "\n".join(
            f"{event.sender.id.split('@')[0]}: {event.text}"
            for event in self.messages
            if event.kind == "message"
        )


class Rows(list[T]):
    """A list of rows; shows itself as a table."""

    def df(self) -> Any:
        """The rows as a pandas DataFrame."""
        plain = [row.row if isinstance(row, Hit) else row for row in self]
        return parts.as_frame([msgspec.to_builtins(row) for row in plain])

    def __str__(self) -> str:
        return "\n".join(str(row) for row in self) or "nothing"


class Peers(Rows[Peer]):
    """Other nodes; says how to link to one when there is none."""

    def __str__(self) -> str:
        return super().__str__() if self else "no other node yet; aios.up(join=URL) links to one"


class Hit:
    """An agent that was found; ``ask`` it. It has the fields of its row, such as ``id``."""

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

    def __repr__(self) -> str:
        about = self.row.about[:60]
        return f"<{self.row.id}: {about}>" if about else f"<{self.row.id}>"


class ReplyFile(msgspec.Struct, frozen=True):
    """A file of a reply; ``read`` or ``save`` it."""

    ref: FileRef
    site: Any

    @property
    def name(self) -> str:
        return self.ref.name

    @property
    def mime(self) -> str:
        return self.ref.mime

    @property
    def size(self) -> int:
        return self.ref.size

    def read(self) -> bytes:
        content: bytes = self.site.run(lambda: get_file(self.site.client, _plain(self.ref)))
        return content

    def save(self, folder: str | Path = ".") -> Path:
        """Write it into ``folder`` under its name; an existing file is not overwritten."""
        content = self.read()
        path = Path(folder) / self.ref.name
        with path.open("xb") as out:
            out.write(content)
        return path

    def __repr__(self) -> str:
        return f"<{self.ref.name}, {self.ref.mime}, {self.ref.size} bytes>"


class Reply(parts.Reply):
    """An agent's answer: a ``str`` with ``data``, ``files``, ``conversation``; go on with ``ask``.

    ``status`` is ``done``, or ``input_required`` when the text is a question: then ``answer`` it;
    or ``accepted`` for what was asked with ``wait=False``: then ``wait`` for it.
    """

    files: tuple[ReplyFile, ...]  # type: ignore[assignment] # references that can be read
    conversation: str
    message_id: str
    reply_id: str
    status: str
    agent: str
    site: Site

    @classmethod
    def made(cls, result: dict[str, Any], agent: str, site: Site) -> Reply:
        refs = msgspec.convert(result.get("files") or [], list[FileRef])
        reply = str.__new__(cls, result["text"])
        reply.data = result.get("data")
        reply.files = tuple(ReplyFile(ref, site) for ref in refs)
        reply.conversation = result["conversation"]
        reply.message_id = result["message_id"]
        reply.reply_id = result["reply_id"]
        reply.status = result["status"]
        reply.agent = agent
        reply.site = site
        return reply

    def ask(self, text: str, **options: Any) -> Reply:
        """The next message of the same conversation, to the same agent."""
        return self.site.ask(self.agent, text, conversation=self.conversation, **options)

    async def ask_async(self, text: str, **options: Any) -> Reply:
        return await self.site.ask_async(
            self.agent, text, conversation=self.conversation, **options
        )

    def wait(self) -> Reply:
        """The answer to what was asked with ``wait=False``, when it has come."""
        return self.site.run(self._wait)

    async def wait_async(self) -> Reply:
        return await self.site.on_loop(self._wait)

    async def _wait(self) -> Reply:
        flow = self.site.client.notices("chat.stream", message_id=self.message_id, offset=0)
        try:
            return Reply.made(await flow.result(), self.agent, self.site)
        finally:
            flow.close()

    def answer(self, text: str) -> Reply:
        """What the agent asked for; gives what it says next."""
        return self.site.run(lambda: self.answer_async(text))

    async def answer_async(self, text: str) -> Reply:
        if self.status != "input_required":
            raise UsageError("this reply asks nothing", hint="reply.ask(…) goes on")
        site = self.site
        result = await site.on_loop(
            lambda: site.client.call("chat.answer", message_id=self.message_id, text=text)
        )
        return Reply.made(result, self.agent, site)


class Site:
    """The verbs of a node. ``client`` lives on ``loop``; call from anywhere else."""

    def __init__(self, loop: LoopThread) -> None:
        self.loop = loop
        self._client: SiteClient | None = None

    @property
    def client(self) -> SiteClient:
        if self._client is None:
            raise UsageError("the node is not running", hint="start it with aios.up()")
        return self._client

    def run(self, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Wait for work on the node's loop; an interrupt cancels it."""
        return self.loop.sync(make)

    async def on_loop(self, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """Await work on the node's loop from any other."""
        return await self.loop.bridge(make)

    # One verb after another ------------------------------------------------------------------

    def info(self) -> Info:
        return self.run(self._info)

    async def info_async(self) -> Info:
        return await self.on_loop(self._info)

    async def _info(self) -> Info:
        return msgspec.convert(await self.client.call("node.info"), Info)

    def peers(self) -> Peers:
        return self.run(self._peers)

    async def peers_async(self) -> Peers:
        return await self.on_loop(self._peers)

    async def _peers(self) -> Peers:
        result = await self.client.call("node.peers")
        return Peers(msgspec.convert(result["peers"], list[Peer]))

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

    def agents(self) -> Rows[Hit]:
        return self.run(self._agents)

    async def agents_async(self) -> Rows[Hit]:
        return await self.on_loop(self._agents)

    async def _agents(self) -> Rows[Hit]:
        return self._hits(await self.client.call("agents.list"))

    def search(self, words: str, limit: int = 10) -> Rows[Hit]:
        return self.run(lambda: self._search(words, limit))

    async def search_async(self, words: str, limit: int = 10) -> Rows[Hit]:
        return await self.on_loop(lambda: self._search(words, limit))

    async def _search(self, words: str, limit: int) -> Rows[Hit]:
        return self._hits(await self.client.call("agents.search", query=words, limit=limit))

    def _hits(self, result: dict[str, Any]) -> Rows[Hit]:
        rows = msgspec.convert(result["agents"], list[AgentRow])
        return Rows(Hit(row, self) for row in rows)

    def card(self, agent: str) -> CardView:
        return self.run(lambda: self._card(agent))

    async def card_async(self, agent: str) -> CardView:
        return await self.on_loop(lambda: self._card(agent))

    async def _card(self, agent: str) -> CardView:
        return msgspec.convert(await self.client.call("agents.card", agent=agent), CardView)

    def ask(
        self,
        agent: Any,
        text: str,
        *,
        conversation: str | None = None,
        data: Any = None,
        files: Sequence[parts.File | str | Path] = (),
        deadline_s: float = DEADLINE_DEFAULT_S,
        wait: bool = True,
    ) -> Reply:
        """One question; waits for the answer. Opens a conversation, or goes on in one.

        ``agent``: its name, its id, a row of ``search``, or the declared function itself.
        ``wait=False``: at once, with status ``accepted``; an agent whose node is away gets it when
        that is back, until the deadline.
        """
        ref = _ref(agent)
        return self.run(
            lambda: self._ask(ref, text, conversation, data, files, deadline_s, wait=wait)
        )

    async def ask_async(
        self,
        agent: Any,
        text: str,
        *,
        conversation: str | None = None,
        data: Any = None,
        files: Sequence[parts.File | str | Path] = (),
        deadline_s: float = DEADLINE_DEFAULT_S,
        wait: bool = True,
    ) -> Reply:
        ref = _ref(agent)
        return await self.on_loop(
            lambda: self._ask(ref, text, conversation, data, files, deadline_s, wait=wait)
        )

    async def _ask(
        self,
        agent: str,
        text: str,
        conversation: str | None,
        data: Any,
        files: Sequence[parts.File | str | Path],
        deadline_s: float,
        *,
        wait: bool,
    ) -> Reply:
        client = self.client
        sent = []
        for one in files:
            file = one if isinstance(one, parts.File) else parts.File(one)
            sent.append(await put_file(client, file.content, file.name, file.mime))
        message_id = new_id("m")
        given: dict[str, Any] = {"conversation": conversation, "data": data, "files": sent or None}
        try:
            result = await client.call(
                "chat.send",
                agent=agent,
                text=str(text),
                message_id=message_id,
                deadline_s=deadline_s,
                wait=wait,
                **{name: value for name, value in given.items() if value is not None},
            )
        except asyncio.CancelledError:
            # Whoever asked was interrupted: the work is not wanted any more.
            await asyncio.shield(_cancel(client, message_id))
            raise
        return Reply.made(result, agent, self)

    def chats(self, limit: int = 100) -> Rows[ChatRow]:
        return self.run(lambda: self._chats(limit))

    async def chats_async(self, limit: int = 100) -> Rows[ChatRow]:
        return await self.on_loop(lambda: self._chats(limit))

    async def _chats(self, limit: int) -> Rows[ChatRow]:
        result = await self.client.call("chat.list", limit=limit)
        return Rows(msgspec.convert(result["conversations"], list[ChatRow]))

    def history(self, conversation: str, after: int = 0) -> History:
        return self.run(lambda: self._history(conversation, after))

    async def history_async(self, conversation: str, after: int = 0) -> History:
        return await self.on_loop(lambda: self._history(conversation, after))

    async def _history(self, conversation: str, after: int) -> History:
        found = History(conversation, [])
        more = True
        while more:
            page = await self.client.call("chat.history", conversation=conversation, after=after)
            part = msgspec.convert(page, History)
            messages = [*found.messages, *part.messages]
            found = History(conversation, messages, part.title, part.agents)
            after, more = part.messages[-1].seq if part.messages else after, page["more"]
        return found


def _ref(agent: Any) -> str:
    """How the contract names this agent. Raises ``UsageError`` for what is none."""
    if isinstance(agent, str):
        return agent
    if isinstance(agent, Hit):
        return agent.row.id
    from aios_nb.agents.decorator import name_of

    name = name_of(agent)
    if name is None:
        called = getattr(agent, "__name__", type(agent).__name__)
        raise UsageError(f"{called} is not an agent of this program", hint="name it as a text")
    return name


async def _cancel(client: SiteClient, message_id: str) -> None:
    try:
        await client.call("chat.cancel", message_id=message_id)
    except Exception:  # noqa: BLE001 - it may never have begun
        return


def _plain(ref: FileRef) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.to_builtins(ref)
    return plain
