"""The token is in the address of every call, and nowhere else."""

from __future__ import annotations

import asyncio
import io
import logging
import traceback

import pytest

from aios_bots.adapters.telegram import Telegram, Webhook
from aios_bots.core.adapter import CallError
from aios_bots.core.model import Attachment, Op
from aios_bots.core.secret import Secret
from aios_nb.errors import AiosError
from tests.telegram.adapting import listening, nothing, opened, out, run
from tests.telegram.botapi import BotApi

SECRET = "the-secret-of-the-webhook-" + "x" * 20


class Everything:
    """All that could be read: logs of every level, by handlers from before and after; errors."""

    def __init__(self) -> None:
        self._text = io.StringIO()
        self._handlers: list[logging.Handler] = []
        self._root = logging.getLogger()
        self._level = self._root.level
        self._root.setLevel(logging.DEBUG)

    def listen(self) -> None:
        handler = logging.StreamHandler(self._text)
        handler.setFormatter(logging.Formatter("%(name)s %(message)s"))
        self._root.addHandler(handler)
        self._handlers.append(handler)

    def note(self, *things: object) -> None:
        for thing in things:
            if isinstance(thing, BaseException):
                self._text.writelines(traceback.format_exception(thing))
            self._text.write(f"{thing} {thing!r} {thing:}\n")

    def close(self) -> str:
        self._root.setLevel(self._level)
        for handler in self._handlers:
            self._root.removeHandler(handler)
        return self._text.getvalue()


@pytest.fixture
def everything():
    everything = Everything()
    everything.listen()
    yield everything
    everything.close()


@pytest.mark.parametrize("way", ["polling", "webhook"])
def test_nothing_that_goes_wrong_shows_the_token(botapi: BotApi, ada, everything, way):
    hook = Webhook(secret=SECRET)
    transport = {"webhook": hook} if way == "webhook" else {}
    ref = ada.sends("document", b"data").media["document"]["file_id"]
    calls = [
        out(ada.id, text="hi"),
        out(ada.id, Op.EDIT, "ho", target="1"),
        out(ada.id, Op.TYPING),
        out(ada.id, text="x", as_file="a.md"),
    ]
    answers = [
        (400, {"ok": False, "description": f"Bad Request: {botapi.bot.token} is bad"}),
        (404, f"<html>no /bot{botapi.bot.token}/here</html>"),
        (500, None),
        (429, None),
    ]

    async def tried(adapter: Telegram) -> None:
        file = Attachment(ref)
        for work in (*(adapter.call(call, nothing) for call in calls), adapter.fetch(file)):
            try:
                await work
            except CallError as error:
                everything.note(error, *error.args)

    async def story() -> None:
        loop = asyncio.get_running_loop()
        loop.set_debug(True)
        async with opened(botapi, **transport) as adapter, listening(adapter) as taken:
            everything.listen()
            ada.says("hello")
            await taken.until(lambda: "hello" in taken.texts)
            await tried(adapter)
            for status, body in answers:
                fault = botapi.faults.answer("*", status, body, times=None)
                await tried(adapter)
                fault.left = 0
            fault = botapi.faults.cut("*", times=None)
            await tried(adapter)
            fault.left = 0
            await asyncio.to_thread(botapi.go_down)
            await tried(adapter)
            await taken.until(lambda: transport or adapter.trouble)
            everything.note(adapter, adapter._line, adapter._token, hook, adapter.trouble)
            everything.note(*adapter.notes, *asyncio.all_tasks(), adapter.caps, vars(adapter))
            await asyncio.to_thread(botapi.come_back)
            await asyncio.to_thread(botapi.revoke)
            if transport:
                adapter._pushes.look.set()
            await asyncio.wait([taken.task])
            everything.note(taken.task.exception())

    run(story())
    shown = everything.close()
    assert "does not know this bot token" in shown
    assert botapi.bot.token.partition(":")[2].lower() not in shown.lower()
    assert SECRET not in shown


def test_a_wrong_token_is_not_shown_either(botapi: BotApi, everything):
    for token in (f"{botapi.bot.id}:{'AA' + 'w' * 33}", "77:wrong-and-short"):

        async def story(token: str = token) -> None:
            adapter = Telegram(Secret(token), api_url=botapi.base_url)
            try:
                await adapter.open()
            except AiosError as error:
                everything.note(error, *error.args)
            finally:
                await adapter.close()

        run(story())
    shown = everything.close()
    assert "does not know this bot token" in shown
    assert "w" * 33 not in shown
    assert "wrong-and-short" not in shown


def test_the_libraries_are_loud_again_when_the_bot_is_closed(botapi: BotApi):
    async def story() -> None:
        before = logging.getLogger("telegram").level
        async with opened(botapi):
            assert logging.getLogger("telegram").getEffectiveLevel() >= logging.WARNING
        assert logging.getLogger("telegram").level == before

    run(story())
