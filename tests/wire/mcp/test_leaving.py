"""Clients that stop waiting: the run goes with them, in the way of their era."""

from __future__ import annotations

import asyncio
import contextlib
import json

import aiohttp
import anyio
import pytest

from aios_nb.wire.mcp import express
from tests.wire.mcp.conftest import call, heard, modern, routing

SLOW = {"agent": "slow", "text": "x"}


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_a_cancelled_call_stops_the_run(door, era):
    """The SDK's client says so in the words of its era."""

    async def main():
        async with door.client(era) as client, anyio.create_task_group() as tasks:

            async def ask():
                await client.call_tool("agent_send", SLOW)

            tasks.start_soon(ask)
            await heard(door.slow.started)
            tasks.cancel_scope.cancel()
        await heard(door.slow.stopped)

    asyncio.run(main())
    settled(door, "cancelled")


@pytest.mark.parametrize("way", ["express", "stream"])
def test_a_newer_client_that_is_killed_stops_the_run(door, way):
    body = modern("tools/call", {"name": "agent_send", "arguments": SLOW})
    if way == "stream":
        body["params"]["_meta"]["progressToken"] = 1
    data = json.dumps(body).encode()
    headers = door.headers(**routing("tools/call", "agent_send"))
    host = door.url.removeprefix("http://").removesuffix("/mcp")
    headers |= {"Host": host, "Content-Length": str(len(data))}
    head = "".join(f"{name}: {value}\r\n" for name, value in headers.items())

    async def main():
        _, writer = await asyncio.open_connection(*host.split(":"))
        writer.write(f"POST /mcp HTTP/1.1\r\n{head}\r\n".encode() + data)
        await heard(door.slow.started)
        assert not door.slow.stopped.is_set()
        writer.transport.abort()
        await heard(door.slow.stopped)

    asyncio.run(main())
    settled(door, "cancelled")


@pytest.mark.parametrize("when", ["before the answer begins", "while it streams"])
def test_an_older_client_may_hang_up_and_find_the_answer_later(door, when, monkeypatch):
    """In its era a lost connection says nothing of what the client wants."""
    if when == "while it streams":
        monkeypatch.setattr(express, "PING_S", 0.05)

    async def main():
        async with aiohttp.ClientSession() as session:
            headers = await door.legacy_session(session)
            body = call("tools/call", {"name": "agent_send", "arguments": SLOW}, 7)
            asking = asyncio.ensure_future(session.post(door.url, json=body, headers=headers))
            await heard(door.slow.started)
            if when == "while it streams":
                (await asking).close()
            else:
                asking.cancel()  # which closes the connection
                with contextlib.suppress(asyncio.CancelledError):
                    await asking
            assert (await door.post(session, call("ping"), headers))[0] == 200
            assert not door.slow.stopped.is_set()
            note = {"jsonrpc": "2.0", "method": "notifications/cancelled"}
            note["params"] = {"requestId": 7}
            assert (await door.post(session, note, headers))[0] == 202
            await heard(door.slow.stopped)

    asyncio.run(main())
    settled(door, "cancelled")


def test_a_session_that_ends_stops_its_runs(door):
    async def main():
        async with aiohttp.ClientSession() as session:
            headers = await door.legacy_session(session)
            body = call("tools/call", {"name": "agent_send", "arguments": SLOW}, 7)
            asking = asyncio.ensure_future(session.post(door.url, json=body, headers=headers))
            await heard(door.slow.started)
            async with session.delete(door.url, headers=headers) as response:
                assert response.status == 200
            await heard(door.slow.stopped)
            (await asking).close()

    asyncio.run(main())


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_a_node_that_stops_ends_every_stream_and_says_that_the_run_was_cut(door, era):
    async def main():
        async with aiohttp.ClientSession() as session:
            if era == "legacy":
                headers = await door.legacy_session(session)
                body = call("tools/call", {"name": "agent_send", "arguments": SLOW}, 9)
            else:
                headers = door.headers(**routing("tools/call", "agent_send"))
                body = modern("tools/call", {"name": "agent_send", "arguments": SLOW}, 9)
            asking = asyncio.ensure_future(session.post(door.url, json=body, headers=headers))
            await heard(door.slow.started)
            conversation = await asyncio.to_thread(lambda: door.conversations()[0])
            await asyncio.to_thread(door.site.stop)
            with contextlib.suppress(aiohttp.ClientError):
                await (await asking).read()
            return conversation

    conversation = asyncio.run(main())
    again = door.site.node.start()
    history = again.run(lambda: again.client.call("chat.history", conversation=conversation))
    assert history["messages"][0]["status"] == "interrupted"


def test_a_call_that_takes_long_becomes_a_stream_with_signs_of_life(door, monkeypatch):
    monkeypatch.setattr(express, "PING_S", 0.01)
    body = modern("tools/call", {"name": "agent_send", "arguments": SLOW}, 3)

    async def main():
        async with aiohttp.ClientSession() as session:
            headers = door.headers(**routing("tools/call", "agent_send"))
            response = await session.post(door.url, json=body, headers=headers)
            assert response.content_type == "text/event-stream"
            lines = [await response.content.readline() for _ in range(4)]
            conversation = await asyncio.to_thread(lambda: door.conversations()[0])
            asked = await asyncio.to_thread(door.site.history, conversation)
            message = asked[0]["message_id"]
            await asyncio.to_thread(door.site.call, "chat.cancel", message_id=message)
            return lines, await response.text()

    lines, rest = asyncio.run(main())
    assert lines == [b": ping\r\n", b"\r\n"] * 2
    told = json.loads(rest.rpartition("data: ")[2])
    assert told["id"] == 3
    assert told["result"]["isError"] is True


def settled(door, status):
    conversation = door.conversations()[0]
    while (now := door.status(conversation)) in {"running", "accepted"}:
        pass
    assert now == status
