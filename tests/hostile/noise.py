"""Inputs that nobody meant to send, by the thousand, always the same ones for one seed."""

from __future__ import annotations

import json
import random
import re
import struct
from collections.abc import Iterator
from typing import Any

import msgspec

from aios_nb.wire.methods import METHODS, Method

NONCE = json.dumps({"nonce": "A" * 43}).encode()
DEEP = 20_000
HUGE_HEADER_BYTES = 70_000

PIECES = (
    b"\x00", b"\xff\xfe", b"\xc3\x28", b"\r\n", b"\r\n\r\n", b"\n", b"\r", b" ", b"\t", b"%00",
    b"%2e%2e/", b"[" * DEEP, b'{"a":' * 500, b'"\\ud800"', b"1e999", b"-", b"9" * 400, b"null",
    b"true", b"-0", b"Transfer-Encoding: chunked\r\n", b"Transfer-Encoding: gzip, chunked\r\n",
    b"Transfer-Encoding : chunked\r\n", b"Content-Length: -1\r\n", b"Content-Length: +5\r\n",
    b"Content-Length: 5\r\nContent-Length: 6\r\n", b"Content-Length: 99999999999999999999\r\n",
    b"HTTP/9.9", b"HTTP/1.0", b"Expect: 100-continue\r\n", b"Connection: close\r\n",
    b"Upgrade: websocket\r\n", b"Host: evil.example\r\n", b"Origin: http://evil.example\r\n",
    b"0\r\n\r\n", b"ffffffffffffffff\r\n", b"5;x=y\r\n", b"rpc.x", b"\x88\x02\x03", b"\x7f" * 10,
    b"X-Long: " + b"x" * HUGE_HEADER_BYTES + b"\r\n", b"X: y\r\n" * 300,
)  # fmt: skip

VALUES: tuple[Any, ...] = (
    0, -1, 1, 2**31, 2**53, 2**63 - 1, 2**63, 2**64, 10**30, -(10**30), 0.5, -0.0, 1e308, 5e-324,
    True, False, None, "", " ", "x", "\x00", "\x1b[31m", "\u202e", "é" * 100, "a" * 5000, "/etc",
    "../../x", "%00", "*", "' OR 1=1 --", 'a "b', "a AND (", "NEAR(", "echo", "clock", "calc",
    "concierge", "@echo", "x@y", "0" * 64, "a" * 32, "tg:1:2", "md", "json", "ipynb", "exe",
    [], [[]], [None], ["echo"], ["echo"] * 40, {}, {"a": 1}, {"": {}}, [{"sha256": "0" * 64}],
    [{"name": "x", "mime": "y", "size": -1, "sha256": "0" * 64}],
)  # fmt: skip

USUAL: dict[str, Any] = {
    "agent": "echo", "agents": ["echo"], "after": 0, "before": 1, "chunk": "", "data": 1,
    "digest": "", "event_id": "x:1",
    "deadline_s": 5, "files": [], "format": "md", "last": False, "limit": 5, "mime": "",
    "name": "x", "scope": "chat", "prefix": "x:", "as": None, "id": "x", "question": "q1",
    "node": "a" * 32, "offset": 0, "query": "numbers", "reaction": "y", "sender": "tg:1:2",
    "stream": False, "text": "boo", "title": "t", "wait": True, "watch": "w1", "who": "echo",
    "address": "gopher://nowhere", "url": "gopher://nowhere", "kind": "mcp", "local": False,
    "access": "private", "token_env": "NOBODY", "pin": "0",
    "envelope": {
        "sender": {"id": "x", "type": "human"}, "recipient": {"id": "echo", "type": "agent"},
        "message_type": "request", "content": {"task": "boo"},
    },
}  # fmt: skip
"""A right value for each name that a method takes."""


def call(method: str, params: Any, id_: Any = 1) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "method": method, "params": params, "id": id_}).encode()


def wrong_params(conversation: str, message_id: str, sha256: str) -> Iterator[bytes]:
    """For every method and everything it takes: all that might be sent instead."""
    usual = {**USUAL, "conversation": conversation, "message_id": message_id, "sha256": sha256}
    for row in METHODS:
        fields = names(row)
        right = {name: usual[name] for name in fields}
        if row.name in {"chat.send", "chat.stream", "chat.post"}:
            del right["message_id"]  # a new message each time
        if row.name == "chat.delete":
            right = {}
        for params in (*VALUES, list(right.values()), [*right.values(), 1], {**right, "more": 1}):
            yield call(row.name, params)
        for name in fields:
            yield call(row.name, {key: right[key] for key in right if key != name})
            for value in VALUES:
                yield call(row.name, {**right, name: value})
    yield from wrong_envelopes()


