"""What updates mean: who did what where, and who is nobody."""

from __future__ import annotations

import json

import pytest

from aios_bots.adapters.telegram.reading import Reader
from aios_bots.core.model import ChatKind, Incoming, Kind, SenderKind
from tests.telegram.botapi import BotApi

BOT = 77
ADA = {"id": 5, "is_bot": False, "first_name": "Ada", "last_name": "L", "username": "ada"}
PRIVATE = {"id": 5, "type": "private", "first_name": "Ada"}
GROUP = {"id": -100200, "type": "supergroup", "title": "G"}
CHANNEL = {"id": -100300, "type": "channel", "title": "C"}
OWN = {"id": BOT, "is_bot": True, "first_name": "Helper", "username": "Helper_bot"}


def reader() -> Reader:
    made = Reader(str(BOT), lambda: 1000.0)
    made.know(BOT, "Helper_bot")
    return made


def read(update_id: int = 9, **update) -> Incoming:
    return reader().read(json.dumps({"update_id": update_id, **update}))


def message(text: str | None = "hi", chat=PRIVATE, **more) -> Incoming:
    body = {"message_id": 3, "from": ADA, "chat": chat, "date": 900, **more}
    if text is not None:
        body["text"] = text
    return read(message=body)


def mark(kind: str, offset: int, length: int, **more) -> dict:
    return {"entities": [{"type": kind, "offset": offset, "length": length, **more}]}


def test_a_message_says_who_wrote_what_where_and_when():
    seen = message()
    assert (seen.person, seen.key) == ("tg:77:5", "tg:77:9")
    assert (seen.place.account, seen.place.chat, seen.place.topic) == ("77", "5", "")
    assert (seen.kind, seen.chat_kind, seen.text) == (Kind.MESSAGE, ChatKind.PRIVATE, "hi")
    assert (seen.sender.name, seen.sender.kind) == ("Ada L", SenderKind.PERSON)
    assert (seen.at, seen.msg_id, seen.addressed, seen.forwarded) == (900.0, "3", True, False)


def test_the_fields_that_are_optional_may_be_missing():
    seen = read(message={"message_id": 1, "chat": {"id": 5, "type": "private"}, "from": {"id": 5}})
    assert (seen.kind, seen.at, seen.sender.id) == (Kind.OTHER, 1000.0, "5")


@pytest.mark.parametrize(
    ("more", "kind"),
    [
        ({"sender_chat": GROUP, "from": {"id": 1087968824, "is_bot": True}}, SenderKind.CHAT),
        ({"sender_chat": CHANNEL, "from": {"id": 136817688, "is_bot": True}}, SenderKind.CHAT),
        ({"sender_chat": CHANNEL, "from": ADA}, SenderKind.CHAT),
        ({"from": {"id": 1087968824, "is_bot": False}}, SenderKind.CHAT),
        ({"from": {"id": 777000, "is_bot": False}}, SenderKind.CHAT),
        ({"from": {"id": 6, "is_bot": True}}, SenderKind.BOT),
        ({"from": None}, SenderKind.NOBODY),
        ({"from": {"id": "5", "first_name": "Ada"}}, SenderKind.NOBODY),
        ({"from": {"id": True}}, SenderKind.NOBODY),
        ({"from": {"username": "ada", "first_name": "Ada"}}, SenderKind.NOBODY),
    ],
)
def test_only_a_number_in_from_is_a_person(more, kind):
    seen = message(chat=GROUP, **more)
    assert seen.sender.kind is kind
    assert kind is SenderKind.BOT or seen.sender.id != "5"


def test_a_name_is_one_clean_line():
    seen = message(**{"from": {**ADA, "first_name": "A\u202eda\n\u200b" + "x" * 99}})
    assert seen.sender.name.isprintable()
    assert len(seen.sender.name) <= 64


