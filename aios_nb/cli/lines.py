"""Lines from standard input, without holding up the loop.

The connection must answer the node's pings while a person thinks, and Ctrl-C must not wait for
a line: so a daemon thread reads, from the bare descriptor (a buffered reader that is still held
by a thread makes Python abort at exit).
"""

from __future__ import annotations

import asyncio
import os
import threading
from contextlib import suppress

from aios_nb.envelope import TEXT_LIMIT_BYTES

_READ_BYTES = 1 << 16


class Lines:
    """The lines of a file descriptor."""

    def __init__(self, fd: int = 0) -> None:
        self._fd = fd
        self._buffer = b""
        self._ended = False
        self._reading: asyncio.Future[bytes] | None = None

    async def next(self) -> str | None:
        """The next line without its end; None when there are no more."""
        while not self._ended and b"\n" not in self._buffer:
            if len(self._buffer) > TEXT_LIMIT_BYTES:
                break
            chunk = await self._chunk()
            self._ended = not chunk
            self._buffer += chunk
        if not self._buffer:
            return None
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line.decode(errors="replace").rstrip("\r")

    async def _chunk(self) -> bytes:
        if self._reading is None:
            loop = asyncio.get_running_loop()
            self._reading = loop.create_future()
            reader = threading.Thread(
                target=self._read, args=(loop, self._reading), name="aios-stdin", daemon=True
            )
            reader.start()
        # Shielded: who stops waiting leaves the line to the next who asks.
        chunk = await asyncio.shield(self._reading)
        self._reading = None
        return chunk

    def _read(self, loop: asyncio.AbstractEventLoop, reading: asyncio.Future[bytes]) -> None:
        try:
            chunk = os.read(self._fd, _READ_BYTES)
        except OSError:
            chunk = b""
        with suppress(RuntimeError):  # the loop is gone, and so is whoever asked
            loop.call_soon_threadsafe(_give, reading, chunk)


def _give(reading: asyncio.Future[bytes], chunk: bytes) -> None:
    if not reading.done():
        reading.set_result(chunk)
