"""Agents as entries of an ARD catalog, and the questions its registries are asked. No I/O."""

from __future__ import annotations

import itertools
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta

from aios_nb.errors import UsageError
from aios_nb.richtext import one_line

SPEC_VERSION = "1.0"
A2A_CARD = "application/a2a-agent-card+json"
MCP_SERVER = "application/mcp-server-card+json"
MCP_NAME = "mcp.server"
"""No agent is called so: names have no dot."""
IDENTIFIER = re.compile(r"urn:air:[A-Za-z0-9.-]+(?::[A-Za-z0-9._-]+)+")
NO_DOMAIN = "agent.localhost"
"""Stands for the publisher where there is none; the node's id in the next part is unique."""
QUERIES_MIN, QUERIES_MAX = 2, 5
QUERY_CHARS, ABOUT_CHARS = 200, 1000
PAGE_MAX = 100
QUERY_MAX = 3900
"""Of a question: which node is meant goes with it, and both have to fit into a search."""
FACETS_MAX = 20
_TERM = re.compile(r"\s*([A-Za-z][\w.]*)\s*=\s*(?:'([^']*)'|\"([^\"]*)\")\s*")
_AND = re.compile(r"(?<=\s)AND(?=\s)")
"""Without the space around it: to look for that takes ever longer, the more of it there is."""
_ORDER = re.compile(r"\s*([A-Za-z][\w.]*)(?:\s+(ASC|DESC))?\s*", re.IGNORECASE)
_WORDS = re.compile(r"\w+")

Entry = dict[str, Any]
Text = Annotated[str, Meta(max_length=4000)]
Wanted = Mapping[str, str | Sequence[str]]


class Query(msgspec.Struct, frozen=True):
    """What is looked for: words, and fields that must have one of some values."""

    text: Annotated[str, Meta(max_length=QUERY_MAX)] = ""
    filter: dict[Text, Text | Annotated[list[Text], Meta(max_length=100)]] = {}


class SearchQuery(Query, frozen=True, kw_only=True):
    text: Annotated[str, Meta(max_length=QUERY_MAX)]


class Search(msgspec.Struct, frozen=True, rename="camel"):
    query: SearchQuery
    federation: Literal["auto", "referrals", "none"] = "auto"
    page_size: Annotated[int, Meta(ge=1)] = 10
    page_token: Text = ""


class Facet(msgspec.Struct, frozen=True, rename="camel"):
    field: Text
    limit: Annotated[int, Meta(ge=1)] = 20
    min_count: Annotated[int, Meta(ge=0)] = 1


class Facets(msgspec.Struct, frozen=True):
    facets: Annotated[list[Facet], Meta(min_length=1, max_length=FACETS_MAX)]


class Explore(msgspec.Struct, frozen=True, rename="camel"):
    result_type: Facets
    query: Query = Query()


class Publisher(msgspec.Struct, frozen=True):
    """The node whose entries these are."""

    node_id: str
    name: str
    version: str
    url: str
    key: str
    """Its ``did:key``."""
    domain: str = NO_DOMAIN

    @classmethod
    def at(cls, url: str, *, node_id: str, name: str, version: str, key: str) -> Publisher:
        host = urlsplit(url).hostname or ""
        is_domain = "." in host and host.rpartition(".")[2].isalpha()
        domain = host if is_domain else NO_DOMAIN
        return cls(node_id, name, version, url.rstrip("/"), key, domain)

    def urn(self, name: str) -> str:
        return f"urn:air:{self.domain}:{self.node_id}:{name}"

    def manifest(self, entries: Sequence[Entry]) -> dict[str, Any]:
        """The document at ``/.well-known/ard.json``."""
        host = {"displayName": self.name, "identifier": self.key}
        return {"specVersion": SPEC_VERSION, "host": host, "entries": entries}

    def agent(self, card: Mapping[str, Any]) -> Entry:
        """One agent of this node; its card says the rest."""
        name = str(card["name"])
        source = str(card.get("source") or "")
        entry: Entry = {
            "identifier": self.urn(name),
            "displayName": _line(card.get("title"), QUERY_CHARS) or name,
            "type": A2A_CARD,
            "url": f"{self.url}/agents/{name}/.well-known/agent-card.json",
            "description": _line(card.get("about"), ABOUT_CHARS),
            "tags": [_line(tag, QUERY_CHARS) for tag in card.get("tags") or ()],
            "representativeQueries": queries(card),
            "version": _line(card.get("version"), QUERY_CHARS),
            "metadata": {"agent": str(card["id"]), "source": source},
            "trustManifest": {"identity": self.key, "identityType": "did"},
        }
        if source:
            # What another program says of itself is passed on, not vouched for.
            del entry["trustManifest"]
        return {name: value for name, value in entry.items() if value not in ("", [])}

    def mcp(self) -> Entry:
        """The MCP server of this node, through which all its agents are reached."""
        return {
            "identifier": self.urn(MCP_NAME),
            "displayName": f"{self.name} (MCP)",
            "type": MCP_SERVER,
            "url": f"{self.url}/mcp",
            "description": "Find the agents of this node and ask them, through MCP tools",
            "tags": ["mcp", "agents"],
            "representativeQueries": [
                "which agents are there?",
                "ask an agent of this node",
                "search for an agent by describing the job",
            ],
            "version": self.version,
            "metadata": {"node": self.node_id},
            "trustManifest": {"identity": self.key, "identityType": "did"},
        }


