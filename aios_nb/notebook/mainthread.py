"""The kernel's main thread, lent to agents: while it is idle, and while a cell waits for the node.

There is one such thread, so what runs on it runs one after the other; a run that waits lends the
thread on, and whatever then runs is inside it, as one function is inside another.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Any, Protocol

from aios_nb.agents.pool import Stopped
from aios_nb.errors import AgentFailed, Cancelled
from aios_nb.notebook.kernel import main_loop, sigint_kept

log = logging.getLogger("aios_nb.notebook")

PATIENCE_S = 1.0
"""A cell that waits this long lets async agents go on that began before it."""
_POLL_S = 0.5


class Piece(Protocol):
    """One run of an agent. It keeps its own result and errors."""

    @property
    def stopped(self) -> bool: ...
    @property
    def is_async(self) -> bool: ...
    def main(self) -> None:
        """Run here and now. Raises ``KeyboardInterrupt`` when the person stopped it."""

    def begin(self, loop: asyncio.AbstractEventLoop) -> asyncio.Task[None]:
        """Run as a task of the kernel's loop."""

    def refuse(self, error: Exception) -> None:
        """It cannot run, for this reason."""

    def ended(self) -> None:
        """The thread is done with it. A second call does nothing."""


class Stage:
    """Who runs on the main thread now: the last of those who are on it.

    A stop reaches the thread as SIGINT does, out of ``time.sleep`` as well, and hits no other run:
    the handler looks who is on the stage when it is called, on this very thread.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._runs: list[Piece | None] = []
        self._sent = False

    @property
    def top(self) -> Piece | None:
        """Who runs; None also while the kernel's own code does, which must not be hit."""
        return self._runs[-1] if self._runs else None

    def __contains__(self, piece: Piece) -> bool:
        return any(piece is one for one in tuple(self._runs))

    def perform(self, piece: Piece) -> bool:
        """Run it; True when the person interrupted it."""
        depth, interrupted = len(self._runs), False
        before = signal.signal(signal.SIGINT, self._on_sigint)
        try:
            self._runs.append(piece)
            if not piece.stopped:
                piece.main()
        except Stopped:
            pass  # it hit after the agent's code had ended
        except KeyboardInterrupt:
            interrupted = True
        return self._leave(depth, before) or interrupted

    def stop(self, piece: Piece) -> None:
        """Raise ``Stopped`` in it if it is the one that runs. For other threads."""
        with self._lock:
            is_ours = signal.getsignal(signal.SIGINT) == self._on_sigint
            if self.top is piece and is_ours:
                self._sent = True
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    @contextmanager
    def cleared(self) -> Iterator[None]:
        """Inside, the kernel's own code runs."""
        depth = len(self._runs)
        self._runs.append(None)
        try:
            yield
        finally:
            with self._lock:
                del self._runs[depth:]

    def _leave(self, depth: int, before: Any) -> bool:
        interrupted = False
        while True:
            try:
                with self._lock:
                    del self._runs[depth:]
                    time.sleep(0)  # a signal that was sent has come after a call to the system
                    signal.signal(signal.SIGINT, before or signal.SIG_DFL)
                    self._sent = False
            except Stopped:
                continue
            except KeyboardInterrupt:
                interrupted = True
                continue
            return interrupted

    def _on_sigint(self, number: int, frame: FrameType | None) -> None:
        if not self._sent:
            signal.default_int_handler(number, frame)
        self._sent = False
        if self.top is not None and self.top.stopped:
            raise Stopped


