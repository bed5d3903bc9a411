"""Other people's servers: simpler ones, stricter ones, ones that know half of the calls."""

from __future__ import annotations

import asyncio
import itertools
import json

import pytest

from aios_bots.adapters.telegram import Webhook, polling, webhook
from aios_bots.adapters.telegram.polling import Polling
from aios_bots.core.model import Kind
from tests.telegram.adapting import listening, nothing, opened, out, run
from tests.telegram.botapi import BotApi
from tests.telegram.botapi.methods import METHODS

REQUIRED = {
    "getMe",
    "getUpdates",
    "setWebhook",
    "sendMessage",
    "editMessageText",
    "answerCallbackQuery",
}
OPTIONAL = sorted({name for name, _ in METHODS.values()} - REQUIRED)
DAY_S = 86_400


@pytest.fixture(params=["polling", "webhook"])
def transport(request: pytest.FixtureRequest) -> dict:
    return {"webhook": Webhook()} if request.param == "webhook" else {}


@pytest.mark.parametrize(("status", "body"), [(404, None), (500, ""), (500, {"ok": False})])
def test_only_a_few_calls_are_required(botapi: BotApi, ada, transport, status, body):
    botapi.faults.answer(OPTIONAL, status, body, times=None)

    async def story() -> None:
        async with opened(botapi, **transport) as adapter, listening(adapter) as taken:
            ada.says("hello")
            await taken.until(lambda: taken.texts == ["hello"])
            if transport:
                adapter._pushes.look.set()  # getWebhookInfo is asked for now
                await botapi.until(lambda: botapi.record.of("getWebhookInfo"))
            await adapter.call(out(ada.id, text="hello yourself"), nothing)
            ada.says("fine")
            await taken.until(lambda: taken.texts == ["hello", "fine"])
            assert adapter.trouble is None
            await botapi.until(lambda: any("setMyCommands" in one for one in adapter.notes))

    run(story())


def test_polls_that_are_not_held_are_made_all_the_same(botapi: BotApi, ada):
    botapi.settings.long_polls = False

    async def story() -> None:
        async with opened(botapi) as adapter, listening(adapter) as taken:
            await botapi.until(lambda: botapi.record.counts["getUpdates", 200] > 3)
            ada.says("one")
            await taken.until(lambda: taken.texts == ["one"])
            ada.says("two")
            await taken.until(lambda: taken.texts == ["one", "two"])
            assert adapter.trouble is None

    run(story())


