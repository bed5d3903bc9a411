"""The app itself: its chats, what a bot can call, and what a bot is handed."""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections import deque
from collections.abc import Callable, Sequence

import msgspec

from aios_bots.adapters.loopback.faults import Faults
from aios_bots.adapters.loopback.people import Group, Message, Person
from aios_bots.core.adapter import (
    Absent,
    BadStyle,
    CallError,
    Caps,
    Content,
    Impossible,
    Moved,
    Take,
    Trouble,
    Unreachable,
)
from aios_bots.core.model import Attachment, ChatKind, Incoming, Op, Outgoing, Place
from aios_bots.core.spans import units

BATCH = 100


class Made(msgspec.Struct, frozen=True):
    """One call as it came, when it came, and what was said to it."""

    at: float
    out: Outgoing
    msg_id: str = ""
    error: CallError | None = None


class Loopback(Faults):
    """One bot of an app that is not there."""

    platform = "lo"
    address = ""

    def __init__(
        self,
        account: str = "77",
        *,
        name: str = "bridge",
        caps: Caps | None = None,
        clock: Callable[[], float] = time.time,
    ) -> None:
        super().__init__()
        self.account, self.name, self.clock = account, name, clock
        self.caps = caps or Caps()
        self.trouble: Trouble | None = None
        self.notes: tuple[str, ...] = ()
        self.calls: list[Made] = []
        """Every call that came, those that were refused too."""
        self.answers: dict[str, Outgoing] = {}
        """What was said to each press and search."""
        self.menu_for: tuple[str, ...] = ()
        """Who sees the owner's commands in the menu."""
        self.confirmed: list[int] = []
        """The updates that the bot took."""
        self._people: dict[str, Person] = {}
        self._groups: dict[str, Group] = {}
        self._messages: dict[str, dict[str, Message]] = {}
        self._moved: dict[str, str] = {}
        self._closed: set[str] = set()
        self._files: dict[str, bytes] = {}
        self._updates: deque[tuple[int, str]] = deque()
        self._asked: set[str] = set()
        self._last_update = self._last_id = 0
        self._news: list[asyncio.Future[None]] = []

    # The app's side: people, and what they see --------------------------------------------------

    def person(self, user_id: str, name: str = "") -> Person:
        """Somebody; their private chat has their id."""
        return self._people.setdefault(user_id, Person(self, user_id, name or f"person {user_id}"))

    def group(self, chat: str) -> Group:
        return self._groups.setdefault(chat, Group(self, chat))

    def messages(self, chat: str, topic: str | None = None) -> list[Message]:
        """What a chat shows now, or one topic of it: with all edits, without what was deleted."""
        shown = self._messages.get(self._moved.get(chat, chat), {}).values()
        return [one for one in shown if topic is None or one.topic == topic]

    def texts(self, chat: str, topic: str | None = None) -> list[str]:
        return [one.text for one in self.messages(chat, topic)]

    def made(self, chat: str | None = None, *ops: Op) -> list[Made]:
        """The calls that came for a chat, of these kinds."""
        return [
            one
            for one in self.calls
            if (chat is None or one.out.place.chat == chat) and (not ops or one.out.op in ops)
        ]

    async def until(self, true: Callable[[], bool]) -> None:
        """Wait until that is so; it is looked at after each call and each update."""
        while not true():
            news: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._news.append(news)
            await news

    @property
    def waiting(self) -> int:
        """Updates that the bot did not take yet."""
        return len(self._updates)

    def delete(self, chat: str, msg_id: str) -> None:
        """Somebody takes a message away; the bot is not told."""
        del self._messages[chat][msg_id]

    def close_chat(self, chat: str, *, closed: bool = True) -> None:
        """The bot is blocked or removed there; or it is not any more."""
        (self._closed.add if closed else self._closed.discard)(chat)

    def move(self, old: str, new: str, tell: Person | None = None) -> None:
        """A chat gets another id, as a group does that grows; ``tell``: the bot is told, by whom.

        Else it finds out by the next call.
        """
        if tell is not None:
            tell.tells_of_move(self._groups[old], new)
        self._moved[old] = new
        self._messages[new] = self._messages.pop(old, {})
        if old in self._groups:
            self._groups[new] = self._groups.pop(old)
            self._groups[new].chat = new

    # The bot's side ----------------------------------------------------------------------------

    async def open(self) -> None:
        """There is nobody to greet."""

    async def close(self) -> None:
        """There is nothing to let go of."""

    async def intake(self, take: Take) -> None:
        while True:
            await self.until(lambda: bool(self._updates))
            batch = list(self._updates)[:BATCH]
            await take(batch)
            taken = {update_id for update_id, _ in batch}
            self._updates = deque(one for one in self._updates if one[0] not in taken)
            self.confirmed += sorted(taken)
            self._tell()

    async def set_commands(self, owners: Sequence[str]) -> None:
        self.menu_for = tuple(owners)

    def read(self, raw: str) -> Incoming:
        return msgspec.json.decode(raw, type=Incoming)

    async def call(self, out: Outgoing, content: Content) -> str:
        at = self.clock()
        await self.pass_holds(out)
        fault = self.next_fault(out)
        error: CallError | None = None
        msg_id = ""
        try:
            if fault is None or fault.after:
                files = [await content(file) for file in out.files]
                msg_id = self._done(out, files)
        except CallError as raised:
            error = raised
        if error is None and fault is not None:
            error = fault.error
            if isinstance(error, Absent):
                self._note_absent(out)
        self.calls.append(Made(at, out, msg_id, error))
        self._tell()
        await self.pass_holds(out, after=True)
        if error is not None:
            raise error
        return msg_id

    async def fetch(self, file: Attachment) -> bytes:
        if file.ref not in self._files:
            raise Impossible("no such file")
        return self._files[file.ref]

    def is_group(self, chat: str) -> bool:
        return chat in self._groups

    def link(self, code: str) -> str:
        return f"loopback:{self.name}?start={code}"

    # How it works ------------------------------------------------------------------------------

    def _done(self, out: Outgoing, files: Sequence[bytes]) -> str:
        chat = out.place.chat
        self._check_chat(chat)
        match out.op:
            case Op.SEND:
                self._check(out)
                return self._send(out, files)
            case Op.EDIT:
                self._check(out)
                self._own(out).change(out)
                return out.target
            case Op.DELETE:
                self._own(out)
                del self._messages[chat][out.target]
            case Op.REACT:
                if out.target not in self._messages.get(chat, {}):
                    raise Impossible("no such message")
                self.find(chat, out.target).reactions[self.account] = out.text
            case Op.ANSWER:
                self._answer(out)
            case Op.TYPING:
                pass
        return ""

    def _answer(self, out: Outgoing) -> None:
        if out.target not in self._asked:
            raise Impossible("that was answered, or is too old")
        self._asked.discard(out.target)
        self.answers[out.target] = out

    def _send(self, out: Outgoing, files: Sequence[bytes]) -> str:
        if out.as_file:
            files = [out.text.encode()]
        message = Message(
            self.next_id(),
            self.account,
            "" if out.as_file else out.text,
            out.place.topic,
            spans=out.spans,
            buttons=out.buttons,
            reply_to=out.reply_to,
            files=tuple(files),
        )
        self.keep(out.place.chat, message)
        return message.id

    def _check_chat(self, chat: str) -> None:
        if chat in self._moved:
            raise Moved(self._moved[chat])
        if chat in self._closed:
            raise Unreachable("the bot was blocked there")

    def _check(self, out: Outgoing) -> None:
        """What a real app is strict about."""
        if out.as_file or out.files:
            limit = self.caps.caption_units
        else:
            limit = self.caps.text_units
            if not out.text.strip():
                raise Impossible("an empty message")
        size = units(out.text)
        if size > limit and not out.as_file:
            raise Impossible(f"{size} units of text where {limit} are the most")
        if any(span.length <= 0 or span.end > size for span in out.spans):
            raise BadStyle("a style beyond the text")

    def _own(self, out: Outgoing) -> Message:
        found = self._messages.get(out.place.chat, {}).get(out.target)
        if found is None or found.sender != self.account:
            raise Impossible("no such message of this bot")
        return found

    def _note_absent(self, out: Outgoing) -> None:
        gone = {Op.EDIT: "edits", Op.TYPING: "typing", Op.REACT: "reactions"}.get(out.op)
        if out.op is Op.SEND and (out.files or out.as_file):
            gone = "files"
        if gone is not None:
            self.caps = msgspec.structs.replace(self.caps, **{gone: False})

    # For people and groups ---------------------------------------------------------------------

    def next_id(self) -> str:
        self._last_id += 1
        return str(self._last_id)

    def keep(self, chat: str, message: Message) -> None:
        self._messages.setdefault(chat, {})[message.id] = message

    def find(self, chat: str, msg_id: str) -> Message:
        return self._messages[chat][msg_id]

    def keep_file(self, content: bytes, name: str, mime: str) -> Attachment:
        ref = hashlib.sha256(content).hexdigest()[:16]
        self._files[ref] = content
        return Attachment(ref, name, mime, len(content))

    def kind(self, chat: str) -> ChatKind:
        return ChatKind.GROUP if chat in self._groups else ChatKind.PRIVATE

    def place(self, chat: str, topic: str) -> Place:
        return Place(self.account, chat, topic)

    def asks(self) -> str:
        """An id that waits for an answer."""
        self._asked.add(asked := f"ask{self.next_id()}")
        return asked

    def tell_bot(self, update: Incoming) -> Incoming:
        """Hand an update to the bot, under the next number."""
        self._last_update += 1
        update = msgspec.structs.replace(update, update_id=self._last_update)
        self._updates.append((self._last_update, msgspec.json.encode(update).decode()))
        self._tell()
        return update

    def _tell(self) -> None:
        news, self._news = self._news, []
        for one in news:
            if not one.done():
                one.set_result(None)
