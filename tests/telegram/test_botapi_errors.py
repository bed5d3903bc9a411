"""What the server refuses, in Telegram's words, which both client libraries take as errors."""

from __future__ import annotations

import json
import urllib.error
import urllib.parse
import urllib.request

import pytest

from tests.telegram.botapi.html_text import parsed_html
from tests.telegram.botapi.markdown_text import parsed_markdown, parsed_markdown_v2
from tests.telegram.botapi.texts import checked

EMOJI = "😀"  # two UTF-16 units


def asked(botapi, method, **params):
    """Status and body of a call made without any library."""
    url = f"{botapi.base_url}{botapi.bot.token}/{method}"
    data = json.dumps(params).encode()
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as error:
        with error:
            return error.code, json.load(error)


def why(botapi, method, **params):
    status, body = asked(botapi, method, **params)
    assert (status, body["ok"], body["error_code"]) == (400, False, 400)
    return body["description"].removeprefix("Bad Request: ")


def entity(offset, length, kind="bold", **more):
    return {"type": kind, "offset": offset, "length": length, **more}


def button(**what):
    return {"inline_keyboard": [[{"text": "x", **what}]]}


@pytest.mark.parametrize(
    ("params", "expected"),
    [
        ({"text": ""}, "message text is empty"),
        ({}, "message text is empty"),
        ({"text": " \n\t "}, "text must be non-empty"),
        ({"text": "x" * 4097}, "message is too long"),
        ({"text": EMOJI * 2049}, "message is too long"),
        ({"text": "x", "parse_mode": "Wiki"}, "unsupported parse_mode"),
        (
            {"text": "<b>x", "parse_mode": "HTML"},
            "can't parse entities: Can't find end tag corresponding to start tag \"b\"",
        ),
        (
            {"text": "abc", "entities": [entity(1, 3)]},
            "entity beginning at UTF-16 offset 1 ends after the end of the text at UTF-16 offset 4",
        ),
        (
            {"text": f"{EMOJI}a", "entities": [entity(1, 1)]},
            "entity beginning at UTF-16 offset 1 begins in a middle of a UTF-16 symbol",
        ),
        ({"text": "abc", "entities": [entity(-1, 2)]}, "message entity has incorrect offset -1"),
        (
            {"text": "abc", "entities": [entity(0, 1, "loud")]},
            "can't parse MessageEntity: Unsupported type specified",
        ),
        (
            {"text": "x", "reply_parameters": {"message_id": 999999}},
            "message to be replied not found",
        ),
        ({"text": "x", "reply_markup": button(callback_data="x" * 65)}, "BUTTON_DATA_INVALID"),
        ({"text": "x", "reply_markup": button(callback_data="é" * 33)}, "BUTTON_DATA_INVALID"),
        ({"text": "x", "reply_markup": button(callback_data="")}, "BUTTON_DATA_INVALID"),
        (
            {"text": "x", "reply_markup": button()},
            "can't parse inline keyboard button: Text buttons are unallowed in the inline keyboard",
        ),
        ({"text": "x", "reply_markup": "nothing"}, "can't parse reply markup JSON object"),
        ({"text": "x", "message_thread_id": 5}, "message thread not found"),
    ],
)
def test_messages_that_cannot_be_sent(botapi, ada, params, expected):
    assert why(botapi, "sendMessage", chat_id=ada.id, **params) == expected
    assert ada.chat().texts() == ["/start"]


@pytest.mark.parametrize("text", ["x" * 4096, EMOJI * 2048, "<b>" + "x" * 4096 + "</b>"])
def test_the_limit_counts_utf16_units_after_parsing(botapi, ada, text):
    assert asked(botapi, "sendMessage", chat_id=ada.id, text=text, parse_mode="HTML")[0] == 200