class Desk:
    """Where runs wait for the main thread."""

    def __init__(self) -> None:
        self.patched = False
        """Whether asyncio was patched here (see ``_nest``)."""
        self.waiting = 0
        """Cells, and code that waits like one, inside of which runs are served now."""
        self.cells = 0
        """Cells that are being run now: those that wait, await or compute."""
        self._bell = threading.Condition()
        self._queue: deque[Piece] = deque()
        self._tasks: dict[Piece, asyncio.Task[None]] = {}
        self._stage = Stage()
        self._nested: list[tuple[Piece | None, Callable[..., None]]] = []

    # For any thread --------------------------------------------------------------------------

    def submit(self, piece: Piece) -> Desk:
        """Run it as soon as the main thread is idle, or waits."""
        with self._bell:
            self._queue.append(piece)
            self._bell.notify_all()
        self.call()
        return self

    def call(self) -> None:
        """Have the next one served when the kernel's loop turns."""
        loop = main_loop()
        if loop is not None:
            with suppress(RuntimeError):  # closed: the kernel ends
                loop.call_soon_threadsafe(self._serve)

    def stop(self, piece: Piece) -> bool:
        """End it: out of the queue, by a cancel, or in the middle of its code."""
        with self._bell:
            is_queued = piece in self._queue
            if is_queued:
                self._queue.remove(piece)
        task, loop = self._tasks.get(piece), main_loop()
        if task is not None and loop is not None:
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(task.cancel)
        elif not is_queued and piece in self._stage:
            self._stage.stop(piece)
            for inside, wake in tuple(self._nested):
                if inside is piece:
                    wake()
        else:
            piece.ended()
        # Last: who is woken stops by itself, and a signal behind that would hit its "finally".
        self._ring()
        return True

    def forget(self, piece: Piece) -> None:
        """Nobody waits for it any more."""
        self._tasks.pop(piece, None)

    # On the main thread ----------------------------------------------------------------------

    def attend(self, future: Future[Any]) -> None:
        """Wait until it is done, and serve meanwhile: for a cell, or code that waits like one."""
        self.waiting += 1
        try:
            self.wait(future)
        finally:
            self.waiting -= 1

    def wait(self, future: Future[Any]) -> None:
        """The same for a run, which a stop gets out of it."""
        inside, since = self._stage.top, time.monotonic()
        future.add_done_callback(self._ring)
        while not future.done():
            if inside is not None and inside.stopped:
                raise Stopped
            with self._bell:
                if not self._queue and not future.done():
                    self._bell.wait(_POLL_S)  # an interrupt is seen by then on every platform
                first = self._queue[0] if self._queue else None
            if first is not None and not first.is_async:
                self._serve_inside()
            elif first is not None or (self._tasks and self._may_turn(since)):
                self._let_turn(future, inside, first)

    def _may_turn(self, since: float) -> bool:
        """Whether agents that began earlier are to go on now: asyncio may have to be patched."""
        return time.monotonic() - since > PATIENCE_S or hasattr(main_loop(), "_nest_patched")

    def _ring(self, *_: object) -> None:
        with self._bell:
            self._bell.notify_all()

    def _serve_inside(self) -> None:
        if self._do_next():
            raise KeyboardInterrupt  # it was meant for the cell that waits as well

    def _serve(self) -> None:
        self._do_next()

    def _do_next(self) -> bool:
        """Run or begin the first in the queue; True when the person interrupted it."""
        with self._bell:
            if not self._queue:
                return False
            piece = self._queue.popleft()
        if piece.is_async:
            self._begin(piece)
            return False
        try:
            return self._stage.perform(piece)
        except KeyboardInterrupt:
            piece.refuse(Cancelled("the notebook was interrupted"))
            raise
        finally:
            if piece.is_async:  # what it returned is to be awaited
                self.submit(piece)
            else:
                try:
                    if piece.stopped:
                        _flush()
                finally:  # one that never ends keeps its agent from running again
                    piece.ended()

    def _begin(self, piece: Piece) -> None:
        if piece.stopped:
            piece.ended()
            return

        def over(_: asyncio.Task[None]) -> None:
            self.forget(piece)
            piece.ended()

        task = piece.begin(asyncio.get_running_loop())
        self._tasks[piece] = task
        task.add_done_callback(over)
        if piece.stopped:  # just now, by one who saw no task yet
            task.cancel()

    # A loop inside the loop ------------------------------------------------------------------

    def _let_turn(self, future: Future[Any], inside: Piece | None, first: Piece | None) -> None:
        """Let the kernel's loop turn until the future is done, for agents that need it."""
        try:
            loop = self._nest(main_loop())
        except (ImportError, ValueError) as error:
            if first is not None:
                log.warning("asyncio cannot be patched: %s", error)
                self._refuse(first)
            return  # those that began before go on when the cell is over
        done = loop.create_future()

        def settle() -> None:
            if not done.done():
                done.set_result(None)

        def wake(*_: object) -> None:
            with suppress(RuntimeError):
                loop.call_soon_threadsafe(settle)

        future.add_done_callback(wake)
        entry = (inside, wake)
        self._nested.append(entry)
        self.call()
        try:
            with self._stage.cleared(), sigint_kept():
                loop.run_until_complete(done)
        finally:
            self._nested.remove(entry)

    def _nest(self, loop: asyncio.AbstractEventLoop | None) -> asyncio.AbstractEventLoop:
        """The kernel's loop, which may turn inside itself: patched, and only if nothing else helps.

        It stays patched: a tenth to a half slower, the node's loop too.
        """
        if loop is None:
            raise ValueError("the kernel has no loop yet")
        if not loop.is_running() or hasattr(loop, "_nest_patched"):
            return loop
        import nest_asyncio  # type: ignore[import-untyped]

        nest_asyncio.apply(loop)
        self.patched = True
        log.info("asyncio was patched: a cell waits for an async kernel agent; await avoids it")
        return loop

    def _refuse(self, piece: Piece) -> None:
        with self._bell:
            if piece not in self._queue:
                return
            self._queue.remove(piece)
        piece.refuse(
            AgentFailed(
                "this agent is async and runs in the notebook that waits for it",
                hint="use await node.ask_async(…)",
            )
        )
        piece.ended()


def _flush() -> None:
    """Show what a stopped run printed: the stop may have hit the print that was to show it."""
    for stream in (sys.stdout, sys.stderr):
        with suppress(Exception):  # it may be closed, None, or the person's own
            stream.flush()
