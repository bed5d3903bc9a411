"""A reply that is still being written, as one message that grows.

One message per reply, and edits of it: whoever sends a preview and then the answer shows it twice.
A text that outgrows its message goes on in the next; the first then stays as it is. When the reply
has ended, every message is brought to its last state, with its styles, and that is never left out.

A state machine without I/O: ``step`` says what to do now, one thing at a time; ``done`` or
``failed`` say what became of it.
"""

from __future__ import annotations

from enum import StrEnum

import msgspec

from aios_bots.core.model import ChatKind, Rich
from aios_bots.core.spans import rich, units
from aios_bots.core.splitting import (
    PARTS_MAX,
    READ_PER_LIMIT,
    SPANS_MAX,
    TEXT_UNITS,
    Parts,
    beginning,
    headed,
    parts,
    parts_of,
)
from aios_nb.richtext import Growing, Node

FIRST_CHARS = 30
FIRST_S = 0.7
"""The message is begun with so many characters, or so long after the first of them."""
TYPING_S = 4.5
"""An app shows "typing" for five seconds."""
EDIT_S = {ChatKind.PRIVATE: 1.0, ChatKind.GROUP: 3.5, ChatKind.CHANNEL: 3.5}
BUSY_FACTOR = 1.5
GROWN_CHARS = 20
"""Less is not worth an edit, unless it has been unseen for ``STALE_S``."""
STALE_S = 5.0
NEXT_UNITS = 200
"""While a text grows, a new message is begun with so much: an address that is not complete yet
takes more room than the link that it becomes, and the text may fit after all."""


class Do(StrEnum):
    TYPING = "typing"
    SEND = "send"
    EDIT = "edit"
    DELETE = "delete"
    FILE = "file"
    """Send the whole text as a file."""


class Step(msgspec.Struct, frozen=True):
    """One call to make."""

    do: Do
    part: int = 0
    """Which message of the reply, from 0."""
    rich: Rich = Rich()
    final: bool = False
    """It must get through; what is not final may be dropped."""


