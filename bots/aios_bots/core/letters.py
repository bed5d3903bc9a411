"""One text in one place, as the calls that bring it there.

Its messages have names that follow from the event and the place, so that whoever begins it, goes on
with it or ends it, before a crash or after, speaks of the same messages.
"""

from __future__ import annotations

import msgspec

from aios_bots.core.model import Attachment, Op, Outgoing, Place, Rich
from aios_bots.core.outbox import Outbox
from aios_bots.core.turn import Do, Step, Turn

FILE_PART = 1000
"""The first file of an event; its texts are below."""
BUNDLE_PART = 999
"""A message that shows several events, and is that of the last of them."""
WHOLE = "answer.md"
"""A text that is too long for messages goes as a file of this name."""
_GONE = frozenset({"", "dead"})


class Letter(msgspec.Struct, frozen=True):
    """Where a text goes, and which event it is."""

    place: Place
    conversation: str
    event_id: str
    reply_to: str = ""
    again: str = ""
    """Not empty when the app would not take it the first time."""

    def key(self, part: int | str) -> str:
        """The name of one of its messages."""
        where = f"{self.place.chat}:{self.place.topic}"
        return f"{self.conversation}:{self.event_id}:{where}:{part}{self.again}"

    def send(self, part: int, rich: Rich, files: tuple[Attachment, ...] = ()) -> Outgoing:
        return Outgoing(
            key=self.key(part),
            place=self.place,
            op=Op.SEND,
            text=rich.text,
            spans=rich.spans,
            files=files,
            reply_to=self.reply_to if part in {0, FILE_PART} else "",
            conversation=self.conversation,
            event_id=self.event_id,
            part=part,
        )

    def edit(self, part: int, rich: Rich, mark: str = "", target: str = "") -> Outgoing:
        """``mark``: which edit of that message; without one it is the last preview."""
        return Outgoing(
            key=f"{self.key(part)}{mark}",
            place=self.place,
            op=Op.EDIT,
            text=rich.text,
            spans=rich.spans,
            target=target,
            target_key=self.key(part),
            conversation=self.conversation,
            event_id=self.event_id,
            part=part,
        )

    def delete(self, part: int, mark: str, target: str = "") -> Outgoing:
        return Outgoing(
            key=f"{self.key(part)}{mark}:gone",
            place=self.place,
            op=Op.DELETE,
            target=target,
            target_key=self.key(part),
        )

    def whole(self, text: str, mark: str) -> Outgoing:
        """All of it as a file."""
        return Outgoing(
            key=f"{self.key('file')}{mark}",
            place=self.place,
            op=Op.SEND,
            text=text,
            as_file=WHOLE,
            conversation=self.conversation,
            event_id=self.event_id,
            part=BUNDLE_PART,
        )

    def call(self, step: Step, text: str, mark: str, target: str = "") -> Outgoing:
        """What a turn wants done for good. ``text``: all of what it says."""
        match step.do:
            case Do.SEND:
                return self.send(step.part, step.rich)
            case Do.EDIT:
                return self.edit(step.part, step.rich, mark, target)
            case Do.DELETE:
                return self.delete(step.part, mark, target)
            case Do.FILE:
                return self.whole(text, mark)
        raise ValueError(step.do)  # typing is not for good


def begun(outbox: Outbox, letter: Letter) -> tuple[Letter, int]:
    """How many messages of it are there or on their way; and under which names.

    What the app refused for good is not there, and its name is used up.
    """
    if outbox.fate(letter.key(0)).state == "dead":
        letter = msgspec.structs.replace(letter, again=":2")
    count = 0
    while outbox.fate(letter.key(count)).state not in _GONE:
        count += 1
    return letter, count


def last_steps(turn: Turn, now: float) -> list[Step]:
    """All that is left to do for a turn that has ended."""
    turn.unsure()
    steps: list[Step] = []
    while (step := turn.step(now)) is not None:
        turn.done(step, now)
        steps.append(step)
    return steps
