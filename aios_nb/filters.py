"""What a search asks for beside its words: ``tag:math node:abcd live:yes name:calc``."""

from __future__ import annotations

import re

import msgspec

from aios_nb.envelope import AgentRow

_FILTER = re.compile(r'(?<!\S)(tag|node|live|name):(?:"([^"]*)"|(\S+))', re.IGNORECASE)
_REF = re.compile(r"(?<!\S)([a-z0-9][a-z0-9_-]{0,47})@([a-z2-7]{4,32})(?!\S)")
"""An agent's id, whole or with the start of its node's."""
WHY_MAX_CHARS = 80
_LIVE = {"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False}


class Filters(msgspec.Struct, frozen=True):
    """All of them must hold; of several tags all, of several names or nodes one."""

    tags: tuple[str, ...] = ()
    nodes: tuple[str, ...] = ()
    names: tuple[str, ...] = ()
    live: bool | None = None

    def admit(self, row: AgentRow) -> bool:
        """Whether a row is among those asked for, as far as this says; it does not judge life."""
        if self.tags:
            has = {tag.casefold() for tag in row.tags}
            if not has.issuperset(self.tags):
                return False
        if self.nodes and not row.node_id.startswith(self.nodes):
            named = row.node_name.casefold()
            if not named or named not in self.nodes:
                return False
        return not self.names or any(name in row.name.casefold() for name in self.names)

    @property
    def why(self) -> str:
        """What was asked for, in one short line."""
        asked = [*(f"tag {tag}" for tag in self.tags), *(f"name {name}" for name in self.names)]
        asked += [f"node {node}" for node in self.nodes]
        if self.live is not None:
            asked.append("live" if self.live else "maybe away")
        return ", ".join(asked)[:WHY_MAX_CHARS]


def read_query(query: str) -> tuple[str, Filters]:
    """The words of a query, and its filters. What is no filter is a word."""
    given: dict[str, list[str]] = {"tag": [], "node": [], "name": []}
    live: bool | None = None

    def take(match: re.Match[str]) -> str:
        nonlocal live
        kind, value = match[1].lower(), (match[2] if match[2] is not None else match[3])
        value = value.strip().casefold()
        if not value:
            return match[0]
        if kind != "live":
            given[kind].append(value)
        elif value in _LIVE:
            live = _LIVE[value]
        else:
            return match[0]
        return " "

    def split(match: re.Match[str]) -> str:
        given["node"].append(match[2])
        return match[1]

    words = _REF.sub(split, _FILTER.sub(take, query)).strip()
    return words, Filters(tuple(given["tag"]), tuple(given["node"]), tuple(given["name"]), live)
