"""What someone who searches is shown: by who they are, from here and from larger sites."""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any

import msgspec

from aios_nb.access import Access, Caller, Principal
from aios_nb.envelope import AgentRow
from aios_nb.errors import Busy
from aios_nb.hub.gossip.trust import Allowance
from aios_nb.hub.others import Light, Others
from aios_nb.hub.searching import Cut, Page, Searching
from aios_nb.hub.sites import LargerSites, merged
from aios_nb.identity import to_base64url

STRANGERS_PER_S = 20
SITE_LIMIT = 200
"""More rows no node gives at once."""
_PEOPLE = frozenset({Caller.OWNER, Caller.TOKEN})


class SignedRow(AgentRow, frozen=True):
    """A row for another node, which believes only what its agent's node has signed."""

    record: str | None = None


class Looking:
    """Searching for one node's callers. Nothing it finds is dialled."""

    def __init__(
        self,
        searching: Searching,
        sites: LargerSites,
        *,
        acquainted: Callable[[], Awaitable[None]],
        complete: Callable[[], bool],
        record: Callable[[str], bytes | None],
        may_tell: Callable[[str, str], bool],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``acquainted`` waits for those who are there at the start.

        ``complete``: all that is out there is known here. ``record``: by agent id.

        ``may_tell(node, peer)``: whether one may hear of the other, by where they are.
        """
        self._searching = searching
        self._sites = sites
        self._acquainted = acquainted
        self._complete = complete
        self._record = record
        self._may_tell = may_tell
        self._clock = clock
        self._strangers = Allowance(STRANGERS_PER_S, 1 / STRANGERS_PER_S, clock())

    async def search(self, words: str, limit: int, caller: Principal, offset: int = 0) -> Page:
        """The agents this caller may call, best first. Whose node this is sees them all."""
        if caller.is_stranger and not self._strangers.take(self._clock()):
            raise Busy("too many searches by strangers", hint="try again", retry_after_s=1.0)
        person = caller.kind in _PEOPLE
        if person:
            await self._acquainted()
        if person and words.strip() and not self._complete():
            return await self._with_larger(words, limit, offset, self._visible(caller))
        cut = Cut(limit, offset, everyone=person)
        page = await self._searching.page(words, cut, self._visible(caller))
        if caller.is_node:
            return Page([self._signed(row) for row in page.rows], page.total)
        return page

    async def _with_larger(
        self, words: str, limit: int, offset: int, visible: Callable[[AgentRow], bool]
    ) -> Page:
        """The same with what larger sites find. It is merged from the top, so that pages fit."""
        upto = offset + limit
        page = await self._searching.page(words, Cut(upto), visible)
        far = await self._sites.search(words, min(upto, SITE_LIMIT))
        rows = merged(page.rows, far, upto)
        total = max(page.total, len(rows))
        return Page(rows[offset:], total)

    async def named(self, name: str) -> list[str]:
        """The ids of agents of that name that larger sites know."""
        return [] if self._complete() else await self._sites.named(name)

    def _signed(self, row: AgentRow) -> SignedRow:
        content = self._record(row.id)
        shown: dict[str, Any] = msgspec.structs.asdict(row)
        return SignedRow(**shown, record=None if content is None else to_base64url(content))

    def _visible(self, caller: Principal) -> Callable[[AgentRow], bool]:
        def visible(row: AgentRow) -> bool:
            told = not caller.is_node or self._may_tell(row.node_id, caller.id)
            return told and caller.may_call(Access(row.access))

        return visible


def standing_in(own_id: str, others: Others) -> Callable[[AgentRow], Light]:
    """How an agent stands right now, by its row."""

    def standing(row: AgentRow) -> Light:
        if row.node_id == own_id:
            return Light.LIVE if row.live else Light.SUSPECT
        found = others.get(row.id)
        return Light.GONE if found is None else found[1]

    return standing
