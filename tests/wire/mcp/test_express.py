"""The short way for ``agent_send`` says what the SDK's way says."""

from __future__ import annotations

import asyncio
import json
import re
from typing import Any

import aiohttp
import pytest

from aios_nb.wire.mcp.express import Express
from tests.wire.mcp.conftest import PREFIX, modern, routing

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
