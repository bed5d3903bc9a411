"""The hub's door: the ``agents.*`` methods of the contract."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from aios_nb import params as p
from aios_nb.access import Caller, Principal
from aios_nb.envelope import AgentRow
from aios_nb.errors import NoSuchAgent
from aios_nb.hub.directory import SEARCH_HINT, Directory
from aios_nb.hub.finding import Finding
from aios_nb.hub.imports import Imports
from aios_nb.hub.imports.entry import ImportRow
from aios_nb.hub.news import AgentWatch
from aios_nb.hub.uses import Uses
from aios_nb.identity import to_base64url
from aios_nb.ports import Offer

_OTHERS = frozenset({Caller.KNOWN, Caller.NODE, Caller.ANYONE})
"""They are told about our own agents and nothing else: we ask nobody on their behalf."""

_NODES = frozenset({Caller.KNOWN, Caller.NODE})
"""They check that a card is the one whose hash is in its record, and get it as it was hashed."""


class Hub:
    """Finding agents, as programs ask for it."""

    def __init__(
        self,
        directory: Directory,
        finding: Finding,
        stop_offering: Callable[[str], Awaitable[None]],
        uses: Uses | None = None,
        imports: Imports | None = None,
    ) -> None:
        self._imports = imports
        self._uses = uses
        self._directory = directory
        self._finding = finding
        self._stop_offering = stop_offering

    def list(self, principal: Principal, _: p.Nothing) -> dict[str, Any]:
        return {"agents": self._directory.rows(principal)}

    async def search(self, principal: Principal, params: p.Search) -> dict[str, Any]:
        page = await self._finding.page(params.query, params.limit, principal, params.offset)
        rows = page.rows
        if self._uses is not None and principal.kind not in _OTHERS:
            rows = self._uses.all_shown(rows)
        return {"agents": rows, "total": page.total}

    def card(
        self, principal: Principal, params: p.Agent
    ) -> dict[str, Any] | Awaitable[dict[str, Any]]:
        """The card and, if the agent is published, the record that vouches for it."""
        if principal.kind in _OTHERS:
            return self._own_card(principal, params.agent)
        try:
            target = self._finding.resolve(params.agent, principal)
        except NoSuchAgent:
            return self._card_from_afar(principal, params.agent)
        if target.is_remote:
            return self._card_from_afar(principal, params.agent)
        return self._own_card(principal, target.id)

    def _own_card(self, principal: Principal, agent: str) -> dict[str, Any]:
        offer, signed = self._directory.own(agent, principal)
        checks = signed is not None and principal.kind in _NODES
        return {
            "card": offer.published if checks else offer.card,
            "record": to_base64url(signed.to_bytes()) if signed else None,
            "verified": not offer.source,  # our own: whoever reads this knows whom they asked
            "used": None,
            "outside": self._outside(principal, offer),
        }

    def _outside(self, principal: Principal, offer: Offer) -> ImportRow | None:
        """What the owner knows of an import, and nobody else: where it is, what changed."""
        if self._imports is None or not (offer.source and principal.is_owner):
            return None
        return self._imports.row(offer.name)

    async def _card_from_afar(self, principal: Principal, agent: str) -> dict[str, Any]:
        told = await self._finding.remote_card(agent, principal)
        used = None if self._uses is None else self._uses.last(told.card.id)
        return {
            "card": told.card,
            "record": told.record,
            "verified": told.verified,
            "used": used,
            "outside": None,
        }

    async def withdraw(self, principal: Principal, params: p.AgentName) -> dict[str, Any]:
        try:
            offer, _ = self._directory.own(params.name, principal)
        except NoSuchAgent as error:
            if error.hint == SEARCH_HINT:  # a search finds those of others
                error.hint = "`aios-nb agents` lists yours"
            raise
        await self._stop_offering(offer.name)
        return {"name": offer.name, "withdrawn": True}

    def watch(self, principal: Principal, _: p.Nothing) -> AgentWatch:
        """Our agents, then those of other nodes; then who comes and goes."""

        def shown(row: AgentRow) -> AgentRow:
            return row if self._uses is None else self._uses.shown(row)

        def rows() -> list[AgentRow]:
            return [*self._directory.rows(principal), *map(shown, self._finding.others())]

        return AgentWatch(self._directory.news, rows, shown)
