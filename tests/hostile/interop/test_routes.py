"""Every door for other protocols: foreign pages, false tokens, and bodies that are none."""

from __future__ import annotations

import pytest

from aios_nb.config import Limits
from tests.hostile.interop.conftest import House
from tests.hostile.interop.knocks import ERA, JSON, OPEN, initialize, knock, modern, tool

POSTS = [path for path in OPEN if knock(path)["method"] == "POST"]
_MANY = b'{"a":[' + b",".join([b"[]"] * 30_000) + b"]}"
BODIES = [
    b"",
    b"\xff\xfe",
    b"[" * 3000,
    b'{"a":' * 3000,
    b'{"jsonrpc":"2.0","id":"\xff","method":"tools/call","params":{"name":"agents_list"}}',
    b'{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":"\xff"}}',
    b'{"query":{"text":"\xff"},"resultType":{"facets":[{"field":"\xff"}]}}',
]


@pytest.mark.parametrize("path", OPEN)
@pytest.mark.parametrize("token", [True, False])
def test_a_foreign_page_gets_nothing_and_does_nothing(site, path, token):
    port = int(site.node.url.rpartition(":")[2])
    before = list(site.rung)
    with site.http(site.token if token else None) as http:
        for name, value, status in (
            ("Host", "evil.example", 421),
            ("Host", f"evil.example:{port}", 421),
            ("Origin", "http://evil.example", 403),
            ("Origin", "null", 403),
            ("Origin", f"http://127.0.0.1:{port ^ 1}", 403),
        ):
            request = knock(path)
            request["headers"] = {**request["headers"], name: value}
            answer = http.request(**request)
            assert answer.status_code == status, (name, value)
            assert not [
                name for name in answer.headers if name.lower().startswith("access-control")
            ]
        asks = {"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"}
        assert http.options(knock(path)["url"], headers=asks).status_code == 403
        assert site.rung == before
        assert http.request(**knock(path)).status_code in {200, 404}, "the right name, and no page"
    assert len(site.rung) == len(before) + (path in {"/mcp", "/agents/"})


@pytest.mark.parametrize("path", OPEN)
def test_a_token_that_is_none_is_refused_and_not_taken_for_nobodys(site, path):
    made = site.call("tokens.create", scope="chat", prefix="late:")
    site.call("tokens.revoke", id=made["id"])
    before = list(site.rung)
    with site.http() as http:
        for shown in (
            "", "Bearer", f"Bearer {site.token[:-1]}", f"Bearer {site.token}x",
            f"Basic {site.token}", f"Bearer {made['token']}",
        ):  # fmt: skip
            request = knock(path)
            request["headers"] = {**request["headers"], "Authorization": shown}
            answer = http.request(**request)
            assert answer.status_code == 401, shown
            assert "WWW-Authenticate" in answer.headers
            assert site.token[:8] not in answer.text
    assert site.rung == before


@pytest.mark.parametrize("path", POSTS)
@pytest.mark.parametrize("body", BODIES, ids=range(len(BODIES)))
def test_what_is_no_request_is_one_line_whichever_way_it_takes(site, path, body):
    ways = [{}]
    with site.http() as http:
        if path == "/mcp":
            opened = http.request(**initialize(name="x", version="1"))
            legacy = {"MCP-Protocol-Version": "2025-11-25"}
            session = {**legacy, "Mcp-Session-Id": opened.headers["Mcp-Session-Id"]}
            http.post(
                "/mcp",
                json={"jsonrpc": "2.0", "method": "notifications/initialized"},
                headers={**JSON, **session},
            )
            routed = {"MCP-Protocol-Version": ERA, "Mcp-Method": "tools/call"}
            ways += [session, *({**routed, "Mcp-Name": n} for n in ("agent_send", "agents_list"))]
        for way in ways:
            answer = http.post(knock(path)["url"], content=body, headers={**JSON, **way})
            assert answer.status_code in {200, 400}, way
            assert "error" in answer.text
            assert "Traceback" not in answer.text
            assert "internal" not in answer.text
            assert len(answer.text) < 2000


@pytest.mark.parametrize("path", POSTS)
def test_too_much_is_refused_before_it_is_read(site, path):
    url = knock(path)["url"]
    with site.http() as http:
        assert http.post(url, content=b" " * (5 << 20), headers=JSON).status_code == 413


@pytest.mark.parametrize("path", POSTS)
def test_a_body_of_a_million_little_things_is_read_for_those_with_a_token_alone(tmp_path, path):
    house = House(tmp_path / "home", limits=Limits(open_per_s=10.0, refused_per_s=1e6))
    url = knock(path)["url"]
    try:
        with house.http() as http:
            assert http.post(url, content=_MANY, headers=JSON).status_code == 429
            assert http.request(**knock(path)).status_code == 200, "others come in as before"
        with house.http(house.token) as http:
            assert http.post(url, content=_MANY, headers=JSON).status_code in {200, 400, 413}
    finally:
        house.stop()


@pytest.mark.parametrize("length", [3900, 4000, 4001])
def test_a_long_question_is_answered_or_refused(site, length):
    with site.http() as http:
        for path in ("/api/search", "/api/explore"):
            asked = {**knock(path)["json"], "query": {"text": "a " * (length // 2)}}
            assert http.post(path, json=asked).status_code in {200, 400}


def test_nobody_but_the_owner_brings_a_program_in(site):
    scoped = site.new_token("ann:")
    params = {"address": "http://127.0.0.1:1/"}
    body = {"jsonrpc": "2.0", "id": 1, "method": "hub.add", "params": params}
    for token in (None, scoped):
        with site.http(token) as http:
            told = http.request(**tool("hub_add", url="http://127.0.0.1:1/")).json()
            assert told["result"]["content"][0]["text"] == "Unknown tool: hub_add"
            listed = http.request(**modern("tools/list")).json()["result"]["tools"]
            assert not {"hub_add", "peers_list"} & {each["name"] for each in listed}
            answer = http.post("/rpc", json=body)
            assert answer.status_code == 401 or "not open" in answer.json()["error"]["message"]
    assert site.call("hub.list") == {"imports": []}
