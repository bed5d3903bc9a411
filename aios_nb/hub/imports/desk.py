"""The ``hub.*`` methods of the contract: bringing programs of others in. For the owner alone."""

from __future__ import annotations

from typing import Any

import msgspec

from aios_nb import params as p
from aios_nb.access import Access, Principal
from aios_nb.errors import UsageError
from aios_nb.hub.imports.entry import ImportRow, Options, shown_address
from aios_nb.hub.imports.imports import Imports


class ImportDesk:
    """Imports, as programs ask for them."""

    def __init__(self, imports: Imports) -> None:
        self._imports = imports

    async def add(self, _: Principal, params: p.HubAdd) -> ImportRow:
        given = params.address
        address = given if isinstance(given, str) else tuple(given)
        options = Options(params.local, Access(params.access), params.token_env)
        try:
            return await self._imports.add(address, options, name=params.name, kind=params.kind)
        except UsageError as error:
            error.hint = error.hint or "nothing was added"
            raise

    def list(self, _: Principal, __: p.Nothing) -> dict[str, Any]:
        return {"imports": self._imports.rows()}

    async def remove(self, _: Principal, params: p.AgentName) -> dict[str, Any]:
        agent = await self._imports.remove(params.name)
        return {"name": agent.name, "removed": True}

    async def approve(self, _: Principal, params: p.HubApprove) -> ImportRow:
        return await self._imports.approve(params.name, params.pin)

    async def refresh(self, _: Principal, params: p.HubRefresh) -> dict[str, Any]:
        return {"imports": await self._imports.refresh(params.name)}

    async def catalog(self, _: Principal, params: p.HubImport) -> dict[str, Any]:
        """What a catalog lists, and which of it is here: to be added one by one."""
        entries = await self._imports.entries(params.url, local=params.local)
        told = [
            {**msgspec.to_builtins(entry), "added": self._imports.has_address(entry.url)}
            for entry in entries
        ]
        return {"url": shown_address(params.url), "entries": told}


setattr(ImportDesk, "import", ImportDesk.catalog)  # a word that Python keeps for itself