@pytest.mark.parametrize(
    "more",
    [
        {"forward_origin": {"type": "user", "sender_user": ADA, "date": 1}},
        {"forward_origin": {"type": "hidden_user", "sender_user_name": "x", "date": 1}},
        {"forward_from": ADA, "forward_date": 1},
        {"forward_date": 1},
        {"is_automatic_forward": True},
        {"external_reply": {"origin": {"type": "channel"}}},
        {"via_bot": {"id": 6, "is_bot": True, "first_name": "other"}},
    ],
)
def test_somebody_elses_words_are_forwarded(more):
    assert message("/unpair", **more).forwarded


def test_ones_own_words_are_not_forwarded():
    quoted = {"reply_to_message": {"message_id": 2, "from": OWN}, "quote": {"text": "so"}}
    assert not message("yes", **quoted).forwarded
    assert not message("/chat alice", via_bot=OWN).forwarded


@pytest.mark.parametrize(
    ("text", "more", "meant"),
    [
        ("hello all", {}, False),
        ("hey @helper_BOT", mark("mention", 4, 11), True),
        ("🎉 @helper_bot", mark("mention", 3, 11), True),  # a party is two units
        ("hey @helper_bot", {"entities": []}, False),  # in code, say
        ("hey @helper_bot", {}, True),  # a server that marks nothing
        ("hey @helper_bots", {}, False),
        ("mail@helper_bot", {}, False),
        ("hey @other_bot", mark("mention", 4, 10), False),
        ("hey you", mark("text_mention", 4, 3, user=OWN), True),
        ("hey you", mark("text_mention", 4, 3, user=ADA), False),
        ("yes", {"reply_to_message": {"message_id": 2, "from": OWN}}, True),
        ("yes", {"reply_to_message": {"message_id": 2, "from": ADA}}, False),
        ("/help@Helper_Bot", mark("bot_command", 0, 16), True),
        ("/help@other_bot", mark("bot_command", 0, 15), False),
        ("/help@other_bot", {"reply_to_message": {"message_id": 2, "from": OWN}}, False),
        ("/help", mark("bot_command", 0, 5), False),
        (
            "in a topic that the bot opened",
            {
                "message_thread_id": 2,
                "is_topic_message": True,
                "reply_to_message": {"message_id": 2, "from": OWN, "forum_topic_created": {}},
            },
            False,
        ),
    ],
)
def test_in_a_group_the_bot_is_meant_by_name_reply_or_command(text, more, meant):
    assert message(text, chat=GROUP, **more).addressed is meant


def test_the_name_in_front_is_not_what_is_said():
    assert message("@helper_bot  what now", chat=GROUP).text == "what now"
    assert message("@helper_bot", chat=GROUP).text == "@helper_bot"
    assert message("ask @helper_bot", chat=GROUP).text == "ask @helper_bot"
    seen = message("@helper_bot /unpair", chat=GROUP)
    assert (seen.kind, seen.text) == (Kind.MESSAGE, "/unpair")


@pytest.mark.parametrize(
    ("text", "more", "kind"),
    [
        ("/start abc", mark("bot_command", 0, 6), Kind.COMMAND),
        ("/start abc", {}, Kind.COMMAND),
        ("//start", {}, Kind.MESSAGE),
        ("/etc/passwd", {}, Kind.MESSAGE),
        ("/start", mark("code", 0, 6), Kind.MESSAGE),
        ("say /start", mark("bot_command", 4, 6), Kind.MESSAGE),
    ],
)
def test_commands_begin_with_a_slash(text, more, kind):
    assert message(text, **more).kind is kind


def test_a_topic_is_one_that_is_marked_so():
    forum = {**GROUP, "is_forum": True}
    reply = {"reply_to_message": {"message_id": 8, "from": ADA}}
    in_topic = message(chat=forum, message_thread_id=7, is_topic_message=True, **reply)
    assert (in_topic.place.topic, in_topic.reply_to) == ("7", "8")
    assert message(chat=GROUP, message_thread_id=8, **reply).place.topic == ""
    assert message(chat=forum, message_thread_id=8, **reply).place.topic == ""
    assert message(chat=forum, message_thread_id=7).place.topic == "7"
    assert message(chat=forum).place.topic == ""
    first = {"message_id": 7, "from": ADA, "forum_topic_created": {"name": "x"}}
    seen = message(chat=forum, message_thread_id=7, is_topic_message=True, reply_to_message=first)
    assert (seen.place.topic, seen.reply_to) == ("7", "")


