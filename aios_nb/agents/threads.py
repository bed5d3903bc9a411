"""Engine ``thread``: plain functions and generators, each run in a thread of its own.

A cancel sets ``ctx.cancelled``, wakes the agent out of ``ctx.call`` and ``ctx.ask_user``, and
raises ``Stopped`` in its thread. Python code stops at its next step; a blocking call into C (a
socket without time-out, a long computation in a library) stops only when it returns, and keeps its
slot and its thread until then. The caller does not wait for that.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import inspect
import logging
import threading
import types
from collections import deque
from collections.abc import Callable, Coroutine, Generator
from queue import SimpleQueue
from time import monotonic
from typing import Any, cast

from aios_nb.agents.context import ThreadContext
from aios_nb.agents.engines import EngineKind, Job, register
from aios_nb.agents.inline import STRAYS, Stray, finish, in_steps
from aios_nb.agents.outputs import Answer
from aios_nb.agents.pool import Crew, Hand, Pool, Stopped
from aios_nb.agents.slots import Slots
from aios_nb.config import Limits
from aios_nb.errors import Busy, UsageError

log = logging.getLogger("aios_nb.agents")

CONCURRENCY = 16
"""Runs of one agent at once. Enough to wait for slow services; more busy threads would only fight
over the interpreter with the node's loop."""
INSIST_S = 1.0
"""A thread that goes on after its cancel is told again this often."""
STUCK_AFTER = 5
"""... and this many times later the log says so."""
CLOSE_GRACE_S = 2.0


class ThreadEngine:
    """Runs jobs in daemon threads, at most ``limits.threads`` at work at once.

    Half of them are for strangers at most.
    """

    def __init__(self, limits: Limits) -> None:
        self._pool = Pool("aios-agent")
        self._slots = Slots(limits.threads, limits.threads // 2)
        self._works: set[Work] = set()
        self._empty: asyncio.Event | None = None

    @property
    def pool(self) -> Pool:
        return self._pool

    async def perform(self, job: Job) -> Answer:
        if not await job.lease.also(self._slots):
            raise Busy("this node is stopping")
        work = Work(job, self._ended)
        try:
            work.start(self._pool)
        except RuntimeError as error:
            raise Busy(f"no thread for {job.definition.name}: {error}") from error
        self._works.add(work)
        job.lease.share()
        try:
            await work.done
        except asyncio.CancelledError:
            work.stop()
            raise
        work.check()
        if work.left_over is not None:
            await in_steps(finish(work.left_over, work.answer, job), job)
        return work.answer

    async def close(self) -> None:
        self._slots.close()
        for work in list(self._works):
            work.stop()
        if self._works:
            self._empty = asyncio.Event()
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CLOSE_GRACE_S):
                    await self._empty.wait()
        for work in self._works:
            work.abandon()
            log.warning("agent %s is stuck in its thread and was left there", work.job.task.agent)
        self._pool.close()

    def _ended(self, work: Work) -> None:
        self._works.discard(work)
        work.job.lease.drop()
        if self._empty is not None and not self._works:
            self._empty.set()


