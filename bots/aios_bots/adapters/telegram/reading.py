"""What an update means: who did what where.

A person is the number in ``from``, and only that. A group or channel that speaks, an anonymous
admin and other bots are no person, whatever number stands beside them.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, TypeGuard

import msgspec

from aios_bots.adapters.telegram.attachments import files_of
from aios_bots.core.commands import said
from aios_bots.core.model import MOVED, ChatKind, Incoming, Kind, Place, Sender, SenderKind
from aios_nb.richtext import one_line

PLATFORM = "tg"
INLINE = "inline:"
"""How an ``answer_to`` begins that is a search: it is answered by another call than a button."""
NAME_MAX_CHARS = 64
_STANDS_FOR_MANY = frozenset({777000, 1087968824, 136817688})
_CHATS = {
    "private": ChatKind.PRIVATE,
    "group": ChatKind.GROUP,
    "supergroup": ChatKind.GROUP,
    "channel": ChatKind.CHANNEL,
}
_FORWARDED = (
    "forward_origin",
    "forward_from",
    "forward_from_chat",
    "forward_sender_name",
    "forward_date",
    "is_automatic_forward",
    "external_reply",  # words of another chat hang on it
)
_SPOKEN = {
    "message": Kind.MESSAGE,
    "edited_message": Kind.EDIT,
    "channel_post": Kind.MESSAGE,
    "edited_channel_post": Kind.EDIT,
}
_CODE = frozenset({"code", "pre"})


class Reader:
    """Reads the updates of one bot."""

    def __init__(self, account: str, clock: Callable[[], float]) -> None:
        self._account, self._clock = account, clock
        self._own_ids = {int(account)}
        self._username = ""

    def know(self, own_id: Any, username: str) -> None:
        """Who the bot is, so that it is known when it is meant."""
        if _is_id(own_id):
            self._own_ids.add(own_id)
        self._username = username.lower()

    def read(self, raw: str) -> Incoming:
        """What happened. Raises ``ValueError`` for what is no update."""
        try:
            update = msgspec.json.decode(raw)
        except msgspec.MsgspecError as error:
            raise ValueError(f"not JSON: {error}") from None
        if not isinstance(update, dict) or not _is_id(number := update.get("update_id")):
            raise ValueError("an update without a number")
        for name, body in update.items():
            reader = getattr(self, f"_read_{name}", None) if name in _READ else None
            if reader is None and name not in _SPOKEN:
                continue
            if not isinstance(body, dict):
                raise ValueError(f"{name} is no object")  # noqa: TRY004 - what the caller knows
            return self._spoken(number, name, body) if reader is None else reader(number, body)
        return self._other(number, update)

    # Kinds

    def _spoken(self, number: int, name: str, message: dict[str, Any]) -> Incoming:
        if (state := self._membership(message)) is not None:
            return self._incoming(
                number, Kind.MEMBERSHIP, message, sender=_sender(message), data=state
            )
        files = files_of(message)
        text, marks = _text(message)
        kind = _SPOKEN[name]
        if not text and not files:
            text = _shared(message)
            if not text and kind is Kind.MESSAGE:
                kind = Kind.OTHER  # somebody pinned, joined, renamed: nothing was said
        is_private = _chat_kind(message) is ChatKind.PRIVATE
        command = None if files or _begins_as_code(marks) else said(text)
        if kind is Kind.MESSAGE and command is not None:
            kind = Kind.COMMAND
        if is_private or (command is not None and command.bot):
            addressed = is_private or self._is_name(command.bot if command else "")
        else:
            addressed = self._is_meant(message, text, marks)
        replied = _replied(message)
        return self._incoming(
            number,
            kind,
            message,
            sender=_sender(message),
            at=_seconds(message.get("edit_date")) or _seconds(message.get("date")),
            text=text if is_private else self._without_name(text),
            files=files,
            reply_to=_id_text(replied.get("message_id")) if replied else "",
            addressed=addressed,
            forwarded=self._is_forwarded(message),
        )

    def _read_callback_query(self, number: int, query: dict[str, Any]) -> Incoming:
        message = query.get("message")
        if not isinstance(message, dict) or not isinstance(message.get("chat"), dict):
            message = {"chat": _private_chat(query)}  # on a message that went out by inline mode
        return self._incoming(
            number,
            Kind.BUTTON,
            message,
            sender=_sender(query),
            at=0.0,
            data=str(query.get("data") or ""),
            answer_to=str(query.get("id") or ""),
            addressed=True,
        )

    def _read_inline_query(self, number: int, query: dict[str, Any]) -> Incoming:
        return self._incoming(
            number,
            Kind.INLINE,
            {"chat": _private_chat(query)},
            sender=_sender(query),
            text=str(query.get("query") or ""),
            data=str(query.get("offset") or ""),
            answer_to=f"{INLINE}{query.get('id') or ''}",
            addressed=True,
        )

    def _read_message_reaction(self, number: int, event: dict[str, Any]) -> Incoming:
        actor = {"from": event.get("user"), "sender_chat": event.get("actor_chat")}
        new, old = (_emoji(event.get(f"{age}_reaction")) for age in ("new", "old"))
        added = [one for one in new if one not in old]
        kind = Kind.OTHER if event.get("new_reaction") and not new else Kind.REACTION
        return self._incoming(
            number,
            kind,
            event,
            sender=_sender(actor),
            at=_seconds(event.get("date")),
            data=(added or new or [""])[-1],
            addressed=True,
        )

    def _read_my_chat_member(self, number: int, event: dict[str, Any]) -> Incoming:
        member = event.get("new_chat_member")
        state = str(member.get("status") or "") if isinstance(member, dict) else ""
        if isinstance(member, dict) and state == "restricted" and not member.get("is_member", True):
            state = "left"
        return self._incoming(
            number,
            Kind.MEMBERSHIP,
            event,
            sender=_sender(event),
            at=_seconds(event.get("date")),
            data=state,
        )

    def _read_stopped_message_generation(self, number: int, event: dict[str, Any]) -> Incoming:
        sender = _sender(event)
        if sender.kind is SenderKind.NOBODY and _chat_kind(event) is ChatKind.PRIVATE:
            sender = _sender({"from": event["chat"]})  # nobody else is there
        thread = {"is_topic_message": bool(event.get("message_thread_id"))}
        return self._incoming(
            number,
            Kind.STOP,
            {**event, **thread},
            sender=sender,
            data=str(event.get("draft_id") or ""),
            addressed=True,
        )

    def _other(self, number: int, update: dict[str, Any]) -> Incoming:
        """Of a kind that nobody knows, at least where it was."""
        body: Any = next((one for one in update.values() if isinstance(one, dict)), {})
        place = body if isinstance(body.get("chat"), dict) else {"chat": {"id": "", "type": ""}}
        return self._incoming(number, Kind.OTHER, place, sender=_sender(body))

    # What they have in common

    def _incoming(
        self, number: int, kind: Kind, body: dict[str, Any], *, at: float = 0.0, **more: Any
    ) -> Incoming:
        chat = body.get("chat")
        if not isinstance(chat, dict) or "id" not in chat:
            raise ValueError("an update without a chat")
        return Incoming(
            platform=PLATFORM,
            place=Place(self._account, _id_text(chat["id"]), _topic(body)),
            chat_kind=_chat_kind(body),
            update_id=number,
            kind=kind,
            at=at or self._clock(),
            msg_id=_id_text(body.get("message_id")),
            **more,
        )

    def _membership(self, message: dict[str, Any]) -> str | None:
        """For servers that tell of the bot's coming and going by messages only."""
        if _is_id(new := message.get("migrate_to_chat_id")):
            return f"{MOVED}{new}"
        if self._is_own(message.get("left_chat_member")):
            return "left"
        joined = message.get("new_chat_members")
        if isinstance(joined, list) and any(self._is_own(one) for one in joined):
            return "member"
        return None

    def _is_own(self, user: Any) -> bool:
        return isinstance(user, dict) and user.get("id") in self._own_ids

    def _is_name(self, name: str) -> bool:
        return bool(self._username) and name.lower() == self._username

    def _is_meant(self, message: dict[str, Any], text: str, marks: list[dict[str, Any]]) -> bool:
        replied = _replied(message)
        if replied is not None and self._is_own(replied.get("from")):
            return True
        for mark in marks:
            if mark.get("type") == "text_mention" and self._is_own(mark.get("user")):
                return True
            if mark.get("type") == "mention" and self._is_name(_stretch(text, mark)[1:]):
                return True
        if "entities" in message or "caption_entities" in message or not self._username:
            return False
        # A server that marks nothing: then the name itself.
        name = rf"(?<![\w@])@{re.escape(self._username)}(?!\w)"
        return re.search(name, text, re.IGNORECASE) is not None

    def _without_name(self, text: str) -> str:
        """To begin with the bot's name is to address it; it is not what is said."""
        first, _, rest = text.partition(" ")
        return rest.lstrip() if first[:1] == "@" and self._is_name(first[1:]) and rest else text

    def _is_forwarded(self, message: dict[str, Any]) -> bool:
        via = message.get("via_bot")
        by_other = isinstance(via, dict) and not self._is_own(via)
        return by_other or any(message.get(field) for field in _FORWARDED)


