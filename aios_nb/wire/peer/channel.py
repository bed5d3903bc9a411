"""A websocket of either side, once it is upgraded: whole frames in, many frames out in one write.

The frameworks that make the connection differ between the two sides; from here up they do not. The
frames are read here and not by them: a queue, a task and two turns of the loop for each packet cost
more than all that is done with a small call.
"""

from __future__ import annotations

import asyncio
import random
from collections import deque
from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING, Any, cast

from aiohttp._websocket.helpers import websocket_mask

from aios_nb.wire.peer.frames import FRAME_BYTES, Violation

if TYPE_CHECKING:
    from aiohttp import ClientResponse, ClientWebSocketResponse, web
    from aiohttp.client_proto import ResponseHandler

    from aios_nb.wire.connection import Connection

# RFC 6455, section 5.2: the first byte of a frame (0x80: nothing of this message follows), then the
# length with a bit for the mask.
_WHOLE = 0x80
_CONTINUED, _BINARY, _CLOSE, _PING, _PONG = 0x0, 0x2, 0x8, 0x9, 0xA
_WHOLE_BINARY = _WHOLE | _BINARY
_MASKED = 0x80
_TWO_BYTES, _EIGHT_BYTES = 126, 127
_CONTROL_BYTES = 125

FRAMES_PER_TURN = 100
TURN_S = 0.002
"""A node that sends without end must let others have a turn, by whichever is over first."""
UNREAD_FRAMES = 8
"""Frames that may wait while the two sides get to know each other; more stay in the socket."""

Take = Callable[[bytes | bytearray], None]


class Closed(Exception):
    """There is nothing more to read."""


