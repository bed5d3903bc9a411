"""Fetching from URLs that others chose: only where it is safe, never more than was meant.

Whoever gives us a URL may want us to knock on doors that it cannot reach itself. So a name is
looked up once, all its addresses are looked at, and the connection goes to one of these; redirects
are followed by hand, and each is a new URL. What comes back is bounded in length and time.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
from collections.abc import AsyncIterator, Mapping
from typing import Any, Self

import aiohttp
import msgspec
import yarl
from aiohttp.abc import AbstractResolver, ResolveResult

from aios_nb.config import MB
from aios_nb.errors import TooLarge, Unreachable, UsageError
from aios_nb.records import Scope
from aios_nb.wire.places import Place, Resolve, looked_at, looked_up, shown

REDIRECTS_MAX = 3
BODY_LIMIT_BYTES = 4 * MB
TIMEOUT_S = 20.0
CONNECT_S = 10.0
_CHUNK_BYTES = 64 << 10
_OK = 200
_MOVED = frozenset({301, 302, 303, 307, 308})
_NEVER_SENT = (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError, aiohttp.InvalidURL)
_MOVED_AS_IT_IS = frozenset({307, 308})


class Fetched(msgspec.Struct, frozen=True):
    """An answer, all of it."""

    status: int
    headers: Mapping[str, str]
    """Their names in any case."""
    body: bytes
    place: Place
    """Where it came from in the end."""
    scope: Scope
    """``LOOPBACK`` if a program of this machine answered."""

    @property
    def url(self) -> str:
        return self.place.url

    def json(self) -> Any:
        """The body as builtins. Raises ``Unreachable`` if it is no JSON."""
        try:
            return msgspec.json.decode(self.body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            raise Unreachable(
                f"what {shown(self.url)} answered is no JSON", hint="is it the right URL?"
            ) from None


class Flow:
    """An answer as it comes: its head first, then pieces."""

    def __init__(
        self, response: aiohttp.ClientResponse, place: Place, scope: Scope, limit_bytes: int
    ) -> None:
        self._response = response
        self._limit_bytes = limit_bytes
        self.place = place
        self.scope = scope
        self.status = response.status
        self.headers: Mapping[str, str] = response.headers

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Pieces of any length. Raises ``TooLarge``, or ``Unreachable`` when it breaks off."""
        length = 0
        with _in_words(self.place):
            async for piece in self._response.content.iter_chunked(_CHUNK_BYTES):
                length += len(piece)
                if length > self._limit_bytes:
                    raise TooLarge(
                        f"{shown(self.place.url)} answers with more than {self._limit_bytes} bytes"
                    )
                yield piece

    async def read(self, limit_bytes: int | None = None) -> Fetched:
        """The rest of it. Raises ``TooLarge`` as soon as it is more than that."""
        if limit_bytes is not None:
            self._limit_bytes = min(self._limit_bytes, limit_bytes)
        declared = self._response.content_length or 0
        if declared > self._limit_bytes:
            raise TooLarge(f"{shown(self.place.url)} answers with {declared} bytes")
        body = b"".join([piece async for piece in self])
        return Fetched(self.status, self.headers, body, self.place, self.scope)


