"""People with phones: they write, press, edit, react, search and send files, on a test's word."""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeVar

from tests.telegram.botapi.accounts import ANONYMOUS_ADMIN, CHANNEL_BOT, TELEGRAM, Bot, User
from tests.telegram.botapi.chats import Chat, Topic
from tests.telegram.botapi.files import Stored
from tests.telegram.botapi.messages import Message
from tests.telegram.botapi.texts import Entity, Text, checked, detected
from tests.telegram.botapi.world import Draft, Query, World

if TYPE_CHECKING:
    from tests.telegram.botapi.server import BotApi

T = TypeVar("T")
PAYLOAD = re.compile(r"[A-Za-z0-9_-]{0,64}")


class Person:
    """Somebody on Telegram. Everything here may be called from any thread."""

    def __init__(self, api: BotApi, user: User) -> None:
        self.user = user
        self.id = user.id
        self._api = api

    @property
    def _world(self) -> World:
        return self._api.world

    def _do(self, work: Callable[[], T]) -> T:
        return self._api.run(work)

    def chat(self, bot: Bot | None = None) -> Chat:
        """The private chat with the bot."""
        return self._do(lambda: self._world.chat_with(bot or self._api.bot, self.user))

    # Writing

    def starts(self, payload: str = "", bot: Bot | None = None) -> Message:
        """Open the bot's chat, by a deep link if there is a payload."""
        if not PAYLOAD.fullmatch(payload):
            raise ValueError(f"Telegram opens no link with {payload!r}")
        return self.says(f"/start {payload}".strip(), bot=bot)

    def says(
        self,
        text: str,
        chat: Chat | None = None,
        *,
        bot: Bot | None = None,
        topic: Topic | None = None,
        reply_to: Message | None = None,
        entities: list[Entity] | None = None,
        quote: str = "",
        **content: Any,
    ) -> Message:
        """Write into a chat; the private one with the bot if none is given."""
        said = detected(checked(text, entities or []))
        return self._post(
            chat, bot, text=said, topic=topic, reply_to=reply_to, quote=quote, **content
        )

    def sends(
        self,
        kind: str,
        data: bytes,
        caption: str = "",
        chat: Chat | None = None,
        *,
        bot: Bot | None = None,
        name: str = "",
        mime: str = "",
        size: int | None = None,
        **content: Any,
    ) -> Message:
        """Send a file as ``photo``, ``document``, ``voice``, ``audio`` or ``video``."""
        stored: Stored = self._world.files.store(kind, data, name, mime, size)
        said = detected(checked(caption, [])) if caption else None
        return self._post(chat, bot, media=stored.field(), caption=said, **content)

    def shares(self, chat: Chat | None = None, **fields: Any) -> Message:
        """Anything else, by its field: ``shares(location={"latitude": 1, "longitude": 2})``."""
        return self._post(chat, None, media=fields)

    def forwards(self, message: Message, chat: Chat | None = None) -> Message:
        origin = {"type": "user", "sender_user": message.sender.json(), "date": message.date}
        extra = {"forward_origin": origin}
        return self._post(
            chat, None, text=message.text, media=message.media, caption=message.caption, extra=extra
        )

    def edits(self, message: Message, text: str) -> Message:
        """Change one's own message."""

        def work() -> Message:
            said = detected(checked(text, []))
            date = self._world.times.date()
            if message.text:
                message.change(date, text=said)
            else:
                message.change(date, caption=said)
            self._world.edited(message)
            return message

        return self._do(work)

    def _post(self, chat: Chat | None, bot: Bot | None, **content: Any) -> Message:
        def work() -> Message:
            place = chat or self._world.chat_with(bot or self._api.bot, self.user)
            place.started = True
            if content.get("topic") is None and (replied := content.get("reply_to")):
                content["topic"] = replied.topic
            return self._world.post(place, self.user, **content)

        return self._do(work)

    # Pressing and reacting

    def presses(self, message: Message, label: str) -> Query:
        """Press an inline button; ``query.answer`` is what the bot answered."""

        def work() -> Query:
            data = message.buttons[label]["callback_data"]
            body: dict[str, Any] = {"chat_instance": str(hash(message.chat.id)), "data": data}
            if message.inline_id:
                body["inline_message_id"] = message.inline_id
            elif message.deleted:
                place = message.chat.json()
                body["message"] = {"chat": place, "message_id": message.id, "date": 0}
            else:
                body["message"] = message.json()
            bot = message.via_bot or message.sender
            assert isinstance(bot, Bot)
            return self._world.ask("callback_query", bot, self.user, data, body)

        return self._do(work)

    def reacts(self, message: Message, *emoji: str) -> None:
        """Set one's reactions; none takes them back."""

        def work() -> None:
            new = [{"type": "emoji", "emoji": one} for one in emoji]
            old = message.reactions.get(self.id, [])
            message.reactions[self.id] = new
            event = {
                "chat": message.chat.json(),
                "message_id": message.id,
                "user": self.user.json(),
                "date": self._world.times.date(),
                "old_reaction": old,
                "new_reaction": new,
            }
            for bot in message.chat.bots():
                if message.chat.person or message.chat.is_admin(bot):
                    bot.updates.add("message_reaction", event, message.chat.id)

        self._do(work)

    # Inline mode

    def searches(self, words: str, bot: Bot | None = None, offset: str = "") -> Query:
        """Type ``@bot words`` somewhere; ``query.results`` is what the bot offers."""
        body = {"query": words, "offset": offset, "chat_type": "sender"}
        asked = bot or self._api.bot
        return self._do(lambda: self._world.ask("inline_query", asked, self.user, words, body))

    def picks(self, query: Query, result_id: str, chat: Chat | None = None) -> Message:
        """Send one of the results; the bot hears of it if it has inline feedback."""

        def work() -> Message:
            result = next(one for one in query.results if one["id"] == result_id)
            content = result.get("input_message_content") or {"message_text": result["title"]}
            place = chat or self._world.chat_with(query.bot, self.user)
            message = self._world.post(
                place,
                self.user,
                text=content.get("_text") or Text(content["message_text"]),
                via_bot=query.bot,
                markup=result.get("reply_markup"),
            )
            event = {"result_id": result_id, "from": self.user.json(), "query": query.text}
            if message.markup:
                event["inline_message_id"] = self._world.new_inline_id(message)
            if query.bot.inline_feedback:
                query.bot.updates.add("chosen_inline_result", event, self.id)
            return message

        return self._do(work)

    # Drafts

    def draft(self, bot: Bot | None = None) -> Draft | None:
        """What the bot is seen writing."""
        chat = self.chat(bot)
        return self._do(lambda: self._world.draft_in(chat))

    def stops(self, draft: Draft) -> None:
        """Press Stop below a draft."""

        def work() -> None:
            assert draft.can_stop
            assert draft.chat.bot
            event = {"chat": draft.chat.json(), "draft_id": draft.id}
            if draft.thread_id:
                event["message_thread_id"] = draft.thread_id
            self._world.drop_draft(draft.chat)
            draft.chat.bot.updates.add("stopped_message_generation", event, draft.chat.id)

        self._do(work)

    # Coming and going

    def blocks(self, bot: Bot | None = None) -> None:
        self._set_bot(bot, "kicked")

    def unblocks(self, bot: Bot | None = None) -> None:
        self._set_bot(bot, "member")

    def _set_bot(self, bot: Bot | None, status: str) -> None:
        chat = self.chat(bot)
        self._do(lambda: self._world.set_status(chat, bot or self._api.bot, status, self.user))


