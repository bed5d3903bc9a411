"""Routes, sizes, slow clients, starting and stopping."""

from __future__ import annotations

import asyncio
import contextlib
import io
import json
import socket
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from aios_nb.access import owner_of
from aios_nb.config import Limits
from aios_nb.errors import UsageError
from aios_nb.wire.dispatch import Dispatcher
from aios_nb.wire.guard import Guard
from aios_nb.wire.server import Server

CALL = {"jsonrpc": "2.0", "method": "chat.send", "params": ["echo", "hi"], "id": 1}


def sized(size: int) -> bytes:
    """A valid call of that many bytes."""
    empty = len(json.dumps(CALL | {"params": ["echo", ""]}))
    return json.dumps(CALL | {"params": ["echo", "x" * (size - empty)]}).encode()


class Anything:
    def __getattr__(self, verb: str) -> Any:
        if verb.startswith("_"):
            raise AttributeError(verb)
        return lambda *_: None


def bare_server(tmp_path: Path, **options: Any) -> Server:
    rooms = dict.fromkeys(
        ("node", "nodes", "tokens", "agents", "hub", "chat", "aios", "blobs", "gossip"), Anything()
    )
    guard = Guard("token", owner_of("a" * 32), **options)
    return Server(Dispatcher(rooms), Anything(), guard, lambda _: {}, dict)


# Routes ---------------------------------------------------------------------------------


def test_a_call_with_the_token_reaches_its_room_as_the_owner(serving):
    async def main():
        async with serving() as site:
            answer = await site.rpc(CALL)
            return answer, site.calls, site.identity.node_id

    answer, calls, node_id = asyncio.run(main())
    assert answer.status == 200
    assert answer.headers["content-type"] == "application/json"
    assert answer.json == {"jsonrpc": "2.0", "result": {"text": "hi", "status": "done"}, "id": 1}
    ((method, principal, params),) = calls
    assert (method, principal, params.text) == ("chat.send", owner_of(node_id), "hi")


def test_health_and_record_are_for_anyone(serving):
    async def main():
        async with serving() as site:
            return [
                await site.http(method, path, token=None)
                for path in ("/healthz", "/.well-known/aios.json", "/healthz?probe=1")
                for method in ("GET", "HEAD")
            ], site.identity.node_id

    answers, node_id = asyncio.run(main())
    assert [answer.status for answer in answers] == [200] * 6
    assert answers[0].json == {"status": "ok"}
    assert answers[2].json == {"v": 1, "node_id": node_id, "record": "AAAA"}
    for got, head in zip(answers[::2], answers[1::2], strict=True):
        assert head.body == b""
        assert head.headers["content-length"] == got.headers["content-length"]


@pytest.mark.parametrize(
    "path", ["/", "/rpc/", "//rpc", "/RPC", "/blobs", "/blobs/", "/.well-known/other", "/ws/x"]
)
def test_other_paths_are_not_found(serving, path):
    async def main():
        async with serving() as site:
            return await site.http("GET", path)

    assert asyncio.run(main()).status == 404


@pytest.mark.parametrize(
    ("method", "path", "allow"),
    [
        ("GET", "/rpc", "POST"),
        ("PUT", "/rpc", "POST"),
        ("POST", "/ws", "GET"),
        ("POST", "/healthz", "GET, HEAD"),
        ("DELETE", "/blobs/" + "0" * 64, "GET, HEAD, PUT"),
        ("POST", "/.well-known/aios.json", "GET, HEAD"),
    ],
)
def test_a_wrong_method_is_told_the_right_ones(serving, method, path, allow):
    async def main():
        async with serving() as site:
            return await site.http(method, path)

    answer = asyncio.run(main())
    assert answer.status == 405
    assert answer.headers["allow"] == allow


@pytest.mark.parametrize(
    ("kind", "status"),
    [
        ("application/json", 200),
        ("application/json; charset=utf-8", 200),
        ("application/json-rpc", 200),
        ("text/plain", 415),
        ("Text/Plain;charset=UTF-8", 415),
        ("application/x-www-form-urlencoded", 415),
        ("multipart/form-data; boundary=x", 415),
    ],
)
def test_what_a_form_could_send_is_not_taken_as_json_rpc(serving, kind, status):
    async def main():
        async with serving() as site:
            answer = await site.rpc(CALL, {"Content-Type": kind})
            return answer.status, len(site.calls)

    assert asyncio.run(main()) == (status, 1 if status == 200 else 0)


