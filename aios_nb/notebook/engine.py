"""Engine ``kernel``: agents on the notebook's main thread, where they see its variables.

Plain functions and generators hold the kernel while they run; async ones run beside the cells that
await. Both wait for a cell that is busy, until their deadline. A cell that waits for the node
serves them meanwhile, so it can ask an agent of its own notebook.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import inspect
import sys
import types
from collections.abc import Callable, Coroutine, Sequence
from contextvars import ContextVar
from time import monotonic
from typing import TYPE_CHECKING, Any

from aios_nb.access import Access, owner_of
from aios_nb.agents.context import ThreadContext
from aios_nb.agents.engines import EngineKind, Job, register
from aios_nb.agents.outputs import Answer
from aios_nb.agents.pool import Stopped
from aios_nb.agents.threads import Work
from aios_nb.config import Limits
from aios_nb.current import program
from aios_nb.envelope import Event
from aios_nb.errors import AgentFailed, Busy, Cancelled
from aios_nb.notebook.kernel import disown, running_kernel
from aios_nb.notebook.mainthread import Desk

if TYPE_CHECKING:
    from aios_nb.notebook.session import Session

Make = Callable[[], Coroutine[Any, Any, Any]]

_asked_here: ContextVar[bool] = ContextVar("aios_asked_here")
"""In a run's code: whether its own notebook asked."""

CONCURRENCY = 1
"""Runs of one agent at once: they share the notebook's variables."""
SAY_WAITING_S = 1.0
"""A run that waits longer for the notebook says so."""
CLOSE_GRACE_S = 2.0


def install(shell: Any, session: Session) -> None:
    """Offer ``engine="kernel"`` if this is a kernel. It stays: declared agents may need it."""
    if running_kernel() is None:
        return
    if session.desk is None:
        session.desk = Desk()
        _follow_cells(shell, session.desk)
    desk = session.desk
    register(
        EngineKind(
            name="kernel",
            make=lambda limits: KernelEngine(limits, desk),
            concurrency=CONCURRENCY,
            access=Access.PRIVATE,
        )
    )


def _follow_cells(shell: Any, desk: Desk) -> None:
    """Let the desk know whether a cell is being run, also one that awaits."""
    desk.cells = _cells_around()

    def begins(_: Any) -> None:
        desk.cells += 1

    def ends(result: Any) -> None:
        if result is None or (result.info.raw_cell or "").strip():  # an empty one never began
            desk.cells = max(0, desk.cells - 1)

    shell.events.register("pre_run_cell", begins)
    shell.events.register("post_run_cell", ends)


def _cells_around() -> int:
    """How many cells load the extension: ``%run`` has some inside others, an idle kernel none.

    Of a silent request neither the begin nor the end is told, so it does not count.
    """
    frame: types.FrameType | None = sys._getframe()  # noqa: SLF001 - IPython keeps no count
    found = 0
    while frame is not None:
        found += frame.f_code.co_name == "run_cell_async" and not frame.f_locals.get("silent")
        frame = frame.f_back
    return found


def is_nobodys(desk: Desk) -> bool:
    """Whether an agent's code is at work here and now, and no cell of this notebook waits for it.

    A program that calls with this node's own token counts as the notebook while a cell runs.
    """
    return not _asked_here.get(True) or (desk.cells == 0 and _asked_here.get(None) is not None)


class KernelEngine:
    """Runs jobs on the kernel's main thread."""

    def __init__(self, limits: Limits, desk: Desk) -> None:
        del limits  # bounded by the one thread
        self._desk = desk
        self._works: set[Work] = set()
        self._empty: asyncio.Event | None = None
        program.attend = desk.attend

    async def perform(self, job: Job) -> Answer:
        if self._empty is not None:
            raise Busy("this node is stopping")
        work = KernelWork(job, self._ended, self._desk)
        self._works.add(work)
        job.lease.share()
        work.start(self._desk)
        try:
            await work.done
        except asyncio.CancelledError:
            work.stop()
            raise
        work.check()
        return work.answer

    async def close(self) -> None:
        self._empty = asyncio.Event()
        for work in list(self._works):
            work.stop()
            if isinstance(work, KernelWork) and work.is_async:
                # It ends when the loop turns, which now may be waiting for us.
                work.abandon()
                self._desk.forget(work)
                self._ended(work)
        if self._works:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(CLOSE_GRACE_S):
                    await self._empty.wait()
        for left in self._works:
            left.abandon()

    def _ended(self, work: Work) -> None:
        if work not in self._works:
            return
        self._works.discard(work)
        work.job.lease.drop()
        if self._empty is not None and not self._works:
            self._empty.set()


