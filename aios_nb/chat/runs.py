"""One run: an agent at work on one task, and everyone who listens to it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from aios_nb.access import Principal
from aios_nb.bell import Bell
from aios_nb.chat.conversation import Conversation
from aios_nb.chat.lanes import Turn
from aios_nb.envelope import (
    TEXT_LIMIT_BYTES,
    AgentRow,
    Delta,
    Event,
    FileRef,
    Outcome,
    Sender,
    Status,
    Task,
)
from aios_nb.errors import Cancelled, RpcError, TooLarge

if TYPE_CHECKING:
    from aios_nb.chat.strangers import Ticket
    from aios_nb.ports import Target


GATHER_S = 0.005
"""What an agent says within this goes to a listener in one piece; nobody reads faster."""

PIECE_CHARS = 1 << 18
"""No piece is longer: JSON may need six bytes for each, and a link takes no message above 4 MB."""


class Backstage(Protocol):
    """What a run needs of the exchange."""

    loop: asyncio.AbstractEventLoop

    def context_of(self, run: Run) -> Sequence[Event]: ...
    async def call_from(
        self, run: Run, agent: str, text: str, data: Any, files: Sequence[FileRef]
    ) -> Outcome: ...
    async def search_from(self, run: Run, words: str, limit: int) -> Sequence[AgentRow]: ...
    async def ask_from(self, run: Run, question: str, question_id: str | None) -> str: ...


class Run:
    """A run in memory, from its acceptance until its end is committed. Is a ``ports.Run``."""

    __slots__ = (
        "_backstage", "_bytes", "_pieces", "_status_bell", "_text_bell", "_waits", "answer",
        "answered", "asking", "bucket", "context", "conversation", "deadline", "error", "length",
        "message_seq", "note", "outcome", "own_limit", "parked", "patient", "principal",
        "question", "question_id", "started", "status", "stop_reason", "target", "task", "ticket",
        "turn", "why_late", "worker",
    )  # fmt: skip

    def __init__(
        self,
        task: Task,
        target: Target | None,
        conversation: Conversation,
        principal: Principal,
        deadline: float,
        backstage: Backstage,
    ) -> None:
        self.task = task
        self.target = target
        """``None`` after a restart, until the agent is hosted again."""
        self.conversation = conversation
        self.principal = principal
        self.deadline = deadline
        """On the loop's clock."""
        self.own_limit = False
        """It is the agent's, not its caller's."""
        self.status = Status.ACCEPTED
        self.outcome: Outcome | None = None
        self.error: RpcError | None = None
        self.question: str | None = None
        self.question_id = ""
        self.answered: list[str] = []
        """Ids of the questions that were answered."""
        self.answer: asyncio.Future[str] | None = None
        self.asking: asyncio.Lock | None = None
        """Held by the one question that is being asked."""
        self.note = ""
        """How far it says it has come."""
        self.started = False
        self.why_late: Callable[[], tuple[str, str] | None] | None = None
        """What to say, and what to do, if the deadline passes before the agent's code began."""
        self.patient = False
        self.parked = False
        """The node stops; another node goes on with it, and the next start asks that one."""
        self.context: Sequence[Event] | None = None
        """What a remote home says was said before; otherwise read when asked for."""
        self.message_seq = 0
        self.length = 0
        """Code points streamed so far."""
        self.bucket = 0
        self.turn: Turn | None = None
        """Its place in line, if it had to wait for one."""
        self.worker: asyncio.Task[Any] | None = None
        self.ticket: Ticket | None = None
        """Of a stranger's run: its part of what they share."""
        self.stop_reason: RpcError | None = None
        self._backstage = backstage
        self._pieces: list[str] = []
        self._bytes = 0
        self._status_bell: Bell | None = None
        self._text_bell: Bell | None = None
        """Hung up when somebody listens: nobody does to most runs."""
        self._waits: list[Callable[[], None]] | None = None

    # What the agent sees (ports.Run) -----------------------------------------------------

    @property
    def messages(self) -> Sequence[Event]:
        if self.context is None:
            self.context = self._backstage.context_of(self)
        return self.context

    @property
    def seconds_left(self) -> float:
        return max(0.0, self.deadline - self._backstage.loop.time())

    @property
    def cancelled(self) -> bool:
        return self.stop_reason is not None or self.is_over

    @property
    def stranger(self) -> bool:
        return self.principal.is_stranger

    def begin(self) -> None:
        self.started = True
        if self.status is Status.ACCEPTED:
            self.status = Status.RUNNING

    def delta(self, text: str) -> None:
        if self.stop_reason is not None or self.outcome is not None or self.error is not None:
            raise Cancelled("this run is over")
        if not text:
            return
        self._bytes += len(text) if text.isascii() else len(text.encode(errors="replace"))
        if self._bytes > TEXT_LIMIT_BYTES:
            raise TooLarge("the agent wrote more than 1 MB")
        self._pieces.append(text)
        self.length += len(text)
        if self._text_bell is not None:
            self._text_bell.ring()

    def progress(self, note: str, fraction: float | None) -> None:
        self.note = note if fraction is None else f"{note} ({fraction:.0%})"
        if self._text_bell is not None:
            self._text_bell.ring()

    async def call(
        self, agent: str, text: str, *, data: Any = None, files: Sequence[FileRef] = ()
    ) -> Outcome:
        return await self._backstage.call_from(self, agent, text, data, files)

    async def search(self, words: str, limit: int) -> Sequence[AgentRow]:
        return await self._backstage.search_from(self, words, limit)

    async def ask_user(self, question: str, question_id: str | None = None) -> str:
        return await self._backstage.ask_from(self, question, question_id)

    # What listeners see ------------------------------------------------------------------

    @property
    def sender(self) -> Sender:
        """Who speaks when this run writes into the log."""
        return Sender(self.task.agent, "agent")

    @property
    def is_over(self) -> bool:
        return self.outcome is not None or self.error is not None

    @property
    def is_settled(self) -> bool:
        """Over, or waiting for a person: a caller need not wait any longer."""
        return self.outcome is not None or self.error is not None or self.question is not None

    @property
    def text(self) -> str:
        """All that was streamed."""
        return "".join(self._pieces)

    def wake(self) -> None:
        """The status is another one: let everyone look."""
        if self._status_bell is not None:
            self._status_bell.ring()
        if self._text_bell is not None:
            self._text_bell.ring()
        waits = self._waits
        if waits is not None and self.is_settled:
            self._waits = None
            for told in waits:
                told()

    def when_settled(self, told: Callable[[], None]) -> None:
        """Call this as soon as a caller need not wait any longer."""
        if self.is_settled:
            told()
        elif self._waits is None:
            self._waits = [told]
        else:
            self._waits.append(told)

    async def changed(self, within_s: float | None = None) -> None:
        """Return at the next change of status, or after so many seconds."""
        if self._status_bell is None:
            self._status_bell = Bell()
        await self._status_bell.wait(within_s)

    def is_settled_beyond(self, question_id: str) -> bool:
        """The same for somebody who knows of this question already."""
        return self.is_over or (self.question is not None and self.question_id != question_id)

    async def settled(self, beyond: str = "") -> None:
        while not self.is_settled_beyond(beyond):
            await self.changed()

    def flush_rest(self, text: str) -> None:
        """Let listeners have what the agent returned without streaming it."""
        if len(text) > self.length and (not self.length or text.startswith(self.text)):
            self._pieces.append(text[self.length :])
            self.length = len(text)

    def stop(self, reason: RpcError) -> None:
        """End the run with this error; does nothing when it is over already."""
        if self.is_over or self.stop_reason is not None:
            return
        self.stop_reason = reason
        if self.worker is not None:
            self.worker.cancel()

    def _piece_at(self, offset: int) -> tuple[int, int]:
        """The piece a code point is in, and how many of that piece are before it."""
        pieces, index = self._pieces, 0
        while index < len(pieces) and len(pieces[index]) <= offset:
            offset -= len(pieces[index])
            index += 1
        return index, offset

    async def deltas(self, offset: int = 0, beyond: str = "") -> AsyncIterator[Delta]:
        """The reply as it is written, from this code point on. Ends when a caller need not wait.

        ``beyond`` names a question whose being asked does not end it.

        The first piece comes at once; what follows within 5 ms comes together: waking a listener
        costs more than writing a token. A slow listener gets fewer, longer pieces too: nothing is
        queued for it.
        """
        message_id, reply_id = self.task.message_id, self.task.reply_id
        pieces, text, note = self._pieces, "", ""
        index, skip = self._piece_at(offset)
        while True:
            finished = self.is_settled_beyond(beyond)
            if index < len(pieces) or finished:
                fresh = pieces[index] if len(pieces) == index + 1 else "".join(pieces[index:])
                index = len(pieces)
                text, skip = fresh[skip:], max(0, skip - len(fresh))
                while len(text) > PIECE_CHARS:
                    yield Delta(message_id, reply_id, offset, text[:PIECE_CHARS])
                    text, offset = text[PIECE_CHARS:], offset + PIECE_CHARS
                if text or finished:
                    yield Delta(message_id, reply_id, offset, text, done=self.is_over)
                offset += len(text)
            if finished:
                return
            if self.note != note:
                note = self.note
                yield Delta(message_id, reply_id, offset, "", progress=note)
            if text and not self.is_settled_beyond(beyond):
                await self.changed(within_s=GATHER_S)
            if index == len(pieces) and self.note == note and not self.is_settled_beyond(beyond):
                if self._text_bell is None:
                    self._text_bell = Bell()
                await self._text_bell.wait()
