"""Who speaks in the app in memory: people and groups, and the messages that they see."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from aios_bots.core.commands import said
from aios_bots.core.model import (
    Attachment,
    Button,
    ChatKind,
    Incoming,
    Kind,
    Outgoing,
    Sender,
    SenderKind,
    Span,
)

if TYPE_CHECKING:
    from aios_bots.adapters.loopback.app import Loopback


class Message:
    """A message as a chat shows it now."""

    def __init__(
        self,
        msg_id: str,
        sender: str,
        text: str,
        topic: str = "",
        *,
        spans: tuple[Span, ...] = (),
        buttons: tuple[tuple[Button, ...], ...] = (),
        reply_to: str = "",
        files: tuple[bytes, ...] = (),
    ) -> None:
        self.id, self.sender, self.text, self.topic = msg_id, sender, text, topic
        self.spans, self.buttons = spans, buttons
        self.reply_to, self.files = reply_to, files
        self.edits = 0
        """How often it was changed; an edit that changes nothing is none."""
        self.reactions: dict[str, str] = {}

    def __repr__(self) -> str:
        return f"<{self.sender}: {self.text!r}>"

    def change(self, out: Outgoing) -> None:
        """Look as an edit says."""
        new = (out.text, out.spans, out.buttons)
        if new != (self.text, self.spans, self.buttons):
            self.text, self.spans, self.buttons = new
            self.edits += 1

    def button(self, label: str) -> Button:
        """The first button that is called so, or begins so."""
        return next(one for row in self.buttons for one in row if one.label.startswith(label))


class Group:
    """A chat of many; whoever speaks in it says so: ``ana.says("hello", group)``."""

    def __init__(self, app: Loopback, chat: str) -> None:
        self._app, self.chat = app, chat


class Person:
    """Somebody with the app on their phone. Each act gives the update that the bot gets."""

    def __init__(self, app: Loopback, user_id: str, name: str) -> None:
        self._app, self.id, self.name = app, user_id, name

    def says(
        self,
        text: str,
        group: Group | None = None,
        *,
        topic: str = "",
        reply_to: str = "",
        files: tuple[Attachment, ...] = (),
        forwarded: bool = False,
        ago_s: float = 0.0,
    ) -> Incoming:
        """Write a message, to the bot or in a group; ``ago_s``: it comes late."""
        chat = self._chat(group)
        message = Message(self._app.next_id(), self.id, text, topic, reply_to=reply_to)
        self._app.keep(chat, message)
        command = said(text)
        return self._tells(
            Kind.MESSAGE if command is None else Kind.COMMAND,
            chat,
            topic,
            msg_id=message.id,
            text=text.removeprefix(f"@{self._app.name} "),
            reply_to=reply_to,
            files=files,
            forwarded=forwarded,
            addressed=self._meant(chat, text, reply_to),
            ago_s=ago_s,
        )

    def sends(self, content: bytes, name: str, mime: str = "", text: str = "") -> Incoming:
        """Send a file to the bot."""
        return self.says(text, files=(self._app.keep_file(content, name, mime),))

    def edits(self, msg_id: str, text: str, group: Group | None = None) -> Incoming:
        """Change a message of their own."""
        chat = self._chat(group)
        message = self._app.find(chat, msg_id)
        message.text = text
        message.edits += 1
        meant = self._meant(chat, text, message.reply_to)
        return self._tells(
            Kind.EDIT, chat, message.topic, msg_id=msg_id, text=text, addressed=meant
        )

    def presses(
        self, button: str | Button, message: Message, group: Group | None = None
    ) -> Incoming:
        """Press a button; the answer is then in ``app.answers[update.answer_to]``."""
        if isinstance(button, str):
            button = message.button(button)
        return self._tells(
            Kind.BUTTON,
            self._chat(group),
            message.topic,
            msg_id=message.id,
            data=button.data,
            answer_to=self._app.asks(),
        )

    def reacts(self, msg_id: str, emoji: str, group: Group | None = None) -> Incoming:
        """React to a message; an empty ``emoji`` takes it back."""
        chat = self._chat(group)
        message = self._app.find(chat, msg_id)
        message.reactions[self.id] = emoji
        return self._tells(Kind.REACTION, chat, message.topic, msg_id=msg_id, data=emoji)

    def searches(self, words: str) -> Incoming:
        """Type words after the bot's name, in any chat."""
        return self._tells(Kind.INLINE, self.id, "", text=words, answer_to=self._app.asks())

    def stops(self, msg_id: str = "", group: Group | None = None) -> Incoming:
        """Want no more of a reply."""
        return self._tells(Kind.STOP, self._chat(group), "", msg_id=msg_id)

    def blocks(self) -> Incoming:
        """Block the bot."""
        self._app.close_chat(self.id)
        return self._tells(Kind.MEMBERSHIP, self.id, "", data="kicked")

    def lets_in(self) -> Incoming:
        """Unblock the bot."""
        self._app.close_chat(self.id, closed=False)
        return self._tells(Kind.MEMBERSHIP, self.id, "", data="member")

    def removes(self, group: Group) -> Incoming:
        """Remove the bot from a group."""
        self._app.close_chat(group.chat)
        return self._tells(Kind.MEMBERSHIP, group.chat, "", data="left")

    def adds(self, group: Group) -> Incoming:
        """Add the bot to a group."""
        self._app.close_chat(group.chat, closed=False)
        return self._tells(Kind.MEMBERSHIP, group.chat, "", data="member")

    def tells_of_move(self, group: Group, chat: str) -> Incoming:
        """Make a group another kind of group, which has another id."""
        return self._tells(Kind.MEMBERSHIP, group.chat, "", data=f"moved:{chat}")

    def _chat(self, group: Group | None) -> str:
        return self.id if group is None else group.chat

    def _meant(self, chat: str, text: str, reply_to: str) -> bool:
        command = said(text)
        if self._app.kind(chat) is ChatKind.PRIVATE or f"@{self._app.name}" in text:
            return True
        if command is not None and command.bot == self._app.name:
            return True
        return bool(reply_to) and self._app.find(chat, reply_to).sender == self._app.account

    def _tells(
        self, kind: Kind, chat: str, topic: str, ago_s: float = 0.0, **more: Any
    ) -> Incoming:
        said: dict[str, Any] = {
            "platform": self._app.platform,
            "place": self._app.place(chat, topic),
            "chat_kind": self._app.kind(chat),
            "sender": Sender(self.id, self.name, SenderKind.PERSON),
            "update_id": 0,
            "kind": kind,
            "at": self._app.clock() - ago_s,
        }
        return self._app.tell_bot(Incoming(**{**said, **more}))