class KernelWork(Work):
    """One job on the main thread, seen from both sides. Is a ``mainthread.Piece``."""

    def __init__(self, job: Job, ended: Callable[[Work], None], desk: Desk) -> None:
        super().__init__(job, ended)
        self.is_async = job.definition.shape.is_async
        self._desk = desk
        self._begun = self._over = False
        # What it prints belongs to the cell that asked, and to no cell when others did.
        own = owner_of(job.task.agent.partition("@")[2]).id
        self._variables.run(disown, always=job.task.caller != own)
        self._variables.run(_asked_here.set, job.task.caller == own)
        self._reminder = self._loop.call_later(SAY_WAITING_S, self._say_waiting)
        job.run.why_late = self._why_late

    # On the node's loop ----------------------------------------------------------------------

    def _say_waiting(self) -> None:
        if not self._begun and not self.stopped:
            self._attempt(
                lambda: self.job.run.progress("waiting for the notebook, which is busy", None)
            )
            self._desk.call()

    def _why_late(self) -> tuple[str, str] | None:
        if self._begun:
            return None
        name = self.job.definition.name
        if self._desk.cells:
            hint = "ask again when it is over"
            if self._variables.get(_asked_here):
                hint += "; in it: await asyncio.to_thread(node.ask, …)"
            return f"{name} runs between cells, and a cell was busy all the time", hint
        return (f"{name} runs in its notebook, which was busy all the time", "ask again later")

    def _end(self) -> None:
        self._reminder.cancel()
        super()._end()

    def abandon(self) -> None:
        super().abandon()
        self._reminder.cancel()
        if not self.done.done():
            self.done.set_result(None)

    async def _there(self, make: Make) -> Any:
        call = asyncio.current_task()
        if self.stopped or call is None:
            raise asyncio.CancelledError
        self._calls.add(call)
        try:
            return await make()
        finally:
            self._calls.discard(call)
            self._until = monotonic() + self.job.run.seconds_left  # a question stops the clock

    # On the main thread ----------------------------------------------------------------------

    def main(self) -> None:
        self._begun = True
        super().main()
        self.is_async = self.left_over is not None
        interrupted = isinstance(self.error, KeyboardInterrupt) and not self.stopped
        self._translate()
        if interrupted:
            raise KeyboardInterrupt

    def begin(self, loop: asyncio.AbstractEventLoop) -> asyncio.Task[None]:
        self._begun = True
        return loop.create_task(self._go(), name="aios-kernel-agent", context=self._variables)

    def refuse(self, error: Exception) -> None:
        self.error = error

    def ended(self) -> None:
        if self._over:
            return
        self._over = True
        if inspect.iscoroutine(self.left_over):
            self.left_over.close()  # stopped before it began
        super().ended()

    async def _go(self) -> None:
        definition, text = self.job.definition, self.job.task.text
        try:
            value, self.left_over = self.left_over, None
            if value is None:
                value = (
                    definition.run(text, self._context())
                    if definition.takes_ctx
                    else definition.run(text)
                )
            if inspect.isawaitable(value):
                value = await value
            if isinstance(value, types.AsyncGeneratorType):
                await self._drain_async(value)
            elif isinstance(value, types.GeneratorType):
                self._drain(value)
            else:
                self.answer.add(value)
        except BaseException as error:  # noqa: BLE001 - carried to the node's loop, raised there
            self.error = error
        self._translate()

    def _translate(self) -> None:
        """Say what an interrupt is to whoever asked."""
        if self.stopped:
            self.error = None
        elif isinstance(self.error, KeyboardInterrupt):
            self.error = Cancelled("the run was interrupted in its notebook")

    async def _drain_async(self, pieces: types.AsyncGeneratorType[Any, None]) -> None:
        async with contextlib.aclosing(pieces):
            async for piece in pieces:
                if text := self.answer.add_piece(piece):
                    self._post(text)

    def _context(self) -> ThreadContext:
        is_async = self.job.definition.shape.is_async
        made = KernelContext if is_async else PlainKernelContext
        return made(
            self.job,
            other=self._at_once if is_async else self._ask_back,
            on_loop=self._awaited if is_async else self._on_loop,
            post=self._post,
            seconds_left=lambda: max(0.0, self._until - monotonic()),
            stopped=lambda: self.stopped,
        )

    def _on_loop(self, make: Make) -> Any:
        future = asyncio.run_coroutine_threadsafe(self._there(make), self._loop)
        try:
            self._desk.wait(future)
            return future.result()
        except concurrent.futures.CancelledError:
            raise Stopped from None
        except BaseException:
            future.cancel()
            raise

    def _ask_back(self, make: Make) -> Any:
        if self._desk.waiting or self._desk.cells:
            # The cell would get the question and could not go on to answer it: one that awaits
            # needs the loop, which this run would hold.
            raise AgentFailed(
                f"{self.job.definition.name} cannot ask back while a cell of its notebook waits",
                hint='write it as "async def" and await ctx.ask_user(…)',
            )
        return self._on_loop(make)

    def _at_once(self, make: Make) -> Any:
        return asyncio.run_coroutine_threadsafe(make(), self._loop).result()

    def _awaited(self, make: Make) -> Any:
        return asyncio.wrap_future(asyncio.run_coroutine_threadsafe(self._there(make), self._loop))


class PlainKernelContext(ThreadContext):
    """``ctx`` of plain agents on the main thread. A person is asked only between cells."""

    __slots__ = ("_other",)

    def __init__(self, job: Job, *, other: Callable[[Make], Any], **ways: Any) -> None:
        super().__init__(job, **ways)
        self._other = other

    def ask_user(self, question: str) -> str:
        """The person's answer to this question."""
        answer: str = self._other(lambda: self._job.ask_user(question))
        return answer


class KernelContext(PlainKernelContext):
    """``ctx`` of async agents on the kernel's loop.

    What touches the node happens on its own loop: ``call``, ``search`` and ``ask_user`` give what
    is to be awaited, because ``on_loop`` does.
    """

    __slots__ = ()

    ask_user = ThreadContext.ask_user

    @property
    def messages(self) -> Sequence[Event]:
        """The conversation so far, oldest first, without the request itself."""
        run = self._job.run

        async def read() -> Sequence[Event]:
            return run.messages

        found: Sequence[Event] = self._other(read)
        return found