class Channel:
    """Sealed frames in and out of one connection."""

    def __init__(self, protocol: Connection | ResponseHandler, *, dialled: bool) -> None:
        self._protocol = protocol
        self._transport = protocol.transport
        self._loop = asyncio.get_running_loop()
        self._mask_out = _MASKED if dialled else 0
        self._mask_in = 0 if dialled else _MASKED
        self._buffer = bytearray()
        self._need = 2
        """Bytes that must be there before it is worth looking."""
        self._fragments: bytearray | None = None
        self._unread: deque[bytes | bytearray] = deque()
        self._reader: asyncio.Future[None] | None = None
        self._held_up = False
        """Enough waits to be read: nothing more is looked at until some of it was."""
        self._take: Take | None = None
        self._flush: Callable[[], None] = lambda: None
        self._rest: Callable[[float], float] = lambda _: 0.0
        self._resting: asyncio.Handle | None = None
        self._response: ClientResponse | None = None
        self.closed: asyncio.Future[Exception | None] = self._loop.create_future()
        """Done when nothing more comes; with what the other side did wrong, if it did."""
        self.close_code: int | None = None
        there = self._transport.get_extra_info("peername") if self._transport else None
        self.address: str = there[0].partition("%")[0] if there else ""
        """The IP address of the other end."""
        self.sent_bytes = self.received_bytes = 0

    @classmethod
    def accepted(cls, request: web.BaseRequest) -> Channel:
        """Of a request that was just upgraded."""
        connection = cast("Connection", request.protocol)
        channel = cls(connection, dialled=False)
        connection.taken = channel.feed
        connection.on_lost = channel.feed_eof
        if connection.transport is None:
            channel.feed_eof()
        return channel

    @classmethod
    def dialled(cls, socket: ClientWebSocketResponse[Any]) -> Channel:
        """Of a websocket that was just opened. Raises ``Closed``."""
        response = socket._response  # noqa: SLF001 - no public way to its connection
        connection = response.connection
        if connection is None or connection.protocol is None or not connection.protocol.connected:
            response.close()
            raise Closed
        channel = cls(connection.protocol, dialled=True)
        channel._response = response
        connection.protocol.set_parser(channel, None)
        return channel

    @property
    def open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    @property
    def paused(self) -> bool:
        """The other side reads slower than we write."""
        return self._protocol.writing_paused

    @property
    def unsent_bytes(self) -> int:
        """Written, and not yet taken by the system."""
        return self._transport.get_write_buffer_size() if self._transport is not None else 0

    # Reading --------------------------------------------------------------------------

    async def read(self) -> bytes | bytearray:
        """The next frame, before ``attach``. Raises ``Closed``."""
        while not self._unread:
            if self.closed.done():
                raise self.closed.result() or Closed
            self._reader = self._loop.create_future()
            await self._reader
        frame = self._unread.popleft()
        self._let_on()
        return frame

    def attach(self, take: Take, flush: Callable[[], None], rest: Callable[[float], float]) -> None:
        """Give each frame to ``take`` from now on, and call ``flush`` after those of one packet.

        ``rest`` is told how long they took, and says for how long to read nothing more.
        """
        self._take, self._flush, self._rest = take, flush, rest
        waiting, self._unread = self._unread, deque()
        try:
            for frame in waiting:
                take(frame)
        except Exception as problem:  # noqa: BLE001 - as in ``feed``
            self._end(problem)
            self.abort()
            return
        flush()
        self._let_on()

    def feed_data(self, data: bytes) -> tuple[bool, bytes]:
        """As the framework of the dialling side calls it."""
        self.feed(data)
        return False, b""

    def feed(self, data: bytes) -> None:
        """Bytes came."""
        if self.closed.done():
            return
        self.received_bytes += len(data)
        buffer = self._buffer
        buffer += data
        if len(buffer) < self._need or self._resting is not None:
            return
        began = monotonic()
        try:
            more = self._parse(began + TURN_S)
        except Exception as problem:  # noqa: BLE001 - whatever it is, it ends this connection
            self._end(problem)
            self.abort()
            return
        self._flush()
        rest = self._rest(monotonic() - began)
        if (more or rest) and self._transport is not None:
            self._transport.pause_reading()
            self._held_up = True
            if self._take is not None or len(self._unread) < UNREAD_FRAMES:
                self._let_on(rest)

    def feed_eof(self) -> None:
        """No more will come."""
        self._end(None)

    def _let_on(self, rest_s: float = 0.0) -> None:
        if self._held_up:
            self._held_up = False
            if rest_s:
                self._resting = self._loop.call_later(rest_s, self._go_on)
            else:
                self._resting = self._loop.call_soon(self._go_on)

    def _go_on(self) -> None:
        self._resting = None
        if self._transport is not None and not self._transport.is_closing():
            self._transport.resume_reading()
        self.feed(b"")

    def _parse(self, until: float) -> bool:  # noqa: C901, PLR0912 - a call for each is dear
        """Take the whole frames in the buffer; True when some are left for another turn."""
        buffer = self._buffer
        have, at, frames = len(buffer), 0, 0
        self._need = 2  # also when the turn ends exactly behind a frame
        mask_in, give = self._mask_in, self._take or self._give
        most = FRAMES_PER_TURN if self._take is not None else UNREAD_FRAMES - len(self._unread)
        while frames < most:
            if have - at < 2:  # noqa: PLR2004
                break
            start, size = at + 2, buffer[at + 1] & 0x7F
            if size >= _TWO_BYTES:
                if size == _EIGHT_BYTES:
                    raise Violation("a frame that is too long")
                start += 2
                if have < start:
                    self._need = start - at
                    break
                size = buffer[at + 2] << 8 | buffer[at + 3]
            if buffer[at + 1] & _MASKED != mask_in:
                raise Violation("a frame with the mask of the other side")
            end = start + size
            if mask_in:
                end += 4
            if have < end:
                self._need = end - at
                break
            if mask_in:
                frame = buffer[start + 4 : end]
                websocket_mask(bytes(buffer[start : start + 4]), frame)
            else:
                frame = buffer[start:end]
            if buffer[at] == _WHOLE_BINARY:
                give(frame)
            else:
                self._odd(buffer[at], frame)
            at = end
            frames += 1
            if monotonic() > until:
                most = frames
        del buffer[:at]
        return frames == most and len(buffer) > 0

    def _give(self, frame: bytes | bytearray) -> None:
        if self._take is not None:
            self._take(frame)
            return
        self._unread.append(frame)
        self._wake()

    def _odd(self, first: int, frame: bytearray) -> None:
        """Everything but a whole binary message."""
        kind = first & ~_WHOLE
        if kind in {_CLOSE, _PING, _PONG} and len(frame) <= _CONTROL_BYTES and first & _WHOLE:
            if kind == _CLOSE:
                self.close_code = int.from_bytes(frame[:2], "big")
                raise Closed
            if kind == _PING and not self.paused:  # who does not read needs no answer
                self._write(_PONG, [frame])
            return
        if kind != (_BINARY if self._fragments is None else _CONTINUED):
            raise Violation("neither binary nor control")
        if self._fragments is None:
            self._fragments = bytearray()
        self._fragments += frame
        if len(self._fragments) > FRAME_BYTES:
            raise Violation("a frame that is too long")
        if first & _WHOLE:
            whole, self._fragments = self._fragments, None
            self._give(whole)

    def _end(self, problem: Exception | None) -> None:
        if not self.closed.done():
            self.closed.set_result(None if isinstance(problem, Closed) else problem)
            if self._resting is not None:
                self._resting.cancel()
            self._wake()

    def _wake(self) -> None:
        if self._reader is not None and not self._reader.done():
            self._reader.set_result(None)

    # Writing --------------------------------------------------------------------------

    def write(self, frames: list[bytes]) -> None:
        """Send these frames, each at most ``FRAME_BYTES`` long, in one write."""
        self._write(_BINARY, frames)

    def _write(self, kind: int, frames: list[bytes] | list[bytearray]) -> None:
        transport = self._transport
        if transport is None or transport.is_closing():
            return
        out: list[bytes | bytearray] = []
        first, mask_bit = _WHOLE | kind, self._mask_out
        for frame in frames:
            size = len(frame)
            if size < _TWO_BYTES:
                out.append(bytes((first, mask_bit | size)))
            else:
                out.append(bytes((first, mask_bit | _TWO_BYTES, size >> 8, size & 255)))
            if mask_bit:
                # The bytes are sealed under a fresh key: nobody could choose them for a proxy.
                mask = random.getrandbits(32).to_bytes(4, "big")
                masked = bytearray(frame)
                websocket_mask(mask, masked)
                out.append(mask)
                out.append(masked)
            else:
                out.append(frame)
        data = b"".join(out)
        self.sent_bytes += len(data)
        transport.write(data)

    async def drained(self) -> None:
        """Wait until the other side has read enough. Raises when it has gone."""
        await self._protocol._drain_helper()  # noqa: SLF001 - the only waiter of it is here

    # The end --------------------------------------------------------------------------

    def close(self, code: int | None = None) -> None:
        """Close after what was written has left."""
        if code is not None:
            self._write(_CLOSE, [code.to_bytes(2, "big")])
        if self._transport is not None:
            self._transport.close()

    def abort(self) -> None:
        """Close now."""
        if self._transport is not None:
            self._transport.abort()

    def release(self) -> None:
        """Close, and give back what the framework of the dialling side holds."""
        self.close()
        if self._response is not None:
            self._response.close()
