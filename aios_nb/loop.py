"""The node's own thread with its own event loop.

The kernel's loop is never borrowed: a node on it would be dead while a cell runs. Callers in other
threads hand work over and wait; an interrupt cancels both the wait and the work.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import gc
import sys
import threading
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary

from aios_nb.current import program
from aios_nb.errors import UsageError

T = TypeVar("T")

SWITCH_INTERVAL_S = 1e-4
"""A busy cell holds the interpreter for this long at a time (5 ms by default), and a request waits
for it several times: with 0.5 ms a chat message beside a cell took 3 ms, with 0.1 ms it takes 1.7.
What the cell loses is within the noise of a shared machine (10 %). Code that computes in two to
four Python threads at once is a fifth to a quarter slower than with 5 ms."""
_POLL_S = 0.5
"""An interrupt that comes just before a wait begins is seen only when the wait ends."""


class LoopThread:
    """A daemon thread that runs one event loop until ``stop``."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        if self._loop is None:
            raise UsageError("the node is not running", hint="start it with aios.up()")
        return self._loop

    @property
    def running(self) -> bool:
        return self._loop is not None

    def is_here(self) -> bool:
        """Whether the caller is on the loop's own thread."""
        return self._thread is threading.current_thread()

    def start(self) -> None:
        """Run a fresh loop; returns when it turns."""
        ready = threading.Event()

        def run() -> None:
            loop = asyncio.new_event_loop()
            asyncio.set_event_loop(loop)
            self._loop = loop
            loop.call_soon(ready.set)
            try:
                loop.run_forever()
            finally:
                _wind_up(loop)

        self._thread = threading.Thread(target=run, name=self._name, daemon=True)
        _SWITCHING.enter()
        self._thread.start()
        ready.wait()

    def stop(self) -> None:
        """Cancel what is left, close the loop and join the thread."""
        loop, thread = self._loop, self._thread
        if loop is None or thread is None:
            return
        if thread is threading.current_thread():
            raise UsageError("a node cannot be stopped from inside its own loop")
        self._loop = self._thread = None
        loop.call_soon_threadsafe(loop.stop)
        thread.join()
        _SWITCHING.leave()

    def submit(self, work: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        """Hand work to the loop from any thread."""
        return asyncio.run_coroutine_threadsafe(work, self.loop)

    def sync(self, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The work's result, waited for here. An interrupt cancels the work too.

        A main thread that agents may need (``engine="kernel"``) serves them while it waits.
        """
        if self.is_here():
            raise UsageError(
                "this would wait for the node inside the node",
                hint="in async agents use the _async twin and await it",
            )
        loop = self.loop  # not running: say so before there is work to leave undone
        serves = threading.current_thread() is threading.main_thread()
        work = _Work(make)
        try:
            future = asyncio.run_coroutine_threadsafe(work.run(), loop)
            while not future.done():
                if serves and program.attend is not None:
                    program.attend(future)
                else:  # a wait with a time-out can be interrupted on every platform
                    concurrent.futures.wait([future], _POLL_S)
            return future.result()
        except BaseException:
            work.give_up(loop)
            raise

    async def bridge(self, make: Callable[[], Coroutine[Any, Any, T]]) -> T:
        """The same from another running loop: awaiting leaves that loop free."""
        loop = asyncio.get_running_loop()
        if loop is self._loop:
            return await make()
        with _WAKING.awake(loop):
            return await asyncio.wrap_future(self.submit(make()))


class _Work(Generic[T]):
    """Work for a loop that can be given up at any moment.

    Its future would not do: an interrupt may come when the work has begun and the future has not
    been given yet.
    """

    def __init__(self, make: Callable[[], Coroutine[Any, Any, T]]) -> None:
        self._make = make
        self._task: asyncio.Task[Any] | None = None
        self._given_up = False

    async def run(self) -> T:
        self._task = asyncio.current_task()
        if self._given_up:
            raise asyncio.CancelledError
        return await self._make()

    def give_up(self, loop: asyncio.AbstractEventLoop) -> None:
        """Cancel it, begun or not; harmless when it is over."""
        self._given_up = True
        with suppress(RuntimeError):  # the loop has ended, and all work with it
            loop.call_soon_threadsafe(self._cancel)

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()


class _Waking:
    """Wakes a loop on the main thread now and then, while somebody awaits there.

    An interrupt only wakes a loop that sleeps if it was asked to; ipykernel does not, and the cell
    would go on waiting until something else happens.
    """

    def __init__(self) -> None:
        self._waits: WeakKeyDictionary[asyncio.AbstractEventLoop, int] = WeakKeyDictionary()

    @contextmanager
    def awake(self, loop: asyncio.AbstractEventLoop) -> Iterator[None]:
        if threading.current_thread() is not threading.main_thread():
            yield
            return
        if loop not in self._waits:
            loop.call_later(_POLL_S, self._tick, loop)
        self._waits[loop] = self._waits.get(loop, 0) + 1
        try:
            yield
        finally:
            self._waits[loop] -= 1

    def _tick(self, loop: asyncio.AbstractEventLoop) -> None:
        if self._waits[loop]:
            loop.call_later(_POLL_S, self._tick, loop)
        else:
            del self._waits[loop]


_WAKING = _Waking()


def _wind_up(loop: asyncio.AbstractEventLoop) -> None:
    tasks = asyncio.all_tasks(loop)
    for task in tasks:
        task.cancel()
    if tasks:
        loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
    loop.run_until_complete(loop.shutdown_asyncgens())
    loop.run_until_complete(loop.shutdown_default_executor())
    asyncio.set_event_loop(None)
    loop.close()


class _Switching:
    """Lowers the interpreter's switch interval while any node runs; it is process-wide."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._nodes = 0
        self._before = 0.0

    def enter(self) -> None:
        with self._lock:
            if self._nodes == 0:
                self._before = sys.getswitchinterval()
                if self._before > SWITCH_INTERVAL_S:
                    sys.setswitchinterval(SWITCH_INTERVAL_S)
            self._nodes += 1

    def leave(self) -> None:
        with self._lock:
            self._nodes -= 1
            if self._nodes == 0:
                sys.setswitchinterval(self._before)


_SWITCHING = _Switching()


GC_THRESHOLDS = 2_000, 5, 50
"""New objects between two looks of the collector, and looks between two deeper ones (Python's own:
700, 10, 10). With more of the first it looks less often and takes longer each time: a crowd of
refused connections, 75 objects each, then held everybody up for 5 to 50 ms."""


def own_process() -> None:
    """For a process that is nothing but a node that is up: let the collector look less often.

    What a request leaves behind goes by reference counts; looking for circles after every dozen
    requests cost 5 to 13 % of their time. What is there by now stays, and is not looked at again.
    Not for a kernel: there the setting is the user's.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(*GC_THRESHOLDS)
