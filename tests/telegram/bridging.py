"""A node, a Bot API server, and a whole bridge between them: for stories on people's phones."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any

from aios_bots.adapters.telegram import Telegram, Webhook
from aios_bots.core.box import Box
from aios_bots.core.bridge import Bridge, Code
from aios_bots.core.model import Place
from aios_bots.core.pacing import Rates
from aios_bots.core.pairing import Role
from aios_bots.core.secret import Secret
from aios_bots.core.store import BotStore
from aios_bots.core.voices import Voices, new_keys
from aios_nb.agents.definition import describe
from aios_nb.agents.outputs import File
from aios_nb.client import RemoteClient
from tests.sites import TestSite
from tests.telegram.botapi import BotApi, Chat, Message, Person
from tests.telegram.botapi.files import DOT

CEILING_S = 30.0
LOOK_S = 0.01
BETWEEN_S = 4.0
"""People take their time: who writes five messages in a second is told to slow down."""
FAST = Rates(all_per_s=10_000, private_per_s=1000.0, private_burst=1000, group_per_min=100_000)


class Stage:
    """What the writer writes, piece by piece, as a test says it. None is the end."""

    def __init__(self) -> None:
        self._pieces: asyncio.Queue[str | None] = asyncio.Queue()

    def put(self, *pieces: str | None) -> None:
        for piece in pieces:
            self._pieces.put_nowait(piece)

    async def writer(self, _text: str) -> AsyncIterator[str]:
        """Writes long stories, word by word."""
        while (piece := await self._pieces.get()) is not None:
            yield piece


async def parrot(text: str) -> str:
    """Repeats what it hears."""
    return f"parrot: {text}"


def weigher(_text: str, ctx: Any) -> str:
    """Weighs files."""
    return ", ".join(f"{file.name}: {len(ctx.read(file))}" for file in ctx.files) or "nothing"


def painter(_text: str) -> File:
    """Paints a figure."""
    return File(DOT, name="plot.png")


class Bridged:
    """Who is there, while a bridge runs."""

    def __init__(
        self,
        api: BotApi,
        site: TestSite,
        stage: Stage,
        bridge: Bridge,
        running: asyncio.Task[None],
    ) -> None:
        self.api, self.site, self.stage = api, site, stage
        self.bridge, self.running = bridge, running

    # Time

    async def until(self, happened: Callable[[], Any]) -> Any:
        """What ``happened()`` gives once it is true. The node tells nobody here, so it is asked."""
        try:
            async with asyncio.timeout(CEILING_S):
                while not (value := happened()):
                    assert not self.running.done(), "the bridge has ended"
                    await asyncio.sleep(LOOK_S)
                return value
        except TimeoutError:
            raise AssertionError(f"that did not happen:\n{self.api.record.transcript()}") from None

    async def quiet(self) -> None:
        """All that came in is done, and all that goes out is there."""
        post = self.bridge.postman
        await self.until(
            lambda: (
                not (
                    self.api.bot.updates.pending or self.bridge.intake.held or post.status().waiting
                )
            )
        )

    def then(self, person: Person) -> Person:
        """That person, a little later."""
        self.api.clock.skip(BETWEEN_S)
        return person

    # The phone

    def sent(self, chat: Chat) -> list[Message]:
        """What the bot has written in a chat, as it is now."""
        return [one for one in chat.messages.values() if one.sender is self.api.bot]

    async def seen(self, chat: Chat, words: str) -> Message:
        """The last message of the bot that says this, once it is there and nothing is waiting."""
        await self.until(lambda: any(words in one.words for one in self.sent(chat)))
        await self.quiet()
        return [one for one in self.sent(chat) if words in one.words][-1]

    async def asks(self, person: Person, text: str, words: str) -> Message:
        """They say that in private, and see an answer with these words."""
        last = max(person.chat().messages, default=0)
        self.then(person).says(text)

        def answered() -> Message | None:
            fresh = [one for one in self.sent(person.chat()) if one.id > last]
            return next((one for one in fresh if words in one.words), None)

        found: Message = await self.until(answered)
        await self.quiet()
        return found

    async def comes_in(self, person: Person, role: Role = Role.MEMBER) -> Code:
        """They open the link that the owner gave them."""
        code = await self.bridge.pair(role)
        payload = code.link.partition("?start=")[2]
        self.then(person).starts(payload)
        await self.seen(person.chat(), "You are in")
        return code

    def conversation(self, chat: Chat | Person, topic: object = "") -> str:
        """What a place shows."""
        found = self.bridge.store.binding(Place(str(self.api.bot.id), str(chat.id), str(topic)))
        return found.conversation if found is not None else ""

    # The node

    def rows(self, conversation: str, *kinds: str) -> list[dict[str, Any]]:
        rows = self.site.history(conversation)
        return [row for row in rows if not kinds or row["kind"] in kinds]

    def said(self, conversation: str) -> list[tuple[str, str]]:
        """Who said what; agents and the owner by their names."""
        rows = self.rows(conversation, "message")
        return [(row["sender"]["id"].partition("@")[0], row["text"]) for row in rows]

    def person_id(self, person: Person) -> str:
        return f"tg:{self.api.bot.id}:{person.id}"

    def tried(self, person: Person | None = None) -> list[str]:
        """What the owner sees that somebody did or tried, the newest first."""
        lines = self.bridge.tried(500)
        return [one.what for one in lines if person is None or one.who == self.person_id(person)]


@contextlib.asynccontextmanager
async def working(
    adapter: Telegram, site: TestSite, folder: Path, clock: Callable[[], float] = time.time
) -> AsyncIterator[tuple[Bridge, asyncio.Task[None]]]:
    """A bridge between a bot and a node, and the task in which it works."""
    run = site.node.run_info
    assert run is not None
    keys = site.node.run(lambda: new_keys(site.node.client, f"tg:{adapter.account}:"))
    voices = Voices(
        await RemoteClient.connect(run, token=keys.owner),
        await RemoteClient.connect(run, token=keys.others),
    )
    store = BotStore.open(folder / "bot.db", adapter.account, clock)
    bridge = Bridge(adapter, store, voices, Box(folder / "box"), rates=FAST, clock=clock)
    task = asyncio.create_task(bridge.run())
    try:
        yield bridge, task
    finally:
        task.cancel()
        await asyncio.wait([task])
        await adapter.close()
        await voices.close()
        await store.close()


@contextlib.asynccontextmanager
async def bridged(
    api: BotApi,
    make_site: Callable[..., TestSite],
    folder: Path,
    webhook: Webhook | None = None,
) -> AsyncIterator[Bridged]:
    """The same for a bot of our server, with agents, from when it takes updates."""
    stage = Stage()
    site = make_site(
        describe(parrot, access="public"),
        describe(stage.writer, access="network"),
        describe(weigher, access="network"),
        describe(painter, access="network"),
    )
    clock = api.clock.unix
    adapter = Telegram(Secret(api.bot.token), api_url=api.base_url, webhook=webhook, clock=clock)
    async with working(adapter, site, folder, clock) as (bridge, task):
        world = Bridged(api, site, stage, bridge, task)
        way = "setWebhook" if webhook else "getUpdates"
        await world.until(lambda: api.record.of(way) and bridge.showing.following.is_set())
        yield world
