"""Messages: all that a bot is told about one, and what became of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from tests.telegram.botapi.accounts import Bot, User
from tests.telegram.botapi.chats import Chat, Topic
from tests.telegram.botapi.errors import NOT_MODIFIED, bad
from tests.telegram.botapi.keyboards import shown
from tests.telegram.botapi.texts import Text

FILES = frozenset(
    ["photo", "document", "voice", "audio", "video", "animation", "sticker", "video_note"]
)

SERVICE = frozenset(
    [
        "new_chat_members",
        "left_chat_member",
        "migrate_to_chat_id",
        "migrate_from_chat_id",
        "forum_topic_created",
        "forum_topic_edited",
        "forum_topic_closed",
        "forum_topic_reopened",
        "pinned_message",
    ]
)


@dataclass(eq=False)
class Message:
    """One message as it is now; ``versions`` are its texts so far, the newest last."""

    id: int
    chat: Chat
    sender: User
    date: int
    text: Text | None = None
    media: dict[str, Any] = field(default_factory=dict)
    """The field that a photo, file or service message adds."""
    caption: Text | None = None
    markup: dict[str, Any] | None = None
    reply_to: Message | None = None
    quote: str = ""
    topic: Topic | None = None
    sender_chat: Chat | None = None
    via_bot: Bot | None = None
    extra: dict[str, Any] = field(default_factory=dict)
    """Further fields: ``forward_origin``, ``media_group_id``, ``author_signature``, …"""
    edit_date: int | None = None
    reactions: dict[int, list[dict[str, Any]]] = field(default_factory=dict)
    versions: list[str] = field(default_factory=list)
    inline_id: str = ""
    deleted: bool = False

    def __post_init__(self) -> None:
        self.versions.append(self.words)

    @property
    def words(self) -> str:
        """Its text or caption."""
        said = self.text or self.caption
        return said.text if said else ""

    @property
    def buttons(self) -> dict[str, dict[str, Any]]:
        """Inline buttons by their label."""
        rows = (self.markup or {}).get("inline_keyboard", [])
        return {button["text"]: button for row in rows for button in row}

    @property
    def is_service(self) -> bool:
        return bool(SERVICE & self.media.keys())

    def json(self, *, within: bool = False) -> dict[str, Any]:
        """The Message object; one that is replied to comes without what it replies to."""
        body: dict[str, Any] = {"message_id": self.id, "from": self.sender.json()}
        if self.sender_chat:
            body["sender_chat"] = self.sender_chat.json()
        body |= {"chat": self.chat.json(), "date": self.date}
        if self.edit_date:
            body["edit_date"] = self.edit_date
        body |= self._place()
        if not within and (replied := self._replied()):
            body["reply_to_message"] = replied.json(within=True)
            if self.quote:
                body["quote"] = {"text": self.quote, "position": 0, "is_manual": True}
        if self.via_bot:
            body["via_bot"] = self.via_bot.json()
        body |= self.extra | self.media
        if self.text:
            body |= self.text.json()
        if self.caption and self.caption.text:
            body |= self.caption.json("caption_")
        if markup := shown(self.markup):
            body["reply_markup"] = markup
        return body

    def _place(self) -> dict[str, Any]:
        if self.topic:
            return {"message_thread_id": self.topic.id, "is_topic_message": True}
        if self.reply_to and self.chat.type == "supergroup":
            # Replies outside topics name the chain that they belong to, which is no topic:
            # whoever sends there gets "message thread not found".
            return {"message_thread_id": self.root.id}
        return {}

    @property
    def root(self) -> Message:
        """The message with which a chain of replies began."""
        return self.reply_to.root if self.reply_to else self

    def _replied(self) -> Message | None:
        """In a topic, a message that replies to nothing seems to reply to the topic's beginning."""
        if self.reply_to:
            return None if self.reply_to.deleted else self.reply_to
        if self.topic and self.topic.made_by is not self:
            return self.topic.made_by
        return None

    def change(
        self,
        date: int,
        *,
        text: Text | None = None,
        caption: Text | None = None,
        media: dict[str, Any] | None = None,
        markup: dict[str, Any] | None = None,
    ) -> None:
        """Become a new version, or raise that it would be the same."""
        new_text = self.text if text is None else text
        new_caption = self.caption if caption is None else caption
        new_media = self.media if media is None else media
        same = (
            new_text == self.text
            and (new_caption or Text()) == (self.caption or Text())
            and new_media == self.media
            and shown(markup) == shown(self.markup)
        )
        if same:
            raise bad(NOT_MODIFIED)
        self.text, self.caption, self.media = new_text, new_caption, new_media
        self.markup = markup
        self.edit_date = date
        if self.words != self.versions[-1]:
            self.versions.append(self.words)
