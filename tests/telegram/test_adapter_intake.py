"""Updates by polling and by pushes: nothing is confirmed before it is kept."""

from __future__ import annotations

import asyncio
import io
import json
import secrets
import socket

import aiohttp
import pytest

from aios_bots.adapters.telegram import Telegram, Webhook
from aios_bots.core.model import Kind
from aios_bots.core.secret import Secret
from aios_nb.errors import AiosError, UsageError
from tests.ports import free_port
from tests.telegram.adapting import listening, opened, run
from tests.telegram.botapi import BotApi

SECRET = "s" * 40
HEADER = "X-Telegram-Bot-Api-Secret-Token"


@pytest.fixture(params=["polling", "webhook"])
def transport(request: pytest.FixtureRequest) -> dict:
    return {"webhook": Webhook()} if request.param == "webhook" else {}


def test_updates_come_raw_in_order_and_once(botapi: BotApi, ada, transport):
    async def story() -> None:
        ada.says("before")
        async with opened(botapi, **transport) as adapter, listening(adapter) as taken:
            await taken.until(lambda: taken.texts == ["before"])
            for number in range(30):
                ada.says(f"{number}")
            botapi.inject({"brand_new": {"of": "tomorrow"}, "more": [1]})
            await taken.until(lambda: len(taken.raw) == 32)
            said = [text for text in taken.texts if text]
            assert said == ["before", *map(str, range(30))]
            ((number, raw),) = [one for one in taken.raw if "brand_new" in one[1]]
            assert json.loads(raw) == {
                "update_id": number,
                "brand_new": {"of": "tomorrow"},
                "more": [1],
            }
            assert adapter.read(raw).kind is Kind.OTHER
            await botapi.until(lambda: not botapi.bot.updates.pending)
            assert adapter.trouble is None

    run(story())


def test_every_kind_comes_by_both_ways(botapi: BotApi, ada, transport):
    async def story() -> None:
        async with opened(botapi, **transport) as adapter, listening(adapter) as taken:
            first = ada.says("/start")
            await taken.until(lambda: taken.raw)  # from now on the server knows what we want
            ada.edits(first, "hello")
            ada.reacts(first, "🎉")
            ada.searches("cats")
            ada.blocks()
            await taken.until(lambda: len(taken.raw) == 5)
            assert [one.kind for one in taken.seen] == [
                Kind.COMMAND,
                Kind.EDIT,
                Kind.REACTION,
                Kind.INLINE,
                Kind.MEMBERSHIP,
            ]

    run(story())


def test_what_is_not_kept_is_not_confirmed(botapi: BotApi, ada, transport):
    async def story() -> None:
        async with opened(botapi, **transport) as adapter, listening(adapter) as taken:
            taken.gate.clear()
            ada.says("precious")
            await botapi.until(lambda: botapi.bot.updates.pending)
            await asyncio.sleep(0.05)
            assert [one.body["message"]["text"] for one in botapi.bot.updates.pending] == [
                "precious"
            ]
            taken.gate.set()
            await botapi.until(lambda: not botapi.bot.updates.pending)
            assert taken.texts == ["precious"]

    run(story())


def test_what_cannot_be_kept_comes_again(botapi: BotApi, ada, transport):
    async def story() -> None:
        async with opened(botapi, **transport) as adapter, listening(adapter) as taken:
            taken.fail = 1
            ada.says("precious")
            trouble = await taken.until(lambda: adapter.trouble)
            assert "cannot be kept" in trouble.what
            await taken.until(lambda: taken.raw)
            assert taken.texts == ["precious"]

    run(story())


def test_an_outage_is_said_and_passes(botapi: BotApi, ada):
    async def story() -> None:
        async with opened(botapi) as adapter, listening(adapter) as taken:
            ada.says("one")
            await taken.until(lambda: taken.raw)
            await asyncio.to_thread(botapi.go_down)
            trouble = await taken.until(lambda: adapter.trouble)
            assert trouble.what.startswith("no connection to Telegram")
            await asyncio.to_thread(botapi.come_back)
            ada.says("two")
            await taken.until(lambda: taken.texts == ["one", "two"])
            await taken.until(lambda: adapter.trouble is None)

    run(story())


def test_without_a_network_it_waits_for_one(botapi: BotApi, ada, transport):
    async def story() -> None:
        await asyncio.to_thread(botapi.go_down)
        async with opened(botapi, **transport) as adapter, listening(adapter) as taken:
            assert adapter.trouble is not None
            assert adapter.name == ""
            await asyncio.to_thread(botapi.come_back)
            ada.says("hello")
            await taken.until(lambda: taken.texts == ["hello"])
            assert adapter.name == botapi.bot.username
            assert adapter.link("a-b") == f"https://t.me/{botapi.bot.username}?start=a-b"

    run(story())


