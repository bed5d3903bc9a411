"""The short way says what the long one says, without a stream around it."""

from __future__ import annotations

import asyncio
from typing import Any

import aiohttp
import pytest

from aios_nb.wire.mcp import brief
from tests.wire.mcp.conftest import call, modern, routing

LONG = {"Content-Type": "application/json; charset=utf-8"}


PARAMS = [
    {"name": "agents_list"},
    {"name": "agents_list", "arguments": {"cursor": "0"}},
    {"name": "agents_list", "arguments": {"cursor": "x"}},
    {"name": "conversation_history", "arguments": {"conversation": "c-guessed"}},
    {"name": "peers_list", "arguments": {}},
    {"name": "agents_list", "arguments": []},
]


@pytest.mark.parametrize("params", PARAMS)
@pytest.mark.parametrize("token", [None, ""])
def test_both_ways_give_the_same_answer(shared, params, token):
    async def main() -> Any:
        async with aiohttp.ClientSession() as session:
            headers = await shared.legacy_session(session, token)
            body = call("tools/call", params, "seven")
            return [
                await shared.post(session, body, said) for said in (headers, {**headers, **LONG})
            ]

    (status, short, told), (long_status, long, long_told) = asyncio.run(main())
    assert (status, told) == (long_status, long_told)
    assert told["id"] == "seven"
    assert long["Content-Type"] == "text/event-stream"
    failed = "error" in told
    assert short["Content-Type"] == ("text/event-stream" if failed else "application/json")


@pytest.mark.parametrize("params", PARAMS)
@pytest.mark.parametrize("token", [None, ""])
def test_newer_clients_get_the_same_answer_both_ways(shared, params, token, monkeypatch):
    """Only a failure goes the long way."""
    short = 0
    real = brief.Brief.answer

    async def counted(*args: Any) -> Any:
        nonlocal short
        told = await real(*args)
        short += told is not None
        return told

    monkeypatch.setattr(brief.Brief, "answer", counted)

    async def main() -> Any:
        async with aiohttp.ClientSession() as session:
            said = shared.headers(token, **routing("tools/call", params["name"]))
            body = modern("tools/call", params, "seven")
            return [await shared.post(session, body, each) for each in (said, {**said, **LONG})]

    (status, _, told), (long_status, _, long_told) = asyncio.run(main())
    assert (status, told) == (long_status, long_told)
    assert told["id"] == "seven"
    assert short == ("error" not in told)


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"Mcp-Method": "tools/list"}, -32020),
        ({"Mcp-Name": "peers_list"}, -32020),
        ({"MCP-Protocol-Version": "2099-01-01"}, -32020),
        ({"Accept": "application/json"}, None),
    ],
)
def test_a_head_that_says_something_else_is_refused_as_on_the_long_way(shared, headers, code):
    async def main() -> Any:
        async with aiohttp.ClientSession() as session:
            said = {**shared.headers(**routing("tools/call", "node_status")), **headers}
            return await shared.post(session, modern("tools/call", {"name": "node_status"}), said)

    status, _, told = asyncio.run(main())
    assert status == 200 if code is None else (status, told["error"]["code"]) == (400, code)


def test_now_and_then_it_goes_the_long_way(shared, monkeypatch):
    """The SDK ends a session that it hears nothing of."""
    monkeypatch.setattr(brief, "REFRESH_S", -1.0)

    async def main() -> Any:
        async with aiohttp.ClientSession() as session:
            headers = await shared.legacy_session(session)
            body = call("tools/call", {"name": "node_status"})
            return (await shared.post(session, body, headers))[1]["Content-Type"]

    assert asyncio.run(main()) == "text/event-stream"
