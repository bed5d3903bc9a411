"""What crawlers and registries get of a node: valid, complete for the caller, and nothing more."""

from __future__ import annotations

import json
import re
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from aios_nb.agents.definition import describe
from aios_nb.errors import UsageError
from aios_nb.wire import ard
from tests.sites import TestSite

# The rules of the specification and of its public checker, in our own words.
URN = re.compile(r"urn:air:[a-zA-Z0-9.-]+(:[a-zA-Z0-9._-]+){2}")
ENTRY_KEYS = {
    *("identifier", "displayName", "type", "url", "description", "tags"),
    *("representativeQueries", "version", "metadata", "trustManifest"),
}
TYPES = {"application/a2a-agent-card+json", "application/mcp-server-card+json"}
DID = re.compile(r"did:key:z6Mk[1-9A-HJ-NP-Za-km-z]{44}")
PROBE = {
    "query": {
        "text": "weather forecast tools",
        "filter": {"type": ["application/mcp-server-card+json"]},
    },
    "federation": "none",
    "pageSize": 2,
}


async def weather(text: str) -> str:
    """Tells the weather in a city. And more."""
    return text


async def tides(text: str) -> str:
    """Knows the tides."""
    return text


async def common(text: str) -> str:
    """Forecasts for nodes."""
    return text


async def diary(text: str) -> str:
    """Keeps the weather diary."""
    return text


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestSite]:
    home: Path = tmp_path_factory.mktemp("catalogs") / "home"
    started = TestSite(
        home,
        [
            describe(weather, access="public", tags=["sky", "sea"], examples=["Oslo?", "rain?"]),
            describe(tides, access="public", tags=["sea"]),
            describe(common, access="network"),
            describe(diary, access="private"),
        ],
    )
    yield started
    started.stop()


def get(
    site: TestSite, path: str, body: Any = None, *, token: str = "", **headers: str
) -> tuple[int, Any, Any]:
    """Status, JSON and headers."""
    if token:
        headers["Authorization"] = f"Bearer {token}"
    sent = None if body is None else body if isinstance(body, bytes) else json.dumps(body).encode()
    if sent is not None:
        headers["Content-Type"] = "application/json"
    request = urllib.request.Request(site.node.url + path, sent, headers)
    try:
        with urllib.request.urlopen(request, timeout=30) as answer:
            content = answer.read()
            return answer.status, json.loads(content) if content else None, answer.headers
    except urllib.error.HTTPError as error:
        content = error.read()
        return error.code, json.loads(content) if content else None, error.headers


def names(entries: list[Any]) -> list[str]:
    return [entry["identifier"].rpartition(":")[2] for entry in entries]


def owner_token(site: TestSite) -> str:
    assert site.node.run_info is not None
    return site.node.run_info.token


def check_entry(entry: dict[str, Any]) -> None:
    assert URN.fullmatch(entry["identifier"])
    assert entry["displayName"]
    assert entry["type"] in TYPES
    assert "data" not in entry
    assert entry["url"].startswith("http://127.0.0.1:")
    assert 2 <= len(entry["representativeQueries"]) <= 5
    assert all(isinstance(query, str) and query for query in entry["representativeQueries"])
    assert set(entry) <= ENTRY_KEYS
    assert DID.fullmatch(entry["trustManifest"]["identity"])
    assert set(entry["trustManifest"]) == {"identity", "identityType"}


@pytest.mark.parametrize("path", ["/.well-known/ard.json", "/.well-known/ai-catalog.json"])
def test_the_manifest_is_valid_and_lists_what_anyone_may_call(site, path):
    status, manifest, headers = get(site, path)

    assert status == 200
    assert headers["Content-Type"] == "application/json"
    assert set(manifest) == {"specVersion", "host", "entries"}
    assert manifest["specVersion"] == "1.0"
    assert manifest["host"]["displayName"] == "test"
    assert set(manifest["host"]) == {"displayName", "identifier"}
    assert names(manifest["entries"]) == ["mcp.server", "tides", "weather"]
    for entry in manifest["entries"]:
        check_entry(entry)
    assert manifest["entries"][2]["representativeQueries"][:2] == ["Oslo?", "rain?"]


