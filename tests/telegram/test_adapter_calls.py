"""Each call of the bridge, as the server has it and as a person sees it."""

from __future__ import annotations

import json

import msgspec
import pytest

from aios_bots.adapters.telegram.menu import set_menu
from aios_bots.core.adapter import Impossible
from aios_bots.core.commands import COMMANDS
from aios_bots.core.model import Attachment, Button, Hit, Op, Span, SpanKind
from aios_bots.core.spans import from_markdown
from aios_bots.core.splitting import beginning
from tests.telegram.adapting import holding, nothing, opened, out, run
from tests.telegram.botapi import BotApi, Chat, Message

FILE = Attachment("ab", "a.bin", "application/octet-stream", 4)


def shown(chat: Chat, message_id: str) -> Message:
    return chat.messages[int(message_id)]


def marked(message: Message) -> list[tuple[str, str]]:
    """The kind and the words of each entity."""
    said = message.text or message.caption
    return [(one["type"], said.part(one)) for one in said.entities]


def test_a_message_is_sent_edited_and_deleted(botapi: BotApi, ada):
    async def story() -> None:
        async with opened(botapi) as adapter:
            number = await adapter.call(out(ada.id, text="one"), nothing)
            assert shown(ada.chat(), number).words == "one"
            edit = out(ada.id, Op.EDIT, "two", target=number)
            assert await adapter.call(edit, nothing) == number
            assert shown(ada.chat(), number).versions == ["one", "two"]
            assert await adapter.call(edit, nothing) == number  # it says so already
            await adapter.call(out(ada.id, Op.DELETE, target=number), nothing)
            assert int(number) not in ada.chat().messages
            await adapter.call(out(ada.id, Op.DELETE, target=number), nothing)

    run(story())


def test_styles_are_entities_in_utf16_units(botapi: BotApi, ada):
    rich = from_markdown(
        "🎉🎉 **bold 🎉** *it* ~~no~~ `c🎉d`\n\n[link](https://example.org/?a=1)\n\n"
        "```python\nprint('🎉')\n```\n\n> said 🎉"
    )

    async def story() -> None:
        async with opened(botapi) as adapter:
            number = await adapter.call(out(ada.id, text=rich.text, spans=rich.spans), nothing)
            message = shown(ada.chat(), number)
            assert message.text.text == rich.text
            assert marked(message) == [
                ("bold", "bold 🎉"),
                ("italic", "it"),
                ("strikethrough", "no"),
                ("code", "c🎉d"),
                ("text_link", "link"),
                ("pre", "print('🎉')"),
                ("blockquote", "said 🎉"),
            ]
            by_kind = {one["type"]: one for one in message.text.entities}
            assert by_kind["text_link"]["url"] == "https://example.org/?a=1"
            assert by_kind["pre"]["language"] == "python"
            assert "parse_mode" not in botapi.record.of("sendMessage")[0].params

    run(story())


def test_a_link_that_is_none_for_the_web_is_no_link(botapi: BotApi, ada):
    spans = (Span(SpanKind.LINK, 0, 4, "tg://user?id=5"), Span(SpanKind.BOLD, 5, 3))

    async def story() -> None:
        async with opened(botapi) as adapter:
            number = await adapter.call(out(ada.id, text="pay, now", spans=spans), nothing)
            assert marked(shown(ada.chat(), number)) == [("bold", "now")]

    run(story())


def test_what_the_core_splits_is_taken_as_it_is(botapi: BotApi, ada):
    """Texts at the limit: 4096 units of which many are pairs, and 100 entities."""
    words = " ".join(f"**{number}** 🎉🎉🎉" for number in range(1200))

    async def story() -> None:
        async with opened(botapi) as adapter:
            caps = adapter.caps
            rich = from_markdown(words)
            parts = beginning(rich, limit=caps.text_units, max_spans=caps.spans, most=40)
            assert len(parts) > 2
            numbers = [
                await adapter.call(out(ada.id, text=one.text, spans=one.spans), nothing)
                for one in parts
            ]
            messages = [shown(ada.chat(), number) for number in numbers]
            assert [one.words for one in messages] == [one.text for one in parts]
            assert [len(marked(one)) for one in messages] == [len(one.spans) for one in parts]

    run(story())


