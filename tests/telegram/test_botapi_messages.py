"""What bots and people do to messages, through both client libraries."""

from __future__ import annotations

import struct
import zlib

import pytest


def png(width: int, height: int) -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        return (
            struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        )

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    rows = zlib.compress(b"".join(b"\0" + bytes(width) for _ in range(height)))
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
    )


def last(client):
    return client.get_updates(offset=-1)[0]


def test_a_message_is_sent_edited_and_deleted(botapi, client, ada):
    sent = client.send_message(chat_id=ada.id, text="  one *two*  ")
    assert (sent.text, sent.chat.id, sent.chat.type) == ("one *two*", ada.id, "private")
    assert (sent.from_user.id, sent.from_user.is_bot) == (botapi.bot.id, True)
    edited = client.edit_message_text(chat_id=ada.id, message_id=sent.message_id, text="three")
    assert edited.message_id == sent.message_id
    assert edited.edit_date is not None
    assert ada.chat().messages[sent.message_id].versions == ["one *two*", "three"]
    assert client.delete_message(chat_id=ada.id, message_id=sent.message_id) is True
    assert "three" not in ada.chat().texts()
    assert [line.what for line in botapi.record.lines][-3:] == ["sent", "edited", "deleted"]


def test_formatting_arrives_as_entities(client, ada):
    def marks(message):
        return [(mark.type, mark.offset, mark.length) for mark in message.entities]

    html = client.send_message(
        chat_id=ada.id,
        text='😀 <b>bold <i>both</i></b> &lt;<a href="https://a.example/">link</a>&gt;'
        '<pre><code class="language-python">x</code></pre> /help',
        parse_mode="HTML",
    )
    assert html.text == "😀 bold both <link>x /help"
    assert marks(html) == [
        ("bold", 3, 9),
        ("italic", 8, 4),
        ("text_link", 14, 4),
        ("pre", 19, 1),
        ("bot_command", 21, 5),
    ]
    assert html.entities[3].language == "python"
    marked = client.send_message(
        chat_id=ada.id,
        text="*b _i_* ||s|| __u__ ~x~ `c\\`` [l](https://a.example/) 1\\.\n>quoted\nplain",
        parse_mode="MarkdownV2",
    )
    assert marked.text == "b i s u x c` l 1.\nquoted\nplain"
    assert [mark[0] for mark in marks(marked)] == [
        *("bold", "italic", "spoiler", "underline", "strikethrough", "code", "text_link"),
        "blockquote",
    ]
    given = client.types.MessageEntity(type="bold", offset=2, length=3)
    plain = client.send_message(chat_id=ada.id, text="😀abc", entities=[given])
    assert marks(plain) == [("bold", 2, 3)]
    many = [client.types.MessageEntity(type="bold", offset=i, length=1) for i in range(0, 300, 2)]
    assert len(client.send_message(chat_id=ada.id, text="ab" * 150, entities=many).entities) == 100


def test_people_write_edit_reply_and_forward(botapi, client, ada):
    first = ada.says("hi @somebody, see https://a.example/x. /notacommand")
    update = last(client)
    assert [mark.type for mark in update.message.entities] == ["mention", "url", "bot_command"]
    ada.edits(first, "changed")
    edited = last(client).edited_message
    assert (edited.message_id, edited.text) == (first.id, "changed")
    sent = client.send_message(
        chat_id=ada.id,
        text="answer",
        reply_parameters=client.types.ReplyParameters(message_id=first.id),
    )
    assert sent.reply_to_message.text == "changed"
    ada.says("and back", reply_to=ada.chat().messages[sent.message_id])
    assert last(client).message.reply_to_message.message_id == sent.message_id
    bob = botapi.person("Bob")
    ada.forwards(bob.says("said by Bob"))
    origin = last(client).message.forward_origin
    assert origin.sender_user.id == bob.id
    ada.starts("code_1-A")
    assert last(client).message.text == "/start code_1-A"


def test_a_press_is_answered_once(botapi, client, ada):
    keyboard = client.keyboard(yes="y:1", no="n:1")
    sent = client.send_message(chat_id=ada.id, text="sure?", reply_markup=keyboard)
    message = ada.chat().messages[sent.message_id]
    press = ada.presses(message, "yes")
    query = last(client).callback_query
    assert (query.data, query.from_user.id) == ("y:1", ada.id)
    assert query.message.reply_markup.inline_keyboard[0][1].text == "no"
    assert client.answer_callback_query(query.id, text="done", show_alert=True) is True
    assert press.answer == {"text": "done", "show_alert": True, "url": ""}
    with pytest.raises(client.Error, match=r"(?i)query is too old"):
        client.answer_callback_query(query.id)
    client.edit_message_text(chat_id=ada.id, message_id=sent.message_id, text="sure.")
    assert not message.buttons
    message.markup = {"inline_keyboard": [[{"text": "x", "callback_data": "x"}]]}
    late = ada.presses(message, "x")
    botapi.clock.skip(3600)
    with pytest.raises(client.Error, match=r"(?i)query is too old"):
        client.answer_callback_query(late.id)
    client.delete_message(chat_id=ada.id, message_id=sent.message_id)
    ada.presses(message, "x")
    assert last(client).callback_query.message.message_id == sent.message_id