def queries(card: Mapping[str, Any]) -> list[str]:
    """Two to five things one would ask for; its examples, else what its card says it does."""
    title = _line(card.get("title"), QUERY_CHARS) or str(card["name"])
    first = _line(card.get("about"), ABOUT_CHARS).partition(". ")[0][:QUERY_CHARS]
    examples = [_line(example, QUERY_CHARS) for example in card.get("examples") or ()]
    found = list(dict.fromkeys(filter(None, [*examples[:QUERIES_MAX], first, title])))
    if len(found) < QUERIES_MIN:
        found.append(f"an agent for {found[0]}" if found else "an agent")
    return found[:QUERIES_MAX]


# Questions -------------------------------------------------------------------------------------


def read_filter(text: str) -> dict[str, list[str]]:
    """``field = 'value' AND …``, as ``GET /agents`` takes it. Raises ``UsageError``."""
    wanted: dict[str, list[str]] = {}
    for term in _AND.split(text) if text.strip() else ():
        found = _TERM.fullmatch(term)
        if found is None:
            raise UsageError(f"the filter {_line(term, 80)!r} is not of the form field = 'value'")
        wanted.setdefault(found[1], []).append(found[2] if found[2] is not None else found[3])
    return wanted


def fits(entry: Entry, wanted: Wanted) -> bool:
    """Whether every field that is asked for has one of the values it may have."""
    return all(
        set(values_at(entry, path)) & ({given} if isinstance(given, str) else set(given))
        for path, given in wanted.items()
    )


def values_at(entry: Any, path: str) -> list[str]:
    """What an entry has at a dotted path, as texts; a list has several."""
    found = [entry]
    for key in path.split("."):
        deeper = [item.get(key) for item in found if isinstance(item, Mapping)]
        lists = ([each] if not isinstance(each, list) else each for each in deeper)
        found = list(itertools.chain.from_iterable(lists))
    return [str(value) for value in found if isinstance(value, (str, int, float, bool))]


def ordered(entries: Iterable[Entry], by: str) -> list[Entry]:
    """By a field, up or down. Raises ``UsageError``."""
    found = _ORDER.fullmatch(by or "identifier")
    if found is None:
        raise UsageError(f"the order {_line(by, 80)!r} is not of the form field DESC")
    down = (found[2] or "").upper() == "DESC"
    return sorted(entries, key=lambda entry: values_at(entry, found[1]), reverse=down)


def facets(entries: Sequence[Entry], asked: Iterable[Facet]) -> dict[str, Any]:
    """How often each value of a field is there, the most frequent first."""
    told = {}
    for facet in asked:
        counted = Counter(
            value for entry in entries for value in set(values_at(entry, facet.field))
        )
        ranked = sorted(counted.items(), key=lambda each: (-each[1], each[0]))
        shown = [each for each in ranked if each[1] >= facet.min_count][
            : min(facet.limit, PAGE_MAX)
        ]
        rest = sum(counted.values()) - sum(count for _, count in shown)
        buckets = [{"value": value, "count": count} for value, count in shown]
        told[facet.field] = {"buckets": buckets, "otherCount": rest}
    return told


def likeness(entry: Entry, text: str) -> int:
    """0 to 100: how many of these words are in an entry that no index knows."""
    words = set(_WORDS.findall(text.lower()))
    there = " ".join([entry["displayName"], entry["description"], *entry["tags"]]).lower()
    return round(100 * len(words & set(_WORDS.findall(there))) / len(words)) if words else 0


def page(text: str) -> int:
    """Where a page begins, by the token we gave. Raises ``UsageError``."""
    if text and not (text.isascii() and text.isdigit() and len(text) <= 9):  # noqa: PLR2004
        raise UsageError("that pageToken is none of ours")
    return int(text or 0)


def _line(value: Any, most: int) -> str:
    return one_line(str(value or ""), most)
