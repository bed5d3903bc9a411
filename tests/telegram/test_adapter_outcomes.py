"""What becomes of a call that does not succeed: each answer of a server has its meaning."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator

import msgspec
import pytest

from aios_bots.adapters.telegram.answers import Refused, result_of
from aios_bots.core.adapter import (
    Absent,
    BadStyle,
    CallError,
    Flooded,
    Impossible,
    Moved,
    NotTaken,
    Unreachable,
    Unsure,
)
from aios_bots.core.model import Attachment, Op, Span, SpanKind
from tests.telegram.adapting import holding, nothing, opened, out, run
from tests.telegram.botapi import BotApi
from tests.telegram.botapi.files import DOT

BOLD = (Span(SpanKind.BOLD, 0, 2),)
FILE = Attachment("ab", "a.txt", "text/plain", 4)


@contextlib.asynccontextmanager
async def failing(botapi: BotApi, call, error: type[CallError]) -> AsyncIterator[CallError]:
    """The error that this call gives."""
    async with opened(botapi) as adapter:
        with pytest.raises(CallError) as raised:
            await adapter.call(call, holding(b"data"))
        assert type(raised.value) is error
        assert raised.value.__cause__ is None
        assert raised.value.__suppress_context__
        assert botapi.bot.token not in repr(raised.value)
        yield raised.value


def described(code: int, words: str = "", **more) -> dict:
    return {"ok": False, "error_code": code, "description": words, **more}


def test_without_a_line_nothing_was_taken(botapi: BotApi, ada):
    async def story() -> None:
        async with opened(botapi) as adapter:
            await asyncio.to_thread(botapi.go_down)
            with pytest.raises(NotTaken, match="refused"):
                await adapter.call(out(ada.id, text="hi"), nothing)
            await asyncio.to_thread(botapi.come_back)
            await adapter.call(out(ada.id, text="hi"), nothing)
        with pytest.raises(NotTaken, match="closed"):
            await adapter.call(out(ada.id, text="hi"), nothing)
        assert ada.chat().texts()[1:] == ["hi"]

    run(story())


@pytest.mark.parametrize("after", [False, True])
def test_a_reset_leaves_it_open_whether_it_was_taken(botapi: BotApi, ada, after):
    botapi.faults.cut("sendMessage", after=after)

    async def story() -> None:
        async with failing(botapi, out(ada.id, text="hi"), Unsure):
            assert ("hi" in ada.chat().texts()) is after
            assert botapi.record.counts["sendMessage"] == 1

    run(story())


def test_a_kept_line_that_died_meanwhile_is_no_answer_either(botapi: BotApi, ada):
    """The line is from the pool, so nobody can say whether the call went out on it."""

    async def story() -> None:
        async with opened(botapi) as adapter:
            await adapter.call(out(ada.id, text="one"), nothing)
            with botapi.outage():
                pass
            with contextlib.suppress(Unsure):
                await adapter.call(out(ada.id, text="two"), nothing)
            await adapter.call(out(ada.id, text="three"), nothing)
            assert ada.chat().texts()[-1] == "three"
            assert ada.chat().texts().count("two") <= 1

    run(story())


@pytest.mark.parametrize("after", [False, True])
@pytest.mark.parametrize(
    ("status", "body"),
    [
        (500, None),
        (502, None),
        (500, {"ok": False, "error_code": 500, "description": "Internal Server Error"}),
        (504, ""),
        (200, "<html>welcome to the hotel's network</html>"),
        (200, {"ok": False, "error_code": 500, "description": "Internal Server Error"}),
    ],
)
def test_a_server_that_breaks_leaves_it_open_too(botapi: BotApi, ada, status, body, after):
    botapi.faults.answer("sendMessage", status, body, after=after)

    async def story() -> None:
        async with failing(botapi, out(ada.id, text="hi"), Unsure):
            assert ("hi" in ada.chat().texts()) is after

    run(story())


@pytest.mark.parametrize(
    ("body", "seconds"),
    [
        (described(429, "Too Many Requests: retry after 7", parameters={"retry_after": 7}), 7),
        (described(429, "Too Many Requests: retry after 9"), 9),
        (described(429, "Flood control exceeded. Retry in 11 seconds"), 11),
        ({"ok": False, "error_code": 429}, 5),
        ("<html>slow down</html>", 5),
        (described(429, parameters={"retry_after": 10**9}), 86_400),
        (described(429, parameters={"retry_after": -3}), 0.1),
        (described(429, parameters={"retry_after": "NaN"}), 5),
    ],
)
def test_a_flood_says_for_how_long(botapi: BotApi, ada, body, seconds):
    botapi.faults.answer("sendMessage", 429, body)

    async def story() -> None:
        async with failing(botapi, out(ada.id, text="hi"), Flooded) as error:
            assert error.seconds == seconds

    run(story())


def test_a_flood_by_the_servers_own_count(botapi: BotApi, ada):
    botapi.clock.stop()
    botapi.flood.close(ada.id, seconds=13)

    async def story() -> None:
        async with failing(botapi, out(ada.id, Op.TYPING), Flooded) as error:
            assert error.seconds == 13

    run(story())


def test_only_the_headers_may_say_it():
    with pytest.raises(Refused) as raised:
        result_of(429, b"slow", "21")
    assert raised.value.pause_s == 21


@pytest.mark.parametrize(
    "words",
    [
        "Bad Request: can't parse entities: Character '.' is reserved",
        "Bad Request: ENTITY_BOUNDS_INVALID",
        "Bad Request: something new about how it looks",
        "",
    ],
)
@pytest.mark.parametrize("op", [Op.SEND, Op.EDIT])
def test_a_style_that_is_not_understood_may_go_plain(botapi: BotApi, ada, words, op):
    botapi.faults.answer(["sendMessage", "editMessageText"], 400, described(400, words))

    async def story() -> None:
        async with failing(botapi, out(ada.id, op, "hi", spans=BOLD, target="1"), BadStyle):
            pass
        botapi.faults.answer(["sendMessage", "editMessageText"], 400, described(400, words))
        async with failing(botapi, out(ada.id, op, "hi", target="1"), Impossible):
            pass

    run(story())


def test_styles_beyond_the_text_by_the_servers_own_check(botapi: BotApi, ada):
    beyond = (Span(SpanKind.BOLD, -1, 2),)

    async def story() -> None:
        async with failing(botapi, out(ada.id, text="hi", spans=beyond), BadStyle):
            pass

    run(story())


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (403, "Forbidden: bot was blocked by the user"),
        (403, "Forbidden: bot was kicked from the supergroup chat"),
        (403, "Forbidden: user is deactivated"),
        (403, "Forbidden: bot can't initiate conversation with a user"),
        (403, "Forbidden: something new"),
        (400, "Bad Request: chat not found"),
        (400, "Bad Request: not enough rights to send text messages to the chat"),
        (400, "Bad Request: have no rights to send a message"),
        (400, "Bad Request: CHAT_WRITE_FORBIDDEN"),
    ],
)
def test_a_chat_that_does_not_want_the_bot(botapi: BotApi, ada, code, words):
    botapi.faults.answer("sendMessage", code, described(code, words))

    async def story() -> None:
        async with failing(botapi, out(ada.id, text="hi", spans=BOLD), Unreachable) as error:
            assert str(error) in words.lower()

    run(story())


def test_blocked_and_let_in_again_by_the_server_itself(botapi: BotApi, ada):
    group = botapi.group(ada, botapi.bot)
    ada.blocks()
    group.remove(botapi.bot)

    async def story() -> None:
        for chat in (ada.id, group.id):
            async with failing(botapi, out(chat, text="hi"), Unreachable):
                pass
        async with failing(botapi, out(ada.id, Op.TYPING), Unreachable):
            pass
        ada.unblocks()
        async with opened(botapi) as adapter:
            await adapter.call(out(ada.id, text="back"), nothing)

    run(story())


@pytest.mark.parametrize("op", [Op.REACT, Op.DELETE])
def test_a_right_that_is_missing_for_less_closes_no_chat(botapi: BotApi, ada, op):
    method = {Op.REACT: "setMessageReaction", Op.DELETE: "deleteMessage"}[op]
    botapi.faults.answer(method, 403, described(403, "Forbidden: not enough rights"))

    async def story() -> None:
        async with failing(botapi, out(ada.id, op, target="1"), Impossible):
            pass

    run(story())


def test_where_files_are_not_allowed_the_chat_stays_open(botapi: BotApi, ada):
    words = "Bad Request: not enough rights to send documents to the chat"
    botapi.faults.answer("sendDocument", 400, described(400, words))

    async def story() -> None:
        async with failing(botapi, out(ada.id, files=(FILE,)), Impossible) as error:
            assert "not enough rights" in str(error)

    run(story())


def test_a_group_that_became_a_supergroup(botapi: BotApi, ada):
    group = botapi.group(ada, botapi.bot)
    new = group.migrate()

    async def story() -> None:
        async with failing(botapi, out(group.id, text="hi"), Moved) as error:
            assert error.chat == str(new.id)
        async with failing(botapi, out(group.id, Op.TYPING), Moved):
            pass

    run(story())


@pytest.mark.parametrize(
    "call",
    [
        out(0, text="x" * 5000, spans=BOLD),
        out(0, text="   "),
        out(0, Op.EDIT, "hi", target="999999", spans=BOLD),
        out(0, Op.REACT, "🦄🦄", target="1"),
        out(0, Op.ANSWER, "hi", target="123"),
        out(0, text="hi", topic=77, spans=BOLD),
    ],
)
def test_what_will_never_be_taken(botapi: BotApi, ada, call):
    place = msgspec.structs.replace(call.place, chat=str(ada.id))
    call = msgspec.structs.replace(call, place=place)

    async def story() -> None:
        async with failing(botapi, call, Impossible):
            pass

    run(story())


def test_a_message_of_somebody_else_is_not_edited(botapi: BotApi, ada):
    said = ada.says("mine")

    async def story() -> None:
        edit = out(ada.id, Op.EDIT, "yours", target=str(said.id), spans=BOLD)
        async with failing(botapi, edit, Impossible):
            assert said.words == "mine"

    run(story())


def test_a_revoked_token_takes_nothing_and_says_so(botapi: BotApi, ada):
    async def story() -> None:
        async with opened(botapi) as adapter:
            await asyncio.to_thread(botapi.revoke)
            with pytest.raises(NotTaken, match="token is not known") as raised:
                await adapter.call(out(ada.id, text="hi"), nothing)
            assert botapi.bot.token not in str(raised.value)

    run(story())


# Servers that cannot do everything

OPTIONAL = {
    "sendChatAction": (out(0, Op.TYPING), "typing"),
    "setMessageReaction": (out(0, Op.REACT, "👍", target="1"), "reactions"),
    "sendDocument": (out(0, text="x", as_file="a.md"), "files"),
    "deleteMessage": (out(0, Op.DELETE, target="1"), ""),
    "answerInlineQuery": (out(0, Op.ANSWER, target="inline:1"), ""),
    "editMessageReplyMarkup": (out(0, Op.EDIT, target="1"), ""),
}
UNKNOWN = {
    "404": (404, described(404, "Not Found")),
    "404 bare": (404, {"ok": False}),
    "404 page": (404, "<html>no such page</html>"),
    "404 named": (404, described(404, "Not Found: no method {method}")),
    "405": (405, ""),
    "501": (501, described(501, "Not Implemented")),
    "400": (400, described(400, "Bad Request: unknown method")),
    "500": (500, ""),
    "500 page": (500, None),
    "500 bare": (500, {"ok": False}),
}


@pytest.mark.parametrize("method", OPTIONAL)
@pytest.mark.parametrize("how", UNKNOWN)
def test_a_call_that_a_server_does_not_know_is_not_made_again(botapi: BotApi, ada, method, how):
    status, body = UNKNOWN[how]
    if isinstance(body, dict) and "description" in body:
        body = {**body, "description": body["description"].format(method=method)}
    call, cap = OPTIONAL[method]
    botapi.faults.answer(method, status, body, times=None)

    async def story() -> None:
        async with opened(botapi) as adapter:
            assert not cap or getattr(adapter.caps, cap)
            for _ in range(3):
                with pytest.raises(Absent, match=method):
                    await adapter.call(call, nothing)
            assert botapi.record.counts[method] == 1
            assert not cap or not getattr(adapter.caps, cap)
            assert any(method in note for note in adapter.notes)
            await adapter.call(out(ada.id, text="still here"), nothing)

    run(story())


@pytest.mark.parametrize("status", [404, 500])
def test_pictures_go_as_files_where_there_are_no_pictures(botapi: BotApi, ada, status):
    botapi.faults.answer("sendPhoto", status, times=None)
    picture = Attachment("ab", "plot.png", "image/png", 70)

    async def story() -> None:
        async with opened(botapi) as adapter:
            number = await adapter.call(out(ada.id, files=(picture,)), holding(DOT))
            assert "document" in ada.chat().messages[int(number)].media
            await adapter.call(out(ada.id, files=(picture,)), holding(DOT))
            assert botapi.record.counts["sendPhoto"] == 1
            assert adapter.caps.files

    run(story())


def test_without_edits_replies_are_sent_when_they_are_finished(botapi: BotApi, ada):
    botapi.faults.answer("editMessageText", 404, times=None)

    async def story() -> None:
        async with failing(botapi, out(ada.id, Op.EDIT, "hi", target="1"), Absent):
            pass
        async with opened(botapi) as adapter:
            with pytest.raises(Absent):
                await adapter.call(out(ada.id, Op.EDIT, "hi", target="1"), nothing)
            assert not adapter.caps.edits

    run(story())


def test_one_accident_is_not_taken_for_a_call_that_is_not_there(botapi: BotApi, ada):
    """A proxy's page, or a server that says it broke: the file may be there already."""

    async def story() -> None:
        async with opened(botapi) as adapter:
            file = out(ada.id, files=(FILE,))
            for status, body in ((502, None), (500, described(500, "Internal Server Error"))):
                botapi.faults.answer("sendDocument", status, body)
                with pytest.raises(Unsure):
                    await adapter.call(file, holding(b"data"))
                assert adapter.caps.files
                await adapter.call(file, holding(b"data"))
            botapi.faults.answer("sendDocument", 502, times=2)
            with pytest.raises(Unsure):
                await adapter.call(file, holding(b"data"))
            with pytest.raises(Absent):
                await adapter.call(file, holding(b"data"))
            assert not adapter.caps.files

    run(story())


def test_a_call_that_broke_is_tried_again_after_a_while(botapi: BotApi, ada, clock):
    clock.now = 1_000_000.0
    botapi.faults.answer("sendChatAction", 500)

    async def story() -> None:
        async with opened(botapi, clock=clock) as adapter:
            with pytest.raises(Absent):
                await adapter.call(out(ada.id, Op.TYPING), nothing)
            assert not adapter.caps.typing
            clock.now += 301
            assert adapter.caps.typing
            await adapter.call(out(ada.id, Op.TYPING), nothing)
            assert adapter.notes[:-1] == []

    run(story())


def test_a_404_about_something_is_not_about_the_call(botapi: BotApi, ada):
    botapi.faults.answer(
        "deleteMessage", 404, described(404, "Not Found: message to delete not found")
    )

    async def story() -> None:
        async with opened(botapi) as adapter:
            await adapter.call(out(ada.id, Op.DELETE, target="1"), nothing)
            assert adapter.notes[:-1] == []

    run(story())
