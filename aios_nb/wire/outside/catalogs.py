"""Other people's catalogs and registries, read into plain lines. Nothing in them is believed.

Read are: AI catalogs (``ard.json``, ``ai-catalog.json``) and the answers of their registries, lists
of an MCP registry (``/v0/servers``), lists of A2A cards, and a single card. Nothing that they name
is called: an entry is a line for a person, who may bring it in.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import yarl

from aios_nb.envelope import CatalogEntry
from aios_nb.errors import AiosError, Unreachable, UsageError
from aios_nb.richtext import one_line
from aios_nb.wire.fetching import Fetched, Fetcher
from aios_nb.wire.places import Place, Resolve, looked_up, shown

ENTRIES_MAX = 1000
PAGES_MAX = 10
"""Of a registry that gives its list in pages."""
NAME_CHARS = 200
ABOUT_CHARS = 1000
LINKS_MAX = 20
"""Ways to one server that are looked at."""
PLACES = (
    "/.well-known/ard.json",
    "/.well-known/ai-catalog.json",
    "/v0.1/servers",
    "/v0/servers",
    "/.well-known/agent-card.json",
)
"""Where the catalog of a whole site may be."""
_OK = 200
_CURSOR_CHARS = 500
_LISTS = ("entries", "servers", "agents", "items", "results", "cards")
_KINDS = {"a2a": "a2a", "mcp": "mcp"}
_WEB = frozenset({"streamable-http", "streamable_http", "http"})


async def read_catalog(
    url: str, *, local: bool = False, resolve: Resolve = looked_up
) -> list[CatalogEntry]:
    """What a catalog lists; a bare site is asked where catalogs usually are.

    Raises ``UsageError`` if there is none, ``Unreachable`` if nobody answers.
    """
    place = Place.parse(url)
    async with Fetcher(local=local, resolve=resolve) as fetcher:
        found = await _fetched(fetcher, place.url)
        if found is not None:
            return await _pages(fetcher, *found)
        for path in PLACES if yarl.URL(place.url).path == "/" else ():
            found = await _fetched(fetcher, place.origin + path)
            if found is not None:
                return await _pages(fetcher, *found)
    raise UsageError(
        f"there is no catalog at {shown(url)}",
        hint="the URL of an ard.json, an ai-catalog.json or an MCP registry (…/v0/servers)",
    )


async def _fetched(fetcher: Fetcher, url: str) -> tuple[Fetched, Any] | None:
    """A page of a catalog; None if something else is there."""
    answer = await fetcher.get(url, headers={"Accept": "application/json"})
    if answer.status != _OK:
        return None
    try:
        content = answer.json()
    except Unreachable:
        return None
    return (answer, content) if _is_catalog(content) else None


async def _pages(fetcher: Fetcher, answer: Fetched, content: Any) -> list[CatalogEntry]:
    entries: dict[tuple[str, str, str], CatalogEntry] = {}
    seen = {""}
    while True:
        for entry in _entries(content, answer.place):
            entries.setdefault((entry.kind, entry.url, entry.name), entry)
            if len(entries) >= ENTRIES_MAX:
                return list(entries.values())
        cursor = _cursor(content)
        if cursor in seen or len(seen) >= PAGES_MAX:
            break
        seen.add(cursor)
        following = yarl.URL(answer.place.url).update_query(cursor=cursor)
        try:
            found = await _fetched(fetcher, str(following))
        except AiosError:
            break  # what was read is worth showing
        if found is None:
            break
        answer, content = found
    return list(entries.values())


def _cursor(content: Any) -> str:
    told = content.get("metadata") if isinstance(content, dict) else None
    told = told if isinstance(told, dict) else {}
    cursor = told.get("nextCursor") or told.get("next_cursor")
    return cursor if isinstance(cursor, str) and len(cursor) <= _CURSOR_CHARS else ""


def _is_catalog(content: Any) -> bool:
    return _listed(content) is not None or _is_card(content) or _is_server(content)


def _listed(content: Any) -> list[Any] | None:
    if isinstance(content, list):
        return content
    if not isinstance(content, dict):
        return None
    return next((content[name] for name in _LISTS if isinstance(content.get(name), list)), None)


def _is_card(content: Any) -> bool:
    return isinstance(content, dict) and "name" in content and (
        "supportedInterfaces" in content or "protocolVersion" in content
    )  # fmt: skip


def _is_server(content: Any) -> bool:
    return isinstance(content, dict) and "name" in content and (
        "remotes" in content or "packages" in content
    )  # fmt: skip


def _entries(content: Any, place: Place) -> Iterator[CatalogEntry]:
    listed = _listed(content)
    # A card may have a list of its own under one of these names, and is one entry all the same.
    if _is_card(content):
        listed = [{**content, "supportedInterfaces": [], "url": place.url}]
    elif listed is None or _is_server(content):
        listed = [content]
    for one in listed[: 2 * ENTRIES_MAX]:
        if isinstance(one, dict) and (entry := _entry(one, place)) is not None:
            yield entry


def _entry(one: dict[str, Any], place: Place, *, inner: bool = False) -> CatalogEntry | None:
    if isinstance(one.get("server"), dict):  # an MCP registry wraps each of its servers
        one = one["server"]
    if isinstance(one.get("data"), dict) and not inner:
        found = _entry(one["data"], place, inner=True)
        kind, url = (found.kind, found.url) if found is not None else ("", "")
    elif _is_card(one):
        kind, url = "a2a", _card_url(one, place)
    elif _is_server(one):
        kind, url = "mcp", _server_url(one, place)
    else:
        kind, url = _kind(one), _url(one.get("url"), place)
    name = _line(one.get("displayName") or one.get("title") or one.get("name"), NAME_CHARS)
    identifier = _line(one.get("identifier") or one.get("id"), NAME_CHARS)
    if not name and not identifier:
        return None
    return CatalogEntry(
        name=name or identifier,
        kind=kind if url else "",
        url=url,
        about=_line(one.get("description") or one.get("about"), ABOUT_CHARS),
        identifier=identifier,
    )


def _kind(one: dict[str, Any]) -> str:
    """By its media type: ``application/a2a-agent-card+json``, ``application/mcp-server+json``."""
    said = one.get("type") or one.get("mediaType")
    word = said.removeprefix("application/").partition("-")[0] if isinstance(said, str) else ""
    return _KINDS.get(word, "")


def _card_url(card: dict[str, Any], place: Place) -> str:
    """Where the agent of a card is."""
    offered = card.get("supportedInterfaces")
    for one in offered[:LINKS_MAX] if isinstance(offered, list) else []:
        if isinstance(one, dict) and str(one.get("protocolBinding", "")).upper() == "JSONRPC":
            return _url(one.get("url"), place)
    return _url(card.get("url"), place)


def _server_url(server: dict[str, Any], place: Place) -> str:
    remotes = server.get("remotes")
    for one in remotes[:LINKS_MAX] if isinstance(remotes, list) else []:
        if isinstance(one, dict) and (one.get("type") or one.get("transport_type")) in _WEB:
            return _url(one.get("url"), place)
    return ""


def _url(said: Any, place: Place) -> str:
    """A URL that could be fetched, or nothing."""
    if not isinstance(said, str) or not said or "{" in said:  # a template asks for more
        return ""
    try:
        return place.beside(said).url
    except UsageError:
        return ""


def _line(said: Any, most_chars: int) -> str:
    return one_line(said, most_chars) if isinstance(said, str) else ""