def test_a_second_poller_is_said_in_one_line(botapi: BotApi, ada):
    async def story() -> None:
        async with (
            opened(botapi) as first,
            opened(botapi) as second,
            listening(first) as one,
        ):
            await botapi.until(lambda: botapi.record.of("getUpdates"))
            async with listening(second) as two:
                trouble = await one.until(lambda: first.trouble or second.trouble)
                assert "another program" in trouble.what
                ada.says("who gets it?")
                await one.until(lambda: one.raw or two.raw)
            ada.says("we do")
            await one.until(lambda: "we do" in one.texts)
            await one.until(lambda: first.trouble is None)

    run(story())


def test_a_webhook_is_removed_before_polling(botapi: BotApi, ada, client):
    client.set_webhook(url="http://127.0.0.1:9/none")

    async def story() -> None:
        async with opened(botapi) as adapter, listening(adapter) as taken:
            ada.says("hello")
            await taken.until(lambda: taken.texts == ["hello"])

    run(story())


def test_a_webhook_that_stays_is_said_until_it_is_gone(botapi: BotApi, ada, client):
    client.set_webhook(url="http://127.0.0.1:9/none")
    fault = botapi.faults.answer("deleteWebhook", 404, times=None)

    async def story() -> None:
        async with opened(botapi) as adapter, listening(adapter) as taken:
            trouble = await taken.until(lambda: adapter.trouble)
            assert "webhook" in trouble.what
            fault.left = 0
            ada.says("hello")
            await taken.until(lambda: taken.texts == ["hello"])
            await taken.until(lambda: adapter.trouble is None)

    run(story())


@pytest.mark.parametrize("secret", ["AA" + "x" * 33, "short"])
def test_a_wrong_token_is_one_clear_line(botapi: BotApi, secret):
    token = f"{botapi.bot.id}:{secret}"

    async def story() -> None:
        adapter = Telegram(Secret(token), api_url=botapi.base_url)
        with pytest.raises(AiosError) as raised:
            await adapter.open()
        await adapter.close()
        assert "does not know this bot token" in str(raised.value)
        assert secret not in str(raised.value)
        assert raised.value.__suppress_context__

    run(story())


def test_a_revoked_token_ends_the_intake(botapi: BotApi, transport):
    async def story() -> None:
        async with opened(botapi, **transport) as adapter, listening(adapter) as taken:
            how = "setWebhook" if transport else "getUpdates"
            await botapi.until(lambda: botapi.record.of(how))
            await asyncio.to_thread(botapi.revoke)
            if transport:
                adapter._pushes.look.set()
            await asyncio.wait([taken.task])
            assert "does not know this bot token" in str(taken.task.exception())

    run(story())


def test_kinds_that_a_server_does_not_know_are_not_asked_for(botapi: BotApi, ada):
    refusal = {"ok": False, "description": "Bad Request: unknown update type"}
    botapi.faults.answer("getUpdates", 400, refusal, times=2)

    async def story() -> None:
        async with opened(botapi) as adapter, listening(adapter) as taken:
            ada.says("hello")
            await taken.until(lambda: taken.texts == ["hello"])
            asked = [call.params.get("allowed_updates") for call in botapi.record.of("getUpdates")]
            assert "message_reaction" in asked[0]
            assert "message_reaction" not in asked[1]
            assert asked[2] is None

    run(story())


@pytest.mark.parametrize("status", [500, 502])
def test_a_server_that_breaks_is_asked_again(botapi: BotApi, ada, status):
    botapi.faults.answer(["getMe", "deleteWebhook", "getUpdates"], status, times=3)

    async def story() -> None:
        async with opened(botapi) as adapter, listening(adapter) as taken:
            ada.says("hello")
            await taken.until(lambda: taken.texts == ["hello"])

    run(story())


def test_closing_does_not_wait_for_the_long_poll(botapi: BotApi):
    async def story() -> None:
        adapter = Telegram(Secret(botapi.bot.token), api_url=botapi.base_url)
        await adapter.open()

        async def take(_batch) -> None: ...

        intake = asyncio.create_task(adapter.intake(take))
        await botapi.until(lambda: botapi.record.of("getUpdates"))
        async with asyncio.timeout(5):  # the poll would take 25
            intake.cancel()
            await asyncio.wait([intake])
            await adapter.close()

    run(story())


# Webhooks


async def push(url: str, body: bytes, secret: str | None = SECRET) -> int:
    headers = {} if secret is None else {HEADER: secret}
    async with (
        aiohttp.ClientSession() as session,
        session.post(url, data=io.BytesIO(body), headers=headers) as response,
    ):
        return response.status