def test_one_connection_carries_many_calls(serving):
    async def main():
        async with serving() as site, aiohttp.ClientSession() as session:
            headers = {"Authorization": f"Bearer {site.token}"}
            for n in range(20):
                body = CALL | {"id": n}
                async with session.post(f"{site.url}/rpc", json=body, headers=headers) as answer:
                    assert (await answer.json())["id"] == n
            return len(site.server._listener.connections)

    assert asyncio.run(main()) == 1


def test_pipelined_calls_are_answered_in_order(serving):
    async def main():
        async with serving() as site:
            sent = b""
            for n in range(50):
                last = "Connection: close\r\n" if n == 49 else ""
                body = json.dumps({"jsonrpc": "2.0", "method": "node.info", "id": n}).encode()
                head = f"POST /rpc HTTP/1.1\r\nHost: {site.host}\r\n{last}"
                head += f"Authorization: Bearer {site.token}\r\n"
                sent += f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body
            return await site.raw(sent)

    answers = asyncio.run(main())
    ids = [int(part.split(b"}")[0]) for part in answers.split(b'"id":')[1:]]
    assert ids == list(range(50))


@pytest.mark.parametrize("version", ["1.0", "1.1"])
@pytest.mark.parametrize("connection", ["close", "keep-alive"])
def test_old_and_closing_clients_are_answered_too(serving, version, connection):
    async def main():
        async with serving() as site:
            body = json.dumps(CALL).encode()
            head = (
                f"POST /rpc HTTP/{version}\r\nHost: {site.host}\r\nConnection: {connection}\r\n"
                f"Authorization: Bearer {site.token}\r\nContent-Length: {len(body)}\r\n\r\n"
            )
            reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
            writer.write(head.encode() + body)
            got = await reader.readuntil(b'"id":1}')
            writer.close()
            await writer.wait_closed()
            return got

    got = asyncio.run(main()).lower()
    assert got.startswith(b"http/%b 200 ok\r\n" % version.encode())
    assert b"\r\ndate: " in got
    assert (b"connection: close" in got) == (connection == "close" and version == "1.1")


def test_a_client_that_asks_before_it_sends_is_told_to_go_on(serving):
    async def main():
        async with serving() as site:
            body = sized(1000)
            head = (
                f"POST /rpc HTTP/1.1\r\nHost: {site.host}\r\nAuthorization: Bearer {site.token}\r\n"
                f"Expect: 100-continue\r\nContent-Length: {len(body)}\r\n\r\n"
            )
            reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
            writer.write(head.encode())
            first = await reader.readuntil(b"\r\n\r\n")
            writer.write(body)
            second = await reader.readuntil(b"\r\n\r\n")
            writer.close()
            await writer.wait_closed()
            return first, second

    first, second = asyncio.run(main())
    assert first == b"HTTP/1.1 100 Continue\r\n\r\n"
    assert second.startswith(b"HTTP/1.1 200 OK")


# Sizes ----------------------------------------------------------------------------------


def test_a_body_may_be_full_but_not_fuller(serving):
    limits = Limits(body_bytes=5000, refused_per_s=1e6)

    async def main():
        async with serving(limits=limits) as site:
            codes = [(await site.rpc(sized(n))).status for n in (5000, 5001, 9000)]
            return codes, len(site.calls)

    assert asyncio.run(main()) == ([200, 413, 413], 1)


def test_a_large_body_in_many_pieces_is_read_whole(serving):
    async def main():
        async with serving() as site, aiohttp.ClientSession() as session:
            headers = {"Authorization": f"Bearer {site.token}"}
            body = io.BytesIO(sized(3_000_000))
            async with session.post(f"{site.url}/rpc", data=body, headers=headers) as answer:
                return len((await answer.json())["result"]["text"])

    assert asyncio.run(main()) > 2_999_000


def test_a_length_that_is_too_large_is_refused_before_a_byte_of_it_came(serving):
    async def main():
        async with serving() as site:
            head = (
                f"POST /rpc HTTP/1.1\r\nHost: {site.host}\r\nAuthorization: Bearer {site.token}\r\n"
                "Content-Length: 99999999999\r\n\r\n"
            )
            reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
            writer.write(head.encode())
            got = await reader.readuntil(b"\r\n\r\n")
            writer.close()
            await writer.wait_closed()
            return got

    assert asyncio.run(main()).startswith(b"HTTP/1.1 413")