def test_edits_that_are_refused(botapi, client, ada):
    sent = client.send_message(chat_id=ada.id, text="same", reply_markup=client.keyboard(a="a"))
    number = sent.message_id
    with pytest.raises(client.Error, match=r"(?i)message is not modified"):
        client.edit_message_text(
            chat_id=ada.id, message_id=number, text="same", reply_markup=client.keyboard(a="a")
        )
    here = {"chat_id": ada.id, "message_id": number}
    assert why(botapi, "editMessageText", **here, text="x" * 4097) == "MESSAGE_TOO_LONG"
    assert why(botapi, "editMessageCaption", **here) == "there is no caption in the message to edit"
    gone = {"chat_id": ada.id, "message_id": 999999}
    assert why(botapi, "editMessageText", **gone, text="x") == "message to edit not found"
    assert why(botapi, "deleteMessage", **gone) == "message to delete not found"
    assert why(botapi, "setMessageReaction", **gone) == "message to react not found"
    hers = {"chat_id": ada.id, "message_id": ada.says("mine").id}
    assert why(botapi, "editMessageText", **hers, text="x") == "message can't be edited"
    assert why(botapi, "editMessageText", chat_id=ada.id, text="x") == (
        "message identifier is not specified"
    )
    document = client.send_document(chat_id=ada.id, document=client.file(b"1", "n"), caption="c")
    there = {"chat_id": ada.id, "message_id": document.message_id}
    assert why(botapi, "editMessageText", **there, text="x") == (
        "there is no text in the message to edit"
    )
    assert (
        why(botapi, "editMessageCaption", **there, caption="x" * 1025) == "MEDIA_CAPTION_TOO_LONG"
    )
    assert "not modified" in why(botapi, "editMessageCaption", **there, caption="c")
    botapi.clock.skip(49 * 3600)
    group = botapi.group(ada, botapi.bot)
    foreign = {"chat_id": group.id, "message_id": ada.says("/x", group.chat).id}
    assert why(botapi, "deleteMessage", **foreign) == "message can't be deleted"


def test_questions_and_reactions_that_are_refused(botapi, ada):
    too_old = "query is too old and response timeout expired or query ID is invalid"
    assert why(botapi, "answerCallbackQuery", callback_query_id="1") == too_old
    assert why(botapi, "answerInlineQuery", inline_query_id="1", results=[]) == too_old
    article = {
        "type": "article",
        "id": "1",
        "title": "t",
        "input_message_content": {"message_text": "x"},
    }
    refused = {
        "RESULTS_TOO_MUCH": [article] * 51,
        "RESULT_ID_DUPLICATE": [article, article],
        "RESULT_ID_INVALID": [article | {"id": "x" * 65}],
        "ARTICLE_TITLE_EMPTY": [article | {"title": ""}],
    }
    for expected, results in refused.items():
        assert why(botapi, "answerInlineQuery", inline_query_id="1", results=results) == expected
    here = {"chat_id": ada.id, "message_id": ada.says("x").id}
    for emoji in ("🧨", "ok"):
        wrong = [{"type": "emoji", "emoji": emoji}]
        assert why(botapi, "setMessageReaction", **here, reaction=wrong) == "REACTION_INVALID"


def test_files_that_are_refused(botapi, client, ada):
    botapi.settings.upload_bytes, botapi.settings.photo_bytes = 2000, 1000
    for kind, data, expected in (
        ("photo", b"no picture", "IMAGE_PROCESS_FAILED"),
        ("photo", b"\xff\xd8\xff" + bytes(1000), "is too big for a photo"),
        ("document", bytes(2001), "Request Entity Too Large"),
        ("document", b"", "file must be non-empty"),
    ):
        with pytest.raises(client.Error):
            getattr(client, f"send_{kind}")(ada.id, client.file(data, "name"))
        assert expected in botapi.record.calls[-1].description
    with pytest.raises(client.Error, match=r"(?i)caption is too long"):
        client.send_document(ada.id, client.file(b"1", "n"), caption="x" * 1025)
    assert why(botapi, "getFile", file_id="nothing") == "invalid file_id"
    assert why(botapi, "sendDocument", chat_id=ada.id, document="nothing") == (
        "wrong file identifier/HTTP URL specified"
    )


def test_commands_and_drafts_that_are_refused(botapi, ada):
    good = {"command": "go", "description": "Goes"}
    refused = {
        "BOT_COMMANDS_TOO_MUCH": [good] * 101,
        "BOT_COMMAND_INVALID": [good | {"command": "Go!"}],
        "BOT_COMMAND_DESCRIPTION_INVALID": [good | {"description": "x" * 257}],
    }
    for expected, commands in refused.items():
        assert why(botapi, "setMyCommands", commands=commands) == expected
    group = botapi.group(ada, botapi.bot)
    assert "private chats" in why(botapi, "sendMessageDraft", chat_id=group.id, draft_id=1)
    assert "non-zero" in why(botapi, "sendMessageDraft", chat_id=ada.id, draft_id=0, text="x")
    assert why(botapi, "sendMessageDraft", chat_id=ada.id, draft_id=1, text=" ") == (
        "text must be non-empty"
    )