def test_an_entry_leads_to_the_card_of_the_agent(site):
    _, manifest, _ = get(site, "/.well-known/ard.json")
    entry = next(each for each in manifest["entries"] if each["identifier"].endswith(":weather"))
    status, card, _ = get(site, entry["url"].removeprefix(site.node.url))

    assert status == 200
    assert card["name"] == entry["displayName"]
    assert card["signatures"]


def test_a_manifest_that_is_known_is_not_sent_again(site):
    _, _, headers = get(site, "/.well-known/ard.json")
    assert "max-age" in headers["Cache-Control"]
    assert headers["Vary"] == "Authorization"
    status, body, _ = get(site, "/.well-known/ard.json", **{"If-None-Match": headers["ETag"]})
    assert (status, body) == (304, None)


def test_a_token_sees_what_it_may_call(site):
    token = site.call("tokens.create", scope="chat", prefix="x:")["token"]

    def shown(token: str) -> set[str]:
        status, manifest, headers = get(site, "/.well-known/ard.json", token=token)
        assert status == 200
        assert headers["Cache-Control"].startswith("private")
        return set(names(manifest["entries"]))

    assert shown(token) == {"mcp.server", "tides", "weather", "common"}
    assert shown(owner_token(site)) >= {"diary", "echo", "common"}
    assert get(site, "/.well-known/ard.json", token="wrong")[0] == 401
    assert names(get(site, "/api/agents")[1]["items"]) == ["mcp.server", "tides", "weather"]


def test_search_finds_for_the_caller_with_whole_scores(site):
    status, answer, _ = get(site, "/api/search", {"query": {"text": "weather in a city"}})
    assert status == 200
    assert names(answer["results"])[0] == "weather"
    for result in answer["results"]:
        assert isinstance(result["score"], int)
        assert 0 <= result["score"] <= 100
        assert result["source"] == f"{site.node.url}/api/"
        check_entry({key: result[key] for key in result.keys() - {"score", "source"}})
    assert "diary" not in str(answer)
    asked = {"query": {"text": "weather diary"}}
    mine = get(site, "/api/search", asked, token=owner_token(site))[1]
    assert "diary" in names(mine["results"])


def test_search_as_the_public_checker_asks(site):
    status, answer, _ = get(site, "/api/search", PROBE)
    assert status == 200
    assert names(answer["results"]) == ["mcp.server"]
    only = {"query": {"text": "sea", "filter": {"tags": ["sky"], "type": ard.A2A_CARD}}}
    assert names(get(site, "/api/search", only)[1]["results"]) == ["weather"]
    referrals = {"query": {"text": "sea"}, "federation": "referrals"}
    assert get(site, "/api/search", referrals)[1]["referrals"] == []


def test_pages_follow_each_other_to_the_end(site):
    seen, token = [], ""
    for _ in range(3):
        page = get(site, f"/api/agents?pageSize=1&orderBy=displayName%20DESC&pageToken={token}")[1]
        assert page["total"] == 3
        seen += names(page["items"])
        token = page.get("pageToken", "")
    assert token == ""
    assert seen == ["mcp.server", "weather", "tides"]  # "test (MCP)" is small
    asked = {"query": {"text": "sea"}, "pageSize": 1}
    first = get(site, "/api/search", asked)[1]
    second = get(site, "/api/search", {**asked, "pageToken": first["pageToken"]})[1]
    assert {*names(first["results"]), *names(second["results"])} == {"tides", "weather"}


