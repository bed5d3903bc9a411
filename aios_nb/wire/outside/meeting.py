"""Finds out what answers at a URL or behind a command."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from aios_nb.config import Limits
from aios_nb.envelope import CatalogEntry
from aios_nb.errors import AgentFailed, AiosError, Unreachable, UsageError
from aios_nb.ports import Blobs, Outsider
from aios_nb.wire.places import Place, shown

if TYPE_CHECKING:
    from aios_nb.wire.outside.a2a import A2aAgent

_KINDS = frozenset({None, "a2a", "mcp"})
_UNAUTHORIZED = 401


class Outsiders:
    """The way to programs of others. Is a ``ports.Outside``."""

    def __init__(self, blobs: Blobs, limits: Limits) -> None:
        self._blobs = blobs
        self._limits = limits
        self._met: set[Outsider] = set()

    async def meet(
        self,
        address: str | Sequence[str],
        *,
        kind: str | None = None,
        local: bool = False,
        headers: Mapping[str, str] | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Outsider:
        """Find out what answers there; it has been looked at once."""
        if kind not in _KINDS:
            raise UsageError(f"{str(kind)[:40]!r} is not a kind of program", hint="a2a or mcp")
        if not isinstance(address, str):
            if kind == "a2a":
                raise UsageError("an A2A agent has a URL, not a command")
            return await self._look(self.known(address, kind="mcp", local=local, env=env))
        place = Place.parse(address)
        problem: AiosError | None = None
        if kind != "mcp":
            agent = self._a2a(place.url, local=local, headers=headers)
            try:
                await agent.find()
            except Unreachable as error:
                await agent.close()
                if kind == "a2a" or error.data.get("status") is None:
                    raise  # nobody there, or nothing else was asked for
                problem = error
            except BaseException:
                await agent.close()
                raise
            else:
                self._met.add(agent)
                return agent
        return await self._try_mcp(place, problem, local=local, headers=headers, env=env)

    def known(
        self,
        address: str | Sequence[str],
        *,
        kind: str,
        local: bool = False,
        headers: Mapping[str, str] | None = None,
        env: Mapping[str, str] | None = None,
    ) -> Outsider:
        """The one that was met before; asks nobody yet."""
        outsider: Outsider
        if kind == "a2a" and isinstance(address, str):
            outsider = self._a2a(Place.parse(address).url, local=local, headers=headers)
        else:
            from aios_nb.wire.outside.mcp import McpServer

            outsider = McpServer(address, self._blobs, local=local, headers=headers, env=env)
        self._met.add(outsider)
        return outsider

    async def entries(self, url: str, *, local: bool = False) -> Sequence[CatalogEntry]:
        """What a catalog or registry at that URL lists."""
        from aios_nb.wire.outside.catalogs import read_catalog

        return await read_catalog(url, local=local)

    async def close(self) -> None:
        """Leave no connection, process or task behind."""
        met, self._met = self._met, set()
        for outsider in met:
            await outsider.close()

    def _a2a(self, url: str, *, local: bool, headers: Mapping[str, str] | None) -> A2aAgent:
        from aios_nb.wire.outside.a2a import A2aAgent

        return A2aAgent(url, self._blobs, self._limits, local=local, headers=headers)

    async def _try_mcp(
        self,
        place: Place,
        problem: AiosError | None,
        *,
        local: bool,
        headers: Mapping[str, str] | None,
        env: Mapping[str, str] | None,
    ) -> Outsider:
        wanted = "no A2A agent and no MCP server" if problem else "no MCP server"
        problems = [problem] if problem else []
        tried = [place.url]
        if "?" not in place.url and not place.url.rstrip("/").endswith("/mcp"):
            tried.append(place.url.rstrip("/") + "/mcp")
        for url in tried:
            try:
                return await self._look(
                    self.known(url, kind="mcp", local=local, headers=headers, env=env)
                )
            except (Unreachable, AgentFailed) as error:
                if error.data.get("status") == _UNAUTHORIZED:
                    raise  # somebody is there, and says what is missing
                problems.append(error)
        said = "; ".join(dict.fromkeys(error.message for error in problems))
        raise UsageError(
            f"{wanted} answers at {shown(place.url)}",
            hint=f"tried {' and '.join(map(shown, tried))}: {said}",
        )

    async def _look(self, outsider: Outsider) -> Outsider:
        try:
            await outsider.look()
        except BaseException:
            self._met.discard(outsider)
            await outsider.close()
            raise
        return outsider
