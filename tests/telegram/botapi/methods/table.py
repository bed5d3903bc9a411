"""How a method is written: a function of what was asked, with its name in the table."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

from tests.telegram.botapi.accounts import Bot
from tests.telegram.botapi.args import Args
from tests.telegram.botapi.chats import Chat
from tests.telegram.botapi.errors import bad
from tests.telegram.botapi.html_text import parsed_html
from tests.telegram.botapi.markdown_text import parsed_markdown, parsed_markdown_v2
from tests.telegram.botapi.texts import Text, checked, detected
from tests.telegram.botapi.world import World

PARSERS = {
    "html": parsed_html,
    "markdown": parsed_markdown,
    "markdownv2": parsed_markdown_v2,
}


@dataclass
class Said:
    """A result with a description, as some methods give it."""

    result: Any
    description: str


@dataclass
class Asked:
    """One call: who makes it, and with what."""

    world: World
    bot: Bot
    args: Args
    alive: Callable[[], bool] = lambda: True
    """Whether the caller is still there."""

    def chat(self, *, writing: bool = True) -> Chat:
        """The chat it is about; if it is to be written to, the bot may."""
        chat = self.world.find_chat(self.bot, self.args.text("chat_id").strip())
        if writing:
            chat.check_writable(self.bot)
        return chat

    def formatted(self, name: str, entities: str, most: int, too_long: str) -> Text:
        """A text with its formatting; which may be empty."""
        raw = self.args.text(name)
        return formatted(
            raw, self.args.text("parse_mode"), self.args.json(entities), most, too_long
        )

    def words(self, most: int, too_long: str) -> Text:
        """The ``text``, which may not be empty."""
        if not self.args.text("text"):
            raise bad("message text is empty")
        said = self.formatted("text", "entities", most, too_long)
        if not said.text:
            raise bad("text must be non-empty")
        return said


def formatted(raw: str, mode: str, marks: Any, most: int, too_long: str) -> Text:
    """Parsed, checked, cleaned, measured, and with what Telegram finds in it."""
    if mode:
        if mode.lower() not in PARSERS:
            raise bad("unsupported parse_mode")
        raw, marks = PARSERS[mode.lower()](raw)
    if marks is not None and not isinstance(marks, list):
        raise bad("can't parse entities: Array of MessageEntity expected")
    said = checked(raw, marks or [])
    if said.units > most:
        raise bad(too_long)
    return detected(said)


Method = Callable[[Asked], Any | Awaitable[Any]]
METHODS: dict[str, tuple[str, Method]] = {}


def method(*names: str) -> Callable[[Method], Method]:
    """Put a function into the table; names are found whatever their case."""

    def add(function: Method) -> Method:
        for name in names:
            METHODS[name.lower()] = (name, function)
        return function

    return add