_READ = frozenset(name.removeprefix("_read_") for name in vars(Reader) if name.startswith("_read_"))


def _is_id(value: Any) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool)


def _id_text(value: Any) -> str:
    return str(value) if _is_id(value) or isinstance(value, str) else ""


def _seconds(value: Any) -> float:
    return float(value) if _is_id(value) and value > 0 else 0.0


def _chat_kind(body: dict[str, Any]) -> ChatKind:
    """What is none of the known kinds is taken for the one that nobody may speak in."""
    chat = body.get("chat")
    kind = chat.get("type") if isinstance(chat, dict) else None
    return _CHATS.get(kind, ChatKind.CHANNEL) if isinstance(kind, str) else ChatKind.CHANNEL


def _private_chat(query: dict[str, Any]) -> dict[str, Any]:
    user = query.get("from")
    return {"id": user.get("id") if isinstance(user, dict) else "", "type": "private"}


def _sender(body: dict[str, Any]) -> Sender:
    """Who did it; a chat in whose name it was done comes first."""
    chat, user = body.get("sender_chat"), body.get("from")
    if isinstance(chat, dict):
        return Sender(_id_text(chat.get("id")), _name(chat.get("title")), SenderKind.CHAT)
    if not isinstance(user, dict) or not _is_id(user.get("id")):
        return Sender("", "", SenderKind.NOBODY)
    name = _name(f"{user.get('first_name') or ''} {user.get('last_name') or ''}")
    kind = SenderKind.PERSON
    if user["id"] in _STANDS_FOR_MANY or user["id"] <= 0:
        kind = SenderKind.CHAT
    elif user.get("is_bot"):
        kind = SenderKind.BOT
    return Sender(str(user["id"]), name, kind)


