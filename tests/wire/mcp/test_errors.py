"""Requests as no SDK would send them: each gets the answer that the protocol has for it."""

from __future__ import annotations

import asyncio
import io
import json
from typing import Any

import aiohttp
import pytest

from tests.wire.mcp.conftest import ERA, PREFIX, call, modern, routing

LIST = routing("tools/list")
ASK = {"agent": "adder", "text": "1"}


def ask(door: Any, body: Any, token: str | None = None, **headers: str) -> tuple[int, Any, Any]:
    async def main() -> tuple[int, Any, Any]:
        async with aiohttp.ClientSession() as session:
            return await door.post(session, body, door.headers(token, **headers))

    return asyncio.run(main())


def without(body: dict[str, Any], key: str) -> dict[str, Any]:
    body["params"]["_meta"].pop(f"{PREFIX}{key}")
    return body


@pytest.mark.parametrize("token", ["", None])
def test_discover_and_tools_list_need_no_handshake(shared, token):
    status, _, told = ask(shared, modern("server/discover"), token, **routing("server/discover"))
    assert status == 200
    assert told["result"]["supportedVersions"] == [ERA]
    capabilities = told["result"]["capabilities"]
    assert {"tools", "resources", "prompts", "completions"} <= set(capabilities)
    status, headers, told = ask(shared, modern("tools/list", id_="seven"), token, **LIST)
    assert status == 200
    assert told["id"] == "seven"
    result = told["result"]
    assert result["resultType"] == "complete"
    assert isinstance(result["ttlMs"], int)
    assert result["cacheScope"] == "private"
    assert headers["Server"] == "aios-nb"


@pytest.mark.parametrize(
    ("body", "headers", "status", "code"),
    [
        (call("tools/list", id_=5), LIST, 400, -32602),
        (without(modern("tools/list", id_=5), "clientCapabilities"), LIST, 400, -32602),
        (without(modern("tools/list", id_=5), "protocolVersion"), LIST, 400, -32602),
        (modern("tools/list", id_=5), {"MCP_Protocol_Version": ERA}, 400, -32020),
        (modern("tools/list", id_=5), {**LIST, "Mcp_Method": "tools/call"}, 400, -32020),
        (modern("tools/list", id_=5), {**LIST, "Mcp_Method": "TOOLS/LIST"}, 400, -32020),
        (
            modern("tools/call", {"name": "node_status"}, 5),
            routing("tools/call", "agents_list"),
            400,
            -32020,
        ),
        (
            modern("tools/call", {"name": "agent_send", "arguments": ASK}, 5),
            routing("tools/call"),
            400,
            -32020,
        ),
        (modern("nothing/here", id_=5), routing("nothing/here"), 404, -32601),
        (modern("ping", id_=5), routing("ping"), 404, -32601),
        (modern("logging/setLevel", id_=5), routing("logging/setLevel"), 404, -32601),
        (
            modern("resources/read", {"uri": "test://nothing"}, 5),
            routing("resources/read", "test://nothing"),
            400,
            -32602,
        ),
    ],
)  # fmt: skip
def test_wrong_requests_of_the_new_era(shared, body, headers, status, code):
    got, answered, told = ask(shared, body, **headers)
    assert (got, told["error"]["code"], told["id"]) == (status, code, 5)
    assert answered["X-Content-Type-Options"] == "nosniff"
    assert answered["Server"] == "aios-nb"
    assert "Traceback" not in json.dumps(told)
    if "uri" in body["params"]:
        assert told["error"]["data"] == {"uri": "test://nothing"}


def test_an_unknown_version_is_told_which_there_are(shared):
    body = modern("tools/list")
    body["params"]["_meta"][f"{PREFIX}protocolVersion"] = "2099-01-01"
    headers = {**LIST, "MCP_Protocol_Version": "2099-01-01"}
    status, _, told = ask(shared, body, **headers)
    assert (status, told["error"]["code"]) == (400, -32022)
    assert told["error"]["data"]["supported"] == [ERA]


def test_names_of_headers_may_be_written_as_one_likes_and_values_have_space_around(shared):
    headers = {"mcp_protocol_VERSION": f"  {ERA} ", "MCP_METHOD": " tools/list"}
    assert ask(shared, modern("tools/list"), **headers)[0] == 200


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"{", -32700),
        (b"", -32700),
        (b'{"jsonrpc": "2.0", "id": 1, "method": "\xff"}', -32700),
        (b"[" * 20_000, -32700),
        (b"[]", -32600),
        (json.dumps([modern("tools/list")]).encode(), -32600),
        (b'{"id": 1}', -32600),
    ],
)
@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_bodies_that_are_no_request(shared, body, code, era):
    headers = LIST if era == "modern" else {}
    status, _, told = ask(shared, body, **headers)
    assert status == 400
    assert told["id"] is None
    # Of what is JSON but no request, the older transport says that its parameters are invalid.
    assert told["error"]["code"] in ({code} if era == "modern" else {code, -32602})


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://127.0.0.1:1"}, 403),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": "Bearer"}, 401),
        ({"Content-Type": "text/plain"}, 400),
        ({"Accept": "text/html"}, 406),
    ],
)
def test_the_guard_stands_before_the_door(shared, headers, status):
    before = len(shared.conversations())
    body = modern(
        "tools/call", {"name": "agent_send", "arguments": {"agent": "adder", "text": "1"}}
    )

    async def main() -> int:
        said = shared.headers(**routing("tools/call", "agent_send")) | headers
        async with aiohttp.ClientSession() as session:
            return (await shared.post(session, body, said))[0]

    assert asyncio.run(main()) == status
    assert len(shared.conversations()) == before


def test_our_own_page_may_come_in(shared):
    origin = shared.url.removesuffix("/mcp")
    assert ask(shared, modern("tools/list"), Origin=origin, **LIST)[0] == 200


def test_too_large_a_body_is_refused(shared):
    body = json.dumps(modern("tools/list", {"pad": "x" * (5 << 20)})).encode()

    async def main() -> int:
        async with (
            aiohttp.ClientSession() as session,
            session.post(shared.url, data=io.BytesIO(body), headers=shared.headers(**LIST)) as got,
        ):
            return got.status

    assert asyncio.run(main()) == 413


def test_a_session_that_nobody_opened_is_not_there(shared):
    headers = {"Mcp_Session_Id": "f" * 32, "MCP_Protocol_Version": "2025-11-25"}
    status, _, told = ask(shared, call("tools/list"), **headers)
    assert status == 404
    assert told["error"]["message"] == "Session not found"


@pytest.mark.parametrize("version", ["2025-06-18", "2025-03-26", "2024-11-05", "1999-01-01"])
def test_older_versions_are_negotiated(shared, version):
    params = {
        "protocolVersion": version,
        "capabilities": {},
        "clientInfo": {"name": "old", "version": "1"},
    }
    status, headers, told = ask(shared, call("initialize", params))
    assert status == 200
    assert headers["Mcp-Session-Id"]
    expected = "2025-11-25" if version == "1999-01-01" else version
    assert told["result"]["protocolVersion"] == expected
    assert told["result"]["capabilities"]["resources"] == {"listChanged": True, "subscribe": True}
