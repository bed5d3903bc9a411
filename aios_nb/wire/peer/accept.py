"""The door for other nodes: who may begin a handshake, and how many at a time.

Whoever knocks costs a little until it has proven its key; so few may stand in the door at once, and
not for long, and strangers have a bucket of their own. Who is not wanted sees the door close.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TYPE_CHECKING, Any, cast

from aiohttp import WSCloseCode, web

from aios_nb.access import STRANGERS, Caller, Principal
from aios_nb.config import Limits
from aios_nb.wire.guard import Bucket, Refusal
from aios_nb.wire.peer.channel import Channel, Closed
from aios_nb.wire.peer.dial import TRY_LATER
from aios_nb.wire.peer.frames import SUBPROTOCOL, Ready, Violation
from aios_nb.wire.peer.handshake import Refused, Responder, Session
from aios_nb.wire.peer.link import exchange_ready
from aios_nb.wire.peer.sealing import Tampered
from aios_nb.wire.replies import HEADERS, refused

if TYPE_CHECKING:
    from aios_nb.identity import Identity
    from aios_nb.wire.connection import Connection

log = logging.getLogger(__name__)

DOOR_BYTES = 8192
"""M1 and M3 together are shorter."""
KNOWN_PER_STRANGER = 10
"""How many more handshakes a second there are for nodes that say they are known."""
_FROM_A_PAGE = Refusal(403, "a page is not a node")
_LATER = Refusal(429, "too many nodes knock at once", "try again later", (("Retry-After", "1"),))


class _TooMany(Exception):
    """Not now."""


Adopt = Callable[[Channel, Session, Ready, Caller], Awaitable[None]]
"""Takes over a proven connection, and returns when it is over."""


class Door:
    """Lets other nodes in."""

    def __init__(
        self,
        identity: Identity,
        network: str,
        limits: Limits,
        *,
        standing: Callable[[str], Caller | None],
        has_room: Callable[[Caller], bool],
        make_room: Callable[[Caller], bool],
        expected: Callable[[], bool],
        ready: Callable[[], Ready],
        adopt: Adopt,
        clock: Callable[[], float],
    ) -> None:
        """``has_room`` is asked by a claim alone, ``make_room`` after its proof.

        ``expected`` says whether a known node may still come.
        """
        self._identity = identity
        self._network = network
        self._limits = limits
        self._standing = standing
        self._has_room = has_room
        self._make_room = make_room
        self._expected = expected
        self._ready = ready
        self._adopt = adopt
        per_s = limits.stranger_handshakes_per_s
        self._strangers = Bucket(per_s, clock)
        self._known = Bucket(per_s * KNOWN_PER_STRANGER, clock)
        self._half_open: dict[object, Channel] = {}

    @property
    def serve(self) -> Door:
        """The door itself, which is a link that can be asked beforehand whether it is shut."""
        return self

    def turns_away(self) -> Refusal | None:
        """Who knocks now can only be one more stranger; who it is need not be asked."""
        return _LATER if self._strangers.is_empty and not self._expected() else None

    async def __call__(self, request: web.BaseRequest, _: Principal) -> web.StreamResponse:
        """Hold a link over the upgraded connection until either side ends it."""
        if "Origin" in request.headers:
            return _turned_away(_FROM_A_PAGE)
        if (refusal := self.turns_away()) is not None:
            return _turned_away(refusal)
        ws: web.WebSocketResponse[Any] = web.WebSocketResponse(
            protocols=(SUBPROTOCOL,),
            compress=False,
        )
        ws.headers.update(HEADERS)
        await ws.prepare(request)
        channel = Channel.accepted(request)
        code = WSCloseCode.OK
        try:
            session, theirs, caller = await self._let_in(
                channel, cast("Connection", request.protocol)
            )
            await self._adopt(channel, session, theirs, caller)
        except _TooMany:
            code = TRY_LATER
        except (Refused, Tampered, Violation) as problem:
            log.debug("a node was not let in: %s", problem)
        except (Closed, TimeoutError):
            pass
        finally:
            channel.close(code)
        # The framework would wait for a goodbye that it cannot hear any more. (An exception would
        # end this too, and leave a circle of frames to the collector.)
        ws._eof_sent = True  # noqa: SLF001 - there is no public word for it
        cast("Connection", request.protocol).force_close()
        return ws

    def close(self) -> None:
        """Turn away who stands in the door."""
        for channel in tuple(self._half_open.values()):
            channel.abort()

    async def _let_in(
        self, channel: Channel, connection: Connection
    ) -> tuple[Session, Ready, Caller]:
        knock = object()
        self._half_open[knock] = channel
        if len(self._half_open) > self._limits.links_half_open:
            # The oldest gives way, so that a flood does not keep others out.
            self._half_open.pop(next(iter(self._half_open))).abort()
        connection.quota = DOOR_BYTES
        try:
            async with asyncio.timeout(self._limits.hello_wait_s):
                session = await self._handshake(channel)
                if not self._make_room(self._caller(session.node_id)):
                    raise _TooMany
                # Its first requests may come with its ready, and be of any length.
                connection.quota = None
                theirs = await exchange_ready(channel, session, self._ready(), dialled=False)
        finally:
            self._half_open.pop(knock, None)
        caller = self._caller(session.node_id)
        # Strangers too, of whom there are few: who has proven nothing must not push them out.
        connection.prove()
        return session, theirs, caller

    async def _handshake(self, channel: Channel) -> Session:
        responder = Responder(self._identity, self._network)
        claimed = responder.read(bytes(await channel.read()))
        caller = self._caller(claimed)
        bucket = self._strangers if caller in STRANGERS else self._known
        if not bucket.take() or not self._has_room(caller):
            raise _TooMany
        channel.write([responder.second()])
        return responder.finish(bytes(await channel.read()))

    def _caller(self, node_id: str) -> Caller:
        caller = self._standing(node_id)
        if caller is None:
            raise Refused(f"{node_id} is blocked")
        return caller


def _turned_away(refusal: Refusal) -> web.Response:
    answer = refused(refusal)
    answer.force_close()
    return answer
