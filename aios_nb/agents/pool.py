"""Threads for agents: as many as run, none for long when idle, never in the way at exit.

Not ``concurrent.futures``: its exit hook joins every thread, so one stuck agent would keep the
interpreter from ending. These are daemon threads.
"""

from __future__ import annotations

import ctypes
import itertools
import logging
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any, Protocol

log = logging.getLogger("aios_nb.agents")

IDLE_S = 10.0
"""An idle thread ends after this long."""
JOIN_S = 1.0
"""How long ``close`` waits for threads that have nothing left to do."""


class Stopped(BaseException):
    """Raised inside an agent's thread when its run was cancelled.

    Not an ``Exception``, so that ``except Exception`` in an agent does not swallow it.
    """


class Piece(Protocol):
    """What a worker runs. ``main`` keeps its own result and errors."""

    @property
    def stopped(self) -> bool: ...
    def main(self) -> None: ...
    def ended(self) -> None:
        """Called in the worker's thread when it is free again."""


class Hand(Protocol):
    """Who runs a piece."""

    def stop(self, piece: Any) -> bool:
        """End this piece if it still runs."""


class Crew(Protocol):
    """Who gives pieces to hands: a pool, or a thread that is lent."""

    def submit(self, piece: Any) -> Hand: ...


class Pool:
    """Daemon threads that grow on demand."""

    def __init__(self, name: str, idle_s: float = IDLE_S) -> None:
        self._name = name
        self._idle_s = idle_s
        self._lock = threading.Lock()
        self._idle: list[Worker] = []
        self._all: set[Worker] = set()
        self._numbers = itertools.count(1)
        self._closed = False

    @property
    def threads(self) -> int:
        return len(self._all)

    def submit(self, piece: Piece) -> Worker:
        """Start this piece of work now, in a thread of its own."""
        with self._lock:
            if self._closed:
                raise RuntimeError("the pool is closed")
            if self._idle:
                worker = self._idle.pop()  # the last one used is the warmest
                worker.give(piece)
                return worker
            worker = Worker(self, f"{self._name}-{next(self._numbers)}", self._idle_s)
            self._all.add(worker)
        try:
            worker.start(piece)
        except RuntimeError:
            self.forget(worker)
            raise
        return worker

    def close(self) -> None:
        """End idle threads now; busy ones end after their work, stuck ones with the program."""
        with self._lock:
            self._closed = True
            idle, self._idle = self._idle, []
        for worker in idle:
            worker.give(None)
        for worker in idle:
            worker.join(JOIN_S)

    def rest(self, worker: Worker) -> bool:
        """A worker is free; False tells it to end."""
        with self._lock:
            if self._closed:
                return False
            self._idle.append(worker)
            return True

    def leave(self, worker: Worker) -> bool:
        """An idle worker wants to end; False when work was given to it just now."""
        with self._lock:
            if worker not in self._idle:
                return False
            self._idle.remove(worker)
            return True

    def forget(self, worker: Worker) -> None:
        with self._lock:
            self._all.discard(worker)


class Worker:
    """One thread. Knows at every moment which piece it runs, so that a stop hits no other."""

    def __init__(self, pool: Pool, name: str, idle_s: float) -> None:
        self._pool = pool
        self._idle_s = idle_s
        self._inbox: SimpleQueue[Piece | None] = SimpleQueue()
        self._lock = threading.Lock()
        self._current: Piece | None = None
        self._was_hit = False
        self._thread = threading.Thread(target=self._serve, name=name, daemon=True)

    def start(self, piece: Piece) -> None:
        self.give(piece)
        self._thread.start()

    def give(self, piece: Piece | None) -> None:
        self._inbox.put(piece)

    def join(self, timeout_s: float) -> None:
        self._thread.join(timeout_s)

    def stop(self, piece: Piece) -> bool:
        """Raise ``Stopped`` in the thread if it still runs this piece.

        It is raised at the thread's next Python step: a blocking call into C returns first.
        """
        with self._lock:
            if self._current is not piece:
                return False
            self._was_hit = True
            _raise_in(self._thread.ident, Stopped)
            return True

    def _serve(self) -> None:
        try:
            while (piece := self._next()) is not None:
                self._run(piece)
                rested = self._pool.rest(self)
                if not rested:
                    self._pool.forget(self)
                piece.ended()
                if not rested:
                    return
        finally:
            self._pool.forget(self)

    def _next(self) -> Piece | None:
        while True:
            try:
                return self._inbox.get(timeout=self._idle_s)
            except Empty:
                if self._pool.leave(self):
                    return None

    def _run(self, piece: Piece) -> None:
        try:
            with self._lock:
                self._current = piece
            if not piece.stopped:
                piece.main()
        except Stopped:
            pass  # it hit after the agent's code had ended
        while True:
            try:
                with self._lock:
                    self._current = None  # from here on nobody stops this thread …
                    if self._was_hit:
                        self._was_hit = False
                        _raise_in(self._thread.ident, None)  # … and what was on its way is gone
            except Stopped:
                continue
            return


def _raise_in(ident: int | None, error: type[BaseException] | None) -> None:
    """Raise in another thread at its next step; None takes back what was not raised yet."""
    set_async_exc: Callable[..., int] = ctypes.pythonapi.PyThreadState_SetAsyncExc
    set_async_exc(ctypes.c_ulong(ident or 0), ctypes.py_object(error) if error else None)
