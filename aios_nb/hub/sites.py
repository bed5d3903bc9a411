"""Beyond what a node can hold: it asks a few that hold more, and believes only signatures."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Sequence
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from aios_nb.envelope import AgentRow
from aios_nb.errors import ConnectionLost, RecordError, RpcError
from aios_nb.hub.others import Light, row_of
from aios_nb.identity import from_base64url
from aios_nb.ports import Link
from aios_nb.records import RECORD_LIMIT_BYTES, AgentRecord, check_time, parse

log = logging.getLogger("aios_nb.hub")

SITES_ASKED = 3
WHY = "found by another node"
SITE_S = 3.0
"""How long a larger site may take."""
_RECORD_CHARS = RECORD_LIMIT_BYTES * 4 // 3 + 4


class Told(msgspec.Struct, frozen=True):
    """What counts in a row that another node found: the proof, and how well it fits."""

    record: Annotated[str, Meta(max_length=_RECORD_CHARS)]
    score: Annotated[float, Meta(ge=0, le=1)] = 0.0


class LargerSites:
    """Search and names, asked of nodes that hold more records than this one."""

    def __init__(
        self,
        network: str,
        *,
        sites: Callable[[], Sequence[str]],
        reach: Callable[[str], Awaitable[Link]],
        light: Callable[[AgentRecord], Light | None],
        name_of: Callable[[str], str] = lambda _: "",
    ) -> None:
        """``sites``: whom to ask, the best first. ``light`` is None for a node not known here."""
        self._name_of = name_of
        self._network = network
        self._sites = sites
        self._reach = reach
        self._light = light

    async def search(self, words: str, limit: int) -> list[AgentRow]:
        """What they find, best first; each agent once, as its own record describes it."""
        sites = self._sites()[:SITES_ASKED]
        answers = await asyncio.gather(*(self._ask(site, words, limit) for site in sites))
        best: dict[str, AgentRow] = {}
        for row in (row for rows in answers for row in rows):
            known = best.get(row.id)
            if known is None or row.score > known.score:
                best[row.id] = row
        return sorted(best.values(), key=lambda row: (-row.score, row.id))[:limit]

    async def named(self, name: str) -> list[str]:
        """The ids of agents of that name that they know."""
        rows = await self.search(f"name:{name}", 20)
        return sorted(row.id for row in rows if row.name == name)

    async def _ask(self, site: str, words: str, limit: int) -> list[AgentRow]:
        try:
            async with asyncio.timeout(SITE_S):
                link = await self._reach(site)
                answer: Any = await link.call("agents.search", {"query": words, "limit": limit})
        except (RpcError, ConnectionLost, TimeoutError) as problem:
            log.debug("%s was asked in vain: %s", site, problem)
            return []
        rows = answer.get("agents") if isinstance(answer, dict) else None
        found = (self._read(row) for row in (rows if isinstance(rows, list) else ())[:limit])
        return [row for row in found if row is not None]

    def _read(self, row: Any) -> AgentRow | None:
        """The agent by its own signed word; nothing of the row itself is believed."""
        try:
            told = msgspec.convert(row, Told)
            record = parse(from_base64url(told.record)).record
            check_time(record, int(time.time() * 1000))
        except (msgspec.ValidationError, RecordError, ValueError):
            return None
        if not isinstance(record, AgentRecord) or record.net != self._network or record.withdrawn:
            return None
        light = self._light(record) or Light.LIVE
        if light is Light.GONE:
            return None
        shown = row_of(record, light, self._name_of(record.node))
        return msgspec.structs.replace(shown, score=round(told.score, 4), why=WHY)


def merged(near: Sequence[AgentRow], far: Sequence[AgentRow], limit: int) -> list[AgentRow]:
    """Both, best first; what is known here counts as it was found here."""
    known = {row.id for row in near}
    rows = [*near, *(row for row in far if row.id not in known)]
    return sorted(rows, key=lambda row: (not row.live, -row.score))[:limit]