class Group:
    """A group or supergroup from its owner's side."""

    def __init__(self, api: BotApi, owner: Person, chat: Chat) -> None:
        self.chat = chat
        self.id = chat.id
        self.owner = owner
        self._api = api

    def add(self, who: Person | Bot, status: str = "member") -> None:
        """Somebody comes in, or becomes ``administrator``."""
        user = who if isinstance(who, Bot) else who.user

        def work() -> None:
            new = not self.chat.has(user)
            self._api.world.set_status(self.chat, user, status, self.owner.user)
            if new:
                joined = {"new_chat_members": [user.json()]}
                self._api.world.post(self.chat, self.owner.user, media=joined)

        self._api.run(work)

    def remove(self, who: Person | Bot) -> None:
        user = who if isinstance(who, Bot) else who.user
        world, owner = self._api.world, self.owner.user

        def work() -> None:
            world.set_status(self.chat, user, "kicked", owner)
            world.post(self.chat, owner, media={"left_chat_member": user.json()})

        self._api.run(work)

    def topic(self, name: str) -> Topic:
        """A new topic, made by the owner."""
        return self._api.run(lambda: self._api.world.new_topic(self.chat, self.owner.user, name))

    def anonymous(self, text: str, **content: Any) -> Message:
        """An admin writes in the group's name."""
        return self._as(ANONYMOUS_ADMIN, self.chat, text, **content)

    def channel(self, text: str, *, linked: bool = False, **content: Any) -> Message:
        """Somebody writes in the name of a channel, or the linked channel's post arrives."""
        world = self._api.world
        source = self._api.run(lambda: world.new_chat("channel", "A channel"))
        if not linked:
            return self._as(CHANNEL_BOT, source, text, **content)
        extra = {"is_automatic_forward": True, **content.pop("extra", {})}
        return self._as(TELEGRAM, source, text, extra=extra, **content)

    def migrate(self) -> Group:
        """Become a supergroup: another id, and the old one is refused."""

        def work() -> Chat:
            world, old = self._api.world, self.chat
            new = world.new_chat("supergroup", old.title)
            new.members = dict(old.members)
            world.post(old, self.owner.user, media={"migrate_to_chat_id": new.id})
            old.migrated_to = new
            world.post(
                new, ANONYMOUS_ADMIN, sender_chat=new, media={"migrate_from_chat_id": old.id}
            )
            return new

        return Group(self._api, self.owner, self._api.run(work))

    def _as(self, user: User, source: Chat, text: str, **content: Any) -> Message:
        said = detected(checked(text, []))
        post = self._api.world.post
        return self._api.run(
            lambda: post(self.chat, user, text=said, sender_chat=source, **content)
        )


def new_token(bot_id: int) -> str:
    """A token of the right shape, good for nothing else."""
    return f"{bot_id}:AA{secrets.token_urlsafe(32)[:33]}"
