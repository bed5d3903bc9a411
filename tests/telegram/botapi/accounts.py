"""Who is on Telegram: people, bots, and the accounts Telegram itself speaks with."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tests.telegram.botapi.updates import Updates
    from tests.telegram.botapi.webhooks import Webhook


@dataclass(eq=False)
class User:
    """An account; ``json()`` is the User object that bots see."""

    id: int
    first_name: str
    username: str | None = None
    last_name: str | None = None
    language_code: str | None = "en"
    is_bot: bool = False
    deactivated: bool = False

    def json(self) -> dict[str, Any]:
        body: dict[str, Any] = {
            "id": self.id,
            "is_bot": self.is_bot,
            "first_name": self.first_name,
        }
        for name in ("last_name", "username"):
            if value := getattr(self, name):
                body[name] = value
        if self.language_code and not self.is_bot:
            body["language_code"] = self.language_code
        return body


ANONYMOUS_ADMIN = User(1087968824, "Group", "GroupAnonymousBot", is_bot=True)
CHANNEL_BOT = User(136817688, "Channel", "Channel_Bot", is_bot=True)
TELEGRAM = User(777000, "Telegram", None, language_code=None)


@dataclass(eq=False)
class Bot(User):
    """A bot as BotFather made it; what it said to the server about itself is here as well."""

    token: str = field(default="", repr=False)
    privacy: bool = True
    inline: bool = True
    inline_feedback: bool = True
    topics: bool = False
    """Whether private chats with it can have topics."""
    commands: dict[tuple[str, str], list[dict[str, str]]] = field(default_factory=dict)
    texts: dict[tuple[str, str], str] = field(default_factory=dict)
    """Name, description and short description, by kind and language."""
    updates: Updates = field(init=False, repr=False)
    webhook: Webhook = field(init=False, repr=False)

    def me(self) -> dict[str, Any]:
        """The answer to getMe, with the fields that only getMe has."""
        return self.json() | {
            "can_join_groups": True,
            "can_read_all_group_messages": not self.privacy,
            "supports_guest_queries": False,
            "supports_inline_queries": self.inline,
            "can_connect_to_business": False,
            "has_main_web_app": False,
            "has_topics_enabled": self.topics,
            "allows_users_to_create_topics": self.topics,
            "can_manage_bots": False,
            "supports_join_request_queries": False,
        }
