"""The node's own thread with its own event loop.

The kernel's loop is never borrowed: a node on it would be dead while a cell runs. Callers in other
threads hand work over and wait; an interrupt cancels both the wait and the work.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import gc
import os
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import Any, Generic, TypeVar
from weakref import WeakKeyDictionary, WeakSet

from aios_nb.current import program
from aios_nb.errors import AiosError, UsageError

T = TypeVar("T")

SWITCH_INTERVAL_S = 1e-4
"""A busy cell holds the interpreter for this long at a time (5 ms by default), and a request waits
for it several times: with 0.5 ms a chat message beside a cell took 3 ms, with 0.1 ms it takes 1.7.
What the cell loses is within the noise of a shared machine (10 %). Code that computes in two to
four Python threads at once is a fifth to a quarter slower than with 5 ms."""
EXIT_S = 5.0
"""How long the end of a program waits for its nodes."""
_POLL_S = 0.5
"""An interrupt that comes just before a wait begins is seen only when the wait ends."""


async def beside(work: Callable[..., T], *args: Any) -> T:
    """What it gives back, from a thread. A cancel waits for its end: nothing of it comes later."""
    running = asyncio.ensure_future(asyncio.to_thread(work, *args))
    try:
        return await asyncio.shield(running)
    finally:
        if not running.done():
            await asyncio.wait([running])


class LoopThread:
    """A daemon thread that runs one event loop until ``stop``."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._forked = False

    @property
    def loop(self) -> asyncio.AbstractEventLoop:
        if self._forked:
            raise UsageError(
                "the node lives in the process that this one was forked from",
                hint="a node of its own: aios.up()",
            )
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
        """Run a fresh loop; returns when it turns.

        It is asyncio's own kind, whatever the program's policy makes: that may be meant for the
        main thread alone. And it is made here, where a failure (no more file handles) is heard.
        """
        loop = asyncio.SelectorEventLoop()
        ready = threading.Event()

        def run() -> None:
            loop.call_soon(ready.set)
            try:
                loop.run_forever()
            finally:
                _wind_up(loop)

        thread = threading.Thread(target=run, name=self._name, daemon=True)
        self._loop, self._thread, self._forked = loop, thread, False
        _SWITCHING.enter()
        _THREADS.add(self)
        try:
            thread.start()
        except BaseException:
            if thread.ident is None:  # else it turns, and ``stop`` ends it
                self._loop = self._thread = None
                _SWITCHING.leave()
                loop.close()
            raise
        ready.wait()

    def stop(self, within_s: float | None = None) -> None:
        """Cancel what is left, close the loop and join the thread, or leave it after that time."""
        loop, thread = self._loop, self._thread
        if loop is None or thread is None:
            return
        if thread is threading.current_thread():
            raise UsageError("a node cannot be stopped from inside its own loop")
        self._loop = self._thread = None
        loop.call_soon_threadsafe(loop.stop)
        try:
            thread.join(within_s)
        finally:
            _SWITCHING.leave()

    def forget(self) -> None:
        """This is a copy in another process: the thread is not here, and its loop is not ours."""
        self._loop = self._thread = None
        self._forked = True

    def submit(self, work: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        """Hand work to the loop from any thread."""
        try:
            return asyncio.run_coroutine_threadsafe(work, self.loop)
        except (AiosError, RuntimeError):  # not running: Python would warn of work left undone
            work.close()
            raise

    def sync(self, make: Callable[[], Coroutine[Any, Any, T]], within_s: float | None = None) -> T:
        """The work's result, waited for here. An interrupt, or the end of that time, cancels it.

        A main thread that agents may need (``engine="kernel"``) serves them while it waits.
        """
        if self.is_here():
            raise UsageError(
                "this would wait for the node inside the node",
                hint="in async agents use the _async twin and await it",
            )
        loop = self.loop  # not running: say so before there is work to leave undone
        work = _Work(make)
        try:
            return waited(asyncio.run_coroutine_threadsafe(work.run(), loop), within_s)
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


def waited(future: concurrent.futures.Future[T], within_s: float | None = None) -> T:
    """Its result, waited for here; an interrupt ends the wait. Agents may need a main thread.

    Not where there is little time: at the end of a program nobody is served any more.
    """
    serves = within_s is None and threading.current_thread() is threading.main_thread()
    until = None if within_s is None else time.monotonic() + within_s
    while not future.done():
        if until is not None and time.monotonic() > until:
            raise TimeoutError
        if serves and program.attend is not None:
            program.attend(future)
        else:  # a wait with a time-out can be interrupted on every platform
            concurrent.futures.wait([future], _POLL_S)
    return future.result()


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
    _drop_connections(loop)
    loop.close()


def _drop_connections(loop: asyncio.AbstractEventLoop) -> None:
    """What was closed with something left to send waits for the other side; not for ever."""
    for transport in tuple(getattr(loop, "_transports", {}).values()):
        transport.abort()
    loop.run_until_complete(asyncio.sleep(0))


class _Switching:
    """Lowers the interpreter's switch interval while any node runs; it is process-wide."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._nodes = 0
        self._before = 0.0

    def forget(self) -> None:
        """In a forked child there is no node."""
        self._lock = threading.Lock()
        if self._nodes:
            self._nodes = 0
            sys.setswitchinterval(self._before)

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
_THREADS: WeakSet[LoopThread] = WeakSet()


def _in_forked_child() -> None:
    """Threads stay behind: who would wait for one of them here would wait for ever."""
    for one in tuple(_THREADS):
        one.forget()
    _THREADS.clear()
    _SWITCHING.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_forked_child)


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