def test_a_body_without_a_length_is_counted_while_it_comes(serving):
    limits = Limits(body_bytes=100_000, refused_per_s=1e6)

    async def main():
        async with serving(limits=limits) as site:
            head = (
                f"POST /rpc HTTP/1.1\r\nHost: {site.host}\r\nAuthorization: Bearer {site.token}\r\n"
                "Transfer-Encoding: chunked\r\n\r\n"
            )
            reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
            writer.write(head.encode())
            chunk = b"2000\r\n" + b"x" * 0x2000 + b"\r\n"
            sent = 0
            with contextlib.suppress(ConnectionError):
                while sent < 10_000_000 and not reader._buffer:
                    writer.write(chunk)
                    sent += 0x2000
                    await writer.drain()
                    await asyncio.sleep(0)
            got = await reader.readuntil(b"\r\n\r\n")
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()
            return got, sent, len(site.calls)

    got, sent, calls = asyncio.run(main())
    assert got.startswith(b"HTTP/1.1 413")
    assert sent < 10_000_000
    assert calls == 0


def test_a_compressed_body_is_not_unpacked(serving):
    import gzip

    async def main():
        async with serving() as site:
            packed = gzip.compress(json.dumps(CALL).encode())
            return (await site.rpc(packed, {"Content-Encoding": "gzip"})).json, len(site.calls)

    answer, calls = asyncio.run(main())
    assert answer["error"]["code"] == -32700
    assert calls == 0


# Slow and many clients ------------------------------------------------------------------

HASTY = Limits(header_wait_s=0.1, body_wait_s=0.1, refused_per_s=1e6)
"""Short waits, so that the test need not be long; what is asserted is that the end comes."""


@pytest.mark.parametrize("start", [b"", b"P", b"POST /rpc HTTP/1.1\r\nHost: x\r\nX-Slow: "])
def test_a_header_that_does_not_end_is_cut_off(serving, start):
    async def main():
        async with serving(limits=HASTY) as site:
            return await site.raw(start)

    assert asyncio.run(main()) == b""


def test_a_header_that_drips_is_cut_off(serving):
    async def main():
        async with serving(limits=HASTY) as site:
            reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
            writer.write(b"GET /healthz HTTP/1.1\r\nX: ")
            with contextlib.suppress(ConnectionError):
                while not reader.at_eof():
                    writer.write(b"x")
                    await writer.drain()
                    with contextlib.suppress(TimeoutError):
                        await asyncio.wait_for(reader.read(), 0.02)
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()

    asyncio.run(main())


def test_a_second_header_that_does_not_end_is_cut_off_too(serving):
    async def main():
        async with serving(limits=HASTY) as site:
            reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
            writer.write(f"GET /healthz HTTP/1.1\r\nHost: {site.host}\r\n\r\n".encode())
            await reader.readuntil(b'"ok"}')
            writer.write(b"GET /healthz HT")
            rest = await reader.read()
            writer.close()
            await writer.wait_closed()
            return rest

    assert asyncio.run(main()) == b""


def test_a_body_that_does_not_end_is_cut_off(serving):
    async def main():
        async with serving(limits=HASTY) as site:
            head = (
                f"POST /rpc HTTP/1.1\r\nHost: {site.host}\r\nAuthorization: Bearer {site.token}\r\n"
                "Content-Length: 100\r\n\r\n{"
            )
            with contextlib.suppress(ConnectionError):
                assert await site.raw(head.encode()) == b""
            return (await site.rpc(CALL)).status, len(site.calls)

    assert asyncio.run(main()) == (200, 1)


def test_a_call_may_take_longer_than_a_client_may_take_to_send_it(serving):
    async def main():
        async with serving(limits=HASTY) as site:
            asking = asyncio.create_task(site.rpc(CALL | {"params": ["echo", "wait"]}))
            chat = site.rooms["chat"]
            await chat.entered.wait()
            # The sweep that would cut it off has passed when a slow neighbour is gone.
            await site.raw(b"P")
            await site.raw(b"P")
            chat.gate.set()
            return (await asking).status

    assert asyncio.run(main()) == 200


def test_what_comes_behind_a_running_call_does_not_end_it(serving):
    async def main():
        async with serving(limits=HASTY) as site:
            body = json.dumps(CALL | {"params": ["echo", "wait"]}).encode()
            head = (
                f"POST /rpc HTTP/1.1\r\nHost: {site.host}\r\nAuthorization: Bearer {site.token}\r\n"
                f"Content-Length: {len(body)}\r\n\r\n"
            )
            reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
            writer.write(head.encode() + body)
            await site.rooms["chat"].entered.wait()
            writer.write(b"POST /rpc HT")
            for _ in range(3):
                await site.raw(b"P")  # a neighbour that is cut off: so long has passed
            site.rooms["chat"].gate.set()
            answer = await reader.readuntil(b'"id":1}')
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()
            return answer

    assert asyncio.run(main()).startswith(b"HTTP/1.1 200")


