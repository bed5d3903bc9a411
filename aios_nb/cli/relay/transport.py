"""HTTP to a node's ``/mcp``: requests, and the events that answer them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, suppress

import aiohttp

from aios_nb.cli.relay.whereabouts import Place
from aios_nb.wire.eventreader import EventReader

CONNECT_S = 5.0
END_S = 2.0
"""How long a stream may go on after its answer."""
IDLE_S = 30.0
"""Shorter than the node keeps an idle connection: it never closes one under a request."""
RETRY_MS = 500
EVENT_LIMIT_BYTES = 16 << 20
"""One event may have so much; a node's own answers stay below a quarter of it."""
_ACCEPT = {"Accept": "application/json, text/event-stream", "Content-Type": "application/json"}

Response = AbstractAsyncContextManager[aiohttp.ClientResponse]


class Transport:
    """The connections to whichever node is there."""

    def __init__(self) -> None:
        self._http = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=IDLE_S),
            timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S),
            cookie_jar=aiohttp.DummyCookieJar(),
            trust_env=False,
        )

    def post(self, place: Place, body: bytes, headers: Mapping[str, str]) -> Response:
        return self._send("POST", place, headers, body)

    def get(self, place: Place, headers: Mapping[str, str]) -> Response:
        """A stream of what the node says by itself, or the rest of one."""
        return self._send("GET", place, headers)

    def delete(self, place: Place, headers: Mapping[str, str]) -> Response:
        return self._send("DELETE", place, headers)

    def _send(
        self, method: str, place: Place, headers: Mapping[str, str], body: bytes | None = None
    ) -> Response:
        sent = {**_ACCEPT, **place.headers, **headers}
        return self._http.request(method, place.url, data=body, headers=sent, allow_redirects=False)

    async def close(self) -> None:
        await self._http.close()


class Stream:
    """Where a stream of events is: what came last, and when to come again."""

    def __init__(self) -> None:
        self.last: str | None = None
        self.retry_ms = RETRY_MS

    async def read(self, response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
        """The data of each event. Raises ``TooLong``."""
        events = EventReader(EVENT_LIMIT_BYTES)
        async for piece in response.content.iter_any():
            for event in events.feed(piece):
                self.last = event.id or self.last
                if event.retry_ms is not None:
                    self.retry_ms = event.retry_ms
                yield event.data


async def read_out(response: aiohttp.ClientResponse) -> None:
    """Hear a stream to its end, which is near: its connection is then good for the next one.

    A node may take a connection that is closed early for a request that is given up.
    """
    with suppress(aiohttp.ClientError, OSError, TimeoutError):
        async with asyncio.timeout(END_S):
            while await response.content.readany():
                pass