def _name(name: Any) -> str:
    return one_line(name, NAME_MAX_CHARS) if isinstance(name, str) else ""


def _topic(body: dict[str, Any]) -> str:
    """The topic. A number alone is none: replies outside topics name their chain by one."""
    number = body.get("message_thread_id")
    if not _is_id(number):
        return ""
    marked = body.get("is_topic_message")
    if marked is None:  # a server that does not mark them
        marked = bool(body["chat"].get("is_forum")) and "reply_to_message" not in body
    return str(number) if marked else ""


def _replied(message: dict[str, Any]) -> dict[str, Any] | None:
    """What is replied to. In a topic everything seems to reply to the topic's beginning."""
    replied = message.get("reply_to_message")
    if not isinstance(replied, dict) or "forum_topic_created" in replied:
        return None
    is_root = replied.get("message_id") == message.get("message_thread_id")
    return None if is_root and message.get("is_topic_message") else replied


def _text(message: dict[str, Any]) -> tuple[str, list[dict[str, Any]]]:
    field, marks = ("text", "entities") if "text" in message else ("caption", "caption_entities")
    text, found = message.get(field), message.get(marks)
    if text is not None and not isinstance(text, str):
        raise ValueError(f"{field} is no text")
    listed = found if isinstance(found, list) else []
    return text or "", [mark for mark in listed if isinstance(mark, dict)]


def _stretch(text: str, mark: dict[str, Any]) -> str:
    start, length = mark.get("offset"), mark.get("length")
    if not isinstance(start, int) or not isinstance(length, int) or min(start, length) < 0:
        return ""
    units = text.encode("utf-16-le", "surrogatepass")
    return units[2 * start : 2 * (start + length)].decode("utf-16-le", "replace")


def _begins_as_code(marks: list[dict[str, Any]]) -> bool:
    return any(mark.get("type") in _CODE and mark.get("offset") == 0 for mark in marks)


def _emoji(reactions: Any) -> list[str]:
    listed = reactions if isinstance(reactions, list) else []
    return [
        one["emoji"]
        for one in listed
        if isinstance(one, dict) and isinstance(one.get("emoji"), str) and one["emoji"]
    ]


def _shared(message: dict[str, Any]) -> str:
    """In words, what was sent that is neither text nor a file."""
    return one_line(" ".join(_parts(message)), 500)


def _parts(message: dict[str, Any]) -> Iterator[str]:
    for field, sign, names in (
        ("venue", "📍", ("title", "address")),
        ("location", "📍", ("latitude", "longitude")),
        ("contact", "👤", ("first_name", "last_name", "phone_number")),
        ("poll", "📊", ("question",)),
        ("dice", "", ("emoji", "value")),
    ):
        found = message.get(field)
        if isinstance(found, dict):
            yield sign
            yield from (str(found[name]) for name in names if name in found)
            return
