"""The nodes that were joined: each has a link for as long as this node runs, or is dialled again.

A URL without a node id is trusted on first use: who answered there once is who is expected there.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

from aios_nb.errors import Unreachable
from aios_nb.wire.peer.dial import NoLink

if TYPE_CHECKING:
    from aios_nb.joining import Pins
    from aios_nb.wire.peer.link import PeerLink

log = logging.getLogger(__name__)

BACKOFF_S = (0.2, 15.0)
"""The first pause between two dials of a joined node, and the longest."""

Spawn = Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]]


class Ways(Protocol):
    """How links are made and missed: the part of ``PeerLinks`` that joining needs."""

    async def reach(self, node_id: str) -> PeerLink: ...
    async def news(self, node_id: str, within_s: float) -> None: ...
    def link(self, node_id: str) -> PeerLink | None: ...


class Joined:
    """A URL that is linked to for as long as this node runs."""

    def __init__(self, url: str, node_id: str | None) -> None:
        self.url = url
        self.node_id = node_id
        self.problem = ""
        """Why the last dial failed."""
        self.tried = asyncio.Event()
        self.task: asyncio.Task[None] | None = None


class Joins:
    """Keeps the links to joined nodes warm."""

    def __init__(
        self,
        ways: Ways,
        dial: Callable[[str], Awaitable[PeerLink]],
        pins: Pins | None,
        clock: Callable[[], float],
    ) -> None:
        """``dial`` links to whoever is at a URL."""
        self._ways = ways
        self._dial = dial
        self._pins = pins
        self._clock = clock
        self._joined: dict[str, Joined] = {}
        self._warned: set[str] = set()

    def add(self, url: str, node_id: str | None, spawn: Spawn) -> None:
        """Link to it from now on."""
        if url not in self._joined:
            joined = self._joined[url] = Joined(url, node_id)
            joined.task = spawn(self._keep_warm(joined))

    def ids(self) -> Sequence[str]:
        """The nodes that were joined, as far as known yet."""
        return tuple(dict.fromkeys(j.node_id for j in self._joined.values() if j.node_id))

    def keeps(self, node_id: str) -> bool:
        """Whether that node was joined."""
        return any(joined.node_id == node_id for joined in self._joined.values())

    def urls(self, node_id: str) -> Sequence[str]:
        """Where that node was joined."""
        return tuple(j.url for j in self._joined.values() if j.node_id == node_id)

    def waiting(self) -> list[dict[str, str]]:
        """The joined URLs without a link: ``url``, ``node_id`` if known, and ``problem``."""
        return [
            {"url": j.url, "node_id": j.node_id or "", "problem": j.problem}
            for j in self._joined.values()
            if not j.node_id or self._ways.link(j.node_id) is None
        ]

    async def met(self, within_s: float) -> None:
        """Return when every joined node was dialled once, or after so many seconds."""
        fresh = [joined for joined in self._joined.values() if not joined.tried.is_set()]
        with suppress(TimeoutError):
            async with asyncio.timeout(within_s):
                for joined in fresh:
                    await joined.tried.wait()

    def close(self) -> None:
        """Dial no more."""
        for joined in self._joined.values():
            if joined.task is not None:
                joined.task.cancel()

    def another(self, url: str, found: str, expected: str) -> NoLink:
        """What to say when another node answers at a joined URL; the log has it once."""
        text = f"{url} is now node {found}, not {expected} as before"
        if url not in self._warned:
            # Once for each URL: whoever is there can claim another id each time.
            self._warned.add(url)
            log.warning("%s; it is refused (if that is right, join %s#%s)", text, url, found)
        return NoLink("refused", text, found)

    async def _keep_warm(self, joined: Joined) -> None:
        first, longest = BACKOFF_S
        pause = first
        while True:
            link = await self._warm(joined)
            joined.tried.set()
            if link is not None:
                began = self._clock()
                await asyncio.shield(link.over)
                if joined.node_id and self._ways.link(joined.node_id):
                    continue  # another one took its place
                if self._clock() - began > first:
                    pause = first
            nap = pause * random.uniform(0.5, 1.0)  # noqa: S311 - only that not all come at once
            pause = min(2 * pause, longest)
            if joined.node_id:
                await self._ways.news(joined.node_id, nap)
            else:
                await asyncio.sleep(nap)

    async def _warm(self, joined: Joined) -> PeerLink | None:
        """A link to the joined node, or None and the problem noted."""
        try:
            if joined.node_id is None and self._pins is not None:
                joined.node_id = self._pins.get(joined.url)
            if joined.node_id is not None:
                link = await self._ways.reach(joined.node_id)
            else:
                link = await self._first_sight(joined)
        except Unreachable as problem:
            joined.problem = problem.hint or problem.message
        except NoLink as problem:
            joined.problem = str(problem)
        else:
            joined.problem = ""
            return link
        self._complain(joined)
        return None

    def _complain(self, joined: Joined) -> None:
        """The first time loud: who typed the address wants to know."""
        loud = not joined.tried.is_set() and joined.url not in self._warned
        said = joined.problem.removeprefix(f"{joined.url}: ")
        level = logging.WARNING if loud else logging.DEBUG
        log.log(level, "no link to %s yet: %s; it is tried again", joined.url, said)

    async def _first_sight(self, joined: Joined) -> PeerLink:
        link = await self._dial(joined.url)
        node_id = link.node_id
        kept = await self._pins.put(joined.url, node_id) if self._pins is not None else node_id
        if kept != node_id:
            link.abort("broke")
            raise self.another(joined.url, node_id, kept)
        joined.node_id = node_id
        return link