class Scripted:
    """A server that answers getUpdates with this; and the pauses that were made between."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *answers: list[int]) -> None:
        self.offsets: list[int | None] = []
        self.pauses: list[float] = []
        self.before = lambda: None
        self._answers = iter(answers)
        monkeypatch.setattr(polling.asyncio, "sleep", self._sleep)

    async def ask(self, method: str, params=None, **_how) -> bytes:
        if method != "getUpdates":
            return b"true"
        self.before()
        self.offsets.append(params.get("offset"))
        numbers = next(self._answers, None)
        if numbers is None:
            raise asyncio.CancelledError
        return json.dumps([{"update_id": number} for number in numbers]).encode()

    async def take(self, batch) -> None: ...

    async def _sleep(self, seconds: float) -> None:
        self.pauses.append(seconds)

    def run(self, **how) -> None:
        async def work() -> None:
            with pytest.raises(asyncio.CancelledError):
                await Polling(self.ask, lambda _: None, **how).run(self.take)

        asyncio.run(work())


def test_a_server_that_answers_at_once_is_asked_less_and_less_often(monkeypatch):
    server = Scripted(monkeypatch, *[[]] * 6, [5], [])
    server.run()
    assert server.pauses == [0.02, 0.04, 0.08, 0.16, 0.3, 0.3, 0.02]


def test_a_server_that_does_not_heed_offsets_is_not_asked_without_end(monkeypatch):
    server = Scripted(monkeypatch, [4, 5], [4, 5], [4, 5], [4, 5, 6], [4, 5, 6])
    server.run()
    assert server.offsets == [None, 6, 6, 6, 7, 7]
    assert server.pauses == [0.02, 0.04, 0.02]


def test_offsets_go_on_until_a_week_is_quiet(monkeypatch, clock):
    """Then a server may begin with other numbers, which an old offset would confirm unseen."""
    server = Scripted(monkeypatch, [1000], [], [1001], [], [7], [])
    days = itertools.chain([0, 1, 4, 1, 6.5, 0], itertools.repeat(0))
    server.before = lambda: setattr(clock, "now", clock.now + next(days) * DAY_S)
    server.run(clock=clock)
    assert server.offsets == [None, 1001, 1001, 1002, 1002, 8, 8]
    server = Scripted(monkeypatch, [1000], [], [], [7], [])
    days = itertools.chain([0, 0, 6.5, 0, 0], itertools.repeat(0))
    server.before = lambda: setattr(clock, "now", clock.now + next(days) * DAY_S)
    server.run(clock=clock)
    assert server.offsets == [None, 1001, 1001, None, 8, 8]


def test_lower_numbers_after_a_quiet_week_are_not_lost(botapi: BotApi, ada, clock):
    async def story() -> None:
        async with opened(botapi, clock=clock) as adapter, listening(adapter) as taken:
            ada.says("before")
            await taken.until(lambda: taken.raw)
            await botapi.until(lambda: botapi.bot.updates.confirmed)
            await asyncio.to_thread(botapi.go_down)
            clock.now += 8 * DAY_S
            botapi.bot.updates.next_id = 5
            ada.says("after")
            await asyncio.to_thread(botapi.come_back)
            await taken.until(lambda: taken.texts == ["before", "after"])
            assert taken.raw[-1][0] == 5

    run(story())


# Updates that are none


def test_updates_that_nobody_understands_stop_nothing(botapi: BotApi, ada, transport):
    async def story() -> None:
        async with opened(botapi, **transport) as adapter, listening(adapter) as taken:
            ada.says("one")
            await taken.until(lambda: taken.raw)
            for odd in (
                {"message": 5},
                {"message": {"message_id": "x", "chat": None}},
                {"callback_query": {"id": 1}},
                {"of_tomorrow": {"chat": 3}},
                {},
            ):
                botapi.inject(odd)
            botapi.inject({"update_id": "no number"}, queue=7)
            botapi.inject({"update_id": 1 << 80}, queue=8)
            ada.says("two")
            await taken.until(lambda: len(taken.raw) == 7)
            one, *odd, two = [raw for _, raw in sorted(taken.raw)]
            assert [adapter.read(raw).text for raw in (one, two)] == ["one", "two"]
            kinds = []
            for raw in odd:
                try:
                    kinds.append(adapter.read(raw).kind)
                except ValueError:
                    kinds.append(None)
            assert kinds == [None, None, Kind.BUTTON, Kind.OTHER, Kind.OTHER]

    run(story())


@pytest.mark.parametrize("result", [{"update_id": 1}, "soon", None, [5], [{"no": "number"}]])
def test_what_is_no_list_of_updates_is_said_and_passes(botapi: BotApi, ada, result):
    botapi.faults.answer("getUpdates", 200, {"ok": True, "result": result})

    async def story() -> None:
        async with opened(botapi) as adapter, listening(adapter) as taken:
            trouble = await taken.until(lambda: adapter.trouble)
            assert "Telegram answers" in trouble.what
            ada.says("hello")
            await taken.until(lambda: taken.texts == ["hello"])
            await taken.until(lambda: adapter.trouble is None)

    run(story())


def test_a_server_that_does_not_say_who_the_bot_is(botapi: BotApi, ada):
    botapi.faults.answer("getMe", 200, {"ok": True, "result": True}, times=None)

    async def story() -> None:
        async with opened(botapi) as adapter, listening(adapter) as taken:
            ada.says("hello")
            await taken.until(lambda: taken.texts == ["hello"])
            assert (adapter.name, adapter.link("x")) == ("", "")

    run(story())


def test_a_missing_call_is_not_taken_for_a_wrong_token(botapi: BotApi, ada):
    """Telegram's library does: to it every 404 is a wrong token."""
    botapi.faults.answer("getUpdates", 404, times=2)

    async def story() -> None:
        async with opened(botapi) as adapter, listening(adapter) as taken:
            ada.says("hello")
            await taken.until(lambda: taken.texts == ["hello"])

    run(story())


def test_a_server_without_webhooks_says_so(botapi: BotApi):
    botapi.faults.answer("setWebhook", 404, times=None)

    async def story() -> None:
        async with opened(botapi, webhook=Webhook()) as adapter, listening(adapter) as taken:
            await asyncio.wait([taken.task])
            assert "does not take this webhook" in str(taken.task.exception())

    run(story())


def test_the_secret_is_compared_in_constant_time(botapi: BotApi, ada, monkeypatch):
    compared = []
    real = webhook.hmac.compare_digest

    def watched(given: bytes, own: bytes) -> bool:
        compared.append(given)
        return real(given, own)

    monkeypatch.setattr(webhook.hmac, "compare_digest", watched)

    async def story() -> None:
        async with opened(botapi, webhook=Webhook()) as adapter, listening(adapter) as taken:
            ada.says("hello")
            await taken.until(lambda: taken.texts == ["hello"])
            (call,) = botapi.record.of("setWebhook")
            assert compared == [call.params["secret_token"].encode()]

    run(story())
