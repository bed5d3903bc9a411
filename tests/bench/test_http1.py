from __future__ import annotations

import pytest
from aiohttp import web

from aios_nb.bench.http1 import BadReply, ResponseParser

ASK = b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\n\r\n"
BODY = b'{"jsonrpc":"2.0","id":7,"result":{"text":"' + b"x" * 60 + b'"}}'


async def whole(_: web.Request):
    return web.Response(body=BODY)


async def chunked(request: web.Request):
    response = web.StreamResponse()
    await response.prepare(request)
    for start in range(0, len(BODY), 17):
        await response.write(BODY[start : start + 17])
    await response.write_eof()
    return response


async def empty(_: web.Request):
    return web.Response(status=204)


async def failing(_: web.Request):
    return web.Response(status=500, text="sorry")


REPLIES = [
    (whole, (200, BODY)),
    (chunked, (200, BODY)),
    (empty, (204, b"")),
    (failing, (500, b"sorry")),
]


def read(*pieces: bytes) -> list[tuple[int, bytes]]:
    found: list[tuple[int, bytes]] = []
    parser = ResponseParser(lambda status, body: found.append((status, body)))
    for piece in pieces:
        parser.feed(piece)
    return found


@pytest.mark.parametrize(("handler", "expected"), REPLIES)
def test_a_reply_cut_at_any_byte_is_read_the_same(handler, expected, recorded) -> None:
    reply = recorded(handler, ASK)
    for cut in range(len(reply) + 1):
        assert read(reply[:cut], reply[cut:]) == [expected]


@pytest.mark.parametrize(("handler", "expected"), REPLIES)
def test_a_reply_that_comes_byte_by_byte_is_read_the_same(handler, expected, recorded) -> None:
    reply = recorded(handler, ASK)
    assert read(*(reply[at : at + 1] for at in range(len(reply)))) == [expected]


def test_replies_that_arrive_together_are_told_apart(recorded) -> None:
    first, second = recorded(whole, ASK), recorded(chunked, ASK)
    assert read(first + second + first) == [(200, BODY)] * 3


@pytest.mark.parametrize("handler", [whole, chunked])
def test_a_streamed_body_is_given_in_pieces(handler, recorded) -> None:
    pieces: list[bytes] = []
    ends: list[tuple[int, bytes]] = []
    parser = ResponseParser(lambda *end: ends.append(end), pieces.append)
    for byte in recorded(handler, ASK):
        parser.feed(bytes((byte,)))
    assert b"".join(pieces) == BODY
    assert ends == [(200, b"")]


def test_an_interim_reply_is_passed_over() -> None:
    assert read(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok") == [
        (200, b"ok")
    ]


@pytest.mark.parametrize(
    "reply",
    [
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/1.1 abc OK\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\n\r\nuntil the end",
        b"HTTP/1.1 101 Switching Protocols\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nabc\r\n",
        b"x" * 70_000,
    ],
)
def test_what_cannot_be_framed_is_refused(reply: bytes) -> None:
    with pytest.raises(BadReply):
        read(reply)
