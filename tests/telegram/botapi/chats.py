"""Chats: private ones, groups, supergroups with topics; who is in them and may do what."""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from tests.telegram.botapi.accounts import Bot, User
from tests.telegram.botapi.errors import bad, forbidden, migrated

if TYPE_CHECKING:
    from tests.telegram.botapi.messages import Message

GENERAL_TOPIC = 1
INSIDE = frozenset({"creator", "administrator", "member", "restricted"})

ADMIN_RIGHTS = (
    "can_manage_chat",
    "can_delete_messages",
    "can_manage_video_chats",
    "can_restrict_members",
    "can_promote_members",
    "can_change_info",
    "can_invite_users",
    "can_post_stories",
    "can_edit_stories",
    "can_delete_stories",
    "can_send_welcome_messages",
    "can_pin_messages",
    "can_manage_topics",
)
PERMISSIONS = (
    "can_send_messages",
    "can_send_audios",
    "can_send_documents",
    "can_send_photos",
    "can_send_videos",
    "can_send_video_notes",
    "can_send_voice_notes",
    "can_send_polls",
    "can_send_other_messages",
    "can_add_web_page_previews",
    "can_change_info",
    "can_invite_users",
    "can_pin_messages",
    "can_manage_topics",
)


@dataclass(eq=False)
class Topic:
    """A topic of a forum; its id is the id of the message that made it."""

    id: int
    name: str
    icon_color: int = 7322096
    closed: bool = False
    made_by: Message | None = field(default=None, repr=False)

    def json(self) -> dict[str, Any]:
        return {"message_thread_id": self.id, "name": self.name, "icon_color": self.icon_color}


@dataclass(eq=False)
class Chat:
    """One chat with its messages as they are now; deleted ones are gone from ``messages``."""

    id: int
    type: str
    title: str = ""
    username: str | None = None
    person: User | None = None
    """The other side of a private chat."""
    bot: Bot | None = None
    """The bot whose private chat it is."""
    is_forum: bool = False
    members: dict[int, tuple[User, str]] = field(default_factory=dict, repr=False)
    messages: dict[int, Message] = field(default_factory=dict, repr=False)
    topics: dict[int, Topic] = field(default_factory=dict, repr=False)
    migrated_to: Chat | None = None
    started: bool = False
    """A bot cannot write to somebody who never wrote to it."""
    message_ids: Iterator[int] = field(default_factory=lambda: itertools.count(1), repr=False)

    def json(self) -> dict[str, Any]:
        """The Chat object in messages."""
        if self.person:
            person = {"id": self.id, "first_name": self.person.first_name}
            for name in ("last_name", "username"):
                if value := getattr(self.person, name):
                    person[name] = value
            return {**person, "type": "private"}
        body: dict[str, Any] = {"id": self.id, "title": self.title, "type": self.type}
        if self.username:
            body["username"] = self.username
        if self.is_forum:
            body["is_forum"] = True
        return body

    def full(self) -> dict[str, Any]:
        """The answer to getChat."""
        gifts = (
            "unlimited_gifts limited_gifts unique_gifts premium_subscription gifts_from_channels"
        )
        body = self.json() | {
            "accent_color_id": self.id % 7,
            "max_reaction_count": 11,
            "accepted_gift_types": dict.fromkeys(gifts.split(), self.person is not None),
        }
        if self.person:
            return (
                body | {"active_usernames": [self.person.username]}
                if self.person.username
                else body
            )
        return body | {"permissions": dict.fromkeys(PERMISSIONS, True)}

    @property
    def has_topics(self) -> bool:
        return self.is_forum or bool(self.bot and self.bot.topics)

    def status(self, user: User) -> str:
        return self.members.get(user.id, (user, "left"))[1]

    def has(self, user: User) -> bool:
        return self.status(user) in INSIDE

    def is_admin(self, user: User) -> bool:
        return self.status(user) in {"creator", "administrator"}

    def bots(self) -> list[Bot]:
        """Bots that could see something here."""
        if self.bot:
            return [self.bot] if self.has(self.bot) else []
        found = [user for user, status in self.members.values() if status in INSIDE]
        return [user for user in found if isinstance(user, Bot)]

    def member(self, user: User, status: str = "") -> dict[str, Any]:
        """A ChatMember object."""
        status = status or self.status(user)
        body: dict[str, Any] = {"user": user.json(), "status": status}
        if status == "creator":
            body["is_anonymous"] = False
        elif status == "administrator":
            body |= {"can_be_edited": False, "is_anonymous": False}
            body |= dict.fromkeys(ADMIN_RIGHTS, True)
        elif status == "kicked":
            body["until_date"] = 0
        return body

    def check_writable(self, bot: Bot) -> None:
        """Raise what Telegram answers to a bot that may not write here."""
        if self.migrated_to:
            raise migrated(self.migrated_to.id)
        status = self.status(bot)
        if self.person:
            if self.person.deactivated:
                raise forbidden("user is deactivated")
            if status == "kicked":
                raise forbidden("bot was blocked by the user")
            if not self.started:
                raise forbidden("bot can't initiate conversation with a user")
        elif status == "kicked":
            raise forbidden(f"bot was kicked from the {self.type} chat")
        elif status not in INSIDE:
            raise forbidden(f"bot is not a member of the {self.type} chat")

    def topic(self, thread_id: int, writer: User | None = None) -> Topic | None:
        """The topic to write to; None for none. General is written to by leaving the id out."""
        if not thread_id:
            return None
        topic = self.topics.get(thread_id) if self.has_topics else None
        if topic is None:
            raise bad("message thread not found")
        if topic.closed and writer is not None and not self.is_admin(writer):
            raise bad("TOPIC_CLOSED")
        return topic

    def find(self, message_id: int, missing: str) -> Message:
        if not message_id:
            raise bad("message identifier is not specified")
        if message_id not in self.messages:
            raise bad(missing)
        return self.messages[message_id]

    def texts(self) -> list[str]:
        """What can be read here now, from top to bottom."""
        return [message.words for message in self.messages.values() if message.words]
