"""The short way for ``agent_send`` says what the SDK's way says."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import aiohttp
import pytest

from aios_nb.wire.mcp.express import Express
from aios_nb.wire.mcp.insession import InSession
from tests.wire.mcp.conftest import PREFIX, WAIT_S, call, modern, routing

CALL = routing("tools/call", "agent_send")


def asked(arguments: Any, **capabilities: Any) -> dict[str, Any]:
    params = {"name": "agent_send", "arguments": arguments}
    return modern("tools/call", params, "x-1", **capabilities)


@pytest.fixture
def taken(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each request, whether it went the short way."""
    ways: list[bool] = []
    read = Express.read

    def looked(self: Express, *request: Any) -> Any:
        call = read(self, *request)
        ways.append(call is not None)
        return call

    monkeypatch.setattr(Express, "read", looked)
    return ways


def send(door: Any, body: dict[str, Any], headers: dict[str, str] | None = None) -> Any:
    async def main() -> Any:
        async with aiohttp.ClientSession() as session:
            said = door.headers(**CALL) | (headers or {})
            status, got, told = await door.post(session, body, said)
            return status, got, told

    return asyncio.run(main())


def alike(told: Any) -> str:
    """An answer without what is new in each."""
    told.get("result", {}).pop("requestState", None)
    return re.sub(r"\b[cm][0-9a-f]{20,}", "ID", json.dumps(told, sort_keys=True))


@pytest.mark.parametrize(
    ("arguments", "capabilities"),
    [
        ({"agent": "adder", "text": "1 2"}, {}),
        ({"agent": "adder", "text": "é 2"}, {"sampling": {}, "roots": {}}),
        ({"agent": "nobody", "text": "x"}, {}),
        ({"agent": "adder", "text": "1", "conversation": "c-guessed"}, {}),
        ({"agent": "adder", "text": "1", "conversation": "no id at all!"}, {}),
        ({"agent": "asker", "text": "x"}, {}),
        ({"agent": "asker", "text": "x"}, {"elicitation": {"form": {}}}),
        ({"agent": "asker", "text": "x"}, {"elicitation": {}}),
        ({"agent": "asker", "text": "x"}, {"elicitation": {"url": {}}}),
    ],
)
def test_both_ways_give_the_same_answer(shared, taken, arguments, capabilities):
    body = asked(arguments, **capabilities)
    short = send(shared, body)
    body["params"]["_meta"]["example.org/more"] = 1  # what it does not know, it leaves alone
    long = send(shared, body)
    assert taken == [True, False]
    assert short[0] == long[0] == 200
    assert short[1]["Content-Type"] == long[1]["Content-Type"] == "application/json"
    assert alike(short[2]) == alike(long[2])


@pytest.mark.parametrize(
    ("change", "headers"),
    [
        ({"id": True}, {}),
        ({"id": None}, {}),
        ({"jsonrpc": "1.0"}, {}),
        ({"extra": 1}, {}),
        ({}, {"Mcp-Method": "tools/list"}),
        ({}, {"Accept": "application/json"}),
        ({}, {"Content-Type": "application/json; charset=utf-8"}),
        ({}, {"Connection": "close"}),
        ({"params": {"name": "agent_send", "arguments": {"agent": "adder"}}}, {}),
        ({"params": {"name": "node_status", "arguments": {}}}, {}),
    ],
)
def test_what_is_not_as_it_should_be_goes_to_the_sdk(shared, taken, change, headers):
    body = asked({"agent": "adder", "text": "1"})
    meta = body["params"]["_meta"]
    body |= change
    body["params"].setdefault("_meta", meta)
    send(shared, body, headers)
    assert taken == [False]


def test_the_sdks_own_client_goes_the_short_way(shared, taken):
    async def main():
        async with shared.client() as client:
            await client.call_tool("agent_send", {"agent": "adder", "text": "1"})

    asyncio.run(main())
    assert taken[0] is True


