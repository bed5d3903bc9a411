"""The adapter in a test: opened, with what it hands over kept in a list."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Sequence
from typing import Any

from aios_bots.adapters.telegram import Telegram
from aios_bots.core.model import Incoming, Op, Outgoing, Place
from aios_bots.core.secret import Secret
from tests.telegram.botapi import BotApi

CEILING_S = 30.0


def run(work: Coroutine[Any, Any, None]) -> None:
    async def timed() -> None:
        async with asyncio.timeout(2 * CEILING_S):
            await work

    asyncio.run(timed())


class Taken:
    """What came in; ``fail`` says how often it cannot be kept, ``gate`` holds it up."""

    def __init__(self, adapter: Telegram) -> None:
        self.adapter = adapter
        self.raw: list[tuple[int, str]] = []
        self.fail = 0
        self.gate = asyncio.Event()
        self.gate.set()
        self._news = asyncio.Event()

    async def take(self, batch: Sequence[tuple[int, str]]) -> None:
        if self.fail:
            self.fail -= 1
            raise OSError("disk full")
        await self.gate.wait()
        self.raw += batch
        self._news.set()

    @property
    def seen(self) -> list[Incoming]:
        return [self.adapter.read(raw) for _, raw in self.raw]

    @property
    def texts(self) -> list[str]:
        return [one.text for one in self.seen]

    async def until(self, happened: Callable[[], Any]) -> Any:
        """What ``happened()`` gives once it is true."""
        async with asyncio.timeout(CEILING_S):
            while not (value := happened()):
                self._news.clear()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(0.02):
                        await self._news.wait()
            return value


@contextlib.asynccontextmanager
async def opened(api: BotApi, token: str = "", **how: Any) -> AsyncIterator[Telegram]:
    adapter = Telegram(Secret(token or api.bot.token), api_url=api.base_url, **how)
    await adapter.open()
    try:
        yield adapter
    finally:
        await adapter.close()


@contextlib.asynccontextmanager
async def listening(adapter: Telegram) -> AsyncIterator[Taken]:
    """With updates coming in; ``taken.task`` is what takes them."""
    taken = Taken(adapter)
    taken.task = asyncio.create_task(adapter.intake(taken.take))  # type: ignore[attr-defined]
    try:
        yield taken
    finally:
        taken.task.cancel()  # type: ignore[attr-defined]
        await asyncio.wait([taken.task])  # type: ignore[attr-defined]


async def nothing(_file: Any) -> bytes:
    raise AssertionError("no file goes out here")


def holding(data: bytes) -> Callable[[Any], Awaitable[bytes]]:
    async def content(_file: Any) -> bytes:
        return data

    return content


def out(
    chat: object, op: Op = Op.SEND, text: str = "", topic: object = "", **more: Any
) -> Outgoing:
    place = Place("1", str(chat), str(topic))
    return Outgoing(key="k", place=place, op=op, text=text, **more)