class Fetcher:
    """Fetches from public servers and, if ``local``, from programs of this machine.

    ``secrets`` are headers for one ``origin`` alone; nobody else is ever sent them, and that one
    only over TLS or inside this machine.
    """

    def __init__(
        self,
        *,
        local: bool = False,
        limit_bytes: int = BODY_LIMIT_BYTES,
        timeout_s: float = TIMEOUT_S,
        secrets: Mapping[str, str] | None = None,
        origin: str | None = None,
        resolve: Resolve = looked_up,
    ) -> None:
        self.local = local
        self._limit_bytes = limit_bytes
        self._timeout_s = timeout_s
        self._secrets = dict(secrets or {})
        self._origin = origin
        self._resolve = resolve
        self._pinned = _Pinned()
        self._session: aiohttp.ClientSession | None = None

    async def get_json(self, url: str) -> Any:
        """What is there, as builtins. Raises ``Unreachable`` for every status but 200."""
        found = await self.get(url, headers={"Accept": "application/json"})
        if found.status != _OK:
            raise refused(found.url, found.status)
        return found.json()

    async def get(self, url: str, *, headers: Mapping[str, str] | None = None) -> Fetched:
        """What is there, with any status."""
        async with self._in_time(url), self.stream("GET", url, headers=headers) as flow:
            return await flow.read()

    @contextlib.asynccontextmanager
    async def stream(
        self,
        method: str,
        url: str,
        body: bytes | None = None,
        *,
        headers: Mapping[str, str] | None = None,
        limit_bytes: int | None = None,
    ) -> AsyncIterator[Flow]:
        """An answer in pieces; only its head has to come in time. Leaving it ends it.

        Raises ``Unreachable`` with ``data.ran``: ``no`` if nothing was sent.
        """
        place, local = Place.parse(url), self.local
        limit = self._limit_bytes if limit_bytes is None else limit_bytes
        for _ in range(1 + REDIRECTS_MAX):
            async with self._in_time(place.url):
                addresses, scope = await looked_at(
                    place.host, place.port, local=local, resolve=self._resolve
                )
                response = await self._ask(method, place, body, headers, addresses, scope)
            try:
                target = response.headers.get("Location")
                if response.status not in _MOVED or target is None:
                    yield Flow(response, place, scope, limit)
                    return
                place = _next(method, place, response.status, target)
                # Who is out there must not send us in here.
                local = local and scope is Scope.LOOPBACK
            finally:
                response.close()
        raise Unreachable(f"{shown(url)} sends us elsewhere again and again", reason="refused")

    async def close(self) -> None:
        """Close every connection that is still held."""
        session, self._session = self._session, None
        if session is not None:
            await session.close()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def _ask(
        self,
        method: str,
        place: Place,
        body: bytes | None,
        headers: Mapping[str, str] | None,
        addresses: list[str],
        scope: Scope,
    ) -> aiohttp.ClientResponse:
        sent = {**(headers or {}), **self._secrets_for(place, scope)}
        self._pinned.addresses[place.host] = addresses
        with _in_words(place):
            return await self._open().request(
                method,
                yarl.URL(place.url, encoded=True),
                data=body,
                headers=sent,
                allow_redirects=False,
            )

    def _secrets_for(self, place: Place, scope: Scope) -> Mapping[str, str]:
        if not self._secrets or place.origin != self._origin:
            return {}
        if place.scheme != "https" and scope is not Scope.LOOPBACK:
            raise UsageError("a token is sent over https only", hint=f"https://{place.host}")
        return self._secrets

    def _open(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                # Every connection is made anew: to an address that was just looked at, and never
                # to find that the other side had closed it before it heard the question.
                connector=aiohttp.TCPConnector(
                    limit=0, force_close=True, use_dns_cache=False, resolver=self._pinned
                ),
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=CONNECT_S),
                trust_env=False,
            )
        return self._session

    @contextlib.asynccontextmanager
    async def _in_time(self, url: str) -> AsyncIterator[None]:
        try:
            async with asyncio.timeout(self._timeout_s):
                yield
        except TimeoutError:
            raise _late(url) from None


class _Pinned(AbstractResolver):
    """Knows only the addresses that were looked at."""

    def __init__(self) -> None:
        self.addresses: dict[str, list[str]] = {}

    async def resolve(
        self,
        host: str,
        port: int = 0,
        family: socket.AddressFamily = socket.AF_UNSPEC,  # noqa: ARG002 - both are looked at
    ) -> list[ResolveResult]:
        if host.lower() not in self.addresses:
            raise OSError(f"{host} was not looked at")
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=0,
                flags=socket.AI_NUMERICHOST | socket.AI_NUMERICSERV,
            )
            for address in self.addresses[host.lower()]
        ]

    async def close(self) -> None:
        self.addresses.clear()


def refused(url: str, status: int) -> Unreachable:
    """The error for an answer that is none."""
    return Unreachable(f"{shown(url)} answered with HTTP {status}", reason="refused", status=status)


def _next(method: str, place: Place, status: int, target: str) -> Place:
    there = place.beside(target)
    if place.scheme == "https" and there.scheme != "https":
        raise Unreachable(f"{shown(place.url)} sends us to a URL without TLS", reason="refused")
    if method != "GET" and (status not in _MOVED_AS_IT_IS or there.origin != place.origin):
        raise Unreachable(
            f"{shown(place.url)} sends us to {shown(there.url)}",
            hint="use that URL, if you trust it",
            reason="refused",
        )
    return there


@contextlib.contextmanager
def _in_words(place: Place) -> Any:
    """The framework's failures as one line."""
    try:
        yield
    except (aiohttp.ClientError, OSError, ValueError) as problem:
        # A ValueError is how the framework says that a URL or a header is odd.
        if isinstance(problem, TimeoutError) and not isinstance(problem, _NEVER_SENT):
            raise _late(place.url) from None
        raise Unreachable(
            f"{shown(place.url)} could not be reached: {_reason(problem)}",
            reason="no answer",
            ran="no" if isinstance(problem, _NEVER_SENT) else "unknown",
        ) from None


def _reason(problem: Exception) -> str:
    if isinstance(problem, aiohttp.ClientConnectorCertificateError):
        return "its certificate is not good"
    if isinstance(problem, aiohttp.ClientConnectorError) and problem.os_error.errno:
        return os.strerror(problem.os_error.errno).lower()
    if isinstance(problem, aiohttp.ConnectionTimeoutError):
        return "nobody opens there"
    if isinstance(problem, aiohttp.ServerDisconnectedError | aiohttp.ClientPayloadError):
        return "the connection broke"
    return type(problem).__name__


def _late(url: str) -> Unreachable:
    return Unreachable(
        f"{shown(url)} did not answer in time",
        hint="try again later",
        reason="no answer",
        ran="unknown",
    )
