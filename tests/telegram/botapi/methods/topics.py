"""Topics of forums, and of private chats with bots that have them."""

from __future__ import annotations

from typing import Any

from tests.telegram.botapi.chats import Chat, Topic
from tests.telegram.botapi.errors import bad
from tests.telegram.botapi.methods.table import Asked, method

LONGEST_NAME = 128


@method("createForumTopic")
def create_forum_topic(asked: Asked) -> dict[str, Any]:
    chat = _forum(asked)
    name = _name(asked)
    color = asked.args.integer("icon_color", 7322096)
    return asked.world.new_topic(chat, asked.bot, name, color).json()


@method("editForumTopic")
def edit_forum_topic(asked: Asked) -> bool:
    chat = _forum(asked)
    topic = _topic(asked, chat)
    if not asked.args.has("name"):
        return True
    name = _name(asked)
    if name == topic.name:
        raise bad("TOPIC_NOT_MODIFIED")
    topic.name = name
    changed = {"forum_topic_edited": {"name": name}}
    asked.world.post(chat, asked.bot, topic=topic, media=changed)
    return True


@method("closeForumTopic")
def close_forum_topic(asked: Asked) -> bool:
    return _set_closed(asked, closed=True)


@method("reopenForumTopic")
def reopen_forum_topic(asked: Asked) -> bool:
    return _set_closed(asked, closed=False)


@method("deleteForumTopic")
def delete_forum_topic(asked: Asked) -> bool:
    chat = _forum(asked)
    topic = _topic(asked, chat)
    for message in [one for one in chat.messages.values() if one.topic is topic]:
        asked.world.delete(message)
    del chat.topics[topic.id]
    return True


@method("getForumTopicIconStickers")
def get_forum_topic_icon_stickers(_asked: Asked) -> list[dict[str, Any]]:
    return []


def _forum(asked: Asked) -> Chat:
    """The chat, if it has topics and the bot may manage them."""
    chat = asked.chat()
    if not chat.has_topics:
        raise bad("the chat is not a forum")
    if not chat.person and not chat.is_admin(asked.bot):
        raise bad("not enough rights to create a topic")
    return chat


def _topic(asked: Asked, chat: Chat) -> Topic:
    topic = chat.topics.get(asked.args.integer("message_thread_id"))
    if topic is None:
        raise bad("TOPIC_ID_INVALID")
    return topic


def _name(asked: Asked) -> str:
    name = asked.args.text("name").strip()
    if not name:
        raise bad("TOPIC_TITLE_EMPTY")
    if len(name) > LONGEST_NAME:
        raise bad("TOPIC_TITLE_TOO_LONG")
    return name


def _set_closed(asked: Asked, *, closed: bool) -> bool:
    chat = _forum(asked)
    topic = _topic(asked, chat)
    if topic.closed == closed:
        raise bad("TOPIC_NOT_MODIFIED")
    topic.closed = closed
    what = "forum_topic_closed" if closed else "forum_topic_reopened"
    asked.world.post(chat, asked.bot, topic=topic, media={what: {}})
    return True
