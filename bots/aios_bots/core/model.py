"""What comes in from a chat app and what goes out to it, the same for every app.

Ids are texts, as the app gave them. An adapter makes ``Incoming`` of what its app sends and calls
its app for each ``Outgoing``; nothing else of an app is known here.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

MOVED = "moved:"
"""How the ``data`` of a membership begins when the chat has another id, which follows."""


class ChatKind(StrEnum):
    PRIVATE = "private"
    GROUP = "group"
    CHANNEL = "channel"


class SenderKind(StrEnum):
    PERSON = "person"
    BOT = "bot"
    CHAT = "chat"
    """A group or channel speaks: an anonymous admin, a linked channel."""
    NOBODY = "nobody"


class Kind(StrEnum):
    """What happened."""

    MESSAGE = "message"
    COMMAND = "command"
    EDIT = "edit"
    REACTION = "reaction"
    BUTTON = "button"
    INLINE = "inline"
    """Words typed after the bot's name in any chat: a search."""
    STOP = "stop"
    """The person wants no more of the reply that is being written."""
    MEMBERSHIP = "membership"
    """The bot was added, removed, blocked, or let back in."""
    OTHER = "other"


class SpanKind(StrEnum):
    BOLD = "bold"
    ITALIC = "italic"
    STRIKE = "strike"
    LINK = "link"
    CODE = "code"
    PRE = "pre"
    QUOTE = "quote"


class Span(msgspec.Struct, frozen=True, gc=False):
    """How a stretch of a text looks. ``offset`` and ``length`` count UTF-16 units."""

    kind: SpanKind
    offset: int
    length: int
    arg: str = ""
    """Of a link its address, of code its language."""

    @property
    def end(self) -> int:
        return self.offset + self.length


class Rich(msgspec.Struct, frozen=True):
    """A text and how it looks. Two spans are apart, or one is within the other."""

    text: str = ""
    spans: tuple[Span, ...] = ()


class Place(msgspec.Struct, frozen=True, gc=False):
    """Where in an app: a chat of one bot, or one topic of it."""

    account: str
    """The bot's own id: another bot is another world."""
    chat: str
    topic: str = ""


class Sender(msgspec.Struct, frozen=True, gc=False):
    id: str
    name: str = ""
    """Chosen by the person, so it proves nothing."""
    kind: SenderKind = SenderKind.PERSON


class Attachment(msgspec.Struct, frozen=True, gc=False):
    """A file: on the way in ``ref`` is the app's id of it, on the way out its SHA-256."""

    ref: str
    name: str = ""
    mime: str = ""
    size: int = 0


class Incoming(msgspec.Struct, frozen=True, kw_only=True):
    """One update of an app."""

    platform: str
    """A short word, ``tg`` for Telegram; people's ids in conversations begin with it."""
    place: Place
    chat_kind: ChatKind
    sender: Sender
    update_id: int
    kind: Kind
    at: float
    """When it was sent, unix seconds."""
    msg_id: str = ""
    """The message itself; for a button or a reaction the one that it is on."""
    text: str = ""
    files: tuple[Attachment, ...] = ()
    reply_to: str = ""
    data: str = ""
    """Of a button what it stands for, of a reaction the emoji."""
    answer_to: str = ""
    """The app waits for an answer to this id: a button, an inline search."""
    addressed: bool = False
    """The bot is meant: by mention, by a reply to it, or by a command that names it."""
    forwarded: bool = False
    """Somebody else's words: a quote, never an order."""

    @property
    def person(self) -> str:
        """Who that is in a conversation."""
        return f"{self.platform}:{self.place.account}:{self.sender.id}"

    @property
    def key(self) -> str:
        """Names this update wherever it has an effect, so that it has it once."""
        return f"{self.platform}:{self.place.account}:{self.update_id}"


class Op(StrEnum):
    SEND = "send"
    EDIT = "edit"
    DELETE = "delete"
    TYPING = "typing"
    REACT = "react"
    ANSWER = "answer"
    """What an ``answer_to`` waits for."""


class Button(msgspec.Struct, frozen=True, gc=False):
    label: str
    data: str
    """An id that only the bridge can look up."""


class Hit(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """One line of what an inline search found; picking it says ``text`` for the person."""

    id: str
    title: str
    about: str = ""
    text: str = ""
    """Empty: the title."""


class Outgoing(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One call of an app."""

    key: str
    """The same key is the same call: it is made once."""
    place: Place
    op: Op
    text: str = ""
    """Of a reaction the emoji; empty takes it back."""
    spans: tuple[Span, ...] = ()
    files: tuple[Attachment, ...] = ()
    """One at most, ``text`` is its caption: a second file is a second call."""
    reply_to: str = ""
    buttons: tuple[tuple[Button, ...], ...] = ()
    target: str = ""
    """The message to edit, delete or react to; or what is answered."""
    target_key: str = ""
    """The same by the key of its send, while the app has not said its id."""
    conversation: str = ""
    event_id: str = ""
    part: int = 0
    """Which event of which conversation this shows, and which part of it."""
    as_file: str = ""
    """The name of a file to send that holds ``text``."""
    alert: bool = False
    """An answer to a button that has to be closed by hand."""
    silent: bool = False
    """No sound on the phone."""
    data: str = ""
    """Of the answer to an inline search a JSON list of ``Hit``; of a reaction whose it is."""
