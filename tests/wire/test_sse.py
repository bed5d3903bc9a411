"""Notifications as server-sent events."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import Any

import pytest

from aios_nb.config import Limits
from aios_nb.errors import AgentFailed
from aios_nb.wire import sse

STREAM = {"jsonrpc": "2.0", "method": "chat.stream", "params": ["echo", "hi"], "id": "s"}
WATCH = {"jsonrpc": "2.0", "method": "chat.watch", "id": 4}


class Client:
    """Reads events as they come."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer

    async def head(self) -> str:
        return (await self.reader.readuntil(b"\r\n\r\n")).decode().lower()

    async def event(self) -> Any:
        while not (line := await self.reader.readline()).startswith(b"data: "):
            assert line, "the stream ended"
        return json.loads(line[6:])


@contextlib.asynccontextmanager
async def events(site, body: Any, version: str = "1.1"):
    data = json.dumps(body).encode()
    head = (
        f"POST /rpc HTTP/{version}\r\nHost: {site.host}\r\nAuthorization: Bearer {site.token}\r\n"
        f"Accept: application/json, text/event-stream\r\nContent-Length: {len(data)}\r\n\r\n"
    )
    reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
    writer.write(head.encode() + data)
    try:
        yield Client(reader, writer)
    finally:
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()


@pytest.mark.parametrize("version", ["1.0", "1.1"])
def test_a_stream_is_deltas_then_the_response(serving, delta, version):
    async def main():
        async with serving() as site, events(site, STREAM, version) as client:
            flow = await site.rooms["chat"].flows.get()
            head = await client.head()
            flow.feed(delta(0, "h"))
            first = await client.event()  # before there is a second: it is not held back
            flow.feed(delta(1, "i\n\ndata: x"), delta(2, "é"))
            flow.finish()
            rest = [await client.event() for _ in range(3)]
            await flow.closed.wait()
            return head, first, rest

    head, first, rest = asyncio.run(main())
    assert "content-type: text/event-stream" in head
    assert "cache-control: no-store" in head
    assert first["method"] == "chat.delta"
    assert first["params"]["text"] == "h"
    assert "id" not in first
    assert [event["params"]["text"] for event in rest[:2]] == ["i\n\ndata: x", "é"]
    result = {"text": "hi", "status": "done"}
    assert rest[2] == {"jsonrpc": "2.0", "result": result, "id": "s"}


def test_the_first_piece_goes_at_once_and_the_next_are_gathered(serving, delta, monkeypatch):
    monkeypatch.setattr(sse, "GATHER_S", 3600.0)

    async def main():
        async with serving() as site, events(site, STREAM) as client:
            flow = await site.rooms["chat"].flows.get()
            await client.head()
            flow.feed(delta(0, "a"))
            first = await client.event()
            flow.feed(delta(1, "b"), delta(2, "c"))
            flow.finish()
            await client.reader.readline()
            await client.reader.readline()
            together = await client.reader.readuntil(b"0\r\n\r\n")
            return first, together

    first, together = asyncio.run(main())
    assert first["params"]["text"] == "a"
    size, _, rest = together.lstrip(b"\r\n").partition(b"\r\n")
    assert len(rest) == int(size, 16) + len(b"\r\n0\r\n\r\n")
    assert rest.count(b"data: ") == 3


def test_many_pieces_at_once_all_arrive_in_order(serving, delta):
    async def main():
        async with serving() as site, events(site, STREAM) as client:
            flow = await site.rooms["chat"].flows.get()
            flow.feed(*(delta(n, "x" * 50) for n in range(5000)))
            flow.finish()
            got = [(await client.event())["params"]["offset"] for _ in range(5000)]
            return got, "result" in await client.event()

    assert asyncio.run(main()) == (list(range(5000)), True)


def test_the_connection_can_be_used_again_after_a_stream(serving):
    async def main():
        async with serving() as site, events(site, STREAM) as client:
            (await site.rooms["chat"].flows.get()).finish()
            await client.event()
            await client.reader.readuntil(b"0\r\n\r\n")
            client.writer.write(f"GET /healthz HTTP/1.1\r\nHost: {site.host}\r\n\r\n".encode())
            return await client.head()

    assert asyncio.run(main()).startswith("http/1.1 200")