def wrong_envelopes() -> Iterator[bytes]:
    """The same for each part of the paper's envelope."""
    envelope = USUAL["envelope"]
    for name in (*envelope, "message_id", "conversation_id", "timestamp", "routing"):
        for value in VALUES:
            yield call("aios.message", {"envelope": {**envelope, name: value}})
    for name in ("path", "max_hops", "deadline_ms"):
        for value in VALUES:
            yield call("aios.message", {"envelope": {**envelope, "routing": {name: value}}})


def names(row: Method) -> list[str]:
    return [field.encode_name for field in msgspec.structs.fields(row.params)]


def mutated(data: bytes, dice: random.Random) -> bytes:
    made = bytearray(data)
    for _ in range(dice.choice((1, 1, 2, 3, 8))):
        at = dice.randrange(len(made) + 1)
        match dice.randrange(6):
            case 0:
                made[at : at + 1] = bytes([dice.randrange(256)])
            case 1:
                del made[at : at + dice.randrange(1, 40)]
            case 2:
                made[at:at] = dice.choice(PIECES)
            case 3:
                if at < len(made):
                    made[at] ^= 1 << dice.randrange(8)
            case 4:
                made[at : at + dice.randrange(20)] = dice.randbytes(dice.randrange(20))
            case 5:
                del made[at:]
    return bytes(made)


class Requests:
    """Plain HTTP requests to one node, whole and broken."""

    def __init__(self, port: int, token: str) -> None:
        self._host = f"Host: 127.0.0.1:{port}\r\n".encode()
        self._auth = f"Authorization: Bearer {token}\r\n".encode()

    def whole(self) -> list[bytes]:
        bodies = [
            call("chat.send", ["echo", "boo"]),
            b"[%b,1,%b]" % (call("node.info", []), b'{"jsonrpc":"2.0","method":"x"}'),
            call("aios.message", {"envelope": USUAL["envelope"]}),
            call("agents.search", {"query": "é", "limit": 5}, "x"),
        ]
        made = [self.post(body) for body in bodies] + [self.chunked(body) for body in bodies]
        made.append(
            self.post(call("chat.stream", ["echo", "boo"]), b"Accept: text/event-stream\r\n")
        )
        path = b"/blobs/" + b"0" * 64
        made.append(self.head(b"PUT", path, b"Content-Length: 3\r\n") + b"abc")
        made.append(self.head(b"GET", path, b"Range: bytes=0-5\r\n"))
        made.append(self.head(b"GET", b"/.well-known/aios.json"))
        made.append(self.head(b"HEAD", b"/healthz"))
        made.append(self.head(b"OPTIONS", b"*"))
        return made

    def head(self, method: bytes, path: bytes, more: bytes = b"", *, token: bool = True) -> bytes:
        auth = self._auth if token else b""
        return b"%b %b HTTP/1.1\r\n%b%b%b\r\n" % (method, path, self._host, auth, more)

    def post(self, body: bytes, more: bytes = b"", *, token: bool = True) -> bytes:
        length = b"Content-Length: %d\r\nContent-Type: application/json\r\n" % len(body)
        return self.head(b"POST", b"/rpc", length + more, token=token) + body

    def chunked(self, body: bytes) -> bytes:
        half = len(body) // 2
        pieces = b"".join(b"%x\r\n%b\r\n" % (len(p), p) for p in (body[:half], body[half:]) if p)
        return (
            self.head(b"POST", b"/rpc", b"Transfer-Encoding: chunked\r\n") + pieces + b"0\r\n\r\n"
        )

    def upgrade(self, *, token: bool) -> bytes:
        return self.head(
            b"GET",
            b"/ws",
            b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
            b"Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n"
            b"Sec-WebSocket-Protocol: aios-rpc-1\r\n",
            token=token,
        )

    def broken(self, dice: random.Random) -> bytes:
        """Random bytes; or a request changed anywhere, or only in its body; or several in one."""
        kind = dice.random()
        if kind < 0.03:
            return dice.randbytes(dice.randrange(1, 2000))
        whole = self.whole()
        if kind < 0.15:  # one behind the other, the last one broken
            return b"".join(dice.choices(whole, k=dice.randrange(1, 5))) + mutated(
                dice.choice(whole), dice
            )
        return _mutated_request(dice.choice(whole), dice)

    def ambiguous(self, hidden: bytes) -> list[bytes]:
        """Requests whose end two servers could see in two places, with another one inside."""
        inner = self.post(hidden)
        size = b"Content-Length: %d\r\n" % (len(inner) + 5)
        chunked = b"Transfer-Encoding: chunked\r\n"
        end = b"0\r\n\r\n" + inner

        def outer(headers: bytes) -> bytes:
            return self.head(b"POST", b"/rpc", headers) + end

        return [
            outer(size + chunked),
            outer(chunked + size),
            outer(chunked + b"Transfer-Encoding: identity\r\n"),
            outer(b"Transfer-Encoding: identity, chunked, identity\r\n" + size),
            outer(b"Transfer-Encoding : chunked\r\n" + size),
            outer(b"Transfer-Encoding: xchunked\r\n" + size),
            outer(b"Transfer-Encoding:\x0bchunked\r\n" + size),
            outer(b"X: y\rTransfer-Encoding: chunked\r\n" + size),
            outer(b"Content-Length: 5\r\nContent-Length: %d\r\n" % len(end)),
            outer(b"Content-Length: 5, %d\r\n" % len(end)),
            outer(b"Content-Length: +5\r\n"),
            outer(b"Content-Length: 0x5\r\n"),
            outer(b"Content-Length: 5 5\r\n"),
            outer(b"Content-Length: -0\r\n"),
        ]


