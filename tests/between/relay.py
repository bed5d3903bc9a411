"""A wire between two nodes that a test can listen to, slow down and cut."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Self
from urllib.parse import urlsplit

from aios_nb.loop import LoopThread

PIECE_BYTES = 4096


class Relay:
    """Passes TCP on to a node, under another port. Keeps every byte it saw."""

    def __init__(self, url: str) -> None:
        self._target = urlsplit(url)
        self._loop = LoopThread("relay")
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.StreamWriter] = set()
        self.port = 0
        self.connections = 0
        self.seen = bytearray()
        self.back = 0
        """Bytes that passed towards the caller."""
        self.change: Callable[[bytes, str], bytes] = lambda data, _: data
        """What becomes of a piece on its way ``there`` or ``back``."""
        self.away = False
        """Whoever comes is turned away."""
        self._cut_at: int | None = None
        self._passed = 0

    def __enter__(self) -> Self:
        self._loop.start()
        self._loop.sync(self._listen)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.sync(self._close)
        self._loop.stop()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def cut(self) -> None:
        """Break every connection now."""
        self._loop.sync(self._cut)

    def cut_after(self, size: int) -> None:
        """Break every connection when so many more bytes have passed towards the caller."""

        async def arm() -> None:
            self._passed, self._cut_at = 0, size

        self._loop.sync(arm)

    async def _listen(self) -> None:
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", self.port)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _close(self) -> None:
        if self._server is not None:
            self._server.close()
        await self._cut()

    async def _cut(self) -> None:
        for writer in list(self._open):
            writer.transport.abort()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        if self.away:
            writer.transport.abort()
            return
        try:
            there = await asyncio.open_connection(self._target.hostname, self._target.port)
        except OSError:
            writer.transport.abort()
            return
        self._open |= {writer, there[1]}
        try:
            await asyncio.gather(
                self._pass(reader, there[1], "there"), self._pass(there[0], writer, "back")
            )
        finally:
            for end in (writer, there[1]):
                self._open.discard(end)
                end.transport.abort()

    async def _pass(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, way: str
    ) -> None:
        own = f"Host: 127.0.0.1:{self.port}".encode()
        real = f"Host: {self._target.netloc}".encode()
        try:
            while data := await reader.read(PIECE_BYTES):
                self.seen += data
                if way == "there":
                    data = data.replace(own, real)
                changed = self.change(data, way)
                self.back += len(changed) if way == "back" else 0
                if way == "back" and self._cut_at is not None:
                    room = self._cut_at - self._passed
                    self._passed += len(changed)
                    if room <= len(changed):
                        self._cut_at = None
                        writer.write(changed[: max(room, 0)])
                        await writer.drain()
                        await self._cut()
                        return
                writer.write(changed)
                await writer.drain()
        except (ConnectionError, asyncio.CancelledError):
            return
        finally:
            writer.transport.abort() if way == "back" else writer.close()