def test_edits_carry_the_new_text_and_its_time():
    body = {"message_id": 3, "from": ADA, "chat": PRIVATE, "date": 900, "edit_date": 950}
    seen = read(edited_message={**body, "text": "/help"})
    assert (seen.kind, seen.text, seen.at, seen.msg_id) == (Kind.EDIT, "/help", 950.0, "3")


def test_files_come_with_safe_names():
    sizes = [
        {"file_id": "s", "width": 90, "height": 90, "file_size": 9},
        {"file_id": "l", "width": 900, "height": 900, "file_size": 99},
    ]
    seen = message(None, photo=sizes, caption="look /help")
    assert (seen.kind, seen.text) == (Kind.MESSAGE, "look /help")
    assert [(file.ref, file.mime, file.size) for file in seen.files] == [("l", "image/jpeg", 99)]
    for views in ([{"width": 9, "height": 9, "file_size": size} for size in (2, 7, 3)], [{}] * 3):
        listed = [{"file_id": str(at), **view} for at, view in enumerate(views)]
        best = "1" if views[0] else "2"  # the last is the largest, if nothing says otherwise
        assert message(None, photo=listed).files[0].ref == best
    document = {"file_id": "d", "file_name": "../../etc/\u202epasswd", "mime_type": "no\nsuch"}
    (file,) = message(None, document=document).files
    assert (file.name, file.mime) == ("passwd", "application/octet-stream")
    both = message(None, animation={"file_id": "a"}, document={"file_id": "d"})
    assert [file.ref for file in both.files] == ["a"]
    assert message(None, voice={"file_id": "v"}).files[0].name == "voice.ogg"
    assert message(None, document={"file_id": "d", "file_name": ".."}).files[0].name == "file"
    command = message(None, photo=sizes, caption="/unpair")
    assert command.kind is Kind.MESSAGE


def test_what_is_no_text_is_said_in_words():
    assert message(None, location={"latitude": 1.5, "longitude": 2}).text == "📍 1.5 2"
    assert message(None, sticker={"file_id": "s", "emoji": "🎉"}).files[0].name == "sticker.webp"
    assert message(None, pinned_message={"message_id": 1}).kind is Kind.OTHER


def test_a_press_is_by_whoever_pressed():
    bob = {"id": 6, "is_bot": False, "first_name": "Bob"}
    on = {"message_id": 4, "chat": GROUP, "date": 0, "from": OWN}
    seen = read(callback_query={"id": "123", "from": bob, "message": on, "data": "x1"})
    assert (seen.kind, seen.sender.id, seen.place.chat) == (Kind.BUTTON, "6", "-100200")
    assert (seen.msg_id, seen.data, seen.answer_to) == ("4", "x1", "123")
    assert seen.at == 1000.0
    elsewhere = read(callback_query={"id": "1", "from": bob, "inline_message_id": "q", "data": ""})
    assert (elsewhere.place.chat, elsewhere.msg_id) == ("6", "")


def test_searches_reactions_and_stops():
    search = read(inline_query={"id": "5", "from": ADA, "query": "cats", "offset": ""})
    assert (search.kind, search.text, search.answer_to) == (Kind.INLINE, "cats", "inline:5")
    heart, party = ({"type": "emoji", "emoji": one} for one in "❤🎉")
    event = {"chat": PRIVATE, "message_id": 4, "user": ADA, "date": 5, "old_reaction": [heart]}
    added = read(message_reaction={**event, "new_reaction": [heart, party]})
    assert (added.kind, added.data, added.msg_id) == (Kind.REACTION, "🎉", "4")
    assert read(message_reaction={**event, "new_reaction": []}).data == ""
    custom = [{"type": "custom_emoji", "custom_emoji_id": "1"}]
    assert read(message_reaction={**event, "new_reaction": custom}).kind is Kind.OTHER
    by_chat = {**event, "user": None, "actor_chat": GROUP, "chat": GROUP, "new_reaction": [party]}
    assert read(message_reaction=by_chat).sender.kind is SenderKind.CHAT
    stop = read(stopped_message_generation={"chat": PRIVATE, "draft_id": 8, "message_thread_id": 2})
    assert (stop.kind, stop.sender.id, stop.place.topic) == (Kind.STOP, "5", "2")