def test_no_address_is_fetched_for_a_preview(botapi: BotApi, ada):
    text = "see https://example.org/?secret=1"

    async def story() -> None:
        async with opened(botapi) as adapter:
            number = await adapter.call(out(ada.id, text=text), nothing)
            await adapter.call(out(ada.id, Op.EDIT, f"{text} now", target=number), nothing)
            query = ada.searches("x")
            hits = msgspec.json.encode([Hit("1", "one", text=text)]).decode()
            answer = out(ada.id, Op.ANSWER, target=f"inline:{query.id}", data=hits)
            await adapter.call(answer, nothing)
            for call in botapi.record.of("sendMessage", "editMessageText"):
                assert json.loads(call.params["link_preview_options"]) == {"is_disabled": True}
            (result,) = query.results
            assert result["input_message_content"]["link_preview_options"] == {"is_disabled": True}

    run(story())


def test_everything_for_a_topic_names_it(botapi: BotApi, ada):
    group = botapi.group(ada, botapi.bot, topics=True)
    topic = group.topic("plans")
    where = {"topic": topic.id}

    async def story() -> None:
        async with opened(botapi) as adapter:
            await adapter.call(out(group.id, Op.TYPING, **where), nothing)
            first = await adapter.call(out(group.id, text="hi", **where), nothing)
            await adapter.call(out(group.id, text="re", reply_to=first, **where), nothing)
            await adapter.call(out(group.id, text="long", as_file="all.md", **where), nothing)
            file = out(group.id, files=(FILE,), **where)
            await adapter.call(file, holding(b"data"))
            await adapter.call(out(group.id, Op.EDIT, "ho", target=first, **where), nothing)
            await adapter.call(out(group.id, Op.REACT, "👍", target=first, **where), nothing)
            sent = [one for one in group.chat.messages.values() if one.sender is botapi.bot]
            assert len(sent) == 4
            assert all(one.topic is topic for one in sent)
            (typing,) = botapi.record.of("sendChatAction")
            assert typing.params["message_thread_id"] == str(topic.id)

    run(story())


def test_a_reply_to_what_is_gone_is_sent_all_the_same(botapi: BotApi, ada):
    async def story() -> None:
        async with opened(botapi) as adapter:
            first = await adapter.call(out(ada.id, text="one"), nothing)
            reply = await adapter.call(out(ada.id, text="two", reply_to=first), nothing)
            assert shown(ada.chat(), reply).reply_to.words == "one"
            await adapter.call(out(ada.id, Op.DELETE, target=first), nothing)
            alone = await adapter.call(out(ada.id, text="three", reply_to=first), nothing)
            assert shown(ada.chat(), alone).reply_to is None
            # A server that does not know that a reply may be left out.
            refusal = "Bad Request: message to be replied not found"
            botapi.faults.answer("sendMessage", 400, {"ok": False, "description": refusal})
            again = await adapter.call(out(ada.id, text="four", reply_to=first), nothing)
            assert shown(ada.chat(), again).words == "four"

    run(story())


def test_buttons_are_shown_pressed_and_answered(botapi: BotApi, ada):
    row = (Button("Yes 🎉", "id-1"), Button("x" * 90, "id-2"))

    async def story() -> None:
        async with opened(botapi) as adapter:
            number = await adapter.call(out(ada.id, text="?", buttons=(row, ())), nothing)
            message = shown(ada.chat(), number)
            assert list(message.buttons) == ["Yes 🎉", "x" * 64]
            quiet, loud = ada.presses(message, "Yes 🎉"), ada.presses(message, "Yes 🎉")
            assert quiet.text == "id-1"
            await adapter.call(out(ada.id, Op.ANSWER, target=quiet.id), nothing)
            assert (quiet.answer["text"], quiet.answer["show_alert"]) == ("", False)
            answer = out(ada.id, Op.ANSWER, "🎉" * 150, target=loud.id, alert=True)
            await adapter.call(answer, nothing)
            assert (loud.answer["text"], loud.answer["show_alert"]) == ("🎉" * 100, True)
            with pytest.raises(Impossible, match="too old"):
                await adapter.call(answer, nothing)
            # An edit without buttons takes them away; one of the buttons alone leaves the text.
            fewer = out(ada.id, Op.EDIT, target=number, buttons=(row[:1],))
            await adapter.call(fewer, nothing)
            assert (message.words, list(message.buttons)) == ("?", ["Yes 🎉"])
            await adapter.call(out(ada.id, Op.EDIT, "!", target=number), nothing)
            assert (message.words, message.buttons) == ("!", {})

    run(story())


