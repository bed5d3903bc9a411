"""The streams of one link: numbers, credit, and whose turn it is. No I/O and no clock.

Frames come in by ``receive`` and go out by ``take``. What the two sides must agree on:

- The dialler opens odd streams, the acceptor even ones, in rising order.
- Bytes of messages are sent within the credit of their stream. The credit that a reader has given
  and not yet got back, plus what it holds unread, is its window (``Ready.credit``).
- A message is begun when it fits into the credit that is left, or when at least half the window is
  left. So who begins a long message finds a reader that holds nothing long unread, and that goes on
  giving credit until the message is whole: it never gets stuck half-way.
- At most ``PIECED_MAX`` messages are under way in pieces, so half of them is never much to hold.

Control frames go first, then the streams take turns, a frame each: a long reply does not hold up
short ones.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

from aios_nb.wire.peer.frames import (
    BYE,
    CREDIT,
    END,
    HEAD_BYTES,
    LINK,
    MESSAGE,
    NUMBER_MAX,
    PIECE,
    PIECED_MAX,
    PING,
    PONG,
    Bye,
    Ready,
    Violation,
    credit,
    head,
    read_credit,
    say,
)

NUMBERS_SPARE = 1 << 20
"""A link with no more numbers than this left is worn out."""


class Full(Exception):
    """The other side takes no more streams for now."""


class Stream:
    """One request and what answers it."""

    __slots__ = (
        "at", "begun", "cost", "credit", "given", "gone", "heard", "held", "last", "message",
        "more", "number", "on_room", "ours", "owed", "owner", "parts", "slot", "stuck", "window",
    )  # fmt: skip

    def __init__(self, number: int, window: int, credit_: int, owner: Any, *, ours: bool) -> None:
        self.number = number
        """0 until its first frame is queued."""
        self.ours = ours
        self.begun = not ours
        """Its first frame was taken."""
        self.owner = owner
        self.gone = False
        # Going out
        self.credit = credit_
        self.message: bytes | None = None
        self.at = 0
        self.more: deque[bytes] | None = None
        self.last = False
        """Nothing comes after what is queued."""
        self.slot = False
        """Holds one of the places for messages in pieces."""
        self.stuck = False
        """Waits for credit."""
        self.on_room: Callable[[], None] | None = None
        # Coming in
        self.window = window
        """Credit the other side has left."""
        self.owed = 0
        """Credit to give back, gathered until it is worth a frame."""
        self.held = 0
        """What whole messages that were not taken yet have cost of the window."""
        self.given = 0
        """Credit given for the message that is coming, beyond the window."""
        self.cost = 0
        """Of the message that came last."""
        self.parts: bytearray | None = None
        self.heard = False
        """The request is complete."""


class Streams:
    """Both directions of all streams of a link."""

    def __init__(self, mine: Ready, theirs: Ready, *, dialled: bool) -> None:
        self._mine = mine
        self._theirs = theirs
        self._half = mine.credit // 2
        self._quarter = mine.credit // 4
        self._begin_from = theirs.credit - theirs.credit // 2
        self._piece = theirs.piece_bytes
        self._parity = 1 if dialled else 0
        self._next = 1 if dialled else 2
        self._last_theirs = 0
        self._table: dict[int, Stream] = {}
        self._unnumbered: set[Stream] = set()
        self.open_ours = 0
        self.open_theirs = 0
        self.queued_bytes = 0
        """Of messages that are not sent yet."""
        self._ready: deque[Stream] = deque()
        self._for_slot: deque[Stream] = deque()
        self._slots = PIECED_MAX
        self._assembling = 0
        self.assembled_bytes = 0
        """Of messages that have come in part."""
        self._control: list[bytes] = []
        self._credits: dict[Stream, int] = {}
        self._prompt: list[bytes] = []
        self.stalled = False
        """Nothing is taken at the moment: the other side does not read."""
        self._pong: bytes | None = None
        self._bye: bytes | None = None

    # Opening and closing --------------------------------------------------------------

    @property
    def idle(self) -> bool:
        """No stream is open and nothing waits to be sent."""
        return not self.open_ours and not self.open_theirs and not self.pending

    @property
    def worn(self) -> bool:
        return self._next > NUMBER_MAX - NUMBERS_SPARE

    @property
    def pending(self) -> bool:
        """There is something ``take`` would give."""
        return bool(
            self._ready
            or self._prompt
            or self._control
            or self._credits
            or self._pong is not None
            or (self._bye is not None and not self._unnumbered)
        )

    def all(self) -> list[Stream]:
        return [*self._table.values(), *self._unnumbered]

    def open(self, message: bytes, owner: Any, *, last: bool = False) -> Stream:
        """Ask something; ``last`` if no answer is wanted. Raises ``Full``."""
        if self.open_ours >= self._theirs.streams or self._next > NUMBER_MAX:
            raise Full
        stream = Stream(0, self._mine.credit, self._theirs.credit, owner, ours=True)
        self.open_ours += 1
        self._unnumbered.add(stream)
        self.send(stream, message, last=last)
        return stream

    def close(self, stream: Stream) -> None:
        """The stream came to its end."""
        if stream.gone:
            return
        stream.gone = True
        if stream.number:
            self._table.pop(stream.number, None)
        else:
            self._unnumbered.discard(stream)
        if stream.ours:
            self.open_ours -= 1
        else:
            self.open_theirs -= 1
        if stream.parts is not None:
            self._put_together(stream)
        if stream.message is not None:
            self.queued_bytes -= len(stream.message) - stream.at
            self.queued_bytes -= sum(map(len, stream.more or ()))
            stream.message = stream.more = None
        if stream.slot:
            self._free_slot(stream)
        if self._credits:
            self._credits.pop(stream, None)

    def end(self, stream: Stream) -> None:
        """Give the stream up, and say so if the other side has heard of it."""
        if stream.gone:
            return
        self.close(stream)
        if stream.begun:
            self._control.append(head(stream.number, END))

    def bye(self, why: str, *, at_once: bool = False) -> None:
        """Say goodbye; after what was asked before, unless ``at_once``."""
        frame = say(BYE, Bye(why))
        if at_once:
            self._control.append(frame)
        else:
            self._bye = frame

    def ping(self, stamp: bytes) -> None:
        self._control.append(head(LINK, PING) + stamp)

    def pong(self, stamp: bytes) -> None:
        """Only the last ping is answered: who pings without reading piles up nothing."""
        self._pong = head(LINK, PONG) + stamp

    # Going out ------------------------------------------------------------------------

    def send(self, stream: Stream, message: bytes, *, last: bool = False) -> None:
        """Queue a message on a stream; ``last`` closes the stream when it has left."""
        if stream.gone:
            return
        stream.last = last
        self.queued_bytes += len(message)
        if stream.message is None:
            stream.message = message
            self._enter(stream)
        elif stream.more is None:
            stream.more = deque((message,))
        else:
            stream.more.append(message)

    def take(self, most_bytes: int) -> list[bytes]:
        """The next frames to send, about so many bytes."""
        out: list[bytes] = []
        if self._control:
            out += self._control
            self._control.clear()
        if self._credits:
            out += [credit(stream.number, given) for stream, given in self._credits.items()]
            self._credits.clear()
        if self._pong is not None:
            out.append(self._pong)
            self._pong = None
        if self._prompt:
            out += self._prompt
            self._prompt.clear()
        ready = self._ready
        while ready and most_bytes > 0:
            stream = ready.popleft()
            message = stream.message
            if message is None:  # given up while it waited
                continue
            stream.begun = True
            if stream.slot:
                most_bytes -= self._take_piece(stream, message, out)
                continue
            size = len(message)
            stream.credit -= size
            self.queued_bytes -= size
            most_bytes -= size + HEAD_BYTES
            out.append(head(stream.number, MESSAGE) + message)
            self._sent(stream)
        if self._bye is not None and not self._unnumbered and not ready:
            out.append(self._bye)
            self._bye = None
        return out

    def _take_piece(self, stream: Stream, message: bytes, out: list[bytes]) -> int:
        left = len(message) - stream.at
        size = min(left, self._piece, stream.credit)
        if not size:
            stream.stuck = True
            return 0
        kind = MESSAGE if size == left else PIECE
        out.append(head(stream.number, kind) + message[stream.at : stream.at + size])
        stream.credit -= size
        stream.at += size
        self.queued_bytes -= size
        if kind == PIECE:
            self._ready.append(stream)
        else:
            self._free_slot(stream)
            self._sent(stream)
        return size + HEAD_BYTES

    def _sent(self, stream: Stream) -> None:
        """A whole message has left."""
        stream.at = 0
        if stream.more:
            stream.message = stream.more.popleft()
            self._enter(stream)
            return
        stream.message = None
        if stream.last:
            self.close(stream)
        elif stream.on_room is not None and stream.credit > 0:
            stream.on_room()

    def _enter(self, stream: Stream) -> None:
        """Let the stream's next message take its turn, if it may begin."""
        size = len(stream.message or b"")
        if size > stream.credit and stream.credit < self._begin_from:
            stream.stuck = True
            return
        if size > self._piece or size > stream.credit:
            if not self._slots:
                self._for_slot.append(stream)
                return
            self._slots -= 1
            stream.slot = True
        if not stream.number:
            # Not before: numbers must rise in the order in which first frames leave.
            self._unnumbered.discard(stream)
            stream.number = self._next
            self._next += 2
            self._table[stream.number] = stream
        self._ready.append(stream)

    def _free_slot(self, stream: Stream) -> None:
        stream.slot = False
        self._slots += 1
        while self._for_slot and self._slots:
            waiting = self._for_slot.popleft()
            if waiting.message is not None:
                self._enter(waiting)

    # Asked and answered at once -------------------------------------------------------

    def request(self, number: int, frame: bytes) -> bytes | None:
        """The request in a message that opens a stream; None if this one does not.

        Nothing is kept for the stream yet: ``prompt`` answers it, or ``adopt`` opens it.
        """
        if number <= self._last_theirs or number & 1 == self._parity:
            return None
        size = len(frame) - HEAD_BYTES
        if size > self._mine.credit or size > self._mine.message:
            raise Violation("more than was let in")
        if self.open_theirs >= self._mine.streams:
            raise Violation("too many streams")
        self._last_theirs = number
        return frame[HEAD_BYTES:]

    def adopt(self, number: int) -> Stream:
        """The stream of a request that is answered later."""
        stream = Stream(number, 0, self._theirs.credit, None, ours=False)
        stream.heard = True
        self.open_theirs += 1
        self._table[number] = stream
        return stream

    def prompt(self, number: int, message: bytes) -> bool:
        """Answer a request in the turn in which it came; False if that takes a stream."""
        if self.stalled or len(message) > self._piece or len(message) > self._theirs.credit:
            return False
        self._prompt.append(head(number, MESSAGE) + message)
        return True

    # Coming in ------------------------------------------------------------------------

    def receive(self, number: int, kind: int, frame: bytes) -> tuple[Stream, bytes | None] | None:
        """A whole message and its stream, or the stream and None if the other side gave it up.

        Raises ``Violation``.
        """
        stream = self._table.get(number)
        if stream is None:
            stream = self._unknown(number, kind)
            if stream is None:
                return None
        if kind == MESSAGE and stream.parts is None:
            size = len(frame) - HEAD_BYTES
            if size > stream.window or size > self._mine.message or stream.heard:
                raise Violation("more than was let in")
            stream.window -= size
            stream.cost = size
            stream.heard = not stream.ours
            return stream, frame[HEAD_BYTES:]
        if kind <= PIECE:
            return self._part(stream, kind, frame[HEAD_BYTES:])
        if kind == CREDIT:
            self._more_credit(stream, read_credit(frame))
            return None
        if kind != END:
            raise Violation("that is for the link, not for a stream")
        self.close(stream)
        return stream, None

    def took(self, stream: Stream, cost: int) -> None:
        """The reader has taken a message that ``hold`` kept for it."""
        stream.held -= cost
        self.owe(stream, cost)

    def hold(self, stream: Stream) -> int:
        """The message that just came waits for its reader; what to say to ``took`` then."""
        stream.held += stream.cost
        return stream.cost

    def owe(self, stream: Stream, cost: int) -> None:
        """Give credit back, when enough of it has come together."""
        stream.owed += cost
        if stream.owed >= self._quarter and not stream.gone:
            self._give(stream, stream.owed)
            stream.owed = 0

    def _unknown(self, number: int, kind: int) -> Stream | None:
        if number == LINK:
            raise Violation("messages are not for the link itself")
        if number & 1 == self._parity:
            if number >= self._next:
                raise Violation("an answer to nothing")
            return None  # late: given up here meanwhile
        if number <= self._last_theirs:
            return None
        if kind > PIECE:
            raise Violation("a stream begins with a message")
        if self.open_theirs >= self._mine.streams:
            raise Violation("too many streams")
        self._last_theirs = number
        self.open_theirs += 1
        stream = Stream(number, self._mine.credit, self._theirs.credit, None, ours=False)
        self._table[number] = stream
        return stream

    def _part(self, stream: Stream, kind: int, part: bytes) -> tuple[Stream, bytes] | None:
        size = len(part)
        if size > stream.window or stream.heard:
            raise Violation("more than was let in")
        stream.window -= size
        if stream.parts is None:
            if self._assembling >= PIECED_MAX:
                raise Violation("too many messages in pieces")
            if not size:
                raise Violation("an empty piece")
            self._assembling += 1
            stream.parts = bytearray()
            stream.given = 0
        elif not size and kind == PIECE:
            raise Violation("an empty piece")
        stream.parts += part
        self.assembled_bytes += size
        if len(stream.parts) > self._mine.message:
            raise Violation("a message that is too long")
        if kind == PIECE:
            if stream.window < self._quarter and stream.held + stream.owed <= self._half:
                # Less than half: nothing else that is long may begin before this was taken.
                more = self._half - 1 - stream.window
                stream.given += more
                self._give(stream, more)
            return None
        whole = self._put_together(stream)
        stream.cost = len(whole) - stream.given
        stream.heard = not stream.ours
        return stream, whole

    def _put_together(self, stream: Stream) -> bytes:
        whole, stream.parts = bytes(stream.parts or b""), None
        self._assembling -= 1
        self.assembled_bytes -= len(whole)
        return whole

    def _give(self, stream: Stream, amount: int) -> None:
        stream.window += amount
        self._credits[stream] = self._credits.get(stream, 0) + amount

    def _more_credit(self, stream: Stream, amount: int) -> None:
        stream.credit += amount
        if stream.credit > NUMBER_MAX:
            raise Violation("more credit than can be counted")
        if stream.stuck and amount:
            stream.stuck = False
            if stream.slot:
                self._ready.append(stream)
            else:
                self._enter(stream)
        elif stream.message is None and stream.on_room is not None and stream.credit > 0:
            stream.on_room()