def test_a_watch_is_the_response_then_events(serving):
    async def main():
        async with serving() as site, events(site, WATCH) as client:
            flow = await site.rooms["chat"].flows.get()
            first = await client.event()
            flow.feed({"message_id": "m1", "cursor": 8})
            return first, await client.event()

    first, second = asyncio.run(main())
    assert first == {"jsonrpc": "2.0", "result": {"cursor": 7}, "id": 4}
    assert second["method"] == "chat.event"
    assert second["params"] == {"message_id": "m1", "cursor": 8}


def test_a_failed_stream_ends_with_the_error(serving, delta):
    async def main():
        async with serving() as site, events(site, STREAM) as client:
            flow = await site.rooms["chat"].flows.get()
            flow.outcome = AgentFailed("it broke", ran="yes")
            flow.feed(delta(0, "h"))
            flow.finish()
            return [await client.event() for _ in range(2)]

    _, last = asyncio.run(main())
    assert last["error"] == {
        "code": -32002,
        "message": "it broke",
        "data": {"ran": "yes", "hint": AgentFailed.what_to_do},
    }
    assert last["id"] == "s"


def test_an_unexpected_failure_in_a_stream_leaks_nothing(serving, caplog):
    async def main():
        async with serving() as site, events(site, STREAM) as client:
            flow = await site.rooms["chat"].flows.get()
            flow.outcome = RuntimeError(site.secret)
            flow.finish()
            return await client.event(), site.secret

    event, secret = asyncio.run(main())
    assert event["error"]["code"] == -32603
    assert secret not in json.dumps(event)
    assert secret in caplog.text


@pytest.mark.parametrize("body", [STREAM, WATCH])
def test_a_client_that_leaves_closes_the_notices(serving, body):
    async def main():
        async with serving() as site:
            async with events(site, body) as client:
                flow = await site.rooms["chat"].flows.get()
                await client.head()
            await flow.closed.wait()
            return site.server._events

    assert asyncio.run(main()) == {}


def test_a_client_that_does_not_read_holds_the_stream_back(serving, delta):
    async def main():
        async with serving() as site, events(site, STREAM) as client:
            flow = await site.rooms["chat"].flows.get()
            await client.head()
            client.reader._transport.pause_reading()
            piece = delta(0, "x" * 100_000)
            for _ in range(1000):
                flow.feed(piece)
            (connection,) = site.server._listener.connections
            for _ in range(5000):  # turns of the loop, more than all pieces need
                await asyncio.sleep(0)
            assert connection.writing_paused
            return flow._pieces.qsize(), connection.transport.get_write_buffer_size()

    waiting, buffered = asyncio.run(main())
    assert waiting > 500
    assert buffered < 2_000_000


def test_silence_is_filled_with_comments(serving, monkeypatch):
    monkeypatch.setattr(sse, "KEEPALIVE_S", 0.01)

    async def main():
        async with serving() as site, events(site, WATCH) as client:
            await client.event()
            return await client.reader.readuntil(b":\n\n")

    assert asyncio.run(main()).endswith(b"3\r\n:\n\n")


def test_a_plain_method_is_answered_as_json_all_the_same(serving):
    async def main():
        async with serving() as site:
            accept = {"Accept": "text/event-stream"}
            body = {"jsonrpc": "2.0", "method": "node.info", "id": 1}
            return [
                await site.rpc(body, accept),
                await site.rpc([body], accept),
                await site.rpc({**STREAM, "params": 3}, accept),
                await site.rpc(b"nonsense", accept),
                await site.rpc({"jsonrpc": "2.0", "method": "nope", "id": 1}, accept),
            ]

    answers = asyncio.run(main())
    assert {answer.headers["content-type"] for answer in answers} == {"application/json"}
    assert "result" in answers[0].json
    assert len(answers[1].json) == 1
    assert [answer.json["error"]["code"] for answer in answers[2:]] == [-32602, -32700, -32601]


def test_more_streams_than_allowed_are_busy(serving):
    limits = Limits(open_streams=1)

    async def main():
        async with serving(limits=limits) as site, events(site, WATCH) as client:
            await client.event()
            return (await site.rpc(WATCH, {"Accept": "text/event-stream"})).json

    assert asyncio.run(main())["error"]["code"] == -32005
