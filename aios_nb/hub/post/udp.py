"""The UDP socket of a node.

Read by hand in small batches: asyncio's datagram transport wakes once for each datagram and takes
a quarter of a megabyte to read it. What the system has no room to send is dropped, as the network
would: nothing is buffered here.
"""

from __future__ import annotations

import asyncio
import errno
import socket
from collections import Counter
from collections.abc import Callable

from aios_nb.hub.post.datagram import DATAGRAM_LIMIT_BYTES, Source
from aios_nb.hub.post.places import Place

BATCH = 32
"""Datagrams read before others on the loop have their turn."""
BUFFER_BYTES = 1 << 20
"""Asked of the system for what arrives while the loop is busy; it may give less."""
_NOT_THIS_PORT = frozenset({errno.EADDRINUSE, errno.EACCES})


class Udp:
    """Hands over what arrives, and sends."""

    def __init__(self, receive: Callable[[bytes, Source], None], counts: Counter[str]) -> None:
        self._receive = receive
        self._counts = counts
        self._socket: socket.socket | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._both = False
        self.sent_bytes = self.sent_datagrams = 0
        self.received_bytes = 0

    async def open(self, host: str, port: int) -> int:
        """Bind this port if it is free, else any; the one it got. ``OSError`` for a bad host."""
        loop = asyncio.get_running_loop()
        found = await loop.getaddrinfo(
            host or None, port, type=socket.SOCK_DGRAM, flags=socket.AI_PASSIVE
        )
        family, _, _, _, address = found[0]
        opened = self._bound(family, address)
        loop.add_reader(opened, self._ready)
        self._socket, self._loop = opened, loop
        bound: int = opened.getsockname()[1]
        return bound

    def _bound(self, family: int, address: Source) -> socket.socket:
        opened = socket.socket(family, socket.SOCK_DGRAM)
        try:
            opened.settimeout(0)
            opened.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, BUFFER_BYTES)
            self._both = family == socket.AF_INET6 and address[0] == "::"
            if self._both:
                opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 0)
            try:
                opened.bind(address)
            except OSError as error:
                if error.errno not in _NOT_THIS_PORT:
                    raise
                opened.bind((address[0], 0, *address[2:]))
        except BaseException:
            opened.close()
            raise
        return opened

    def close(self) -> None:
        if self._socket is not None and self._loop is not None:
            self._loop.remove_reader(self._socket)
            self._socket.close()
        self._socket = None

    def address_of(self, place: Place) -> Source | None:
        """How this socket writes an address; None if it cannot send there."""
        if self._socket is None:
            return None
        host, port = place
        newer = ":" in host
        if self._socket.family == socket.AF_INET:
            return None if newer else place
        if newer:
            return host, port, 0, 0
        return (f"::ffff:{host}", port, 0, 0) if self._both else None

    def send(self, data: bytes, to: Source) -> bool:
        """Whether the system took it."""
        if self._socket is None:
            return False
        try:
            self._socket.sendto(data, to)
        except (BlockingIOError, InterruptedError):
            self._counts["full"] += 1
            return False
        except OSError:
            self._counts["unsendable"] += 1
            return False
        self.sent_bytes += len(data)
        self.sent_datagrams += 1
        return True

    def _ready(self) -> None:
        for _ in range(BATCH):
            if self._socket is None:
                return
            try:
                # One byte more than allowed shows what is too long; the rest is never copied.
                data, source = self._socket.recvfrom(DATAGRAM_LIMIT_BYTES + 1)
            except (BlockingIOError, InterruptedError):
                return
            except OSError:
                self._counts["system"] += 1
                return
            self.received_bytes += len(data)
            self._receive(data, source)
