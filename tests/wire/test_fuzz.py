"""Bytes that nobody meant to send: no crash, nothing leaked, and the node still answers."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import random
import re
import struct

from aios_nb.config import Limits

INPUTS = 3000
AT_ONCE = 50
CEILING_S = 30.0
"""For an answer, or the end: the node closes after its own limits what deserves none."""
PATIENCE_S = 0.1
"""For more of an answer that has begun."""
LIMITS = Limits(
    refused_per_s=1e6, header_wait_s=0.2, body_wait_s=0.2, hello_wait_s=0.2, body_bytes=50_000
)
LEAKS = (b"Traceback", b'File "', b".py", b"aiohttp", b"Python", b"nobody outside")
PIECES = (
    b"\x00",
    b"\xff\xfe",
    b"\r\n",
    b"\r\n\r\n",
    b"\n",
    b" ",
    b"%00",
    b"%2e%2e/",
    b"[" * 3000,
    b'{"a":' * 500,
    b'"\\ud800"',
    b"1e999",
    b"-",
    b"null",
    b"true",
    b"Transfer-Encoding: chunked\r\n",
    b"Content-Length: -1\r\n",
    b"Content-Length: 99999999999999999999\r\n",
    b"HTTP/9.9",
    b"Expect: 100-continue\r\n",
    b"rpc.x",
    b"\x88\x02\x03",
    b"Upgrade: websocket\r\n",
    b"0\r\n\r\n",
    b"ffffffffffffffff\r\n",
    b"\x7f" * 10,
    b"x" * 9000,
)


def mutated(data: bytes, dice: random.Random) -> bytes:
    bytes_ = bytearray(data)
    for _ in range(dice.choice((1, 1, 2, 3, 8))):
        at = dice.randrange(len(bytes_) + 1)
        match dice.randrange(6):
            case 0:
                bytes_[at : at + 1] = bytes([dice.randrange(256)])
            case 1:
                del bytes_[at : at + dice.randrange(1, 40)]
            case 2:
                bytes_[at:at] = dice.choice(PIECES)
            case 3:
                other = dice.randrange(len(bytes_) + 1)
                bytes_[at:at] = bytes_[min(at, other) : max(at, other)][:200]
            case 4:
                bytes_[at : at + dice.randrange(20)] = dice.randbytes(dice.randrange(20))
            case 5:
                del bytes_[at:]
    return bytes(bytes_)


def mutated_request(data: bytes, dice: random.Random) -> bytes:
    """Changed anywhere; or only in its body, with a right length, to get past the HTTP parser."""
    head, end, body = data.partition(b"\r\n\r\n")
    if not body or b"chunked" in head or dice.random() < 0.4:
        return mutated(data, dice)
    body = mutated(body, dice)
    return re.sub(rb"Length: \d+", b"Length: %d" % len(body), head) + end + body


def requests(site) -> list[bytes]:
    start = f"Host: {site.host}\r\nAuthorization: Bearer {site.token}\r\n"
    bodies = [
        {"jsonrpc": "2.0", "method": "chat.send", "params": ["echo", "boo"], "id": 1},
        [
            {"jsonrpc": "2.0", "method": "node.info", "id": None},
            1,
            {"jsonrpc": "2.0", "method": "x"},
        ],
        {
            "jsonrpc": "2.0",
            "method": "aios.message",
            "id": 1,
            "params": {"envelope": {"sender": {}}},
        },
        {
            "jsonrpc": "2.0",
            "method": "agents.search",
            "id": "x",
            "params": {"query": "é", "limit": 5},
        },
    ]
    made = []
    for body in bodies:
        data = json.dumps(body).encode()
        head = f"POST /rpc HTTP/1.1\r\n{start}Content-Length: {len(data)}\r\n"
        made.append(f"{head}Content-Type: application/json\r\n\r\n".encode() + data)
        chunked = (
            f"POST /rpc HTTP/1.1\r\n{start}Transfer-Encoding: chunked\r\n\r\n{len(data):x}\r\n"
        )
        made.append(chunked.encode() + data + b"\r\n0\r\n\r\n")
    path = "/blobs/" + "0" * 64
    made.append(f"PUT {path} HTTP/1.1\r\n{start}Content-Length: 3\r\n\r\nabc".encode())
    made.append(f"GET {path} HTTP/1.1\r\n{start}Range: bytes=0-5\r\n\r\n".encode())
    made.append(f"GET /.well-known/aios.json HTTP/1.1\r\n{start}\r\n".encode())
    return made


def upgrade(site, *, token: bool) -> bytes:
    shown = f"Authorization: Bearer {site.token}\r\n" if token else ""
    return (
        f"GET /ws HTTP/1.1\r\nHost: {site.host}\r\n{shown}Connection: Upgrade\r\n"
        "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\nSec-WebSocket-Protocol: aios-rpc-1\r\n\r\n"
    ).encode()


def frame(data: bytes, opcode: int = 1) -> bytes:
    size = bytes([0x80 | len(data)]) if len(data) < 126 else b"\xfe" + struct.pack("!H", len(data))
    return bytes([0x80 | opcode]) + size + b"\0\0\0\0" + data


def conversations(site) -> list[tuple[bytes, bytes]]:
    calls = b"".join(
        frame(
            json.dumps({"jsonrpc": "2.0", "method": method, "params": params, "id": 1}).encode(),
            kind,
        )
        for method, params, kind in (
            ("chat.send", ["echo", "boo"], 1),
            ("node.info", [], 2),
            ("chat.unwatch", ["w1"], 1),
            ("chat.watch", {}, 1),
        )
    )
    hello = frame(json.dumps({"nonce": "A" * 43}).encode())
    token = frame(json.dumps({"token": site.token}).encode())
    pings = frame(b"ping", 9) + frame(b"", 10)
    return [
        (upgrade(site, token=True), calls + pings),
        (upgrade(site, token=True), hello + calls + frame(b"\x03\xe8", 8)),
        (upgrade(site, token=False), hello + token + calls),
    ]


def test_no_mutated_input_breaks_the_node_or_leaks(serving, caplog):
    dice = random.Random(20_250_417)

    async def one(site, data: bytes) -> bytes:
        try:
            reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
        except ConnectionError:
            return b""
        got = b""
        try:
            writer.write(data)
            async with asyncio.timeout(CEILING_S) as patience:
                while piece := await reader.read(65536):
                    got += piece
                    patience.reschedule(asyncio.get_running_loop().time() + PATIENCE_S)
        except TimeoutError:
            assert got, data
        except ConnectionError:
            pass
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()
        return got

    async def in_turn(turns: asyncio.Semaphore, site, data: bytes) -> bytes:
        async with turns:
            return await one(site, data)

    async def main():
        answered = {101: 0, 200: 0, 400: 0}
        async with serving(limits=LIMITS) as site:
            plain, sockets = requests(site), conversations(site)
            inputs = [mutated_request(dice.choice(plain), dice) for _ in range(INPUTS * 2 // 3)]
            for _ in range(INPUTS // 3):
                head, frames = dice.choice(sockets)
                inputs.append(head + mutated(frames, dice))
            turns = asyncio.Semaphore(AT_ONCE)
            for answer in await asyncio.gather(*(in_turn(turns, site, data) for data in inputs)):
                assert not [leak for leak in LEAKS if leak in answer], answer
                status = int(answer[9:12] or 0)
                answered[status] = answered.get(status, 0) + 1
            info = await site.rpc({"jsonrpc": "2.0", "method": "node.info", "id": 1})
            async with site.ws() as socket:
                await socket.send_json({"jsonrpc": "2.0", "method": "node.info", "id": 2})
                return answered, info.json, await socket.receive_json()

    with caplog.at_level(logging.WARNING):
        answered, by_http, by_socket = asyncio.run(main())
    assert "result" in by_http
    assert "result" in by_socket
    assert min(answered[101], answered[200], answered[400]) > 100, answered
    assert 500 not in answered
    assert [record.getMessage() for record in caplog.records] == []
