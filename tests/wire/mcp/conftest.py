"""A real node with agents for every case, and real MCP clients of both eras."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
from collections.abc import AsyncIterator, Iterator
from typing import Any

import aiohttp
import httpx2
import mcp_types as types
import pytest
from mcp import Client
from mcp.client.streamable_http import streamable_http_client

from aios_nb.agents.definition import describe
from tests.sites import TestSite, limits

WAIT_S = 60
ERA = "2026-07-28"
LEGACY = "2025-11-25"
PREFIX = "io.modelcontextprotocol/"


async def adder(text: str) -> str:
    """Adds the numbers in a sentence."""
    return str(sum(int(word) for word in text.split() if word.isdigit()))


async def diary(text: str) -> str:
    """For its owner's eyes."""
    return f"dear diary: {text}"


async def talker(text: str) -> AsyncIterator[str]:
    """Says it word by word."""
    for word in text.split():
        yield word + " "
        await asyncio.sleep(0.02)  # longer than pieces are gathered for


async def asker(text: str, ctx: Any) -> str:
    """Asks back."""
    name = await ctx.ask_user("What is your name?")
    colour = await ctx.ask_user("And your colour?") if text == "twice" else ""
    return f"Hello, {name}! {colour}".strip()


async def painter(text: str) -> str:
    """\u202eWrites what a terminal obeys."""
    return f"\x1b[31mred\x1b[0m\u202e {text}"


class Slow:
    """An agent that works until it is stopped, and says so."""

    def __init__(self) -> None:
        self.started, self.stopped = threading.Event(), threading.Event()

    async def slow(self, text: str) -> str:
        """Takes for ever."""
        self.started.set()
        try:
            await asyncio.Event().wait()
        finally:
            self.stopped.set()
        return text


class Door:
    """The node, and the ways to its MCP door."""

    def __init__(self, site: TestSite, slow: Slow) -> None:
        self.site = site
        self.slow = slow
        assert site.node.run_info is not None
        self.url = f"{site.node.url}/mcp"
        self.owner = site.node.run_info.token

    def token(self, prefix: str) -> dict[str, Any]:
        made: dict[str, Any] = self.site.call("tokens.create", scope="chat", prefix=prefix)
        return made

    def status(self, conversation: str) -> str:
        return str(self.site.history(conversation)[0]["status"])

    def conversations(self) -> list[str]:
        return [row["conversation"] for row in self.site.call("chat.list")["conversations"]]

    @contextlib.asynccontextmanager
    async def client(
        self, era: str = "modern", token: str | None = None, **options: Any
    ) -> AsyncIterator[Client]:
        """An unmodified client of the SDK; the owner's unless a token is given."""
        token = self.owner if token is None else token
        headers = {"Authorization": f"Bearer {token}"} if token else {}
        mode: Any = "legacy" if era == "legacy" else ERA
        async with (
            httpx2.AsyncClient(headers=headers, timeout=WAIT_S) as http,
            Client(
                streamable_http_client(self.url, http_client=http), mode=mode, **options
            ) as client,
        ):
            yield client

    def headers(self, token: str | None = None, **more: str) -> dict[str, str]:
        token = self.owner if token is None else token
        said = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
            **{name.replace("_", "-"): value for name, value in more.items()},
        }
        return said | ({"Authorization": f"Bearer {token}"} if token else {})

    async def post(
        self, session: aiohttp.ClientSession, body: Any, headers: dict[str, str]
    ) -> tuple[int, Any, Any]:
        """Status, headers and the answer, whichever way it comes."""
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        async with session.post(self.url, data=data, headers=headers) as response:
            text = await response.text()
            if response.content_type == "text/event-stream":
                found = [line[6:] for line in text.splitlines() if line.startswith("data: {")]
                text = found[-1]
            told = json.loads(text) if text.startswith(("{", "[")) else text
            return response.status, response.headers, told

    async def legacy_session(
        self, session: aiohttp.ClientSession, token: str | None = None, **capabilities: Any
    ) -> dict[str, str]:
        """The headers of a session that is open."""
        params = {
            "protocolVersion": LEGACY,
            "capabilities": capabilities,
            "clientInfo": {"name": "test", "version": "1"},
        }
        headers = self.headers(token)
        status, told, _ = await self.post(session, call("initialize", params), headers)
        assert status == 200
        headers |= {"Mcp-Session-Id": told["Mcp-Session-Id"], "MCP-Protocol-Version": LEGACY}
        note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
        assert (await self.post(session, note, headers))[0] == 202
        return headers


def call(method: str, params: Any = None, id_: Any = 1) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id_, "method": method, "params": params or {}}


def modern(method: str, params: Any = None, id_: Any = 1, **capabilities: Any) -> dict[str, Any]:
    meta = {
        f"{PREFIX}protocolVersion": ERA,
        f"{PREFIX}clientCapabilities": capabilities,
        f"{PREFIX}clientInfo": {"name": "test", "version": "1"},
    }
    return call(method, {**(params or {}), "_meta": meta}, id_)


def routing(method: str, name: str | None = None) -> dict[str, str]:
    """The headers that must agree with the body."""
    said = {"MCP_Protocol_Version": ERA, "Mcp_Method": method}
    return said | ({"Mcp_Name": name} if name is not None else {})


def text_of(result: types.CallToolResult) -> str:
    block = result.content[0]
    assert isinstance(block, types.TextContent)
    return block.text


def hear(event: threading.Event) -> None:
    assert event.wait(WAIT_S)


async def heard(event: threading.Event) -> None:
    """The same without holding up the client's loop."""
    assert await asyncio.to_thread(event.wait, WAIT_S)


def start_door(home: Any, **settings: Any) -> Door:
    slow = Slow()
    agents = [
        describe(adder, access="public"),
        describe(diary, access="private"),
        describe(talker, access="public"),
        describe(asker, access="public"),
        describe(painter, access="public"),
        describe(slow.slow, access="public"),
    ]
    settings = {"limits": limits(open_per_s=1e6, refused_per_s=1e6), **settings}
    return Door(TestSite(home, agents, **settings), slow)


@pytest.fixture(scope="module")
def shared(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Door]:
    """One node for the tests of a file that leave it as it was."""
    door = start_door(tmp_path_factory.mktemp("mcp") / "home")
    yield door
    door.site.stop()


@pytest.fixture
def door(tmp_path: Any) -> Iterator[Door]:
    """A node for one test alone."""
    door = start_door(tmp_path / "home")
    yield door
    door.site.stop()