class Work:
    """One job in a thread, seen from both sides."""

    def __init__(self, job: Job, ended: Callable[[Work], None]) -> None:
        self.job = job
        self.stopped = False
        self.error: BaseException | None = None
        self.left_over: Any = None
        """What the function returned that only the loop can finish: a coroutine."""
        self.answer = Answer()
        self._on_end = ended
        self._loop = asyncio.get_running_loop()
        self._loop_thread = threading.get_ident()
        self._until = monotonic() + job.run.seconds_left
        self.done: asyncio.Future[None] = self._loop.create_future()
        self._variables = contextvars.copy_context()
        self._outbox: deque[str | Callable[[], None]] = deque()
        self._is_posted = False
        self._refused: BaseException | None = None
        self._calls: set[asyncio.Task[Any]] = set()
        self._worker: Hand | None = None
        self._insisted = 0
        self._timer: asyncio.TimerHandle | None = None
        self._finished = False

    # On the loop -------------------------------------------------------------------------

    def start(self, crew: Crew) -> None:
        self._worker = crew.submit(self)

    def stop(self) -> None:
        """Ask the thread to end; it holds its slot until it does."""
        self.stopped = True
        for call in self._calls:
            call.cancel()
        self._insist()

    def check(self) -> None:
        """Raise what ended the work early."""
        error, self.error = self.error, None
        if error is None and self.stopped:
            raise Stopped
        if error is not None:
            try:
                if isinstance(error, STRAYS):
                    raise Stray from error
                raise error
            finally:
                del error  # else error, traceback and this frame keep each other alive

    def abandon(self) -> None:
        """Stop caring: the thread ends with the program."""
        if self._timer is not None:
            self._timer.cancel()

    def _insist(self) -> None:
        if self._finished or self._worker is None:
            return
        self._worker.stop(self)
        self._insisted += 1
        if self._insisted == STUCK_AFTER:
            log.warning("agent %s does not stop; its thread goes on", self.job.task.agent)
        self._timer = self._loop.call_later(INSIST_S, self._insist)

    def _flush(self) -> None:
        self._is_posted = False  # before emptying: who adds now posts again
        text: list[str] = []
        while self._outbox:
            item = self._outbox.popleft()
            if isinstance(item, str):
                text.append(item)
                continue
            self._deliver(text)
            self._attempt(item)
        self._deliver(text)

    def _deliver(self, text: list[str]) -> None:
        if text:
            piece = "".join(text)
            text.clear()
            self._attempt(lambda: self.job.run.delta(piece))

    def _attempt(self, action: Callable[[], None]) -> None:
        if self._refused is None and not self.stopped:
            try:
                action()
            except Exception as error:  # noqa: BLE001 - given to the agent at its next piece
                self._refused = error

    def _end(self) -> None:
        self._flush()
        self._finished = True
        if self._timer is not None:
            self._timer.cancel()
        if self.error is None:
            self.error = self._refused
        self._on_end(self)
        if not self.done.done():
            self.done.set_result(None)

    def _open(
        self, make: Callable[[], Coroutine[Any, Any, Any]], box: SimpleQueue[tuple[bool, Any]]
    ) -> None:
        if self.stopped:
            box.put((False, Stopped()))
            return

        def close(call: asyncio.Task[Any]) -> None:
            self._calls.discard(call)
            self._until = monotonic() + self.job.run.seconds_left  # a question stops the clock
            if call.cancelled():
                box.put((False, Stopped()))
            elif (error := call.exception()) is not None:
                box.put((False, error))
            else:
                box.put((True, call.result()))

        call = self._loop.create_task(make())
        self._calls.add(call)
        call.add_done_callback(close)

    # In the thread -----------------------------------------------------------------------

    def main(self) -> None:
        try:
            self._variables.run(self._work)
        except BaseException as error:  # noqa: BLE001 - carried to the loop, raised there
            self.error = error

    def ended(self) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed: nobody is left to tell
            self._loop.call_soon_threadsafe(self._end)

    def _work(self) -> None:
        definition, text = self.job.definition, self.job.task.text
        if definition.takes_ctx:
            value = definition.run(text, self._context())
        else:
            value = definition.run(text)
        if isinstance(value, types.GeneratorType):
            self._drain(value)
        elif inspect.isawaitable(value) or isinstance(value, types.AsyncGeneratorType):
            self.left_over = value
        else:
            self.answer.add(value)

    def _context(self) -> ThreadContext:
        return ThreadContext(
            self.job,
            on_loop=self._on_loop,
            post=self._post,
            seconds_left=lambda: max(0.0, self._until - monotonic()),
            stopped=lambda: self.stopped,
        )

    def _drain(self, pieces: Generator[Any, None, Any]) -> None:
        with contextlib.closing(pieces):
            while True:
                try:
                    piece = next(pieces)
                except StopIteration as end:
                    if text := self.answer.add(end.value):
                        self._post(text)
                    return
                if text := self.answer.add_piece(piece):
                    self._post(text)

    def _post(self, item: str | Callable[[], None]) -> None:
        """To the loop, with one wake-up for all that comes before it wakes."""
        if self._refused is not None:
            raise self._refused
        if self.stopped:
            raise Stopped
        self._outbox.append(item)
        if not self._is_posted:
            self._is_posted = True
            self._loop.call_soon_threadsafe(self._flush)

    def _on_loop(self, make: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        """The result of a coroutine on the node's loop, waited for in this thread."""
        if threading.get_ident() == self._loop_thread:
            raise UsageError(
                "this ctx blocks and would wait for the node inside the node",
                hint='write the agent as "async def" and await ctx.call(…)',
            )
        box: SimpleQueue[tuple[bool, Any]] = SimpleQueue()
        self._loop.call_soon_threadsafe(self._open, make, box)
        good, result = box.get()
        if good:
            return result
        raise cast("BaseException", result)


register(EngineKind(name="thread", make=ThreadEngine, concurrency=CONCURRENCY, takes_async=False))
