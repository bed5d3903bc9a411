"""Two client libraries with one face, so that a test of the server is a test with both."""

from __future__ import annotations

import asyncio
import concurrent.futures
import threading
from collections.abc import Coroutine, Iterator
from typing import Any

import aiogram
import telegram
from aiogram.client.session.aiohttp import AiohttpSession
from aiogram.client.telegram import TelegramAPIServer
from aiogram.exceptions import AiogramError
from pydantic import BaseModel
from telegram.error import TelegramError
from telegram.request import HTTPXRequest

from tests.telegram.botapi import BotApi

LIBRARIES = ("python-telegram-bot", "aiogram")
CEILING_S = 30.0
PLAIN = {"verify": False}
"""No TLS here, and reading all certificates takes longer than a test."""


class Client:
    """A bot in a library, on a loop of its own; ``client.send_message(…)`` waits for the answer."""

    Error: type[Exception]
    types: Any

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def begin(self, work: Coroutine[Any, Any, Any]) -> concurrent.futures.Future[Any]:
        """Start something without waiting for it."""
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        return self.begin(work).result(CEILING_S)

    def __getattr__(self, method: str) -> Any:
        return lambda *args, **named: self.run(getattr(self.bot, method)(*args, **named))

    def close(self) -> None:
        self.run(self._stop())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(CEILING_S)
        self._loop.close()

    async def _stop(self) -> None:
        raise NotImplementedError

    def keyboard(self, **buttons: str) -> Any:
        """One row of buttons: label and data."""
        row = [
            self.types.InlineKeyboardButton(text=label, callback_data=data)
            for label, data in buttons.items()
        ]
        return self.types.InlineKeyboardMarkup(inline_keyboard=[row])


class Ptb(Client):
    """python-telegram-bot."""

    Error = TelegramError
    types = telegram

    def __init__(self, api: BotApi, token: str) -> None:
        super().__init__()
        self.bot = telegram.Bot(
            token,
            base_url=api.base_url,
            base_file_url=api.base_file_url,
            request=HTTPXRequest(connection_pool_size=8, httpx_kwargs=PLAIN),
            get_updates_request=HTTPXRequest(connection_pool_size=4, httpx_kwargs=PLAIN),
        )
        self.run(self.bot.initialize())

    def file(self, data: bytes, name: str) -> Any:
        return telegram.InputFile(data, filename=name)

    def download(self, file_id: str) -> bytes:
        async def fetch() -> bytes:
            return bytes(await (await self.bot.get_file(file_id)).download_as_bytearray())

        return self.run(fetch())

    def raw(self, method: str, **params: Any) -> Any:
        return self.run(self.bot.do_api_request(method, api_kwargs=params))

    @staticmethod
    def parsed(update: dict[str, Any]) -> Any:
        return telegram.Update.de_json(update, None)

    @staticmethod
    def unknown(parsed: Any) -> set[str]:
        """Fields that the library does not know."""

        def walk(value: Any) -> Iterator[str]:
            if isinstance(value, telegram.TelegramObject):
                yield from value.api_kwargs
                for name in value.__slots__:
                    yield from walk(getattr(value, name, None))
            elif isinstance(value, (list, tuple)):
                for one in value:
                    yield from walk(one)

        return set(walk(parsed))

    async def _stop(self) -> None:
        await self.bot.shutdown()


class Aiogram(Client):
    """aiogram, whose models are strict."""

    Error = AiogramError
    types = aiogram.types

    def __init__(self, api: BotApi, token: str) -> None:
        super().__init__()
        server = TelegramAPIServer(
            base=f"{api.base_url}{{token}}/{{method}}",
            file=f"{api.base_file_url}{{token}}/{{path}}",
        )

        async def make() -> aiogram.Bot:
            return aiogram.Bot(token, session=AiohttpSession(api=server))

        self.bot = self.run(make())

    def file(self, data: bytes, name: str) -> Any:
        return aiogram.types.BufferedInputFile(data, filename=name)

    def download(self, file_id: str) -> bytes:
        async def fetch() -> bytes:
            stream = await self.bot.download(file_id)
            assert stream is not None
            return stream.read()

        return self.run(fetch())

    @staticmethod
    def parsed(update: dict[str, Any]) -> Any:
        return aiogram.types.Update.model_validate(update)

    @staticmethod
    def unknown(parsed: Any) -> set[str]:
        """Fields that the library does not know."""

        def walk(value: Any) -> Iterator[str]:
            if isinstance(value, BaseModel):
                yield from value.model_extra or {}
                for name in type(value).model_fields:
                    yield from walk(getattr(value, name))
            elif isinstance(value, list):
                for one in value:
                    yield from walk(one)

        return set(walk(parsed))

    async def _stop(self) -> None:
        session = self.bot.session
        assert isinstance(session, AiohttpSession)
        if session._session:  # its own close() sleeps, for the sake of TLS
            await session._session.close()


def connect(library: str, api: BotApi, token: str = "") -> Ptb | Aiogram:
    """A client of the server's bot, or of the one with that token."""
    kind = Ptb if library == "python-telegram-bot" else Aiogram
    return kind(api, token or api.bot.token)