def test_an_idle_connection_outlives_the_wait_for_a_header(serving):
    async def main():
        async with serving(limits=HASTY) as site:
            reader, writer = await asyncio.open_connection("127.0.0.1", site.port)
            for _ in range(2):
                writer.write(f"GET /healthz HTTP/1.1\r\nHost: {site.host}\r\n\r\n".encode())
                await reader.readuntil(b'"ok"}')
                await site.raw(b"P")
            writer.close()
            await writer.wait_closed()

    asyncio.run(main())


def test_too_many_unproven_connections_push_out_the_oldest_not_the_owner(serving):
    limits = Limits(connections=12, refused_per_s=1e6)

    async def main():
        async with serving(limits=limits) as site:
            async with aiohttp.ClientSession() as owner:
                headers = {"Authorization": f"Bearer {site.token}"}
                url = f"{site.url}/rpc"
                async with owner.post(url, json=CALL, headers=headers) as answer:
                    assert answer.status == 200
                strangers = [
                    await asyncio.open_connection("127.0.0.1", site.port) for _ in range(30)
                ]
                for _, writer in strangers:
                    writer.write(b"P")  # the system holds back who says nothing
                first_reader = strangers[0][0]
                with contextlib.suppress(ConnectionError):
                    assert await first_reader.read() == b""
                there = site.server._listener
                # Dropped ones are gone some turns of the loop later, which nothing tells.
                while len(held := there.connections) > limits.connections:  # noqa: ASYNC110
                    await asyncio.sleep(0.01)
                async with owner.post(url, json=CALL, headers=headers) as answer:
                    old = answer.status
                new = (await site.rpc(CALL)).status
                for _, writer in strangers:
                    writer.close()
                    with contextlib.suppress(ConnectionError):
                        await writer.wait_closed()
            return old, new, len(held)

    old, new, held = asyncio.run(main())
    assert (old, new) == (200, 200)
    assert held <= 12


def test_who_comes_right_behind_a_crowd_gets_in(serving):
    limits = Limits(connections=12, refused_per_s=1e6)
    body = json.dumps(CALL).encode()

    def knock(site: Any, first: bytes) -> socket.socket:
        there = socket.create_connection(("127.0.0.1", site.port))
        there.sendall(first)
        return there

    async def main():
        async with serving(limits=limits) as site:
            head = f"POST /rpc HTTP/1.1\r\nHost: 127.0.0.1:{site.port}\r\n".encode()
            mine = (
                f"Authorization: Bearer {site.token}\r\nContent-Type: application/json\r\n"
                f"Content-Length: {len(body)}\r\n\r\n"
            ).encode()
            # All stand at the door before the loop turns once.
            strangers = [knock(site, head) for _ in range(60)]
            owner = knock(site, head + mine + body)
            reader, writer = await asyncio.open_connection(sock=owner)
            answer = await reader.readline()
            for end in (*strangers, writer):
                end.close()
            return answer

    assert asyncio.run(main()) == b"HTTP/1.1 200 OK\r\n"


# Failures -------------------------------------------------------------------------------


@pytest.mark.parametrize("params", [["echo", "boom"], ["echo", "unencodable"]])
def test_a_failing_method_leaks_nothing(serving, params, caplog):
    async def main():
        async with serving() as site:
            return await site.rpc(CALL | {"params": params}), site.secret

    answer, secret = asyncio.run(main())
    assert answer.status == 200
    assert answer.json["error"]["code"] == -32603
    assert answer.json["error"]["data"]["id"] in caplog.text
    assert secret.encode() not in answer.body
    assert b"Traceback" not in answer.body
    assert b"RuntimeError" not in answer.body


def test_an_error_of_the_contract_keeps_its_code_and_hint(serving):
    async def main():
        async with serving() as site:
            return (await site.rpc(CALL | {"params": ["echo", "nobody"]})).json["error"]

    expected = {"code": -32001, "message": "no such agent", "data": {"hint": "look again"}}
    assert asyncio.run(main()) == expected


