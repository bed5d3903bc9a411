"""Other people's lists become lines for a person: bounded, cleaned, and nothing is called."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest
from aiohttp import web

from aios_nb.envelope import CatalogEntry
from aios_nb.errors import TooLarge, Unreachable, UsageError
from aios_nb.wire.outside.catalogs import ENTRIES_MAX, PAGES_MAX, read_catalog

ARD = {
    "specVersion": "1.0",
    "host": {"displayName": "Somewhere"},
    "entries": [
        {
            "identifier": "urn:air:x:agents:painter",
            "displayName": "Painter",
            "description": "Paints",
            "type": "application/a2a-agent-card+json",
            "url": "/agents/painter/.well-known/agent-card.json",
        },
        {
            "identifier": "urn:air:x:mcp:tools",
            "displayName": "Tools",
            "type": "application/mcp-server-card+json",
            "data": {
                "name": "tools",
                "remotes": [{"type": "streamable-http", "url": "https://t.example/mcp"}],
            },
        },
        {
            "identifier": "urn:air:x:skill:s",
            "displayName": "Skill",
            "type": "application/ai-skill",
            "url": "/s",
        },
    ],
}
CARD = {
    "name": "Painter",
    "description": "Paints",
    "supportedInterfaces": [
        {"url": "grpc.example:443", "protocolBinding": "GRPC"},
        {"url": "https://p.example/a2a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0"},
    ],
    "skills": [],
}


def read(
    pages: Mapping[str, Any], path: str = "", *, local: bool = True
) -> tuple[Any, list[str], str]:
    """What is listed at a site that has these pages; who came there; its URL."""
    came: list[str] = []

    async def answer(request: web.BaseRequest) -> web.StreamResponse:
        came.append(request.path_qs)
        page = pages.get(request.path_qs, pages.get("*"))
        if page is None:
            return web.Response(status=404)
        return web.Response(body=page if isinstance(page, bytes) else json.dumps(page).encode())

    async def main() -> Any:
        runner = web.ServerRunner(web.Server(answer))
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}"
        try:
            async with asyncio.timeout(30):
                return await read_catalog(url + path, local=local), url
        finally:
            await runner.cleanup()

    entries, url = asyncio.run(main())
    return entries, came, url


def test_an_ai_catalog_is_found_at_its_site_and_nothing_else_is_asked():
    entries, came, url = read({"/.well-known/ard.json": ARD})

    assert came == ["/", "/.well-known/ard.json"]
    assert entries == [
        CatalogEntry(
            name="Painter",
            kind="a2a",
            url=f"{url}/agents/painter/.well-known/agent-card.json",
            about="Paints",
            identifier="urn:air:x:agents:painter",
        ),
        CatalogEntry(
            name="Tools", kind="mcp", url="https://t.example/mcp", identifier="urn:air:x:mcp:tools"
        ),
        CatalogEntry(name="Skill", kind="", url=f"{url}/s", identifier="urn:air:x:skill:s"),
    ]


def test_a_registry_of_mcp_servers_is_read_page_by_page():
    def server(name: str, **more: Any) -> dict[str, Any]:
        return {"server": {"name": name, "description": "d", **more}, "_meta": {}}

    def web_server(name: str) -> dict[str, Any]:
        remotes = [
            {"type": "sse", "url": "https://a.example/sse"},
            {"type": "streamable-http", "url": f"https://{name}.example/mcp"},
        ]
        return server(name, remotes=remotes)

    entries, _, _ = read(
        {
            "/v0/servers": {"servers": [web_server("a")], "metadata": {"nextCursor": "c/2"}},
            "/v0/servers?cursor=c/2": {
                "servers": [
                    server("only-local", packages=[{"registryType": "npm"}]),
                    server("template", remotes=[{"type": "http", "url": "https://{you}.example"}]),
                    web_server("b"),
                ],
                "metadata": {"nextCursor": "c/2"},
            },
        },
        "/v0/servers",
    )

    assert [(entry.name, entry.kind, entry.url) for entry in entries] == [
        ("a", "mcp", "https://a.example/mcp"),
        ("only-local", "", ""),
        ("template", "", ""),
        ("b", "mcp", "https://b.example/mcp"),
    ]


@pytest.mark.parametrize("wrap", [lambda cards: cards, lambda cards: {"agents": cards}])
def test_a_list_of_cards_is_a_catalog_and_so_is_one_card(wrap):
    entries, _, _ = read({"/list": wrap([CARD, CARD])}, "/list")
    assert [(entry.kind, entry.url) for entry in entries] == [("a2a", "https://p.example/a2a")]

    entries, _, url = read({"/card.json": CARD}, "/card.json")
    assert [(entry.kind, entry.url) for entry in entries] == [("a2a", f"{url}/card.json")]


def test_hostile_lists_are_bounded_and_inert():
    evil = "\x1b[2J<script>\u202e" * 1000
    deep = json.loads('{"name":"d","type":"t","data":' * 900 + "{}" + "}" * 900)
    odd: list[Any] = [
        7, None, [], {}, {"name": 7}, {"displayName": {"a": 1}},
        {"name": "bad", "url": "javascript:alert(1)", "type": "application/mcp-server+json"},
        {"name": "file", "url": "file:///etc/passwd", "type": "application/mcp-server+json"},
        {"name": "user", "url": "http://u:p@x.example/", "type": "application/mcp-server+json"},
        {"name": "list", "url": ["http://x.example/"], "type": 5},
        {"name": "deep", "type": "t", "data": deep},
        {"name": "no", "remotes": "x"}, {"name": "no2", "supportedInterfaces": {"a": 1}},
        {"name": evil, "description": evil, "identifier": evil, "url": "https://e.example/"},
    ]  # fmt: skip

    entries, came, _ = read({"/l": {"entries": odd}}, "/l")

    assert came == ["/l"]
    named = {entry.name: entry for entry in entries}
    assert [named[name].url for name in ("bad", "file", "user", "list", "deep", "no", "no2")] == [
        ""
    ] * 7
    assert not any(entry.kind for entry in entries)
    last = entries[-1]
    assert len(last.name) <= 200
    assert len(last.about) <= 1000
    assert not any(mark in last.name + last.about for mark in "\x1b\u202e")


def test_a_list_without_end_ends():
    class Endless(dict[str, Any]):
        number = 0

        def get(self, path: str, default: Any = None) -> Any:
            self.number += 1
            servers = [{"name": f"s{self.number}-{n}", "remotes": []} for n in range(30)]
            return {"servers": servers, "metadata": {"nextCursor": str(self.number)}}

    entries, came, _ = read(Endless(), "/v0/servers")
    assert len(came) == PAGES_MAX
    assert len(entries) == 30 * PAGES_MAX

    many = [{"name": f"s{n}", "remotes": []} for n in range(3 * ENTRIES_MAX)]
    assert len(read({"/v0/servers": {"servers": many}}, "/v0/servers")[0]) == ENTRIES_MAX


@pytest.mark.parametrize("page", [b"<html>", b"[" * 50_000, b"\xff", b"7", b'{"a": 1}'])
def test_what_is_no_catalog_is_said_to_be_none(page):
    with pytest.raises(UsageError, match="no catalog"):
        read({"*": page}, "/x")


def test_a_catalog_is_fetched_like_anything_else():
    with pytest.raises(UsageError, match="--local"):
        read({"*": ARD}, local=False)
    with pytest.raises(TooLarge):
        read({"*": b" " * 5_000_000})
    with pytest.raises(UsageError):
        asyncio.run(read_catalog("file:///etc/passwd"))
    with pytest.raises(Unreachable):
        asyncio.run(read_catalog("http://127.0.0.1:1/", local=True))