def _mutated_request(data: bytes, dice: random.Random) -> bytes:
    head, end, body = data.partition(b"\r\n\r\n")
    if not body or b"chunked" in head or dice.random() < 0.4:
        return mutated(data, dice)
    body = mutated(body, dice)
    return re.sub(rb"Length: \d+", b"Length: %d" % len(body), head) + end + body


# Websockets --------------------------------------------------------------------------------


def frame(data: bytes, opcode: int = 1, *, final: bool = True, mask: bool = True) -> bytes:
    size = len(data)
    bit = 0x80 if mask else 0
    if size < 126:
        length = bytes([bit | size])
    elif size < 1 << 16:
        length = bytes([bit | 126]) + struct.pack("!H", size)
    else:
        length = bytes([bit | 127]) + struct.pack("!Q", size)
    return bytes([(0x80 if final else 0) | opcode]) + length + (b"\0" * 4 if mask else b"") + data


def odd_frames(dice: random.Random) -> bytes:
    """Frames that a websocket library never sends."""
    data = call("node.info", [])
    return dice.choice(
        (
            frame(data, mask=False),
            frame(data, dice.choice((3, 4, 5, 6, 7, 11, 12, 13, 14, 15))),
            frame(data, 0),
            frame(data[:9], 1, final=False) + frame(data[9:], 0),
            frame(data[:9], 1, final=False) + frame(data, 1),
            frame(data[:9], 1, final=False) + frame(b"p", 9) + frame(data[9:], 0),
            frame(data[:9], 1, final=False) * 50,
            frame(b"x" * 126, 9),
            frame(b"p", 9, final=False),
            frame(b"\xff\xfe", 1),
            frame(b"\xc3\x28", 2),
            frame(b"\x03", 8),
            frame(b"\x03\xe8\xff\xff", 8),
            frame(b"\x00\x01", 8),
            frame(b"", 8) + frame(data),
            b"\x81\xff" + struct.pack("!Q", 1 << 63) + b"\0\0\0\0",
            b"\x81\xff" + struct.pack("!Q", 5 << 20) + b"\0\0\0\0" + b"x" * 1000,
            b"\x81\xfe\x00\x01\0\0\0\0x",
            b"\xf1\x81\0\0\0\0x",
            frame(b"[" * DEEP),
            frame(b"9" * 5000),
            frame(b""),
            frame(b"\x00"),
        )
    )


def broken_frames(token: str, dice: random.Random) -> tuple[bool, bytes]:
    """Whether to show the token at the upgrade, and what to send after it."""
    hello, shown = frame(NONCE), frame(json.dumps({"token": token}).encode())
    calls = b"".join(
        (
            frame(call("chat.send", ["echo", "boo"])),
            frame(call("node.info", []), 2),
            frame(call("chat.watch", {})),
            frame(call("chat.unwatch", ["w1"])),
            frame(call("chat.stream", ["echo", "boo"], "s")),
            frame(b"ping", 9),
            frame(b"", 10),
        )
    )
    noise = odd_frames(dice) if dice.random() < 0.4 else mutated(calls, dice)
    match dice.randrange(5):
        case 0:  # known from the upgrade on
            return True, calls + noise
        case 1:
            return True, hello + noise + calls
        case 2:  # before the hello
            return False, noise + hello
        case 3:  # between hello and token
            return False, hello + noise + shown + calls
        case _:
            return False, hello + shown + noise + calls
