"""The HTTP connection to an MCP server: only to checked addresses, and never more than was meant.

The protocol library follows redirects within one origin alone. Here a name is looked up for each
connection, all its addresses are checked, and the connection goes to one of these.
"""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterable, AsyncIterator, Iterable, Mapping, Sequence
from typing import Any

import httpcore2
import httpx2

from aios_nb.addresses import scope_of
from aios_nb.config import MB
from aios_nb.errors import TooLarge, UsageError
from aios_nb.records import Scope
from aios_nb.wire.outside.tempo import Tempo
from aios_nb.wire.places import checked

ANSWER_LIMIT_BYTES = 16 * MB
"""One answer: the JSON of one call, or all events on one stream."""
CONNECT_S = 10.0
FAREWELL_S = 3.0
"""For the request that ends a session; whoever answers late is left."""
EAGER_READS = 5
"""Streams may be opened again at once so often; then one in a second."""
_REFUSED = frozenset({401, 403})
_Options = Iterable[httpcore2.SOCKET_OPTION] | None


class Pinned(httpx2.AsyncBaseTransport):
    """Carries requests to one server.

    ``secrets`` are headers for its origin alone, and only over TLS or inside this machine.
    ``status`` and ``trouble`` say what the library does not tell.
    """

    def __init__(self, url: str, *, local: bool, secrets: Mapping[str, str]) -> None:
        self._origin = _origin(httpx2.URL(url))
        self._local = local
        self._secrets = dict(secrets)
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=ssl.create_default_context() if self._origin[0] == "https" else None,
            keepalive_expiry=15.0,
            network_backend=_CheckedBackend(local=local),
        )
        self._reads = Tempo(1.0, EAGER_READS)
        self.messages = Tempo()
        self.status = 0
        """Of the last answer to a message."""
        self.trouble: TooLarge | None = None
        """Why nothing more is asked of it."""

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        if self.trouble is not None:
            raise self.trouble
        if request.method == "GET":
            # A server may end its stream and have it opened again, for ever and without a pause.
            await self._reads.hold()
        if request.method == "DELETE":
            request.extensions["timeout"] = httpx2.Timeout(FAREWELL_S).as_dict()
        if self._secrets:
            await self._add_secrets(request)
        url = request.url
        answer = await self._pool.handle_async_request(
            httpcore2.Request(
                method=request.method,
                url=httpcore2.URL(
                    scheme=url.raw_scheme, host=url.raw_host, port=url.port, target=url.raw_path
                ),
                headers=request.headers.raw,
                content=request.stream,
                extensions=request.extensions,
            )
        )
        if request.method == "POST":
            self.status = answer.status
        return httpx2.Response(
            answer.status,
            headers=answer.headers,
            stream=_Bounded(answer.stream, self, in_events=_is_events(answer.headers)),
            extensions=answer.extensions,
        )

    async def aclose(self) -> None:
        await self._pool.aclose()

    @property
    def wants_token(self) -> bool:
        return self.status in _REFUSED

    def too_large(self) -> TooLarge:
        self.trouble = TooLarge(
            f"the server answers with more than {ANSWER_LIMIT_BYTES // MB} MB",
            hint="ask it for less",
        )
        return self.trouble

    async def _add_secrets(self, request: httpx2.Request) -> None:
        if _origin(request.url) != self._origin:
            return
        if self._origin[0] != "https":
            found = await checked(self._origin[1], self._origin[2], local=self._local)
            if any(scope_of(address) is not Scope.LOOPBACK for address in found):
                raise UsageError(
                    "a token is not sent without TLS", hint="use the server's https:// URL"
                )
        request.headers.update(self._secrets)


class _CheckedBackend(httpcore2.AsyncNetworkBackend):
    """Connects to addresses that were looked at, never to a name."""

    def __init__(self, *, local: bool) -> None:
        self._local = local
        self._sockets = httpcore2.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109 - the library's signature
        local_address: str | None = None,
        socket_options: _Options = None,
    ) -> httpcore2.AsyncNetworkStream:
        problem: Exception = httpcore2.ConnectError("no address")
        for address in await checked(host, port, local=self._local):
            try:
                return await self._sockets.connect_tcp(
                    address, port, timeout, local_address, socket_options
                )
            except (httpcore2.ConnectError, httpcore2.ConnectTimeout) as refused:
                problem = refused
        raise problem

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,  # noqa: ASYNC109 - the library's signature
        socket_options: _Options = None,
    ) -> httpcore2.AsyncNetworkStream:
        del path, timeout, socket_options
        raise httpcore2.ConnectError("a server has a URL")

    async def sleep(self, seconds: float) -> None:
        await self._sockets.sleep(seconds)


class _Bounded(httpx2.AsyncByteStream):
    """An answer up to the limit, as it was sent: nothing is unpacked, so nothing can swell."""

    def __init__(self, pieces: Any, door: Pinned, *, in_events: bool) -> None:
        self._pieces: AsyncIterable[bytes] = pieces
        self._door = door
        self._in_events = in_events

    async def __aiter__(self) -> AsyncIterator[bytes]:
        length = 0
        async for piece in self._pieces:
            length += len(piece)
            if length > ANSWER_LIMIT_BYTES:
                raise self._door.too_large()
            if self._in_events:
                await self._door.messages.hold(piece.count(b"data:"))
            yield piece

    async def aclose(self) -> None:
        close = getattr(self._pieces, "aclose", None)
        if close is not None:
            await close()


def client(door: Pinned) -> httpx2.AsyncClient:
    """A client over that door: no proxy, no packed answers, no limit on a silent stream.

    How long a call may take is up to whoever asked for it.
    """
    return httpx2.AsyncClient(
        transport=door,
        trust_env=False,
        timeout=httpx2.Timeout(CONNECT_S, read=None),
        headers={"accept-encoding": "identity"},
        event_hooks={"response": [_unpacked]},
    )


async def _unpacked(response: httpx2.Response) -> None:
    if response.headers.get("content-encoding", "identity").lower() != "identity":
        await response.aclose()
        raise httpx2.RemoteProtocolError("the server packs its answers, unasked")


def _is_events(headers: Sequence[tuple[bytes, bytes]]) -> bool:
    return any(
        name.lower() == b"content-type" and value.lower().startswith(b"text/event-stream")
        for name, value in headers
    )


def _origin(url: httpx2.URL) -> tuple[str, str, int]:
    return url.scheme, url.host, url.port or (443 if url.scheme == "https" else 80)