def test_a_push_needs_the_secret(botapi: BotApi):
    async def story() -> None:
        hook = Webhook(secret=SECRET)
        async with opened(botapi, webhook=hook) as adapter, listening(adapter) as taken:
            await botapi.until(lambda: botapi.record.of("setWebhook"))
            assert SECRET not in repr(hook)
            url = adapter.webhook_url
            update = json.dumps({"update_id": 5}).encode()
            for wrong in (None, "", "x", SECRET[:-1], SECRET + "x", "é" * 40):
                assert await push(url, update, wrong) == 403
            assert taken.raw == []
            assert any("6 pushes" in note for note in adapter.notes)
            assert await push(url, b"{") == 400
            assert await push(url, b'{"no": "number"}') == 400
            assert await push(url, b" " * (1 << 20) + update) == 413
            assert await push(url, update) == 200
            assert taken.raw == [(5, '{"update_id": 5}')]
            assert await push(url + "x", update) == 404

    run(story())


def test_a_webhook_has_a_secret_of_its_own_and_listens_on_loopback(botapi: BotApi, ada):
    async def story() -> None:
        async with opened(botapi, webhook=Webhook()) as adapter, listening(adapter) as taken:
            ada.says("hello")
            await taken.until(lambda: taken.texts == ["hello"])
            (call,) = botapi.record.of("setWebhook")
            assert len(call.params["secret_token"]) >= 32
            assert adapter.webhook_url.startswith("http://127.0.0.1:")
            assert botapi.bot.token not in adapter.webhook_url

    run(story())


@pytest.mark.parametrize(
    "wrong",
    [
        Webhook(secret="short"),
        Webhook(secret="not allowed " * 4),
        Webhook(host="0.0.0.0", allow_insecure_loopback=True),
        Webhook(url="ftp://example.org"),
    ],
)
def test_what_cannot_be_a_webhook_is_refused(wrong):
    with pytest.raises(UsageError):
        Telegram(Secret("1:x"), webhook=wrong)


def test_without_a_secret_only_on_loopback_and_by_wish(botapi: BotApi):
    async def story() -> None:
        hook = Webhook(allow_insecure_loopback=True)
        async with opened(botapi, webhook=hook) as adapter, listening(adapter) as taken:
            await botapi.until(lambda: botapi.record.of("setWebhook"))
            assert await push(adapter.webhook_url, b'{"update_id": 1}', None) == 200
            assert await push(adapter.webhook_url, b'{"update_id": 2}', "wrong") == 403
            assert len(taken.raw) == 1

    run(story())


def test_a_proxy_may_stand_before_a_webhook(botapi: BotApi, ada):
    """The app knows one address, and we listen at another: the path is the same."""
    port = free_port()
    url = f"http://127.0.0.1:{port}/deep/down?x=1"

    async def story() -> None:
        hook = Webhook(url=url, port=port)
        async with opened(botapi, webhook=hook) as adapter, listening(adapter) as taken:
            ada.says("hello")
            await taken.until(lambda: taken.texts == ["hello"])
            (call,) = botapi.record.of("setWebhook")
            assert call.params["url"] == adapter.webhook_url == url

    run(story())


def test_a_port_that_is_taken_is_one_clear_line(botapi: BotApi):
    async def story() -> None:
        with socket.socket() as other:
            other.bind(("127.0.0.1", 0))
            other.listen()
            hook = Webhook(port=other.getsockname()[1])
            async with opened(botapi, webhook=hook) as adapter, listening(adapter) as taken:
                await asyncio.wait([taken.task])
                assert "cannot listen on 127.0.0.1" in str(taken.task.exception())

    run(story())


def test_a_webhook_that_was_taken_away_is_set_again(botapi: BotApi, ada):
    async def story() -> None:
        async with opened(botapi, webhook=Webhook()) as adapter, listening(adapter) as taken:
            await botapi.until(lambda: botapi.record.of("setWebhook"))
            await botapi.until(lambda: botapi.bot.webhook.target.url)
            botapi.run(lambda: botapi.bot.webhook.set(type(botapi.bot.webhook.target)()))
            ada.says("hello")
            adapter._pushes.look.set()
            await taken.until(lambda: taken.texts == ["hello"])

    run(story())


def test_a_webhook_that_is_refused_is_one_clear_line(botapi: BotApi):
    refusal = {"ok": False, "error_code": 400, "description": "Bad Request: bad webhook: no https"}
    botapi.faults.answer("setWebhook", 400, refusal)

    async def story() -> None:
        hook = Webhook(url=f"https://example.org/{secrets.token_hex(4)}")
        async with opened(botapi, webhook=hook) as adapter, listening(adapter) as taken:
            await asyncio.wait([taken.task])
            assert "bad webhook: no https" in str(taken.task.exception())

    run(story())
