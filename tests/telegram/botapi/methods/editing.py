"""Messages that change: edits, deletions, reactions, pins."""

from __future__ import annotations

from typing import Any

from tests.telegram.botapi.errors import bad
from tests.telegram.botapi.keyboards import inline_only
from tests.telegram.botapi.messages import FILES, Message
from tests.telegram.botapi.methods.media import files_of_group
from tests.telegram.botapi.methods.table import Asked, method
from tests.telegram.botapi.reactions import EMOJI, plain
from tests.telegram.botapi.settings import CAPTION_UNITS, DELETE_LIFETIME_S, TEXT_UNITS

MOST_DELETED = 100


@method("editMessageText")
def edit_message_text(asked: Asked) -> Any:
    message = _own(asked)
    said = asked.words(TEXT_UNITS, "MESSAGE_TOO_LONG")
    if message.text is None:
        raise bad("there is no text in the message to edit")
    return _changed(asked, message, text=said)


@method("editMessageCaption")
def edit_message_caption(asked: Asked) -> Any:
    message = _own(asked)
    said = asked.formatted("caption", "caption_entities", CAPTION_UNITS, "MEDIA_CAPTION_TOO_LONG")
    if not FILES & message.media.keys():
        raise bad("there is no caption in the message to edit")
    return _changed(asked, message, caption=said)


@method("editMessageReplyMarkup")
def edit_message_reply_markup(asked: Asked) -> Any:
    return _changed(asked, _own(asked))


@method("editMessageMedia")
def edit_message_media(asked: Asked) -> Any:
    message = _own(asked)
    ((media, caption),) = files_of_group(asked, [asked.args.json("media")])
    return _changed(asked, message, media=media, caption=caption)


@method("deleteMessage")
def delete_message(asked: Asked) -> bool:
    chat = asked.chat()
    message = chat.find(asked.args.integer("message_id"), "message to delete not found")
    _check_deletable(asked, message)
    asked.world.delete(message)
    return True


@method("deleteMessages")
def delete_messages(asked: Asked) -> bool:
    chat = asked.chat()
    numbers = asked.args.json("message_ids")
    if not isinstance(numbers, list) or not numbers:
        raise bad("message identifiers are not specified")
    if len(numbers) > MOST_DELETED:
        raise bad("too many messages to delete")
    found = [chat.messages[number] for number in numbers if number in chat.messages]
    for message in found:
        _check_deletable(asked, message)
    for message in found:
        asked.world.delete(message)
    return True


@method("setMessageReaction")
def set_message_reaction(asked: Asked) -> bool:
    chat = asked.chat()
    message = chat.find(asked.args.integer("message_id"), "message to react not found")
    wanted = asked.args.json("reaction") or []
    if not isinstance(wanted, list) or not all(isinstance(one, dict) for one in wanted):
        raise bad("can't parse reaction types JSON object")
    if len(wanted) > 1:
        raise bad("REACTIONS_TOO_MANY")
    for one in wanted:
        if one.get("type") != "emoji" or plain(one.get("emoji")) not in EMOJI:
            raise bad("REACTION_INVALID")
    message.reactions[asked.bot.id] = wanted
    shown = " ".join(one["emoji"] for one in wanted)
    asked.world.record.see(chat.id, asked.bot.first_name, "reaction", shown, message.id)
    return True


@method("pinChatMessage", "unpinChatMessage")
def pin_chat_message(asked: Asked) -> bool:
    chat = asked.chat()
    chat.find(asked.args.integer("message_id"), "message to pin not found")
    if not chat.person and not chat.is_admin(asked.bot):
        raise bad("not enough rights to manage pinned messages in the chat")
    return True


def _own(asked: Asked) -> Message:
    """The message to edit, which has to be the bot's."""
    if inline := asked.args.text("inline_message_id"):
        message = asked.world.inline_messages.get(inline)
        if message is None or message.via_bot is not asked.bot:
            raise bad("MESSAGE_ID_INVALID")
        return message
    chat = asked.chat()
    message = chat.find(asked.args.integer("message_id"), "message to edit not found")
    if message.sender is not asked.bot:
        raise bad("message can't be edited")
    return message


def _changed(asked: Asked, message: Message, **change: Any) -> Any:
    """Apply; an edit without a keyboard takes the keyboard away."""
    markup = inline_only(asked.args.json("reply_markup"))
    message.change(asked.world.times.date(), markup=markup, **change)
    asked.world.edited(message)
    return True if message.inline_id else message.json()


def _check_deletable(asked: Asked, message: Message) -> None:
    chat = message.chat
    own = message.sender is asked.bot or chat.person is not None
    too_old = asked.world.times.date() - message.date > DELETE_LIFETIME_S
    if not chat.is_admin(asked.bot) and (not own or too_old):
        raise bad("message can't be deleted")