def test_coming_and_going_of_the_bot():
    event = {"chat": PRIVATE, "from": ADA, "date": 5, "old_chat_member": {"status": "member"}}
    seen = read(my_chat_member={**event, "new_chat_member": {"status": "kicked", "user": OWN}})
    assert (seen.kind, seen.data) == (Kind.MEMBERSHIP, "kicked")
    assert message(None, chat=GROUP, new_chat_members=[ADA, OWN]).data == "member"
    assert message(None, chat=GROUP, new_chat_members=[ADA]).kind is Kind.OTHER
    assert message(None, chat=GROUP, left_chat_member=OWN).data == "left"
    moved = message(None, chat=GROUP, migrate_to_chat_id=-1009)
    assert (moved.kind, moved.data) == (Kind.MEMBERSHIP, "moved:-1009")


@pytest.mark.parametrize(
    "raw",
    [
        "{",
        "[]",
        "3",
        '{"message": {}}',
        '{"update_id": true}',
        '{"update_id": 1, "message": 3}',
        '{"update_id": 1, "message": {"message_id": 1}}',
        '{"update_id": 1, "message": {"chat": {"id": 5, "type": "private"}, "text": {}}}',
    ],
)
def test_what_is_no_update_is_a_value_error(raw):
    with pytest.raises(ValueError, match=r"."):
        reader().read(raw)


def test_unknown_kinds_are_something_else():
    seen = read(brand_new={"chat": GROUP, "from": ADA, "what": 1})
    assert (seen.kind, seen.place.chat, seen.sender.id) == (Kind.OTHER, "-100200", "5")
    assert read(poll={"id": "1"}).kind is Kind.OTHER
    assert read().kind is Kind.OTHER
    assert read(guest={"chat": 3, "from": 4}).kind is Kind.OTHER
    assert message(chat={"id": 5, "type": "huddle"}).chat_kind is ChatKind.CHANNEL


def test_everything_that_a_server_tells_can_be_read(botapi: BotApi):
    """One of each that people can do."""
    kinds = ["message_reaction", "message", "edited_message", "callback_query", "inline_query"]
    allowed = [*kinds, "my_chat_member", "stopped_message_generation"]
    botapi.run(lambda: botapi.bot.updates.allow(allowed))
    ada = botapi.person("Ada")
    first = ada.says("hello")
    ada.edits(first, "hello!")
    ada.reacts(first, "🎉")
    ada.sends("photo", b"x", "cap")
    ada.sends("voice", b"x")
    ada.searches("cats")
    ada.forwards(first)
    group = botapi.group(ada, botapi.bot, topics=True)
    topic = group.topic("plans")
    ada.says(f"@{botapi.bot.username} go", group.chat, topic=topic)
    group.anonymous(f"@{botapi.bot.username} go")
    group.channel(f"@{botapi.bot.username} go", linked=True)
    ada.blocks()
    made = Reader(str(botapi.bot.id), lambda: 1.0)
    made.know(botapi.bot.id, botapi.bot.username or "")
    seen = [made.read(json.dumps(update.body)) for update in botapi.bot.updates.pending]
    assert {one.kind for one in seen} >= {
        Kind.MESSAGE,
        Kind.EDIT,
        Kind.REACTION,
        Kind.INLINE,
        Kind.MEMBERSHIP,
    }
    spoken = [one for one in seen if one.text == "go"]
    assert [one.sender.kind for one in spoken] == [
        SenderKind.PERSON,
        SenderKind.CHAT,
        SenderKind.CHAT,
    ]
    assert all(one.addressed for one in spoken)
    assert spoken[0].place.topic == str(topic.id)