def test_inline_queries_find_something_that_can_be_sent(botapi, client, ada):
    asked = ada.searches("weather")
    query = last(client).inline_query
    assert (query.query, query.from_user.id) == ("weather", ada.id)
    content = client.types.InputTextMessageContent(message_text="<b>Sun</b>", parse_mode="HTML")
    found = client.types.InlineQueryResultArticle(
        id="a1", title="Sun", input_message_content=content, reply_markup=client.keyboard(more="m")
    )
    assert client.answer_inline_query(query.id, [found], is_personal=True, cache_time=1) is True
    assert [result["title"] for result in asked.results] == ["Sun"]
    sent = ada.picks(asked, "a1")
    message, chosen = client.get_updates()[-2:]
    assert (message.message.text, message.message.via_bot.id) == ("Sun", botapi.bot.id)
    inline_id = chosen.chosen_inline_result.inline_message_id
    assert client.edit_message_text(text="Rain", inline_message_id=inline_id) is True
    assert sent.words == "Rain"
    with pytest.raises(client.Error, match=r"(?i)query is too old"):
        client.answer_inline_query(query.id, [found])


def test_reactions_both_ways(botapi, client, ada):
    client.get_updates(allowed_updates=["message", "message_reaction"])
    message = ada.says("nice")
    heart = client.types.ReactionTypeEmoji(emoji="❤️‍🔥")
    assert client.set_message_reaction(ada.id, message.id, reaction=[heart]) is True
    assert message.reactions[botapi.bot.id]
    ada.reacts(message, "👍")
    event = last(client).message_reaction
    assert (event.message_id, event.user.id) == (message.id, ada.id)
    assert event.new_reaction[0].emoji == "👍"
    assert not event.old_reaction


def test_files_go_up_and_come_down(botapi, client, ada):
    picture = png(30, 20)
    sent = client.send_document(
        chat_id=ada.id, document=client.file(b"some text", "notes.txt"), caption="_notes_"
    )
    assert (sent.document.file_name, sent.document.file_size) == ("notes.txt", 9)
    assert sent.caption == "_notes_"
    assert client.download(sent.document.file_id) == b"some text"
    again = client.send_document(chat_id=ada.id, document=sent.document.file_id)
    assert again.document.file_unique_id == sent.document.file_unique_id
    photo = client.send_photo(chat_id=ada.id, photo=client.file(picture, "p.png")).photo
    assert (photo[-1].width, photo[-1].height) == (30, 20)
    assert client.download(photo[-1].file_id) == picture
    changed = client.edit_message_caption(
        chat_id=ada.id, message_id=sent.message_id, caption="other"
    )
    assert changed.caption == "other"
    ada.sends("photo", picture, "look")
    message = last(client).message
    assert message.caption == "look"
    assert client.download(message.photo[-1].file_id) == picture
    ada.sends("voice", b"OggS", mime="audio/ogg")
    assert last(client).message.voice.mime_type == "audio/ogg"
    ada.sends("document", b"x", size=21 * 1024 * 1024)
    with pytest.raises(client.Error, match=r"(?i)file is too big"):
        client.get_file(last(client).message.document.file_id)
    path = client.get_file(message.photo[-1].file_id)
    botapi.clock.skip(3700)
    assert path.file_path
    assert botapi.world.files.at("photos/file_1.jpg") is None


def test_commands_by_scope_and_language(client, ada):
    commands = [client.types.BotCommand(command="help", description="What I can do")]
    groups = client.types.BotCommandScopeAllGroupChats()
    assert client.set_my_commands(commands, scope=groups, language_code="de") is True
    assert list(client.get_my_commands()) == []
    (kept,) = client.get_my_commands(scope=groups, language_code="de")
    assert (kept.command, kept.description) == ("help", "What I can do")
    assert client.delete_my_commands(scope=groups, language_code="de") is True
    assert list(client.get_my_commands(scope=groups, language_code="de")) == []


def test_a_draft_vanishes_by_itself_and_can_be_stopped(botapi, client, ada):
    assert client.send_message_draft(chat_id=ada.id, draft_id=7, text="") is True
    client.send_message_draft(chat_id=ada.id, draft_id=7, text="Thin")
    assert ada.draft().versions == ["", "Thin"]
    botapi.clock.skip(31)
    assert ada.draft() is None
    stop = {"can_stop": True}
    more = {"api_kwargs": stop} if client.types.__name__ == "telegram" else stop
    client.send_message_draft(chat_id=ada.id, draft_id=8, text="So", **more)
    ada.stops(ada.draft())
    raw = botapi.bot.updates.pending[-1].body
    assert raw["stopped_message_generation"] == {"chat": ada.chat().json(), "draft_id": 8}
    assert last(client).update_id == raw["update_id"]
    client.send_message_draft(chat_id=ada.id, draft_id=9, text="So")
    client.send_message(chat_id=ada.id, text="So it is")
    assert ada.draft() is None


def test_typing_is_seen(botapi, client, ada):
    assert client.send_chat_action(chat_id=ada.id, action="typing") is True
    assert botapi.record.lines[-1].text == "typing"
    assert "Helper action: typing" in botapi.record.transcript(ada.id)
