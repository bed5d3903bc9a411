"""The door for crawlers and registries: what this node offers to whoever asks, in ARD's form.

``/.well-known/ard.json`` (and its older name) lists it, ``/api`` answers as a registry does. Only
agents of this node are in it: its own word is all that it can give.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar
from urllib.parse import unquote

import msgspec
from aiohttp import web

from aios_nb.access import ANYONE, Principal
from aios_nb.errors import Busy, InvalidParams, NotAllowed, RpcError, UsageError
from aios_nb.wire import ard
from aios_nb.wire.a2a.jws import did_key
from aios_nb.wire.ard import Entry
from aios_nb.wire.dispatch import Dispatcher
from aios_nb.wire.documents import Document
from aios_nb.wire.doors import Facts
from aios_nb.wire.replies import JSON_HEADERS

WELL_KNOWN = ("/.well-known/ard.json", "/.well-known/ai-catalog.json")
SEARCH, AGENTS, ONE_AGENT, EXPLORE = (
    "/api/search",
    "/api/agents",
    "/api/agents/",
    "/api/explore",
)
LISTED_MAX = 1000
"""Entries in one document; a node offers a few."""
FOUND_MAX = 200
ENTRIES_KEPT = 2000

Asked = TypeVar("Asked")
_search = msgspec.json.Decoder(ard.Search).decode
_explore = msgspec.json.Decoder(ard.Explore).decode


class _NotFoundError(Exception):
    """There is no such entry."""


_FAILURES: Mapping[type[Exception], tuple[int, str]] = {
    _NotFoundError: (404, "NOT_FOUND"),
    UsageError: (400, "INVALID_ARGUMENT"),
    InvalidParams: (400, "INVALID_ARGUMENT"),
    Busy: (429, "RESOURCE_EXHAUSTED"),
    NotAllowed: (403, "PERMISSION_DENIED"),
}
"""How registries tell what went wrong."""


class CatalogDoor:
    """Answers crawlers and registries. Is a ``doors.Door``."""

    def __init__(self, calls: Dispatcher, public_key: bytes, facts: Facts) -> None:
        self._calls = calls
        self._facts = facts
        self._key = did_key(public_key)
        self._made: dict[str, tuple[Mapping[str, Any], Entry]] = {}
        self._documents: dict[str, Document] = {}

    async def answer(
        self, request: web.BaseRequest, who: Principal, body: bytes
    ) -> web.StreamResponse:
        path = request.raw_path.partition("?")[0]
        try:
            if path in WELL_KNOWN:
                return (await self._document(who)).response(request)
            return _reply(request, await self._told(path, request, who, body))
        except tuple(_FAILURES) as error:
            status, code = _FAILURES[type(error)]
            said = {"errorCode": code, "message": getattr(error, "message", str(error))}
            return web.Response(status=status, body=msgspec.json.encode(said), headers=JSON_HEADERS)

    async def _told(
        self, path: str, request: web.BaseRequest, who: Principal, body: bytes
    ) -> dict[str, Any]:
        if path == SEARCH:
            return await self._search(who, body)
        if path == EXPLORE:
            return await self._explore(who, body)
        if path == AGENTS:
            return await self._agents(who, request.rel_url.query)
        return await self._one(who, path.removeprefix(ONE_AGENT))

    def shut_out(self, caller: str) -> None:
        """Nothing of a caller outlives its request."""

    async def close(self) -> None:
        """Nothing is open."""

    # Documents -------------------------------------------------------------------------------

    async def _document(self, who: Principal) -> Document:
        """The catalog for this caller; the same bytes as long as nothing changes."""
        publisher = self._publisher()
        body = msgspec.json.encode(publisher.manifest(await self._entries(who)))
        known = self._documents.get(who.kind)
        if known is None or known.body != body:
            known = Document.of(body, time.time(), public=who is ANYONE)
            self._documents[who.kind] = known
        return known

    async def _agents(self, who: Principal, asked: Mapping[str, str]) -> dict[str, Any]:
        wanted = ard.read_filter(asked.get("filter", ""))
        entries = [entry for entry in await self._entries(who) if ard.fits(entry, wanted)]
        size = asked.get("pageSize", "20")
        if not (size.isascii() and size.isdigit() and int(size[:9])):
            raise UsageError("pageSize is a number of 1 or more")
        entries = ard.ordered(entries, asked.get("orderBy", ""))
        first, end = _cut(ard.page(asked.get("pageToken", "")), int(size[:9]))
        return _paged({"items": entries[first:end], "total": len(entries)}, end, len(entries))

    async def _one(self, who: Principal, identifier: str) -> Entry:
        named = unquote(identifier)
        if not ard.IDENTIFIER.fullmatch(named):
            raise UsageError("an identifier has the form urn:air:publisher:namespace:name")
        for entry in await self._entries(who):
            if entry["identifier"] == named:
                return entry
        raise _NotFoundError("there is no entry of that identifier")

    # Questions -------------------------------------------------------------------------------

    async def _search(self, who: Principal, body: bytes) -> dict[str, Any]:
        asked = _read(_search, body)
        found = await self._found(who, asked.query)
        first, end = _cut(ard.page(asked.page_token), asked.page_size)
        source = f"{self._publisher().url}/api/"
        results = [{**entry, "score": score, "source": source} for entry, score in found]
        answer: dict[str, Any] = {"results": results[first:end]}
        if asked.federation == "referrals":
            answer["referrals"] = []
        return _paged(answer, end, len(results))

    async def _explore(self, who: Principal, body: bytes) -> dict[str, Any]:
        asked = _read(_explore, body)
        if asked.query.text:
            entries = [entry for entry, _ in await self._found(who, asked.query)]
        else:
            every = await self._entries(who)
            entries = [entry for entry in every if ard.fits(entry, asked.query.filter)]
        return {"resultType": "facets", "facets": ard.facets(entries, asked.result_type.facets)}

    async def _found(self, who: Principal, query: ard.Query) -> list[tuple[Entry, int]]:
        """The entries that fit, best first, each with its score."""
        own = f"{query.text} node:{self._facts.node_id}"
        told = await self._calls.call(who, "agents.search", {"query": own, "limit": FOUND_MAX})
        scored = []
        for row in told["agents"]:
            if row["node_id"] == self._facts.node_id:
                score = min(100, max(0, round(100 * row["score"])))
                scored.append((await self._entry(who, row), score))
        mcp = self._publisher().mcp()
        if (likeness := ard.likeness(mcp, query.text)) > 0 or "type" in query.filter:
            scored.append((mcp, likeness))
        scored.sort(key=lambda each: -each[1])
        return [each for each in scored if ard.fits(each[0], query.filter)]

    # Entries ---------------------------------------------------------------------------------

    def _publisher(self) -> ard.Publisher:
        facts = self._facts
        return ard.Publisher.at(
            facts.url(),
            node_id=facts.node_id,
            name=facts.name,
            version=facts.version,
            key=self._key,
        )

    async def _entries(self, who: Principal) -> list[Entry]:
        """The node's MCP server, and the agents that this caller may call."""
        rows = (await self._calls.call(who, "agents.list"))["agents"]
        agents = [await self._entry(who, row) for row in rows[:LISTED_MAX]]
        return [self._publisher().mcp(), *agents]

    async def _entry(self, who: Principal, row: Mapping[str, Any]) -> Entry:
        agent = row["id"]
        said = {name: row[name] for name in ("title", "about", "tags", "version", "source")}
        said["at"] = self._facts.url()
        known = self._made.get(agent)
        if known is None or known[0] != said:
            try:
                card = (await self._calls.call(who, "agents.card", {"agent": agent}))["card"]
            except RpcError:  # it went meanwhile
                card = row
            known = (said, self._publisher().agent(card))
            self._made[agent] = known
            if len(self._made) > ENTRIES_KEPT:
                del self._made[next(iter(self._made))]
        return known[1]


def _read(read: Callable[[bytes], Asked], body: bytes) -> Asked:
    try:
        return read(body)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        said = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
        raise UsageError(f"the question cannot be read: {said[:160]}") from None


def _cut(first: int, size: int) -> tuple[int, int]:
    return first, first + min(size, ard.PAGE_MAX)


def _paged(answer: dict[str, Any], end: int, total: int) -> dict[str, Any]:
    return {**answer, "pageToken": str(end)} if end < total else answer


def _reply(request: web.BaseRequest, told: Any) -> web.Response:
    body = msgspec.json.encode(told)
    if request.method == "HEAD":
        return web.Response(headers={**JSON_HEADERS, "Content-Length": str(len(body))})
    return web.Response(body=body, headers=JSON_HEADERS)
