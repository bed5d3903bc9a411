"""What a channel takes from the framework without being promised it; and what it does by itself."""

from __future__ import annotations

import asyncio
import inspect

import pytest
from aiohttp import ClientWebSocketResponse, web
from aiohttp._websocket.helpers import websocket_mask
from aiohttp.client_proto import ResponseHandler

from aios_nb.wire.connection import Connection
from aios_nb.wire.peer.channel import Channel
from tests.wire.peer.conftest import until


@pytest.mark.parametrize("protocol", [Connection, ResponseHandler])
def test_the_framework_still_has_what_is_borrowed_from_it(protocol):
    assert inspect.iscoroutinefunction(protocol._drain_helper)
    assert isinstance(protocol.writing_paused, property)
    assert "_response" in inspect.getsource(ClientWebSocketResponse.__init__)
    assert "if self._eof_sent:" in inspect.getsource(web.WebSocketResponse.write_eof)
    takes = list(inspect.signature(ResponseHandler.set_parser).parameters)
    assert takes[:3] == ["self", "parser", "payload"]


@pytest.mark.parametrize("size", [0, 1, 3, 4, 5, 127, 65535])
def test_the_mask_is_that_of_rfc_6455(size):
    mask, data = b"\x01\x20\x30\xff", bytes(n % 256 for n in range(size))
    masked = bytearray(data)
    websocket_mask(mask, masked)
    assert masked == bytes(byte ^ mask[n % 4] for n, byte in enumerate(data))


class Transport(asyncio.Transport):
    """Remembers what was written and whether it is read."""

    def __init__(self) -> None:
        super().__init__()
        self.written = bytearray()
        self.reads = True
        self.closing = False

    def write(self, data: bytes) -> None:
        self.written += data

    def pause_reading(self) -> None:
        self.reads = False

    def resume_reading(self) -> None:
        self.reads = True

    def is_closing(self) -> bool:
        return self.closing

    def abort(self) -> None:
        self.closing = True

    close = abort


class Protocol:
    def __init__(self) -> None:
        self.transport = Transport()
        self.writing_paused = False


def dialled() -> tuple[Channel, Transport]:
    """A channel whose other side does not mask, and what is under it."""
    protocol = Protocol()
    return Channel(protocol, dialled=True), protocol.transport  # type: ignore[arg-type]


def frame(payload: bytes) -> bytes:
    return bytes((0x82, len(payload))) + payload


def test_a_rest_holds_back_what_came_and_what_comes():
    async def run():
        channel, transport = dialled()
        taken: list[bytes] = []
        rests = iter([0.01, 0.0, 0.0])
        channel.attach(taken.append, lambda: None, lambda _: next(rests))

        channel.feed(frame(b"one"))
        assert not transport.reads
        channel.feed(frame(b"two"))  # was on its way
        assert taken == [b"one"]
        await until(lambda: transport.reads)

        assert taken == [b"one", b"two"]

    asyncio.run(run())


def test_nothing_is_taken_after_the_end_though_a_rest_was_under_way():
    async def run():
        channel, _ = dialled()
        taken: list[bytes] = []
        channel.attach(taken.append, lambda: None, lambda _: 0.001)
        channel.feed(frame(b"one"))
        channel.feed(frame(b"two"))
        channel.feed_eof()
        await asyncio.sleep(0.01)

        assert taken == [b"one"]
        assert channel.closed.done()

    asyncio.run(run())


def test_pings_are_not_answered_while_nobody_reads_the_answers():
    async def run():
        protocol = Protocol()
        channel = Channel(protocol, dialled=True)  # type: ignore[arg-type]
        channel.feed(b"\x89\x01x")
        answered = len(protocol.transport.written)
        protocol.writing_paused = True
        channel.feed(b"\x89\x01x" * 100)

        assert answered == 2 + 4 + 1
        assert len(protocol.transport.written) == answered

    asyncio.run(run())
