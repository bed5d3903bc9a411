"""People at a bot: let in, talking to the bench's echo, and timed."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Iterator, Sequence
from pathlib import Path
from typing import Any

from aios_bots.core.pairing import Role
from aios_nb.bench import contestants
from aios_nb.bench.botserver import ACCOUNT, NAME, TOKEN, BotServer, now
from aios_nb.bench.contestants import Contestant
from aios_nb.bridges.bot import Bot
from aios_nb.client import RemoteClient
from aios_nb.home import Home

AGENT = "bench_echo"
FIRST_CHAT = 1_000_000
GROUP = "-5000000"
RESTED_S = 1.2
"""A bot that keeps Telegram's pace may then call as often as at first."""


def chats(count: int) -> list[str]:
    return [str(FIRST_CHAT + number) for number in range(count)]


class Phones:
    """The server with its people, a node, and one bot at a time."""

    def __init__(self, home: Path, node: Contestant, server: BotServer) -> None:
        self.server, self.home, self._node = server, home, node
        self._bot = Bot(Home(home), ACCOUNT)
        self._watching: asyncio.Task[None] | None = None
        self._client: RemoteClient | None = None
        self.seen: dict[str, float] = {}
        """When each message of the conversations was seen at the node, by its id."""
        self.talks: dict[str, str] = {}
        """The conversation of each chat."""

    # Bots, from outside the loop ----------------------------------------------------------------

    def _env(self) -> dict[str, str]:
        return contestants.child_env(AIOS_HOME=str(self.home), TELEGRAM_BOT_TOKEN=TOKEN)

    def bridge(self) -> contextlib.AbstractContextManager[Contestant]:
        """Our bridge as people start it, at Telegram's pace."""
        command = ["-m", "aios_nb", "telegram", "--json", "--api-url", self.server.url]
        return contestants.running("bridge", command, self._env())

    def bot(self, kind: str) -> contextlib.AbstractContextManager[Contestant]:
        """One of those of ``bots``."""
        command = ["-m", "aios_nb.bench.bots", kind, self.server.url]
        return contestants.running(kind, command, self._env())

    # On the loop --------------------------------------------------------------------------------

    async def come_in(self, people: Sequence[str], *, group: bool = False) -> None:
        """Everybody is let in and talks to the echo; the first one in a group too."""
        for chat in people:
            code = self._bot.pair(Role.OWNER).code
            self.server.says(chat, f"/start {code}")
            self.server.says(chat, f"/chat {AGENT}")
        await self.echoes(people)
        if group:
            self.server.says(people[0], f"/chat@{NAME} {AGENT}", GROUP)
            await self.echoes(people[:1], GROUP)

    async def echoes(self, people: Sequence[str], group: str = "") -> None:
        """Everybody says a word and gets it back."""
        words = [self.server.word() for _ in people]
        self.server.expects(words)
        for chat, word in zip(people, words, strict=True):
            self.server.says(chat, f"@{NAME} {word}" if group else word, group)
        await asyncio.gather(*(self.server.heard(word) for word in words))

    async def warmed_up(self, people: Sequence[str]) -> None:
        """Everybody was there once, and nothing waits for its turn."""
        await self.echoes(people)
        await asyncio.sleep(RESTED_S)

    async def echo_at(
        self, people: Sequence[str], per_s: float, seconds: float
    ) -> list[tuple[str, int, float, float]]:
        """Say a word now and then, in turns: the chat, the update, when it was said and heard."""
        loop = asyncio.get_running_loop()
        began, waiting = loop.time(), []

        async def one(chat: str) -> tuple[str, int, float, float]:
            word = self.server.word()
            self.server.expects([word])
            number, said = self.server.says(chat, word)
            return chat, number, said, await self.server.heard(word)

        for turn in range(int(per_s * seconds)):
            await asyncio.sleep(max(0.0, began + turn / per_s - loop.time()))
            waiting.append(asyncio.create_task(one(people[turn % len(people)])))
        return list(await asyncio.gather(*waiting))

    async def post_at(
        self, people: Sequence[str], per_s: float, seconds: float
    ) -> list[tuple[float, float]]:
        """The owner says something in conversations: when it was asked for, and at the server."""
        client, loop = self._client, asyncio.get_running_loop()
        assert client is not None  # noqa: S101 - whoever measures watches
        began, waiting = loop.time(), []

        async def one(chat: str) -> tuple[float, float]:
            word = self.server.word()
            self.server.expects([word])
            said = now()
            await client.call("chat.post", conversation=self.talks[chat], text=word)
            return said, await self.server.heard(word)

        for turn in range(int(per_s * seconds)):
            await asyncio.sleep(max(0.0, began + turn / per_s - loop.time()))
            waiting.append(asyncio.create_task(one(people[turn % len(people)])))
        return list(await asyncio.gather(*waiting))

    @contextlib.asynccontextmanager
    async def watched(self) -> AsyncIterator[None]:
        """While somebody at the node sees every event of every conversation."""
        ready = self._node.ready
        client = await RemoteClient.connect(ready["url"], ready["node_id"], ready["token"])
        flow = client.notices("chat.watch")
        await flow.result()

        async def watch() -> None:
            async for row in flow:
                self._saw(row)

        self._client, watching = client, asyncio.create_task(watch())
        try:
            yield
        finally:
            watching.cancel()
            await asyncio.gather(watching, return_exceptions=True)
            flow.close()
            self._client = None
            await client.close()

    def _saw(self, row: dict[str, Any]) -> None:
        if row["kind"] == "message":
            self.seen[row["message_id"]] = now()
            sender = str(row["sender"]["id"])
            if sender.startswith(f"tg:{ACCOUNT}:"):
                self.talks[sender.rpartition(":")[2]] = row["conversation"]


@contextlib.contextmanager
def node_at(home: Path) -> Iterator[Contestant]:
    """The bench's node in that home."""
    env = contestants.child_env(AIOS_HOME=str(home))
    with contestants.running("node", ["-m", "aios_nb.bench.bare"], env) as node:
        yield node