def test_a_search_is_answered_for_that_person_alone(botapi: BotApi, ada):
    hits = [Hit("1", "calc\nulator", "adds\nup", "calc: adds up"), Hit("2", "", text="")]
    hits += [Hit(f"n{number}", "more") for number in range(60)]

    async def story() -> None:
        async with opened(botapi) as adapter:
            query = ada.searches("sums")
            data = msgspec.json.encode(hits).decode()
            answer = out(ada.id, Op.ANSWER, target=f"inline:{query.id}", data=data)
            assert await adapter.call(answer, nothing) == ""
            assert query.answer["is_personal"] is True
            assert query.answer["cache_time"] <= 10
            first, second, *rest = query.results
            assert (first["title"], first["description"]) == ("calc ulator", "adds up")
            assert first["input_message_content"]["message_text"] == "calc: adds up"
            assert second["title"] == second["input_message_content"]["message_text"] == "…"
            assert len(rest) == 48
            nobody = ada.searches("nobody")
            empty = out(ada.id, Op.ANSWER, target=f"inline:{nobody.id}")
            await adapter.call(empty, nothing)
            assert nobody.answer["results"] == []

    run(story())


def test_typing_and_reactions_are_seen(botapi: BotApi, ada):
    said = ada.says("hello")

    async def story() -> None:
        async with opened(botapi) as adapter:
            await adapter.call(out(ada.id, Op.TYPING), nothing)
            heart = out(ada.id, Op.REACT, "❤️", target=str(said.id))
            await adapter.call(heart, nothing)
            assert said.reactions[botapi.bot.id] == [{"type": "emoji", "emoji": "❤"}]
            await adapter.call(out(ada.id, Op.REACT, target=str(said.id)), nothing)
            assert said.reactions[botapi.bot.id] == []
            seen = [(line.what, line.text) for line in botapi.record.lines[-3:]]
            assert seen == [("action", "typing"), ("reaction", "❤"), ("reaction", "")]

    run(story())


def test_quiet_messages_make_no_sound(botapi: BotApi, ada):
    async def story() -> None:
        async with opened(botapi) as adapter:
            await adapter.call(out(ada.id, text="psst", silent=True), nothing)
            await adapter.call(out(ada.id, text="hey"), nothing)
            quiet, loud = botapi.record.of("sendMessage")
            assert quiet.params["disable_notification"] == "true"
            assert "disable_notification" not in loud.params

    run(story())


@pytest.mark.parametrize(
    "wrong",
    [
        out(5),
        out(5, text="x", buttons=((Button("a", "x" * 65),),)),
        out(5, Op.EDIT, "x", target="no number"),
        out(5, text="x", reply_to="no number"),
        out(5, text="x", topic="no number"),
        out(5, Op.ANSWER, target="inline:1", data="{"),
        out(5, files=(FILE, FILE)),
    ],
)
def test_what_cannot_be_meant_is_not_even_asked(botapi: BotApi, wrong):
    async def story() -> None:
        async with opened(botapi) as adapter:
            before = len(botapi.record.calls)
            with pytest.raises(Impossible):
                await adapter.call(wrong, nothing)
            assert len(botapi.record.calls) == before

    run(story())


# The menu


def test_each_kind_of_chat_has_its_menu(botapi: BotApi, ada):
    async def story() -> None:
        async with opened(botapi) as adapter:
            await set_menu(adapter._calls.ask, [str(ada.id)])
            menus = {scope: rows for (scope, _), rows in botapi.bot.commands.items()}
            names = {scope: {row["command"] for row in rows} for scope, rows in menus.items()}
            private = {name for name, one in COMMANDS.items() if one.least != "owner"}
            assert names["default"] == names["all_private_chats"] == private
            assert "unpair" not in names["all_group_chats"]
            assert "invite" not in names["all_group_chats"] | private
            assert names[f"chat:{ada.id}"] == set(COMMANDS)

    run(story())


def test_a_menu_for_a_chat_that_is_gone_leaves_the_others(botapi: BotApi, ada):
    async def story() -> None:
        async with opened(botapi) as adapter:
            await set_menu(adapter._calls.ask, ["12345", str(ada.id)])
            scopes = [scope for scope, _ in botapi.bot.commands]
            assert scopes[-1] == f"chat:{ada.id}"

    run(story())


def test_the_menu_waits_for_as_long_as_the_server_wants(botapi: BotApi):
    refusal = {"ok": False, "error_code": 429, "parameters": {"retry_after": 0.05}}
    botapi.faults.answer("setMyCommands", 429, refusal, times=2)
    botapi.faults.cut("setMyCommands")

    async def story() -> None:
        async with opened(botapi) as adapter:
            await set_menu(adapter._calls.ask, pause_s=0.01)
            assert [scope for scope, _ in botapi.bot.commands] == [
                "default",
                "all_private_chats",
                "all_group_chats",
            ]

    run(story())