def test_a_filter_chooses_and_a_wrong_one_is_said(site):
    path = "/api/agents?filter="
    chosen = get(site, path + quote("tags = 'sea' AND displayName = 'Tides'"))[1]["items"]
    assert names(chosen) == ["tides"]
    for wrong in ("tags LIKE 'x'", "1=1; DROP TABLE", "tags = sea"):
        status, told, _ = get(site, path + quote(wrong))
        assert (status, told["errorCode"]) == (400, "INVALID_ARGUMENT")
        assert told["message"]
    assert get(site, "/api/agents?pageSize=0")[0] == 400
    assert get(site, "/api/agents?pageToken=x")[0] == 400


def test_one_entry_by_its_identifier(site):
    for entry in get(site, "/api/agents")[1]["items"]:
        status, found, _ = get(site, f"/api/agents/{quote(entry['identifier'], safe='')}")
        assert (status, found) == (200, entry)
    unknown = quote("urn:air:nobody.invalid:probe:not-found", safe="")
    status, told, _ = get(site, f"/api/agents/{unknown}")
    assert (status, told["errorCode"]) == (404, "NOT_FOUND")
    hidden = get(site, "/.well-known/ard.json")[1]["entries"][1]["identifier"]
    hidden = hidden.replace(":tides", ":diary")
    assert get(site, f"/api/agents/{quote(hidden, safe='')}")[0] == 404
    status, told, _ = get(site, "/api/agents/not-a-urn")
    assert (status, told["errorCode"]) == (400, "INVALID_ARGUMENT")


def test_facets_count_what_the_caller_may_see(site):
    asked = {"resultType": {"facets": [{"field": "type"}, {"field": "tags", "limit": 1}]}}
    status, told, _ = get(site, "/api/explore", asked)
    assert status == 200
    assert told["resultType"] == "facets"
    assert told["facets"]["type"]["buckets"] == [
        {"value": ard.A2A_CARD, "count": 2},
        {"value": ard.MCP_SERVER, "count": 1},
    ]
    assert told["facets"]["tags"] == {
        "buckets": [{"value": "sea", "count": 2}],
        "otherCount": 3,
    }
    narrow = {"query": {"text": "weather"}, "resultType": {"facets": [{"field": "type"}]}}
    assert get(site, "/api/explore", narrow)[1]["facets"]["type"]["buckets"][0]["count"] == 1


@pytest.mark.parametrize(
    "body",
    [b"", b"{", b"[]", b'{"query": {}}', b'{"query": {"text": 1}}', b"\xff", b"[" * 20_000],
    ids=["nothing", "half", "a list", "no text", "a number", "no UTF-8", "deep"],
)
def test_what_is_no_question_is_answered_in_one_line(site, body):
    for path in ("/api/search", "/api/explore"):
        status, told, _ = get(site, path, body)
        assert (status, told["errorCode"]) == (400, "INVALID_ARGUMENT")
        assert "\n" not in told["message"]
        assert len(told["message"]) < 250


def test_a_foreign_page_gets_nothing(site):
    for headers in ({"Host": "evil.example"}, {"Origin": "http://evil.example"}):
        for path in ("/.well-known/ard.json", "/api/agents"):
            assert get(site, path, **headers)[0] in {403, 421}


def test_a_public_domain_is_the_publisher():
    def publisher(url: str) -> str:
        return ard.Publisher.at(url, node_id="n" * 32, name="n", version="1", key="did:key:z").urn(
            "adder"
        )

    assert publisher("https://alice.example:8443/") == f"urn:air:alice.example:{'n' * 32}:adder"
    for local in ("http://127.0.0.1:80", "http://[::1]:80", "http://localhost:80"):
        assert publisher(local) == f"urn:air:agent.localhost:{'n' * 32}:adder"


def test_every_agent_has_two_queries_whatever_its_card_says():
    bare = ard.queries({"name": "x", "title": "", "about": "", "examples": []})
    assert bare == ["x", "an agent for x"]
    many = ard.queries({"name": "x", "examples": [str(n) for n in range(9)]})
    assert len(many) == 5
    with pytest.raises(UsageError):
        ard.page("-1")
