"""New messages: sendMessage, and what all sending has in common."""

from __future__ import annotations

from typing import Any

from tests.telegram.botapi.chats import GENERAL_TOPIC, Chat
from tests.telegram.botapi.errors import bad
from tests.telegram.botapi.keyboards import checked_markup
from tests.telegram.botapi.messages import Message
from tests.telegram.botapi.methods.table import Asked, method
from tests.telegram.botapi.settings import TEXT_UNITS

ACTIONS = frozenset(
    [
        "typing",
        "upload_photo",
        "record_video",
        "upload_video",
        "record_voice",
        "upload_voice",
        "upload_document",
        "choose_sticker",
        "find_location",
        "record_video_note",
        "upload_video_note",
    ]
)


@method("sendMessage")
def send_message(asked: Asked) -> dict[str, Any]:
    chat = asked.chat()
    said = asked.words(TEXT_UNITS, "message is too long")
    extra: dict[str, Any] = {}
    preview = asked.args.json("link_preview_options")
    if preview and any(entity["type"] == "url" for entity in said.entities):
        extra["link_preview_options"] = preview
    return send(asked, chat, text=said, extra=extra).json()


@method("sendChatAction")
def send_chat_action(asked: Asked) -> bool:
    chat = asked.chat()
    action = asked.args.text("action")
    if action not in ACTIONS:
        raise bad("wrong parameter action in request")
    place = asked.args.integer("message_thread_id")
    if place != GENERAL_TOPIC or not chat.is_forum:
        chat.topic(place)
    asked.world.record.see(chat.id, asked.bot.first_name, "action", action)
    return True


@method("forwardMessage")
def forward_message(asked: Asked) -> dict[str, Any]:
    chat = asked.chat()
    message = _from_elsewhere(asked, "message to forward not found")
    origin = {"type": "user", "sender_user": message.sender.json(), "date": message.date}
    return send(
        asked,
        chat,
        text=message.text,
        media=message.media,
        caption=message.caption,
        extra={"forward_origin": origin},
    ).json()


@method("copyMessage")
def copy_message(asked: Asked) -> dict[str, Any]:
    chat = asked.chat()
    message = _from_elsewhere(asked, "message to copy not found")
    content = {"text": message.text, "media": message.media, "caption": message.caption}
    return {"message_id": send(asked, chat, **content).id}


def send(asked: Asked, chat: Chat, **content: Any) -> Message:
    """Post as the bot: in the topic asked for, in reply to what it names, with its keyboard."""
    args = asked.args
    markup = checked_markup(args.json("reply_markup"))
    topic = chat.topic(args.integer("message_thread_id"), asked.bot)
    replied, quote = _replied(asked, chat)
    if topic is None and replied is not None:
        topic = replied.topic
    extra = content.pop("extra", {})
    if args.flag("protect_content"):
        extra["has_protected_content"] = True
    asked.world.drop_draft(chat)
    return asked.world.post(
        chat,
        asked.bot,
        markup=markup,
        topic=topic,
        reply_to=replied,
        quote=quote,
        extra=extra,
        **content,
    )


def _from_elsewhere(asked: Asked, missing: str) -> Message:
    source = asked.world.find_chat(asked.bot, asked.args.text("from_chat_id"))
    return source.find(asked.args.integer("message_id"), missing)


def _replied(asked: Asked, chat: Chat) -> tuple[Message | None, str]:
    """The message that is replied to, and the words quoted from it."""
    args = asked.args
    given = args.json("reply_parameters") or {
        "message_id": args.integer("reply_to_message_id"),
        "allow_sending_without_reply": args.flag("allow_sending_without_reply"),
    }
    if not isinstance(given, dict):
        raise bad("can't parse reply parameters JSON object")
    number = given.get("message_id")
    if not number:
        return None, ""
    source = chat
    if given.get("chat_id") not in {None, chat.id}:
        source = asked.world.find_chat(asked.bot, str(given["chat_id"]))
    message = source.messages.get(int(number))
    if message is None:
        if given.get("allow_sending_without_reply"):
            return None, ""
        raise bad("message to be replied not found")
    quote = str(given.get("quote") or "")
    if quote and quote not in message.words:
        raise bad("QUOTE_TEXT_INVALID")
    return message, quote