def test_a_closed_topic_takes_nothing_from_a_member(botapi, ada):
    group = botapi.group(ada, botapi.bot, topics=True)
    topic = group.topic("Plans")
    place = {"chat_id": group.id, "message_thread_id": topic.id}
    assert why(botapi, "createForumTopic", chat_id=group.id, name="x") == (
        "not enough rights to create a topic"
    )
    topic.closed = True
    assert why(botapi, "sendMessage", **place, text="x") == "TOPIC_CLOSED"


def test_tokens_and_methods_that_do_not_exist(botapi):
    def status(token, method):
        with pytest.raises(urllib.error.HTTPError) as caught:
            urllib.request.urlopen(f"{botapi.base_url}{token}/{method}")
        with caught.value as error:
            return error.code, json.load(error)["description"]

    assert status("123456:" + "A" * 35, "getMe") == (401, "Unauthorized")
    assert status("nonsense", "getMe") == (404, "Not Found")
    assert status(botapi.bot.token, "getNothing") == (404, "Not Found")


def test_parameters_in_all_four_ways(botapi, ada):
    url = f"{botapi.base_url}{botapi.bot.token}/SENDMESSAGE"
    params = {"chat_id": str(ada.id), "text": "é & ü", "disable_notification": "True"}
    encoded = urllib.parse.urlencode(params)
    line = "\r\n"
    form = "".join(
        f'--X{line}Content-Disposition: form-data; name="{name}"{line}{line}{value}{line}'
        for name, value in params.items()
    )
    multipart = {"Content-Type": "multipart/form-data; boundary=X"}
    requests = [
        urllib.request.Request(f"{url}?{encoded}"),
        urllib.request.Request(url, encoded.encode()),
        urllib.request.Request(url, f"{form}--X--{line}".encode(), multipart),
        urllib.request.Request(
            url, json.dumps(params).encode(), {"Content-Type": "application/json"}
        ),
    ]
    for request in requests:
        with urllib.request.urlopen(request) as response:
            assert json.load(response)["result"]["text"] == "é & ü"


@pytest.mark.parametrize(
    ("parser", "source", "expected"),
    [
        (parsed_html, "é<x>", 'Unsupported start tag "x" at byte offset 2'),
        (parsed_html, "a < b", "Unclosed start tag at byte offset 2"),
        (parsed_html, "</b>", "Unexpected end tag at byte offset 0"),
        (
            parsed_html,
            "<b>x</i>",
            'Unmatched end tag at byte offset 4, expected "</b>", found "</i>"',
        ),
        (parsed_html, '<span class="x">y</span>', 'Tag "span" must have class "tg-spoiler"'),
        (parsed_markdown_v2, "1.", "Character '.' is reserved and must be escaped"),
        (parsed_markdown_v2, "a *b", "Can't find end of Bold entity at byte offset 2"),
        (parsed_markdown_v2, "```x", "Can't find end of Pre entity at byte offset 0"),
        (parsed_markdown, "a_b", "Can't find end of the entity starting at byte offset 1"),
    ],
)
def test_markup_that_cannot_be_parsed(parser, source, expected):
    with pytest.raises(Exception, match="can't parse entities") as caught:
        parser(source)
    assert expected in str(caught.value)


@pytest.mark.parametrize(
    ("text", "marks", "expected"),
    [
        ("  ab  ", [(2, 4)], ("ab", [(0, 2)])),
        ("  ab  ", [(0, 6)], ("  ab", [(0, 4)])),
        ("a\r\nb", [(3, 1)], ("a\nb", [(2, 1)])),
        ("a\tb", [(0, 0)], ("a b", [])),
        (f"{EMOJI} x ", [(2, 3)], (f"{EMOJI} x", [(2, 2)])),
    ],
)
def test_texts_are_cleaned_and_entities_follow(text, marks, expected):
    kept = checked(text, [entity(*mark) for mark in marks])
    assert (kept.text, [(mark["offset"], mark["length"]) for mark in kept.entities]) == expected
