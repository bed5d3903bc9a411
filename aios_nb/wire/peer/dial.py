"""Calls another node: connects, upgrades, proves who is who."""

from __future__ import annotations

import asyncio
import os
import socket
from typing import TYPE_CHECKING, Any

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from aios_nb.addresses import scope_of
from aios_nb.config import Limits
from aios_nb.wire.peer.channel import Channel, Closed
from aios_nb.wire.peer.frames import SUBPROTOCOL, Ready, Violation
from aios_nb.wire.peer.handshake import AnotherNode, Initiator, Refused, Session
from aios_nb.wire.peer.link import exchange_ready
from aios_nb.wire.peer.sealing import Tampered

if TYPE_CHECKING:
    from aios_nb.identity import Identity
    from aios_nb.records import Scope

TRY_LATER = aiohttp.WSCloseCode.TRY_AGAIN_LATER
"""How a node that has too much to do closes; any other way means that it does not want us."""
_TOO_MANY_REQUESTS = 429
_SERVER_ERROR = 500


class NoLink(Exception):
    """It did not come to a link; ``reason`` is that of ``Unreachable``."""

    def __init__(self, reason: str, text: str, node_id: str | None = None) -> None:
        super().__init__(text)
        self.reason = reason
        self.node_id = node_id
        """Who answered, if it was another node than it should be."""


class Dialler:
    """Makes connections; holds what they share until it is closed."""

    def __init__(self, identity: Identity, network: str, limits: Limits) -> None:
        self._identity = identity
        self._network = network
        self._limits = limits
        self._sessions: dict[Scope | None, aiohttp.ClientSession] = {}

    async def dial(
        self, url: str, mine: Ready, *, expects: str | None = None, scope: Scope | None = None
    ) -> tuple[Channel, Session, Ready]:
        """A proven connection to the node at ``url``. Raises ``NoLink``.

        With a ``scope``, names may only stand for addresses of it: the URL is not our owner's.
        """
        try:
            async with asyncio.timeout(self._limits.hello_wait_s):
                ws = await self._connect(url, scope)
                channel = Channel.dialled(ws)
                try:
                    session, theirs = await self._prove(ws, channel, mine, expects)
                except BaseException:
                    channel.abort()
                    channel.release()
                    raise
                return channel, session, theirs
        except TimeoutError:
            raise NoLink("no answer", f"{url} did not answer in time") from None
        except AnotherNode as problem:
            raise NoLink("refused", problem.message, problem.node_id) from None
        except (Closed, Refused, Tampered, Violation) as problem:
            raise NoLink("refused", f"{url}: {problem}") from None
        except aiohttp.WSServerHandshakeError as problem:
            raise _http_refusal(url, problem.status) from None
        except (aiohttp.ClientError, OSError, ValueError) as problem:
            # A ValueError is how the framework says that a URL or a header is odd.
            raise NoLink("no answer", f"{url}: {_in_words(problem)}") from None

    async def close(self) -> None:
        """Close every connection that is still held."""
        sessions = tuple(self._sessions.values())
        self._sessions.clear()
        for session in sessions:
            await session.close()

    async def _connect(self, url: str, scope: Scope | None) -> aiohttp.ClientWebSocketResponse[Any]:
        return await self._session(scope).ws_connect(
            url.rstrip("/") + "/ws",
            protocols=(SUBPROTOCOL,),
            compress=0,
        )

    async def _prove(
        self,
        ws: aiohttp.ClientWebSocketResponse[Any],
        channel: Channel,
        mine: Ready,
        expects: str | None,
    ) -> tuple[Session, Ready]:
        if ws.protocol != SUBPROTOCOL:
            raise Refused("it does not speak our protocol")
        try:
            initiator = Initiator(self._identity, self._network, expects=expects)
            channel.write([initiator.first()])
            m3, session = initiator.third(bytes(await channel.read()))
            channel.write([m3])
            return session, await exchange_ready(channel, session, mine, dialled=True)
        except Closed:
            if channel.close_code == TRY_LATER:
                raise NoLink("no answer", "it has too much to do at the moment") from None
            if channel.close_code is None:  # who does not want us says goodbye
                raise NoLink("no answer", "the connection broke") from None
            raise Refused("it refuses the link (blocked there, or another network)") from None

    def _session(self, scope: Scope | None) -> aiohttp.ClientSession:
        session = self._sessions.get(scope)
        if session is None:
            resolver = None if scope is None else _Careful(scope)
            session = self._sessions[scope] = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0, force_close=True, resolver=resolver),
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None),
                trust_env=False,
                middlewares=(_no_redirects,),
            )
        return session


class _Careful(AbstractResolver):
    """Finds only addresses of one scope: a name may stand for anything, and change."""

    def __init__(self, scope: Scope) -> None:
        self._scope = scope
        self._inner = aiohttp.ThreadedResolver()

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_INET
    ) -> list[ResolveResult]:
        found = await self._inner.resolve(host, port, family)
        fitting = [one for one in found if scope_of(one["host"]) is self._scope]
        if not fitting:
            raise OSError(f"{host} is not {self._scope}")
        return fitting

    async def close(self) -> None:
        await self._inner.close()


async def _no_redirects(
    request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType
) -> aiohttp.ClientResponse:
    response = await handler(request)
    if 300 <= response.status < 400:  # noqa: PLR2004
        response.close()
        raise aiohttp.ClientError("it sends us elsewhere")
    return response


def _in_words(problem: Exception) -> str:
    """What went wrong, without the framework's own address book."""
    if isinstance(problem, aiohttp.ClientConnectorError) and problem.os_error.errno:
        return os.strerror(problem.os_error.errno).lower()
    return str(problem)


def _http_refusal(url: str, status: int) -> NoLink:
    away = status == _TOO_MANY_REQUESTS or status >= _SERVER_ERROR
    return NoLink("no answer" if away else "refused", f"{url} answered with HTTP {status}")
