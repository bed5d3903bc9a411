"""One run: an agent at work on one task, and everyone who listens to it."""

from __future__ import annotations

import asyncio
import heapq
from collections.abc import AsyncIterator, Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from aios_nb.access import Principal
from aios_nb.chat.log import Conversation
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
    from aios_nb.ports import Target


GATHER_S = 0.005
"""What an agent says within this goes to a listener in one piece; nobody reads faster."""


class Backstage(Protocol):
    """What a run needs of the exchange."""

    loop: asyncio.AbstractEventLoop

    def context_of(self, run: Run) -> Sequence[Event]: ...
    async def call_from(
        self, run: Run, agent: str, text: str, data: Any, files: Sequence[FileRef]
    ) -> Outcome: ...
    async def search_from(self, run: Run, words: str, limit: int) -> Sequence[AgentRow]: ...
    async def ask_from(self, run: Run, question: str) -> str: ...


class Run:
    """A run in memory, from its acceptance until its end is committed. Is a ``ports.Run``."""

    __slots__ = (
        "_backstage", "_bytes", "_context", "_listeners", "_pieces", "_waiters", "answer", "bucket",
        "conversation", "deadline", "error", "length", "message_seq", "note", "outcome",
        "principal", "question", "started", "status", "stop_reason", "target", "task", "turn",
        "worker",
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
        self.status = Status.ACCEPTED
        self.outcome: Outcome | None = None
        self.error: RpcError | None = None
        self.question: str | None = None
        self.answer: asyncio.Future[str] | None = None
        self.note: str = ""
        self.started = False
        self.message_seq = 0
        self.length = 0
        """Code points streamed so far."""
        self.bucket = 0
        self.turn: Turn | None = None
        """Its place in line, if it had to wait for one."""
        self.worker: asyncio.Task[Any] | None = None
        self.stop_reason: RpcError | None = None
        self._backstage = backstage
        self._pieces: list[str] = []
        self._bytes = 0
        self._context: Sequence[Event] | None = None
        self._waiters: set[Waiter] = set()
        """They wait for another status."""
        self._listeners: set[Waiter] = set()
        """They wait for more text."""

    # What the agent sees (ports.Run) -----------------------------------------------------

    @property
    def messages(self) -> Sequence[Event]:
        if self._context is None:
            self._context = self._backstage.context_of(self)
        return self._context

    @property
    def seconds_left(self) -> float:
        return max(0.0, self.deadline - self._backstage.loop.time())

    @property
    def cancelled(self) -> bool:
        return self.stop_reason is not None or self.is_over

    def begin(self) -> None:
        self.started = True

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
        if self._listeners:
            _wake(self._listeners)

    def progress(self, note: str, fraction: float | None) -> None:
        self.note = note if fraction is None else f"{note} ({fraction:.0%})"

    async def call(
        self, agent: str, text: str, *, data: Any = None, files: Sequence[FileRef] = ()
    ) -> Outcome:
        return await self._backstage.call_from(self, agent, text, data, files)

    async def search(self, words: str, limit: int) -> Sequence[AgentRow]:
        return await self._backstage.search_from(self, words, limit)

    async def ask_user(self, question: str) -> str:
        return await self._backstage.ask_from(self, question)

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
        return self.is_over or self.question is not None

    @property
    def text(self) -> str:
        """All that was streamed."""
        return "".join(self._pieces)

    def wake(self) -> None:
        """The status is another one: let everyone look."""
        _wake(self._waiters)
        _wake(self._listeners)

    async def changed(self, within_s: float | None = None) -> None:
        """Return at the next change of status, or after so many seconds."""
        loop = self._backstage.loop
        waiter = loop.create_future()
        self._waiters.add(waiter)
        timer = None if within_s is None else loop.call_later(within_s, _done, waiter)
        try:
            await waiter
        finally:
            self._waiters.discard(waiter)
            if timer is not None:
                timer.cancel()

    async def _spoken(self) -> None:
        """Return at the next piece of text or change of status."""
        waiter = self._backstage.loop.create_future()
        self._listeners.add(waiter)
        try:
            await waiter
        finally:
            self._listeners.discard(waiter)

    async def settled(self) -> None:
        while self.outcome is None and self.error is None and self.question is None:
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

    async def deltas(self, offset: int = 0) -> AsyncIterator[Delta]:
        """The reply as it is written, from this code point on. Ends when a caller need not wait.

        The first piece comes at once; what follows within 5 ms comes together: waking a listener
        costs more than writing a token. A slow listener gets fewer, longer pieces too: nothing is
        queued for it.
        """
        message_id, reply_id = self.task.message_id, self.task.reply_id
        pieces, text = self._pieces, ""
        index, skip = 0, offset
        while index < len(pieces) and len(pieces[index]) <= skip:
            skip -= len(pieces[index])
            index += 1
        while True:
            finished = self.is_settled
            if index < len(pieces) or finished:
                fresh = pieces[index] if len(pieces) == index + 1 else "".join(pieces[index:])
                index = len(pieces)
                text, skip = fresh[skip:], max(0, skip - len(fresh))
                if text or finished:
                    yield Delta(message_id, reply_id, offset, text, done=self.is_over)
                offset += len(text)
            if finished:
                return
            if text and not self.is_settled:
                await self.changed(within_s=GATHER_S)
            if index == len(pieces) and not self.is_settled:
                await self._spoken()


Waiter = asyncio.Future[None]


def _wake(waiters: set[Waiter]) -> None:
    for waiter in waiters:
        _done(waiter)
    waiters.clear()


def _done(waiter: Waiter) -> None:
    if not waiter.done():
        waiter.set_result(None)


class Deadlines:
    """Stops what is late, with one timer for all runs instead of one each."""

    TICK_S = 0.05

    def __init__(self, late: Callable[[Run], None]) -> None:
        self._late = late
        self._buckets: dict[int, set[Run]] = {}
        self._order: list[int] = []
        self._timer: asyncio.TimerHandle | None = None

    def add(self, run: Run) -> None:
        bucket = run.bucket = int(run.deadline / self.TICK_S) + 1
        members = self._buckets.get(bucket)
        if members is None:
            members = self._buckets[bucket] = set()
            heapq.heappush(self._order, bucket)
            if self._order[0] == bucket:
                self._arm()
        members.add(run)

    def remove(self, run: Run) -> None:
        members = self._buckets.get(run.bucket)
        if members is not None:
            members.discard(run)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _arm(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        loop = asyncio.get_running_loop()
        self._timer = (
            loop.call_at(self._order[0] * self.TICK_S, self._sweep) if self._order else None
        )

    def _sweep(self) -> None:
        now = asyncio.get_running_loop().time()
        while self._order and self._order[0] * self.TICK_S <= now:
            for run in self._buckets.pop(heapq.heappop(self._order), ()):
                self._late(run)
        self._arm()


Turn = asyncio.Future[None]


class Lanes:
    """One run at a time per conversation and agent; a few may wait, in order."""

    def __init__(self, waiting: int) -> None:
        self._limit = waiting
        self._lanes: dict[tuple[str, str], list[asyncio.Future[None]]] = {}

    def full(self, key: tuple[str, str]) -> bool:
        lane = self._lanes.get(key)
        return lane is not None and len(lane) >= self._limit

    def enter(self, key: tuple[str, str]) -> Turn | None:
        """``None``: go at once. Otherwise wait for this, in line."""
        lane = self._lanes.get(key)
        if lane is None:
            self._lanes[key] = []
            return None
        turn: Turn = asyncio.get_running_loop().create_future()
        lane.append(turn)
        return turn

    def leave(self, key: tuple[str, str], turn: Turn | None) -> None:
        """Let the next one go; one that gives up while it waits only leaves the line."""
        lane = self._lanes.get(key)
        if turn is not None and lane is not None and (turn.cancelled() or not turn.done()):
            if turn in lane:
                lane.remove(turn)
            return
        while lane:
            following = lane.pop(0)
            if not following.done():
                following.set_result(None)
                return
        self._lanes.pop(key, None)
