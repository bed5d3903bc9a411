"""Standard input and output for the protocol alone; whatever else prints goes to standard error.

Both are used from threads of their own: a client that does not read, or does not write, holds up
nothing else, and files, pipes and terminals are all the same.
"""

from __future__ import annotations

import asyncio
import logging
import os
import queue
import select
import sys
import threading
from collections.abc import AsyncIterator

from aios_nb.cli.relay.messages import LINE_MAX_BYTES
from aios_nb.richtext import one_line

_CHUNK_BYTES = 64 << 10
_WATCH_S = 0.1
_NOTE_CHARS = 500
_NOTES_MAX = 2000
"""Lines to standard error in the life of a process; some clients keep all of them."""


class Pipes:
    """Lines in, lines out."""

    def __init__(self) -> None:
        sys.stdout.flush()
        self._in, self._out = os.dup(0), os.dup(1)
        nothing = os.open(os.devnull, os.O_RDONLY)
        os.dup2(nothing, 0)
        os.close(nothing)
        os.dup2(2, 1)
        self._loop = asyncio.get_running_loop()
        self._read: asyncio.Queue[bytes | None] = asyncio.Queue()
        self._room = threading.Semaphore(8)
        """Lines that are read and not yet taken: a client that hurries has to wait."""
        self._write: queue.SimpleQueue[tuple[bytes, asyncio.Future[None]]] = queue.SimpleQueue()
        self.closed = asyncio.Event()
        """Nobody reads what we write."""
        for does in (self._reading, self._writing):
            threading.Thread(target=does, name=f"aios{does.__name__}", daemon=True).start()

    async def lines(self) -> AsyncIterator[bytes]:
        """What the client writes, until it closes its end."""
        while (line := await self._read.get()) is not None:
            self._room.release()
            yield line

    async def say(self, line: bytes) -> None:
        """Return when the line is written."""
        written: asyncio.Future[None] = self._loop.create_future()
        self._write.put((line + b"\n", written))
        await written

    def watch(self) -> None:
        """From now on notice also without a word to say that nobody reads."""
        poll = select.poll()
        poll.register(self._out, 0)
        if poll.poll(0):
            self.closed.set()
        else:
            self._loop.call_later(_WATCH_S, self.watch)

    def _reading(self) -> None:
        rest = bytearray()
        while piece := _read(self._in):
            rest += piece
            if b"\n" in piece:
                *lines, rest = rest.split(b"\n")
                for line in lines:
                    self._give(bytes(line).strip())
            elif len(rest) > LINE_MAX_BYTES:
                # The end of it still has to be found; its middle is of no use to anybody.
                del rest[LINE_MAX_BYTES + 1 :]
        self._give(bytes(rest).strip())
        self._tell(self._read.put_nowait, None)

    def _give(self, line: bytes) -> None:
        if line:
            self._room.acquire()
            self._tell(self._read.put_nowait, line)

    def _writing(self) -> None:
        while True:
            line, written = self._write.get()
            try:
                while line:
                    line = line[os.write(self._out, line) :]
            except OSError:
                self._tell(self.closed.set)
            self._tell(_done, written)

    def _tell(self, what: object, *args: object) -> None:
        try:
            self._loop.call_soon_threadsafe(what, *args)  # type: ignore[arg-type]
        except RuntimeError:  # the loop is closed: nobody waits for this any more
            return


class Notes(logging.Handler):
    """The log, to whoever started us: one line each, not without end, never waited for."""

    def __init__(self) -> None:
        super().__init__(logging.WARNING)
        self.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(message)s", "%H:%M:%S"))
        self._left = _NOTES_MAX

    def emit(self, record: logging.LogRecord) -> None:
        note(self.format(record), self)

    def take(self) -> bool:
        self._left -= 1
        return self._left > 0


def note(text: str, among: Notes | None = None) -> None:
    """One line to standard error, if somebody reads that."""
    if among is not None and not among.take():
        return
    line = f"aios-nb stdio: {one_line(text, _NOTE_CHARS)}\n".encode(errors="replace")
    try:
        # A pipe that nobody empties would hold up the node: what does not fit is left out.
        if select.select([], [2], [], 0)[1]:
            os.write(2, line)
    except (OSError, ValueError):
        return


def _read(fd: int) -> bytes:
    try:
        return os.read(fd, _CHUNK_BYTES)
    except OSError:
        return b""


def _done(written: asyncio.Future[None]) -> None:
    if not written.done():
        written.set_result(None)
