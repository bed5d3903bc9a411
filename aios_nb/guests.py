"""The verbs for programs of others: bring one in, look after it, let it go."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import Any, Protocol, TypeVar

import msgspec

from aios_nb.client.interface import SiteClient
from aios_nb.rows import Catalog, Import, Imports, Listed

T = TypeVar("T")


class _Site(Protocol):
    """What these verbs need of a site."""

    @property
    def client(self) -> SiteClient: ...
    def run(self, make: Callable[[], Coroutine[Any, Any, T]], doing: str = "") -> T: ...
    async def on_loop(self, make: Callable[[], Coroutine[Any, Any, T]]) -> T: ...


class GuestVerbs:
    """``hub_add``, ``hub_list``, …, each with an ``_async`` twin. A part of ``Site``."""

    def hub_add(self: _Site, address: str | Sequence[str], **options: Any) -> Import:
        """Make an MCP server or an A2A agent an agent of this node.

        ``address``: its URL, or a command with its arguments. ``options``: ``name``, ``kind``
        (``mcp`` or ``a2a``), ``local=True`` for one on this machine, ``access`` (``private``),
        ``token_env``: the variable of the node's environment that holds its token.
        """
        return self.run(lambda: _add(self.client, address, options), "meeting it")

    async def hub_add_async(self: _Site, address: str | Sequence[str], **options: Any) -> Import:
        return await self.on_loop(lambda: _add(self.client, address, options))

    def hub_list(self: _Site) -> Imports:
        """All that were brought in, with what changed and who does not answer."""
        return self.run(lambda: _list(self.client, "hub.list"))

    async def hub_list_async(self: _Site) -> Imports:
        return await self.on_loop(lambda: _list(self.client, "hub.list"))

    def hub_refresh(self: _Site, name: str | None = None) -> Imports:
        """Look at one or all of them now."""
        return self.run(lambda: _list(self.client, "hub.refresh", **_given(name)), "looking")

    async def hub_refresh_async(self: _Site, name: str | None = None) -> Imports:
        return await self.on_loop(lambda: _list(self.client, "hub.refresh", **_given(name)))

    def hub_approve(self: _Site, name: str) -> Import:
        """Take one that changed as it was last seen."""
        return self.run(lambda: _one(self.client, "hub.approve", name=name))

    async def hub_approve_async(self: _Site, name: str) -> Import:
        return await self.on_loop(lambda: _one(self.client, "hub.approve", name=name))

    def hub_remove(self: _Site, name: str) -> None:
        """Forget one, with its conversations' names over there."""
        self.run(lambda: self.client.call("hub.remove", name=name))

    async def hub_remove_async(self: _Site, name: str) -> None:
        await self.on_loop(lambda: self.client.call("hub.remove", name=name))

    def hub_import(self: _Site, url: str, *, local: bool = False) -> Catalog:
        """What a catalog or registry lists. Nothing of it is trusted, asked or added."""
        return self.run(lambda: _catalog(self.client, url, local=local), "reading the catalog")

    async def hub_import_async(self: _Site, url: str, *, local: bool = False) -> Catalog:
        return await self.on_loop(lambda: _catalog(self.client, url, local=local))


def _given(name: str | None) -> dict[str, str]:
    return {} if name is None else {"name": name}


async def _add(client: SiteClient, address: str | Sequence[str], options: dict[str, Any]) -> Import:
    where = address if isinstance(address, str) else list(address)
    given = {name: value for name, value in options.items() if value is not None}
    return await _one(client, "hub.add", address=where, **given)


async def _one(client: SiteClient, method: str, **params: Any) -> Import:
    return msgspec.convert(await client.call(method, **params), Import)


async def _list(client: SiteClient, method: str, **params: Any) -> Imports:
    answer = await client.call(method, **params)
    return Imports(msgspec.convert(answer["imports"], list[Import]))


async def _catalog(client: SiteClient, url: str, *, local: bool) -> Catalog:
    answer = await client.call("hub.import", url=url, local=local)
    return Catalog(msgspec.convert(answer["entries"], list[Listed]))