class Turn:
    """One reply to one chat. ``edits``: whether its app can change a message that was sent.

    ``head``: the line above it, who says that. ``grace_s``: nothing is begun so soon after the
    first words; the rest may come at once. ``begun``: so many messages are there already, with
    nobody knows what in them, because whoever began them was ended.
    """

    def __init__(
        self,
        chat_kind: ChatKind,
        now: float,
        *,
        limit: int = TEXT_UNITS,
        max_spans: int = SPANS_MAX,
        edits: bool = True,
        head: str = "",
        grace_s: float = 0.0,
        begun: int = 0,
    ) -> None:
        self._every_s = EDIT_S[chat_kind]
        self._limit, self._max_spans, self._edits = limit, max_spans, edits
        self._head, self._grace_s = head, grace_s
        self._growing = Growing()
        self._room = PARTS_MAX * limit
        """So many characters more can be seen before the reply has ended."""
        self._blocks: list[Node] = []
        self._messages: list[Rich] | None = []
        """What was fed, as messages; the last one is still open. None: not looked at yet."""
        self._texts: list[str] = []
        self._first_at: float | None = None
        self._ended = False
        self._last: Parts | None = None
        """What the messages will be in the end."""
        self._shown: list[Rich | None] = [None] * begun
        """What the app was told for each message, and said yes to. None: nobody knows."""
        self._styled: set[int] = set()
        """The messages that outgrew themselves and have their styles."""
        self._file_sent = False
        self._typed_at = now - TYPING_S
        self._called_at = now
        self._doing: Step | None = None

    # What happens ----------------------------------------------------------------------------

    def feed(self, piece: str, now: float) -> None:
        """More of the reply came."""
        if self._ended or not piece:
            return
        self._texts.append(piece)
        if self._room > 0:
            self._growing.add(piece[: self._room])
            self._room -= len(piece)
            self._messages = None
        if self._first_at is None and piece.strip():
            self._first_at = now

    def end(self, text: str | None = None, looks: Rich | None = None) -> None:
        """The reply is complete. ``text``: what it is, if that may differ from what was fed.

        ``looks``: how the beginning of it looks, with its head, if that is not Markdown.
        """
        if self._ended:
            return
        self._ended = True
        if text is not None:
            self._texts = [text]
        limit, spans = self._limit, self._max_spans
        least = len(self._shown) + (self._doing is not None and self._doing.do is Do.SEND)
        if looks is None:
            self._last = parts_of(
                self.text, limit=limit, max_spans=spans, least=least, head=self._head
            )
        else:
            more = len(self.text) > READ_PER_LIMIT * PARTS_MAX * limit
            self._last = parts(looks, limit=limit, max_spans=spans, least=least, more=more)

    @property
    def text(self) -> str:
        """All of it, as the agent wrote it."""
        return "".join(self._texts)

    @property
    def begun(self) -> int:
        """How many messages of it are there."""
        return len(self._shown)

    @property
    def over(self) -> bool:
        """Whether the reply has ended and the chat shows all of it."""
        return self._ended and self._doing is None and self._settle() is None

    def done(self, step: Step, now: float) -> None:
        """The app did it."""
        self._doing = None
        self._called_at = now
        match step.do:
            case Do.SEND:
                self._shown.append(step.rich)
            case Do.EDIT:
                self._shown[step.part] = step.rich
            case Do.DELETE:
                self._shown.pop()
            case Do.FILE:
                self._file_sent = True
            case Do.TYPING:
                pass

    def failed(self, step: Step, now: float) -> None:
        """It was dropped or refused; what is final comes again with the next ``step``."""
        if step is self._doing:
            self._doing = None
            self._called_at = now

    def unsure(self) -> None:
        """Nobody will say what became of the last step: what it was about is unknown now."""
        step, self._doing = self._doing, None
        if step is not None and step.do is Do.EDIT:
            self._shown[step.part] = None

    # What to do ------------------------------------------------------------------------------

    def step(self, now: float, *, busy: bool = False) -> Step | None:
        """The one thing to do now; None: nothing yet, or the last one is not done."""
        if self._doing is not None:
            return None
        step = self._settle() if self._ended else self._grow(now, busy=busy)
        if step is not None and step.do is Do.TYPING:
            self._typed_at = now  # nobody waits for that
        else:
            self._doing = step
        return step

    def wait(self, now: float, *, busy: bool = False) -> float | None:
        """Seconds until ``step`` is worth a look; None: when something has happened."""
        if self._doing is not None:
            return None
        if self._ended:
            return None if self.over else 0.0
        times = [] if self._shown else [self._typed_at + TYPING_S]
        if self._edits and self._first_at is not None:
            if self._shown:
                times += [self._due(busy=busy), self._called_at + STALE_S]
            else:
                times += [self._first_at + self._grace_s, self._first_at + FIRST_S]
        soonest = min((at for at in times if at > now), default=None)
        return None if soonest is None else soonest - now

    def _due(self, *, busy: bool) -> float:
        return self._called_at + self._every_s * (BUSY_FACTOR if busy else 1.0)

    def _grow(self, now: float, *, busy: bool) -> Step | None:
        if self._edits and self._first_at is not None:
            begun = bool(self._shown)
            step = self._next(now, busy=busy) if begun else self._begin(now, self._first_at)
            if step is not None:
                return step
        if not self._shown and now >= self._typed_at + TYPING_S:
            return Step(Do.TYPING)
        return None

    def _begin(self, now: float, first_at: float) -> Step | None:
        if now < first_at + self._grace_s:
            return None
        if now < first_at + FIRST_S and len(self.text) < FIRST_CHARS:
            return None
        messages = self._so_far()
        return Step(Do.SEND, 0, _plain(messages[0]), final=True) if messages else None

    def _next(self, now: float, *, busy: bool) -> Step | None:
        """An edit of the last message, or the message after it."""
        if now < self._due(busy=busy):
            return None
        messages, part = self._so_far(), len(self._shown) - 1
        if part >= len(messages):  # what seemed to be there was read as something shorter
            return None
        wanted, shown = messages[part], self._shown[part]
        if self._goes_on(part):
            if part not in self._styled:
                self._styled.add(part)
                if wanted != shown:
                    return Step(Do.EDIT, part, wanted, final=True)
            return Step(Do.SEND, part + 1, _plain(messages[part + 1]), final=True)
        before = "" if shown is None else shown.text
        few = abs(len(wanted.text) - len(before)) < GROWN_CHARS
        if part in self._styled or (few and now < self._called_at + STALE_S):
            return None
        return Step(Do.EDIT, part, _plain(wanted)) if wanted.text != before else None

    def _settle(self) -> Step | None:
        """The next thing that is not yet as it will stay."""
        if self._last is None:
            return None
        messages = self._last.messages
        for part, wanted in enumerate(messages):
            if part >= len(self._shown):
                return Step(Do.SEND, part, wanted, final=True)
            if self._edits and self._shown[part] != wanted:
                return Step(Do.EDIT, part, wanted, final=True)
        if len(self._shown) > len(messages):
            return Step(Do.DELETE, len(self._shown) - 1, final=True)
        if self._last.file and not self._file_sent:
            return Step(Do.FILE, final=True)
        return None

    def _so_far(self) -> list[Rich]:
        if self._messages is None:
            keep, blocks = self._growing.look()
            self._blocks[keep:] = blocks
            self._messages = beginning(
                headed(self._head, rich(self._blocks)),
                limit=self._limit,
                max_spans=self._max_spans,
                most=PARTS_MAX,
            )
        return self._messages

    def _goes_on(self, part: int) -> bool:
        """Whether the message after this one may be begun."""
        after = self._so_far()[part + 1 :]
        return len(after) > 1 or bool(
            after and units(after[0].text) >= min(NEXT_UNITS, self._limit // 2)
        )


def _plain(one: Rich) -> Rich:
    """Without styles: those of a text that still grows would flicker."""
    return Rich(one.text) if one.spans else one
