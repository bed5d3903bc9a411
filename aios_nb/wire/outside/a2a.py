"""An A2A 1.0 agent behind a URL: its card, looked at and verified, and the way to its tasks."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Coroutine, Mapping
from typing import Any

from aios_nb.config import KB, Limits
from aios_nb.envelope import DEADLINE_MAX_S, Seen, new_id
from aios_nb.errors import AgentFailed, RpcError, Unreachable
from aios_nb.ports import Blobs, Carrier, ContextMemory
from aios_nb.records import Scope
from aios_nb.wire.fetching import Fetched, Fetcher, refused
from aios_nb.wire.outside.cards import (
    CARD_LIMIT_BYTES,
    WELL_KNOWN,
    Interface,
    NoCard,
    interface_of,
    read_card,
)
from aios_nb.wire.outside.journeys import A2aCarrier
from aios_nb.wire.outside.rpc import Lost, Refusal, Rpc
from aios_nb.wire.outside.signatures import check
from aios_nb.wire.places import Place, shown

log = logging.getLogger("aios_nb.wire")

FRESH_S = 60.0
"""A card that was looked at so long ago is looked at again before the agent is asked."""
LOOK_S = 15.0
STOP_S = 10.0
_OK = 200
_SHUT = frozenset({401, 403})


class A2aAgent:
    """One agent of others. Is a ``ports.Outsider``."""

    kind = "a2a"

    def __init__(
        self,
        url: str,
        blobs: Blobs,
        limits: Limits,
        *,
        local: bool = False,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        """``headers`` go to the origin of ``url`` alone."""
        self.blobs = blobs
        self.limits = limits
        self._place = Place.parse(url)
        self._card_url = self._place.url
        self._cards = Fetcher(
            local=local,
            limit_bytes=CARD_LIMIT_BYTES + KB,
            timeout_s=LOOK_S,
            secrets=headers,
            origin=self._place.origin,
        )
        self._calls: dict[bool, Fetcher] = {}
        self._headers = dict(headers or {})
        self._inside = False
        """Its card came from this machine: so may its interface."""
        self._home = self._place.origin
        self._last: tuple[float, Seen] | None = None
        self._looking = asyncio.Lock()
        self._finishing: set[asyncio.Task[None]] = set()

    @property
    def address(self) -> str:
        """The URL of its card."""
        return self._card_url

    async def find(self) -> Seen:
        """Look for its card at and around the URL. Raises ``Unreachable`` if there is none."""
        given = self._place.url.partition("?")[0].rstrip("/")
        if given.endswith(".json"):
            return await self.look()
        problem: RpcError | None = None
        for url in dict.fromkeys((given + WELL_KNOWN, self._place.origin + WELL_KNOWN)):
            self._card_url = url
            try:
                # The card of a whole site speaks for this URL only if it says so.
                return await self._seen(None if url == given + WELL_KNOWN else given)
            except NoCard as error:
                problem = problem or Unreachable(error.message, reason="refused", status=_OK)
            except Unreachable as error:
                if error.data.get("status") in {None, *_SHUT}:
                    raise
                problem = problem or error
        self._card_url = self._place.url
        raise problem or Unreachable(f"no agent card at {shown(given)}", status=_OK)

    async def look(self) -> Seen:
        """Its card, verified, and a question that only an A2A agent understands."""
        return await self._seen()

    async def confirm(self, seen: Seen) -> None:
        """Make sure that it is what was approved. Raises ``AgentFailed`` if it has changed."""
        last = self._last
        try:
            fresh = last is not None and time.monotonic() - last[0] < FRESH_S
            now = last[1] if last is not None and fresh else await self.look()
        except Unreachable as error:
            error.data["ran"] = "no"  # only its card was asked for
            raise
        if now.pin != seen.pin:
            raise AgentFailed(
                "its card has changed since it was approved",
                hint="look at it, then approve it: aios-nb hub approve NAME",
                ran="no",
                changed=True,
            )

    def carrier(self, seen: Seen, memory: ContextMemory) -> Carrier:
        return A2aCarrier(self, seen, memory)

    def rpc(self, interface: Interface) -> Rpc:
        """The way to ask it."""
        self._home = Place.parse(interface.url).origin
        return Rpc(self._caller(), interface.url, interface.tenant)

    def is_home(self, place: Place) -> bool:
        """Whether that is the agent's own server."""
        return place.origin == self._home

    async def file(self, url: str, limit_bytes: int) -> bytes:
        """A file on its own server."""
        async with self._caller().stream("GET", url, limit_bytes=limit_bytes) as flow:
            found = await flow.read()
        if found.status != _OK:
            raise refused(url, found.status)
        return found.body

    def finish(self, work: Coroutine[Any, Any, None]) -> None:
        """Let this come to its end, though nobody waits for it."""
        finishing = asyncio.ensure_future(work)
        self._finishing.add(finishing)
        finishing.add_done_callback(self._finishing.discard)

    async def called_off(self, rpc: Rpc, their_id: str) -> None:
        """Tell it to stop, if it can be told."""
        try:
            async with asyncio.timeout(STOP_S):
                await rpc.call("CancelTask", {"id": their_id})
        except (RpcError, Lost, TimeoutError) as error:
            log.debug("an A2A agent was not told to stop: %s", error)

    async def close(self) -> None:
        """Leave no connection and no task behind."""
        while self._finishing:
            await asyncio.wait(self._finishing)
        for fetcher in (self._cards, *self._calls.values()):
            await fetcher.close()

    # Looking -----------------------------------------------------------------------------

    async def _seen(self, endpoint: str | None = None) -> Seen:
        """The same; with an ``endpoint``, only the card of the agent at that URL will do."""
        async with self._looking:
            seen = await self._look(endpoint)
            self._last = (time.monotonic(), seen)
            return seen

    async def _look(self, endpoint: str | None) -> Seen:
        found = await self._cards.get(self._card_url, headers={"Accept": "application/json"})
        if found.status != _OK:
            raise refused(found.url, found.status)
        card = read_card(found.body, found.url)
        signature = await check(card, found.place, self._cards.get_json)
        interface = interface_of(card.known)
        if endpoint is not None and interface.url.rstrip("/") != endpoint:
            raise NoCard(f"the card at {shown(found.url)} is another agent's")
        self._inside = self._cards.local and found.scope is Scope.LOOPBACK
        await self._greet(interface, found)
        return Seen(
            title=card.title,
            about=card.about,
            tags=card.tags,
            examples=card.examples,
            version=card.version,
            details={
                "card": card.shown(),
                "signature": signature.state,
                "key": signature.key,
                "url": interface.url,
            },
            pin=card.pin(signature.key),
        )

    async def _greet(self, interface: Interface, card: Fetched) -> None:
        """Ask for a task that is not there: a server that is none says something else."""
        try:
            async with asyncio.timeout(LOOK_S):
                await self.rpc(interface).call("GetTask", {"id": new_id("t")})
        except Refusal:
            return
        except (Lost, TimeoutError):
            raise Unreachable(
                f"no agent answers at {shown(interface.url)}, which {shown(card.url)} names",
                hint="try again later",
                reason="no answer",
            ) from None

    def _caller(self) -> Fetcher:
        """What asks it: patient, for an agent may think long before it says the first word."""
        fetcher = self._calls.get(self._inside)
        if fetcher is None:
            fetcher = self._calls[self._inside] = Fetcher(
                local=self._inside,
                timeout_s=DEADLINE_MAX_S,
                secrets=self._headers,
                origin=self._place.origin,
            )
        return fetcher
