"""Everything there is: accounts, chats, files, questions; and which bot hears of what."""

from __future__ import annotations

import itertools
import random
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from tests.telegram.botapi.accounts import Bot, User
from tests.telegram.botapi.chats import Chat, Topic
from tests.telegram.botapi.errors import QUERY_TOO_OLD, bad, forbidden
from tests.telegram.botapi.files import Files
from tests.telegram.botapi.messages import Message
from tests.telegram.botapi.record import Record
from tests.telegram.botapi.settings import DRAFT_LIFETIME_S, QUERY_LIFETIME_S, Settings, Times


@dataclass(eq=False)
class Query:
    """A button press or an inline query that waits for its answer."""

    id: str
    bot: Bot
    asker: User
    kind: str
    until: float
    text: str = ""
    """The button's data, or the words of the inline query."""
    answer: dict[str, Any] | None = None

    @property
    def results(self) -> list[dict[str, Any]]:
        """What an inline query found."""
        found: list[dict[str, Any]] = (self.answer or {}).get("results", [])
        return found


@dataclass(eq=False)
class Draft:
    """A preview in a private chat that goes away by itself."""

    chat: Chat
    id: int
    text: str
    until: float
    can_stop: bool
    thread_id: int = 0
    versions: list[str] = field(default_factory=list)


