"""A node as programs of others see it: the same requests over HTTP, with and without the token."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import aiohttp
import msgspec

from aios_nb.client import RemoteClient
from aios_nb.home import RunInfo
from aios_nb.wire.eventreader import EventReader

AGENT = "echo"
"""Comes with every node, says what it is told, and is its owner's alone."""
WAIT_S = 20.0
"""For one answer. The first MCP client of a node waits until the SDK is loaded."""
_ACCEPT = "application/json, text/event-stream"
_LISTED = 50


class Answer(msgspec.Struct, frozen=True):
    """What came back."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    def json(self) -> dict[str, Any]:
        """The object in it, or the last one of a stream; empty for anything else."""
        body = self.body
        if self.headers.get("Content-Type", "").startswith("text/event-stream"):
            events = EventReader(len(body)).feed(body)
            body = events[-1].data if events else b""
        try:
            said = msgspec.json.decode(body)
        except (msgspec.DecodeError, UnicodeError):
            return {}
        return said if isinstance(said, dict) else {}


class Visit:
    """A node that has proven its key, and requests to it."""

    def __init__(self, run: RunInfo, http: aiohttp.ClientSession, client: RemoteClient) -> None:
        self.run = run
        self.client = client
        self._http = http
        self.word = f"doctor-{secrets.token_hex(8)}"
        """What the agent is told: by it our traces are found again."""

    async def post(self, path: str, body: Any, *, token: str | None = "", **headers: str) -> Answer:
        """``body`` as it is if it is bytes, else as JSON. Without ``token`` as the owner."""
        content = body if isinstance(body, bytes) else msgspec.json.encode(body)
        return await self.send("POST", path, content, token=token, **headers)

    async def get(self, path: str, *, token: str | None = "", **headers: str) -> Answer:
        return await self.send("GET", path, None, token=token, **headers)

    async def send(
        self, method: str, path: str, body: bytes | None, *, token: str | None, **headers: str
    ) -> Answer:
        """``token``: empty for the owner's, None for none."""
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        sent = {"Accept": _ACCEPT, "Content-Type": "application/json", **given}
        if token is not None:
            sent["Authorization"] = f"Bearer {token or self.run.token}"
        async with (
            asyncio.timeout(WAIT_S),
            self._http.request(
                method,
                f"{self.run.url.rstrip('/')}{path}",
                data=body,
                headers=sent,
                allow_redirects=False,
            ) as answer,
        ):
            return Answer(answer.status, answer.headers, await answer.read())

    async def tidy(self) -> None:
        """Take away the conversations that these requests have opened."""
        found = await self.client.call("chat.list", limit=_LISTED)
        for row in found["conversations"]:
            if self.word in str(row.get("last")):
                await self.client.call("chat.delete", conversation=row["conversation"])


@asynccontextmanager
async def visiting(run: RunInfo) -> AsyncIterator[Visit]:
    """Only a node that proves its key is shown the token. Nothing is left behind."""
    async with (
        await RemoteClient.connect(run) as client,
        aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar(), trust_env=False) as http,
    ):
        visit = Visit(run, http, client)
        try:
            yield visit
        finally:
            await visit.tidy()
