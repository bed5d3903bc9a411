"""Many calls over one socket, after a signed hello and the token."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
import secrets
from typing import Any

import aiohttp
import pytest
from aiohttp import WSMsgType

from aios_nb.access import Caller, Principal
from aios_nb.config import Limits
from aios_nb.errors import Impostor
from aios_nb.identity import check_hello
from aios_nb.wire.conformance import CONFORMANCE

OPEN_LIMITS = Limits(refused_per_s=1e6)
NONCE = {"nonce": "A" * 43}


def send(text: str, id_: Any = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": "chat.send", "params": ["echo", text], "id": id_}


INFO = {"jsonrpc": "2.0", "method": "node.info", "id": "i"}
WATCH = {"jsonrpc": "2.0", "method": "chat.watch", "id": "w"}
STREAM = {"jsonrpc": "2.0", "method": "chat.stream", "params": ["echo", "hi"], "id": "s"}


async def closed_with(socket: aiohttp.ClientWebSocketResponse) -> int | None:
    """The close code, after whatever else came."""
    while (message := await socket.receive()).type in (WSMsgType.TEXT, WSMsgType.BINARY):
        pass
    assert message.type in (WSMsgType.CLOSE, WSMsgType.CLOSED), message
    return socket.close_code


# The handshake --------------------------------------------------------------------------


def test_the_node_proves_its_key_and_port_before_it_sees_a_token(serving):
    async def main():
        async with serving() as site, site.ws(token=None) as socket:
            nonce = secrets.token_bytes(32)
            text = base64.urlsafe_b64encode(nonce).rstrip(b"=").decode()
            await socket.send_json({"nonce": text})
            hello = await socket.receive_json()
            node_id = site.identity.node_id
            check_hello(hello, node_id=node_id, nonce=nonce, port=site.port)
            with pytest.raises(Impostor):
                check_hello(hello, node_id=node_id, nonce=secrets.token_bytes(32), port=site.port)
            await socket.send_json({"token": site.token})
            welcome = await socket.receive_json()
            await socket.send_json(INFO)
            return socket.protocol, welcome, await socket.receive_json(), node_id

    protocol, welcome, answer, node_id = asyncio.run(main())
    assert protocol == "aios-rpc-1"
    assert welcome == {"ok": True, "principal": f"owner@{node_id}"}
    assert answer["result"] == {"by": f"owner@{node_id}"}


@pytest.mark.parametrize(
    "first",
    [
        "",
        "x",
        "{}",
        "[]",
        json.dumps(INFO),
        '{"token": "%s"}',
        '{"nonce": 1}',
        '{"nonce": ""}',
        '{"nonce": "AAAA"}',
        '{"nonce": "%s"}' % ("A" * 44),
        '{"nonce": "%s"}' % ("A" * 42),
        '{"nonce": "%s"}' % ("A" * 42 + "B"),
        '{"nonce": "%s"}' % ("A" * 42 + "="),
        '{"nonce": "%s"}' % ("+" * 43),
        '{"nonce": "%s", "token": "x"}' % ("A" * 43),
        '{"nonce": "%s"}' % ("é" * 43),
        "[" * 4000,
        "x" * 10_000,
    ],
)
def test_anything_but_a_nonce_first_ends_the_socket(serving, first):
    async def main():
        async with serving() as site, site.ws(token=None) as socket:
            await socket.send_str(first.replace("%s", site.token))
            return await closed_with(socket), site.calls

    assert asyncio.run(main()) == (4400, [])


def test_much_before_the_token_is_not_even_read(serving):
    async def main():
        async with serving() as site, site.ws(token=None) as socket:
            await socket.send_json(NONCE)
            await socket.receive_json()
            with contextlib.suppress(ConnectionError):
                await socket.send_json({"token": "x" * 1_000_000})
            with contextlib.suppress(ConnectionError):
                await socket.receive()
            return socket.close_code, site.calls

    code, calls = asyncio.run(main())
    assert code != 4401  # that would mean it was read to its end
    assert calls == []


@pytest.mark.parametrize(
    "second",
    [
        '{"token": "wrong"}',
        '{"token": ""}',
        '{"token": "the-right-token"}',
        '{"token": null}',
        "{}",
        "x",
        json.dumps(INFO),
        json.dumps(NONCE),
    ],
)
def test_a_wrong_token_ends_the_socket(serving, second):
    async def main():
        async with serving() as site, site.ws(token=None) as socket:
            await socket.send_json(NONCE)
            await socket.receive_json()
            await socket.send_str(second)
            return await closed_with(socket), site.calls

    assert asyncio.run(main()) == (4401, [])


@pytest.mark.parametrize("steps", [0, 1])
def test_a_slow_handshake_ends_the_socket(serving, steps):
    limits = Limits(hello_wait_s=0.1, refused_per_s=1e6)

    async def main():
        async with serving(limits=limits) as site, site.ws(token=None) as socket:
            if steps:
                await socket.send_json(NONCE)
            return await closed_with(socket)

    assert asyncio.run(main()) == 4408


def test_unproven_sockets_push_out_the_oldest_and_the_owner_gets_in(serving):
    limits = Limits(ws_unproven=2, refused_per_s=1e6)

    async def main():
        async with (
            serving(limits=limits) as site,
            site.ws() as mine,
            site.ws(token=None) as first,
            site.ws(token=None),
            site.ws(token=None),
        ):
            code = await closed_with(first)
            async with site.ws() as late:
                await late.send_json(INFO)
                await late.receive_json()
            await mine.send_json(INFO)
            return code, await mine.receive_json()

    code, answer = asyncio.run(main())
    assert code == 4429
    assert "result" in answer


@pytest.mark.parametrize("origin", ["http://evil.example", "null", "http://127.0.0.1:1"])
def test_a_foreign_page_cannot_open_a_socket(serving, origin):
    async def main():
        async with serving() as site:
            with pytest.raises(aiohttp.WSServerHandshakeError) as caught:
                async with site.ws(token=None, headers={"Origin": origin}):
                    pass
            return caught.value.status

    assert asyncio.run(main()) == 403


def test_a_program_may_show_its_token_in_the_upgrade_and_still_ask_for_the_hello(serving):
    async def main():
        async with serving() as site:
            headers = {"Authorization": f"Bearer {site.token}"}
            async with site.ws(token=None, headers=headers) as plain:
                await plain.send_json(INFO)
                first = await plain.receive_json()
            async with site.ws(token=None, headers=headers) as careful:
                await careful.send_json(NONCE)
                hello = await careful.receive_json()
                await careful.send_json(INFO)
                return first, hello, await careful.receive_json()

    first, hello, second = asyncio.run(main())
    assert first["id"] == second["id"] == "i"
    assert "sig" in hello


def test_a_wrong_token_in_the_upgrade_is_refused(serving):
    async def main():
        async with serving() as site:
            with pytest.raises(aiohttp.WSServerHandshakeError) as caught:
                async with site.ws(token=None, headers={"Authorization": "Bearer wrong"}):
                    pass
            return caught.value.status

    assert asyncio.run(main()) == 401


def test_a_scoped_token_opens_a_socket_with_its_own_rights(serving):
    async def main():
        bridge = Principal(Caller.TOKEN, "tg:")
        async with serving(scoped=lambda _: bridge) as site, site.ws(token="scoped") as socket:
            await socket.send_json(INFO)
            await socket.send_json(
                {"jsonrpc": "2.0", "method": "nodes.allow", "id": 2, "params": ["a" * 32]}
            )
            return await socket.receive_json(), await socket.receive_json()

    allowed, refused = asyncio.run(main())
    assert allowed["result"] == {"by": "tg:"}
    assert refused["error"]["code"] == -32006


def test_conformance_mode_does_not_open_sockets_without_a_token(serving):
    async def main():
        async with (
            serving(conformance=True, extra=CONFORMANCE) as site,
            site.ws(token=None) as socket,
        ):
            await socket.send_json({"jsonrpc": "2.0", "method": "get_data", "id": 1})
            return await closed_with(socket)

    assert asyncio.run(main()) == 4400


@pytest.mark.parametrize(
    ("protocols", "said"),
    [
        ((), "subprotocol"),
        (("chat",), "subprotocol"),
        (("aios-peer-1",), "peer links are not enabled on this node"),
    ],
)
def test_other_subprotocols_are_refused_in_one_line(serving, protocols, said):
    async def main():
        async with serving() as site:
            headers = {
                "Connection": "Upgrade",
                "Upgrade": "websocket",
                "Sec-WebSocket-Version": "13",
                "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
            }
            if protocols:
                headers["Sec-WebSocket-Protocol"] = ", ".join(protocols)
            return await site.http("GET", "/ws", headers=headers, token=None)

    answer = asyncio.run(main())
    assert answer.status == 400
    assert said in answer.json["error"]


@pytest.mark.parametrize(
    "wrong",
    [
        {"Upgrade": "h2c"},
        {"Sec-WebSocket-Version": "99"},
        {"Sec-WebSocket-Key": "short"},
        {"Sec-WebSocket-Key": "\udcff\udcff"},
        {"Connection": "close"},
    ],
)
def test_what_is_no_upgrade_is_refused_in_one_line(serving, wrong):
    async def main():
        async with serving() as site:
            headers = {
                "Connection": "Upgrade",
                "Upgrade": "websocket",
                "Sec-WebSocket-Version": "13",
                "Sec-WebSocket-Key": "AAAAAAAAAAAAAAAAAAAAAA==",
                "Sec-WebSocket-Protocol": "aios-rpc-1",
            }
            return await site.http("GET", "/ws", headers=headers | wrong)

    answer = asyncio.run(main())
    assert answer.status == 400
    assert "websocket" in answer.json["error"] or "HTTP" in answer.json["error"]


# Calls ----------------------------------------------------------------------------------


def test_a_slow_call_does_not_hold_up_the_others(serving):
    async def main():
        async with serving() as site, site.ws() as socket:
            await socket.send_json(send("wait", 1))
            await socket.send_json(send("quick", 2))
            await socket.send_json(INFO)
            first = [(await socket.receive_json())["id"] for _ in range(2)]
            site.rooms["chat"].gate.set()
            return first, (await socket.receive_json())["id"]

    first, last = asyncio.run(main())
    assert set(first) == {2, "i"}
    assert last == 1


def test_binary_frames_are_answered_in_binary(serving):
    async def main():
        async with serving() as site, site.ws() as socket:
            for text in ("hi", "x" * 1000, "y" * 100_000):
                await socket.send_bytes(json.dumps(send(text)).encode())
                assert json.loads(await socket.receive_bytes())["result"]["text"] == text
                await socket.send_json(send(text))
                assert json.loads(await socket.receive_str())["result"]["text"] == text

    asyncio.run(main())


def test_a_thousand_calls_are_all_answered(serving):
    async def main():
        async with serving() as site, site.ws() as socket:
            for n in range(1000):
                await socket.send_json(send(f"call {n}", n) if n % 2 else {**INFO, "id": n})
            return sorted([(await socket.receive_json())["id"] for _ in range(1000)])

    assert asyncio.run(main()) == list(range(1000))


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ("nonsense", -32700),
        (b"\xff", -32700),
        ("[]", -32600),
        ("1", -32600),
        ('{"jsonrpc":"2.0","method":"nope","id":1}', -32601),
        ('{"jsonrpc":"2.0","method":"chat.send","id":1}', -32602),
        (json.dumps(send("boom")), -32603),
        (json.dumps(send("cancels itself")), -32004),
        ('{"jsonrpc":"2.0","method":"chat.unwatch","id":1,"params":["w99"]}', -32602),
        ('{"jsonrpc":"2.0","method":"chat.stream","id":1,"params":7}', -32602),
    ],
)
def test_mistakes_are_answered_and_the_socket_goes_on(serving, body, code):
    async def main():
        async with serving() as site, site.ws() as socket:
            data = body if isinstance(body, bytes) else body.encode()
            await socket.send_bytes(data)
            wrong = json.loads(await socket.receive_bytes())
            await socket.send_json(INFO)
            return wrong, await socket.receive_json()

    wrong, right = asyncio.run(main())
    assert wrong["error"]["code"] == code
    assert right["id"] == "i"


def test_batches_and_notifications_work_here_too(serving):
    async def main():
        async with serving() as site, site.ws() as socket:
            quiet = {key: value for key, value in send("hi").items() if key != "id"}
            await socket.send_json(quiet)
            await socket.send_json([quiet])
            await socket.send_json([send("a", 1), quiet, INFO, 7])
            return await socket.receive_json()

    answers = asyncio.run(main())
    assert [answer["id"] for answer in answers] == [1, "i", None]


def test_too_many_calls_in_flight_are_busy(serving):
    limits = Limits(ws_calls=2, refused_per_s=1e6)

    async def main():
        async with serving(limits=limits) as site, site.ws() as socket:
            for n in range(3):
                await socket.send_json(send("wait", n))
            busy = await socket.receive_json()
            site.rooms["chat"].gate.set()
            for _ in range(2):
                await socket.receive_json()
            await socket.send_json(send("again", 9))
            return busy, await socket.receive_json()

    busy, again = asyncio.run(main())
    assert busy["id"] == 2
    assert busy["error"]["code"] == -32005
    assert busy["error"]["data"]["retry_after_s"] > 0
    assert again["result"]["text"] == "again"


def test_the_calls_of_a_batch_count_too(serving):
    limits = Limits(ws_calls=3, refused_per_s=1e6)

    async def main():
        async with serving(limits=limits) as site, site.ws() as socket:
            await socket.send_json([send("wait", n) for n in range(2)])
            await socket.send_json([send("late", n) for n in range(2)])
            busy = await socket.receive_json()
            site.rooms["chat"].gate.set()
            return busy, await socket.receive_json()

    busy, answers = asyncio.run(main())
    assert busy["error"]["code"] == -32005
    assert [answer["id"] for answer in answers] == [0, 1]


def test_a_message_that_is_too_large_ends_the_socket(serving):
    limits = Limits(body_bytes=10_000, refused_per_s=1e6)

    async def main():
        async with serving(limits=limits) as site, site.ws() as socket:
            await socket.send_json(send("x" * 9000))
            await socket.receive_json()
            await socket.send_json(send("x" * 11_000))
            return await closed_with(socket)

    assert asyncio.run(main()) == 1009


def test_a_closed_socket_does_not_stop_its_calls(serving):
    async def main():
        async with serving() as site:
            chat = site.rooms["chat"]
            async with site.ws() as socket:
                await socket.send_json(send("wait"))
                await chat.entered.wait()
            await site.rpc(INFO)
            stopped = chat.cancelled.is_set()
            running = len(site.server.sockets.calls)
            chat.gate.set()
            await asyncio.wait(site.server.sockets.calls)
            return stopped, running

    assert asyncio.run(main()) == (False, 1)


# Notices --------------------------------------------------------------------------------


def test_a_stream_is_deltas_then_the_response(serving, delta):
    async def main():
        async with serving() as site, site.ws() as socket:
            await socket.send_json(STREAM)
            flow = await site.rooms["chat"].flows.get()
            flow.feed(delta(0, "h"))
            first = await socket.receive_json()
            flow.feed(delta(1, "i"))
            flow.finish()
            rest = [await socket.receive_json() for _ in range(2)]
            await flow.closed.wait()
            return first, rest

    first, rest = asyncio.run(main())
    assert first == {
        "jsonrpc": "2.0",
        "method": "chat.delta",
        "params": {"message_id": "m1", "reply_id": "r1", "offset": 0, "text": "h", "done": False},
    }
    assert rest[0]["params"]["text"] == "i"
    assert rest[1] == {"jsonrpc": "2.0", "result": {"text": "hi", "status": "done"}, "id": "s"}


@pytest.mark.parametrize("room", ["chat", "agents"])
def test_watches_are_told_apart_and_can_be_ended_one_by_one(serving, room):
    async def main():
        async with serving() as site, site.ws() as socket:
            flows, opened = [], []
            for n in range(2):
                await socket.send_json({"jsonrpc": "2.0", "method": f"{room}.watch", "id": n})
                opened.append((await socket.receive_json())["result"])
                flows.append(await site.rooms[room].flows.get())
            for n, flow in enumerate(flows):
                flow.feed({"n": n})
            events = [(await socket.receive_json()) for _ in range(2)]
            await socket.send_json(
                {
                    "jsonrpc": "2.0",
                    "method": "chat.unwatch",
                    "id": 9,
                    "params": [opened[0]["watch"]],
                }
            )
            ended = await socket.receive_json()
            await flows[0].closed.wait()
            flows[1].feed({"n": 5})
            return opened, events, ended, await socket.receive_json(), flows[1].closed.is_set()

    opened, events, ended, last, second_closed = asyncio.run(main())
    first, second = (answer["watch"] for answer in opened)
    assert first != second
    assert opened[0]["cursor"] == 7
    assert [event["params"] for event in events] == [
        {"watch": first, "n": 0},
        {"watch": second, "n": 1},
    ]
    assert {event["method"] for event in events} == {f"{room}.event"}
    assert ended["result"] == {"watch": first}
    assert last["params"] == {"watch": second, "n": 5}
    assert not second_closed


def test_a_watch_cannot_be_ended_from_another_socket(serving):
    async def main():
        async with serving() as site, site.ws() as mine, site.ws() as other:
            await mine.send_json(WATCH)
            watch = (await mine.receive_json())["result"]["watch"]
            await other.send_json(
                {"jsonrpc": "2.0", "method": "chat.unwatch", "id": 1, "params": [watch]}
            )
            return await other.receive_json()

    assert asyncio.run(main())["error"]["code"] == -32602


def test_a_closed_socket_closes_its_notices(serving):
    async def main():
        async with serving() as site:
            async with site.ws() as socket:
                await socket.send_json(WATCH)
                await socket.send_json(STREAM)
                flows = [await site.rooms["chat"].flows.get() for _ in range(2)]
            for flow in flows:
                await flow.closed.wait()
            return site.server.sockets.flows

    assert asyncio.run(main()) == 0


def test_a_socket_closed_while_notices_open_lets_them_open_and_closes_them(serving):
    async def main():
        async with serving() as site:
            chat = site.rooms["chat"]
            async with site.ws() as socket:
                await socket.send_json(WATCH | {"params": {"after": 404}})
                await chat.entered.wait()
            await site.rpc(INFO)
            chat.gate.set()
            flow = await chat.flows.get()
            await flow.closed.wait()

    asyncio.run(main())


def test_a_failed_stream_ends_with_the_error(serving):
    async def main():
        async with serving() as site, site.ws() as socket:
            await socket.send_json(STREAM)
            flow = await site.rooms["chat"].flows.get()
            flow.outcome = RuntimeError(site.secret)
            flow.finish()
            return await socket.receive_str(), site.secret

    answer, secret = asyncio.run(main())
    assert json.loads(answer)["error"]["code"] == -32603
    assert secret not in answer


def test_more_flows_than_allowed_are_busy(serving):
    limits = Limits(open_streams=1, refused_per_s=1e6)

    async def main():
        async with serving(limits=limits) as site, site.ws() as socket:
            await socket.send_json(WATCH)
            await socket.receive_json()
            await socket.send_json(WATCH)
            return await socket.receive_json()

    assert asyncio.run(main())["error"]["code"] == -32005


def test_a_client_that_does_not_read_is_held_back_not_buffered(serving, delta):
    async def main():
        async with serving() as site, site.ws() as socket:
            await socket.send_json(STREAM)
            flow = await site.rooms["chat"].flows.get()
            piece = delta(0, "x" * 100_000)
            for _ in range(1000):
                flow.feed(piece)
            socket._response.connection.transport.pause_reading()
            (connection,) = site.server._listener.connections
            for _ in range(5000):  # turns of the loop, more than all pieces need
                await asyncio.sleep(0)
            assert connection.writing_paused
            found = flow._pieces.qsize(), connection.transport.get_write_buffer_size()
            socket._response.connection.transport.abort()
            return found

    waiting, buffered = asyncio.run(main())
    assert waiting > 500
    assert buffered < 2_000_000


def test_a_client_that_only_sends_is_not_read_for_ever(serving):
    async def main():
        async with serving() as site, site.ws() as socket:
            transport = socket._response.connection.transport
            transport.pause_reading()
            (connection,) = site.server._listener.connections
            call = json.dumps(send("x" * 50_000)).encode()
            sent = 0
            while not (connection.writing_paused and connection._reading_paused):
                await socket.send_bytes(call)
                sent += 1
                await asyncio.sleep(0)
            taken = len(site.calls)
            transport.abort()
            return sent, taken, site.server.sockets

    sent, taken, _ = asyncio.run(main())
    assert taken < sent