def test_a_method_that_cancels_itself_is_answered_and_keeps_the_connection(serving):
    async def main():
        async with serving() as site, aiohttp.ClientSession() as session:
            headers = {"Authorization": f"Bearer {site.token}"}
            codes = []
            for text in ("cancels itself", "hi"):
                body = CALL | {"params": ["echo", text]}
                async with session.post(f"{site.url}/rpc", json=body, headers=headers) as answer:
                    codes.append((await answer.json()).get("error", {}).get("code"))
            return codes

    assert asyncio.run(main()) == [-32004, None]


def test_a_client_that_leaves_does_not_stop_its_call(serving):
    async def main():
        async with serving() as site:
            chat = site.rooms["chat"]
            body = json.dumps(CALL | {"params": ["echo", "wait"]}).encode()
            head = (
                f"POST /rpc HTTP/1.1\r\nHost: {site.host}\r\nAuthorization: Bearer {site.token}\r\n"
                f"Content-Length: {len(body)}\r\n\r\n"
            )
            _, writer = await asyncio.open_connection("127.0.0.1", site.port)
            writer.write(head.encode() + body)
            await chat.entered.wait()
            writer.close()
            await writer.wait_closed()
            await site.rpc(CALL)
            left = chat.cancelled.is_set()
            chat.gate.set()
            return left

    assert asyncio.run(main()) is False


# Start and stop -------------------------------------------------------------------------


def test_a_taken_port_is_said_in_one_line(tmp_path):
    async def main() -> None:
        with socket.socket() as taken:
            taken.bind(("127.0.0.1", 0))
            taken.listen()
            port = taken.getsockname()[1]
            with pytest.raises(UsageError, match=f"port {port} on 127.0.0.1 is in use") as caught:
                await bare_server(tmp_path).start("127.0.0.1", port)
            assert caught.value.hint

    asyncio.run(main())


@pytest.mark.parametrize(
    ("host", "port"),
    [("no.such.host.invalid", 0), ("127.0.0.1", 70000), ("203.0.113.7", 0), ("a b", 0)],
)
def test_a_place_that_is_not_there_is_said_in_one_line(tmp_path, host, port):
    with pytest.raises(UsageError) as caught:
        asyncio.run(bare_server(tmp_path).start(host, port))
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize("host", ["0.0.0.0", ""])
def test_a_wider_bind_without_a_name_is_refused(tmp_path, host):
    with pytest.raises(UsageError, match="other machines"):
        asyncio.run(bare_server(tmp_path).start(host, 0))


def test_a_wider_bind_with_a_name_is_taken(tmp_path):
    async def main():
        server = bare_server(tmp_path, allow_hosts=("box.lan",))
        host, port = await server.start("0.0.0.0", 0)
        await server.stop()
        return host, port

    host, port = asyncio.run(main())
    assert host == "0.0.0.0"
    assert port > 0


def test_localhost_is_one_address_and_one_port(tmp_path):
    async def main():
        server = bare_server(tmp_path)
        host, _ = await server.start("localhost", 0)
        await server.stop()
        return host

    assert asyncio.run(main()) == "127.0.0.1"


def test_stopping_leaves_no_task_and_frees_the_port(serving, tmp_path):
    async def main():
        before = asyncio.all_tasks()
        async with serving() as site:
            chat = site.rooms["chat"]
            idle = await asyncio.open_connection("127.0.0.1", site.port)
            asking = asyncio.create_task(site.rpc(CALL | {"params": ["echo", "wait"]}))
            await chat.entered.wait()
            events = asyncio.create_task(
                site.rpc(
                    {"jsonrpc": "2.0", "method": "chat.watch", "id": 2},
                    {"Accept": "text/event-stream"},
                )
            )
            flow = await chat.flows.get()
            async with site.ws() as socket_:
                await socket_.send_json(CALL | {"params": ["echo", "wait"]})
                await socket_.send_json({"jsonrpc": "2.0", "method": "chat.watch", "id": 3})
                second = await chat.flows.get()
                await site.server.stop()
                closing = [await socket_.receive(), await socket_.receive()]
            for end in (flow, second):
                await end.closed.wait()
            idle[1].close()
            for task in (asking, events):
                with contextlib.suppress(Exception):
                    await task
            port = site.port
        again = bare_server(tmp_path)
        await again.start("127.0.0.1", port)
        await again.stop()
        await again.stop()
        return asyncio.all_tasks() - before, closing

    left, closing = asyncio.run(main())
    assert left == set()
    assert aiohttp.WSMsgType.CLOSE in {message.type for message in closing}