class World:
    """The state of the server; only its own loop touches it."""

    def __init__(self, times: Times, settings: Settings, record: Record) -> None:
        self.times = times
        self.settings = settings
        self.record = record
        self.files = Files(times, settings)
        self.bots: dict[str, Bot] = {}
        self.users: dict[int, User] = {}
        self.groups: dict[int, Chat] = {}
        self.private: dict[tuple[int, int], Chat] = {}
        self.queries: dict[str, Query] = {}
        self.drafts: dict[tuple[int, int], Draft] = {}
        self.inline_messages: dict[str, Message] = {}
        # Private chats and small groups of an account share one numbering.
        self._box: Iterator[int] = itertools.count(random.randrange(2, 5000))
        self._user_ids = itertools.count(random.randrange(100_000_000, 5_000_000_000), 7919)
        self._group_ids = itertools.count(random.randrange(100_000_000, 900_000_000), 104729)

    # Accounts and chats

    def new_user_id(self) -> int:
        return next(self._user_ids)

    def new_chat(self, kind: str, title: str, *, is_forum: bool = False) -> Chat:
        number = next(self._group_ids)
        if kind == "group":
            chat = Chat(-number, kind, title, message_ids=self._box)
        else:
            chat = Chat(int(f"-100{number + 1_000_000_000}"), kind, title, is_forum=is_forum)
        self.groups[chat.id] = chat
        return chat

    def chat_with(self, bot: Bot, person: User) -> Chat:
        """Their private chat."""
        key = (bot.id, person.id)
        if key not in self.private:
            chat = Chat(person.id, "private", person=person, bot=bot, message_ids=self._box)
            chat.members = {bot.id: (bot, "member"), person.id: (person, "member")}
            self.private[key] = chat
        return self.private[key]

    def find_chat(self, bot: Bot, chat_id: str) -> Chat:
        """The chat that a bot means, as far as the bot can know of it."""
        if not chat_id:
            raise bad("chat_id is empty")
        if chat_id.startswith("@"):
            named = (c for c in self.groups.values() if c.username == chat_id[1:])
            chat = next(named, None)
        elif not chat_id.removeprefix("-").isdigit():
            raise bad("chat not found")
        elif int(chat_id) < 0:
            chat = self.groups.get(int(chat_id))
            if chat and bot.id not in chat.members:
                chat = None
        else:
            if isinstance(self.users.get(int(chat_id)), Bot):
                raise forbidden("bots can't send messages to bots")
            chat = self.private.get((bot.id, int(chat_id))) or self._met(bot, int(chat_id))
        if chat is None:
            raise bad("chat not found")
        return chat

    def _met(self, bot: Bot, user_id: int) -> Chat | None:
        """A private chat with somebody seen in a group, who has not written to the bot yet."""
        for group in self.groups.values():
            if user_id in group.members and group.has(bot):
                return self.chat_with(bot, group.members[user_id][0])
        return None

    # Messages

    def post(self, chat: Chat, sender: User, **content: Any) -> Message:
        """A new message, of which the bots that may see it are told."""
        message = Message(next(chat.message_ids), chat, sender, self.times.date(), **content)
        chat.messages[message.id] = message
        text = message.words or f"[{', '.join(message.media)}]"
        self.record.see(chat.id, sender.first_name, "sent", text, message.id)
        self.tell("message", message)
        return message

    def tell(self, kind: str, message: Message) -> None:
        for bot in message.chat.bots():
            if sees(bot, message):
                bot.updates.add(kind, message.json(), message.chat.id)

    def edited(self, message: Message) -> None:
        who = message.sender.first_name
        self.record.see(message.chat.id, who, "edited", message.words, message.id)
        self.tell("edited_message", message)

    def delete(self, message: Message) -> None:
        """Gone without a word to any bot."""
        message.deleted = True
        message.chat.messages.pop(message.id, None)
        who = message.sender.first_name
        self.record.see(message.chat.id, who, "deleted", message.words, message.id)

    def new_topic(self, chat: Chat, maker: User, name: str, icon_color: int = 7322096) -> Topic:
        number = next(chat.message_ids)
        topic = Topic(number, name, icon_color)
        created = {"forum_topic_created": {"name": name, "icon_color": icon_color}}
        date = self.times.date()
        topic.made_by = Message(number, chat, maker, date, media=created, topic=topic)
        chat.topics[number] = topic
        chat.messages[number] = topic.made_by
        self.tell("message", topic.made_by)
        return topic

    def set_status(self, chat: Chat, user: User, status: str, by: User) -> None:
        """Somebody joins, leaves, is promoted or thrown out; a bot hears of itself."""
        old = chat.member(user)
        chat.members[user.id] = (user, status)
        event = {
            "chat": chat.json(),
            "from": by.json(),
            "date": self.times.date(),
            "old_chat_member": old,
            "new_chat_member": chat.member(user),
        }
        if isinstance(user, Bot):
            user.updates.add("my_chat_member", event, chat.id)
        for bot in chat.bots():
            if bot is not user and chat.is_admin(bot):
                bot.updates.add("chat_member", event, chat.id)

    # Questions

    def ask(self, kind: str, bot: Bot, asker: User, text: str, body: dict[str, Any]) -> Query:
        """A callback or inline query, sent to the bot."""
        number = str(random.randrange(10**17, 10**18))
        query = Query(number, bot, asker, kind, self.times.now() + QUERY_LIFETIME_S, text)
        self.queries[number] = query
        bot.updates.add(kind, {"id": number, "from": asker.json(), **body}, asker.id)
        return query

    def answer(self, bot: Bot, kind: str, query_id: str, answer: dict[str, Any]) -> Query:
        query = self.queries.get(query_id)
        if (
            query is None
            or query.bot is not bot
            or query.kind != kind
            or query.answer is not None
            or query.until < self.times.now()
        ):
            raise bad(QUERY_TOO_OLD)
        query.answer = answer
        self.record.see(query.asker.id, bot.first_name, "answer", str(answer.get("text", "")))
        return query

    # Drafts

    def draft(self, chat: Chat, draft_id: int, text: str, thread_id: int, can_stop: bool) -> None:
        key = (chat.bot.id if chat.bot else 0, chat.id)
        old = self.draft_in(chat)
        draft = Draft(chat, draft_id, text, 0.0, can_stop, thread_id)
        if old and old.id == draft_id:
            draft.versions = old.versions
        draft.versions.append(text)
        draft.until = self.times.now() + DRAFT_LIFETIME_S
        self.drafts[key] = draft
        who = chat.bot.first_name if chat.bot else ""
        self.record.see(chat.id, who, "draft", text)

    def draft_in(self, chat: Chat) -> Draft | None:
        """What is being shown as written, if it has not vanished."""
        key = (chat.bot.id if chat.bot else 0, chat.id)
        draft = self.drafts.get(key)
        if draft and draft.until < self.times.now():
            del self.drafts[key]
            return None
        return draft

    def drop_draft(self, chat: Chat) -> None:
        self.drafts.pop((chat.bot.id if chat.bot else 0, chat.id), None)

    def new_inline_id(self, message: Message) -> str:
        message.inline_id = secrets.token_urlsafe(18)
        self.inline_messages[message.inline_id] = message
        return message.inline_id


def sees(bot: Bot, message: Message) -> bool:
    """Whether a bot is told of a message: not of what bots say; in groups, by privacy mode."""
    chat = message.chat
    if isinstance(message.sender, Bot):
        return message.is_service and message.sender is bot
    if chat.person or not bot.privacy or chat.is_admin(bot) or message.is_service:
        return True
    if message.via_bot is bot or (message.reply_to and message.reply_to.sender is bot):
        return True
    said = message.text or message.caption
    for entity in said.entities if said else ():
        word = said.part(entity) if said else ""
        if entity["type"] == "bot_command" and entity["offset"] == 0:
            command, _, name = word.partition("@")
            if not name or name.lower() == (bot.username or "").lower():
                return bool(command)
        if entity["type"] == "mention" and word[1:].lower() == (bot.username or "").lower():
            return True
    return False