def test_a_version_in_the_body_alone_is_not_enough(shared, taken):
    body = asked({"agent": "adder", "text": "1"})
    body["params"]["_meta"][f"{PREFIX}protocolVersion"] = "2099-01-01"
    status, _, told = send(shared, body)
    assert taken == [False]
    assert (status, told["error"]["code"]) == (400, -32020)


# Older clients ---------------------------------------------------------------------------------


@pytest.fixture
def taken_in_session(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """For each request in a session, whether it went the short way."""
    ways: list[bool] = []
    read = InSession.read

    def looked(self: InSession, *request: Any) -> Any:
        call = read(self, *request)
        ways.append(call is not None)
        return call

    monkeypatch.setattr(InSession, "read", looked)
    return ways


def older(arguments: Any, id_: Any = 7, **more: Any) -> dict[str, Any]:
    return call("tools/call", {"name": "agent_send", "arguments": arguments, **more}, id_)


def in_session(door: Any, *bodies: dict[str, Any], **capabilities: Any) -> list[Any]:
    async def main() -> list[Any]:
        async with aiohttp.ClientSession() as session:
            headers = await door.legacy_session(session, **capabilities)
            return [await door.post(session, body, headers) for body in bodies]

    return asyncio.run(main())


@pytest.mark.parametrize(
    "arguments",
    [
        {"agent": "adder", "text": "1 2"},
        {"agent": "painter", "text": "é"},
        {"agent": "nobody", "text": "x"},
        {"agent": "adder", "text": "1", "conversation": "c-guessed"},
        {"agent": "asker", "text": "x"},
    ],
)
def test_both_ways_answer_an_older_client_alike(shared, taken_in_session, arguments):
    bodies = older(arguments), older(arguments, _meta={"example.org/more": 1})
    short, long = in_session(shared, *bodies)
    assert taken_in_session[-2:] == [True, False]
    assert short[0] == long[0] == 200
    assert (short[1]["Content-Type"], long[1]["Content-Type"]) == (
        "application/json",
        "text/event-stream",
    )
    assert alike(short[2]) == alike(long[2])


def test_an_older_client_that_shows_forms_or_progress_has_a_stream(shared, taken_in_session):
    sums = {"agent": "adder", "text": "1 2"}
    in_session(shared, older(sums), elicitation={})
    in_session(shared, older(sums, _meta={"progressToken": 1}))
    assert True not in taken_in_session


def test_an_older_client_stops_what_it_asked(door, taken_in_session):
    async def main() -> Any:
        async with aiohttp.ClientSession() as session:
            headers = await door.legacy_session(session)
            asked = older({"agent": "slow", "text": "x"}, "s-1")
            asking = asyncio.create_task(door.post(session, asked, headers))
            await asyncio.to_thread(door.slow.started.wait, WAIT_S)
            for which in ("another", "s-1"):
                params = {"requestId": which}
                note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}
                assert (await door.post(session, note, headers))[0] == 202
            status, _, told = await asking
            after = await door.post(session, older({"agent": "adder", "text": "3 4"}), headers)
            return status, told, after[2]["result"]["structuredContent"]["text"]

    status, told, after = asyncio.run(main())
    assert taken_in_session[-1] is True
    assert (status, told["error"]["code"], told["id"]) == (200, -32800, "s-1")
    assert door.slow.stopped.wait(WAIT_S)
    assert after == "7"


def test_an_older_client_that_goes_away_stops_nothing(door):
    async def main() -> None:
        async with aiohttp.ClientSession() as session:
            headers = await door.legacy_session(session)
            asked = older({"agent": "slow", "text": "x"})
            asking = asyncio.create_task(door.post(session, asked, headers))
            await asyncio.to_thread(door.slow.started.wait, WAIT_S)
            asking.cancel()
        async with aiohttp.ClientSession() as session:  # the node has heard of the end by now
            await door.post(session, older({"agent": "adder", "text": "1"}), headers)

    asyncio.run(main())
    assert not door.slow.stopped.is_set()
    assert [door.status(talk) for talk in door.conversations()][-1] in {"accepted", "running"}
