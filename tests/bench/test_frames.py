from __future__ import annotations

import base64

import pytest
from aiohttp import WSMsgType, web

from aios_nb.bench.frames import BINARY, CLOSE, PING, TEXT, FrameParser, accept_for, frame
from aios_nb.bench.http1 import BadReply

KEY = base64.b64encode(b"0123456789abcdef")
ASK = (
    b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"
    b"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: " + KEY + b"\r\n\r\n"
)
SIZES = (0, 5, 125, 126, 127, 65_535, 65_536)


async def talks(request: web.Request):
    socket = web.WebSocketResponse(compress=False, timeout=0.01)
    await socket.prepare(request)
    await socket.send_str("hello")
    await socket.ping(b"are you there")
    for size in SIZES:
        await socket.send_bytes(b"x" * size)
    await socket.close()
    return socket


EXPECTED = [
    (TEXT, b"hello"),
    (PING, b"are you there"),
    *((BINARY, b"x" * size) for size in SIZES),
    (CLOSE, b"\x03\xe8"),
]


def read(*pieces: bytes) -> list[tuple[int, bytes]]:
    found: list[tuple[int, bytes]] = []
    parser = FrameParser(lambda opcode, payload: found.append((opcode, payload)))
    for piece in pieces:
        parser.feed(piece)
    return found


def test_frames_of_every_size_cut_at_any_byte_are_read_the_same(recorded) -> None:
    head, _, stream = recorded(talks, ASK).partition(b"\r\n\r\n")
    assert accept_for(KEY) in head
    edges = 600  # covers every frame but the two long ones, whose insides are all alike
    cuts = [*range(edges), *range(edges, len(stream), 4999), len(stream) - 1]
    for cut in cuts:
        assert read(stream[:cut], stream[cut:]) == EXPECTED
    short = stream[:edges]
    assert read(*(short[at : at + 1] for at in range(edges)), stream[edges:]) == EXPECTED


def test_a_message_in_fragments_is_joined_around_a_ping() -> None:
    assert read(b"\x01\x03abc", b"\x89\x00", b"\x00\x01d", b"\x80\x02ef") == [
        (PING, b""),
        (TEXT, b"abcdef"),
    ]


@pytest.mark.parametrize(
    "stream", [b"\x81\x80\0\0\0\0", b"\xc1\x00", b"\x80\x00", b"\x01\x01a\x81\x01b"]
)
def test_what_a_server_must_not_send_is_refused(stream: bytes) -> None:
    with pytest.raises(BadReply):
        read(stream)


@pytest.mark.parametrize("size", SIZES)
def test_a_real_server_understands_our_frames(size: int, recorded) -> None:
    heard = []

    async def listens(request: web.Request):
        socket = web.WebSocketResponse(timeout=0.01)
        await socket.prepare(request)
        heard.append(await socket.receive())
        await socket.close()
        return socket

    recorded(listens, ASK + frame(b"y" * size, BINARY))
    assert [(message.type, message.data) for message in heard] == [(WSMsgType.BINARY, b"y" * size)]
