"""A node with agents, a chat app in memory, and a bridge between them: for stories of people."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any, Self

import msgspec

from aios_bots.adapters.loopback import Group, Loopback, Message, Person
from aios_bots.core.adapter import Content
from aios_bots.core.box import Box
from aios_bots.core.bridge import Bridge
from aios_bots.core.model import Incoming, Kind, Outgoing, Sender, SenderKind
from aios_bots.core.pacing import Rates
from aios_bots.core.pairing import Role
from aios_bots.core.schema import STEPS
from aios_bots.core.store import BotStore
from aios_bots.core.voices import Voices, new_keys
from aios_nb.agents.definition import describe
from aios_nb.agents.outputs import File
from aios_nb.client import RemoteClient
from aios_nb.store import Store
from tests.bots.fuse import Fuse, FusedClient, FusedStore
from tests.clock import Clock
from tests.sites import TestSite

BOT = "77"
FAST = Rates(all_per_s=100_000, private_per_s=1e6, private_burst=1000, group_per_min=1_000_000)
LOOK_S = 0.005
HANG_S = 30
"""A ceiling for what never happens."""
BETWEEN_S = 4.0
"""People in a story take their time: each of their acts is so much later than the last."""

Json = dict[str, Any]


class _Nowhere(dict[str, bytes]):
    """Keeps nothing."""

    def __setitem__(self, key: str, value: bytes) -> None: ...


class App(Loopback):
    """The chat app; time passes when somebody does something."""

    def __init__(self, clock: Clock) -> None:
        super().__init__(BOT, clock=clock)
        self._now = clock
        self._old: set[str] = set()
        self.fuse: Fuse | None = None

    def wipe(self, chat: str) -> None:
        """What is there now is not looked at any more."""
        self._old |= {one.id for one in super().messages(chat)}

    def messages(self, chat: str, topic: str | None = None) -> list[Message]:
        return [one for one in super().messages(chat, topic) if one.id not in self._old]

    def says_as(self, person: Person, text: str, kind: SenderKind) -> None:
        """Something that is no person says it under the number of one."""
        sender = Sender(person.id, person.name, kind)
        person._tells(Kind.COMMAND, person.id, "", text=text, addressed=True, sender=sender)

    @property
    def chats(self) -> list[str]:
        return list(self._messages)

    def lose_files(self) -> None:
        """The app keeps no file any more."""
        self._files = _Nowhere()

    def hands_over(self, number: int, raw: str) -> None:
        """An update as it is, whatever is in it."""
        self._updates.append((number, raw))
        self._tell()

    def hand_over_again(self, update: Incoming) -> None:
        """An app that forgot that the bot has taken it."""
        self.hands_over(update.update_id, msgspec.json.encode(update).decode())

    async def call(self, out: Outgoing, content: Content) -> str:
        if self.fuse is None:
            return await super().call(out, content)
        return await self.fuse.around(lambda: super(App, self).call(out, content))

    def tell_bot(self, update: Incoming) -> Incoming:
        self._now.now += BETWEEN_S
        return super().tell_bot(msgspec.structs.replace(update, at=update.at + BETWEEN_S))


class Stage:
    """What the writer writes, piece by piece, as a test says it. None is the end."""

    def __init__(self) -> None:
        self._pieces: asyncio.Queue[str | None] = asyncio.Queue()
        self.site: TestSite | None = None

    def write(self, *pieces: str | None) -> None:
        assert self.site is not None
        self.site.on_loop(lambda: [self._pieces.put_nowait(piece) for piece in pieces])

    async def writer(self, _text: str) -> AsyncIterator[str]:
        """Writes what the stage says."""
        while (piece := await self._pieces.get()) is not None:
            yield piece


async def parrot(text: str) -> str:
    """Says the same."""
    return f"parrot: {text}"


async def asker(_text: str, ctx: Any) -> str:
    """Asks back."""
    name = await ctx.ask_user("What is your *name*?")
    return f"Hello {name}"


def painter(text: str) -> File:
    """Gives a file."""
    return File(f"a picture of {text}".encode(), name="picture.txt")


def weigher(_text: str, ctx: Any) -> str:
    """Weighs files."""
    return ", ".join(f"{file.name}: {len(ctx.read(file))}" for file in ctx.files) or "nothing"


async def forever(_text: str) -> AsyncIterator[str]:
    """Begins and never ends."""
    yield "begun"
    await asyncio.Event().wait()


def breaks(_text: str) -> str:
    """Always breaks."""
    raise ValueError("the spring is broken")


async def diary(text: str) -> str:
    """Is for the owner alone."""
    return f"diary: {text}"


async def host(text: str, ctx: Any) -> str:
    """Lets the parrot speak."""
    return f"host heard: {await ctx.call('parrot', text)}"


class World:
    """Who is there. In ``async with`` a bridge runs; ``crash`` and ``start`` change that."""

    def __init__(self, folder: Path, clock: Clock) -> None:
        self.folder, self.clock = folder, clock
        self.stage = Stage()
        self.app = App(clock)
        self.rates = FAST
        self.site = self._site()
        self._store: BotStore | None = None
        self._bridge: Bridge | None = None
        self._task: asyncio.Task[None] | None = None
        self._voices: Voices | None = None

    def _site(self) -> TestSite:
        agents = [
            describe(parrot, access="public"),
            describe(self.stage.writer, access="network"),
            describe(asker, access="network"),
            describe(painter, access="network"),
            describe(weigher, access="network"),
            describe(forever, access="network"),
            describe(breaks, access="network"),
            describe(diary, access="private"),
            describe(host, access="network", may_call=["parrot"]),
        ]
        self.stage.site = site = TestSite(self.folder / "home", agents)
        return site

    # The bridge --------------------------------------------------------------------------------

    async def __aenter__(self) -> Self:
        node = self.site.node
        keys = await self._on_node(lambda: new_keys(node.client, f"{self.app.platform}:{BOT}:"))
        run = node.run_info
        assert run is not None

        def found() -> Any:
            return self.site.node.run_info

        self._voices = Voices(
            await RemoteClient.connect(run, token=keys.owner, locate=found),
            await RemoteClient.connect(run, token=keys.others, locate=found),
            await RemoteClient.connect(run, locate=found),
        )
        await self.start()
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.crash()
        assert self._voices is not None
        await self._voices.close()

    async def start(self, fuse: Fuse | None = None, *, waits: bool = True) -> None:
        """A bridge, on what the one before left; with a fuse it is not waited for."""
        assert self._voices is not None
        opened: Any = Store.open(self.folder / "bot.db", STEPS)
        voices, app = self._voices, self.app
        app.fuse = fuse
        if fuse is not None:
            opened = FusedStore(opened, fuse)
            keeper = voices.keeper
            voices = Voices(
                FusedClient(voices.owner, fuse),
                FusedClient(voices.others, fuse),
                FusedClient(keeper, fuse) if keeper is not None else None,
            )
        self._store = BotStore(opened, BOT, self.clock)
        box = Box(self.folder / "box")
        self._bridge = Bridge(app, self._store, voices, box, rates=self.rates, clock=self.clock)
        self._task = asyncio.create_task(self._bridge.run())
        if fuse is not None:
            fuse.light(self._task)
        elif waits:
            await self.until(self._bridge.showing.following.is_set)

    async def crash(self) -> None:
        """End the bridge where it is. Nothing is drained."""
        if self._task is None or self._store is None:
            return
        task, self._task = self._task, None
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task
        await self._store.close()

    async def crash_when_said(self, conversation: str) -> None:
        """End it when something was said there, before that is noted."""

        async def never(_update_id: int) -> None:
            await asyncio.get_running_loop().create_future()

        self.store.inbox.done = never  # type: ignore[method-assign]
        await self.end_of(conversation, messages=1)
        await self.crash()

    def end(self) -> None:
        """The same, later: its store is there until then."""
        assert self._task is not None
        self._task.cancel()

    async def node_ends(self) -> None:
        """The node is stopped."""
        await asyncio.to_thread(self.site.stop)

    async def node_begins(self) -> None:
        """The node is started again, in the same home."""
        self.site = await asyncio.to_thread(self._site)

    async def without_keeper(self) -> None:
        """A bridge that is not run by the owner's own program."""
        assert self._voices is not None
        keeper, self._voices.keeper = self._voices.keeper, None
        assert keeper is not None
        await keeper.close()
        await self.again()

    async def again(self) -> None:
        await self.crash()
        await self.start()

    @property
    def bridge(self) -> Bridge:
        assert self._bridge is not None
        return self._bridge

    @property
    def store(self) -> BotStore:
        assert self._store is not None
        return self._store

    @property
    def voices(self) -> Voices:
        assert self._voices is not None
        return self._voices

    async def until(self, true: Callable[[], bool]) -> None:
        """Wait until that is so. Not all of it is told by an event, so it is looked at often."""
        try:
            async with asyncio.timeout(HANG_S):
                while not true():
                    assert self.app.fuse or not self.ended, "the bridge has ended"
                    await asyncio.sleep(LOOK_S)
        except TimeoutError:
            chats = {chat: self.app.messages(chat)[-5:] for chat in self.app.chats[-5:]}
            raise AssertionError(f"that did not happen; the chats show {chats}") from None

    def is_shown(self, chat: str, text: str) -> bool:
        """Whether a message of that chat has this in it."""
        return any(text in one for one in self.app.texts(chat))

    @property
    def ended(self) -> bool:
        """Whether the bridge has met its fuse."""
        return self._task is None or self._task.done()

    async def quiet(self) -> None:
        """Wait until all that came in is done, and all that goes out is there."""
        await self.until(lambda: not self.busy)

    @property
    def busy(self) -> bool:
        bridge = self.bridge
        return bool(self.app.waiting or bridge.intake.held or bridge.postman.status().waiting)

    # People ------------------------------------------------------------------------------------

    async def comes_in(self, user: str = "5", role: Role = Role.MEMBER, **offer: Any) -> Person:
        """Somebody who was given a code and said it; the welcome is read and gone."""
        person = self.app.person(user, f"Ana{user}")
        code = await self.bridge.pair(role, **offer)
        person.says(f"/pair {code.code}")
        await self.quiet()
        self.app.wipe(user)
        return person

    async def talks(self, person: Person, agent: str = "parrot", group: Group | None = None) -> str:
        """They talk to that agent; gives the conversation. What was said for it is gone."""
        chat = person.id if group is None else group.chat
        person.says(f"/chat {agent}" + ("" if group is None else f"@{self.app.name}"), group)
        await self.quiet()
        found = self.store.binding(self.app.place(chat, ""))
        assert found is not None
        self.app.wipe(chat)
        return found.conversation

    async def group(self, owner: Person, chat: str = "-9", agent: str = "parrot") -> Group:
        """A group whose owner let the bot in, to talk to that agent."""
        group = self.app.group(chat)
        owner.says(f"/chat@{self.app.name} {agent}", group)
        await self.quiet()
        self.app.wipe(chat)
        return group

    async def shows(self, chat: str, *texts: str) -> list[Message]:
        """Wait until a chat shows just this."""
        await self.until(lambda: self.app.texts(chat) == list(texts))
        return self.app.messages(chat)

    # The node, as a notebook uses it -------------------------------------------------------------

    async def owner(self, method: str, **params: Any) -> Any:
        return await asyncio.wrap_future(self.site.start(method, **params))

    async def _on_node(self, work: Callable[[], Awaitable[Any]]) -> Any:
        async def run() -> Any:
            return await work()

        return await asyncio.wrap_future(self.site.node.loop.submit(run()))

    async def log(self, conversation: str, *kinds: str) -> list[Json]:
        page = await self.owner("chat.history", conversation=conversation)
        return [row for row in page["messages"] if not kinds or row["kind"] in kinds]

    async def said(self, conversation: str) -> list[tuple[str, str]]:
        """Who said what: people by their ids, agents by their names."""
        rows = await self.log(conversation, "message")
        return [(row["sender"]["id"].partition("@")[0], row["text"]) for row in rows]

    async def end_of(self, conversation: str, *, messages: int) -> int:
        """Wait until so much was said; gives the place of the last of it in the log."""
        while len(rows := await self.log(conversation, "message")) < messages:  # noqa: ASYNC110
            await asyncio.sleep(LOOK_S)
        return int(rows[messages - 1]["seq"])

    async def conversations(self) -> list[Json]:
        found: list[Json] = (await self.owner("chat.list"))["conversations"]
        return found
