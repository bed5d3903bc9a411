"""The agents of other nodes, as this node shows them: from their records, live or not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from typing import Protocol

import msgspec

from aios_nb.envelope import AgentRow
from aios_nb.hub.news import News
from aios_nb.records import AgentRecord, Signed

NEAR_NAMES_MAX = 2000
"""Names among which near spellings are looked for."""


class Light(Enum):
    """How an agent of another node stands."""

    LIVE = "live"
    SUSPECT = "suspect"
    """Its node has not answered lately: shown last."""
    GONE = "gone"
    """Withdrawn, of an earlier life of its node, or its node is dead: not shown."""


class Shelf(Protocol):
    """The part of the catalogue that is shown."""

    def agents(self) -> Iterable[Signed]: ...
    def agents_named(self, name: str) -> Iterable[Signed]: ...
    def of(self, node_id: str) -> Iterable[Signed]: ...


class Others:
    """What other nodes offer."""

    def __init__(
        self,
        own_id: str,
        shelf: Shelf,
        light: Callable[[AgentRecord], Light],
        news: News,
        name_of: Callable[[str], str] = lambda _: "",
    ) -> None:
        """``name_of``: what a node calls itself, by its id."""
        self._own_id = own_id
        self._name_of = name_of
        self._shelf = shelf
        self._light = light
        self._news = news
        self._shown: dict[str, AgentRow] = {}
        """What watchers were told, by id."""
        self._offers: Counter[str] = Counter()
        """How many of them are of which node."""

    def __len__(self) -> int:
        return len(self._shown)

    def of(self, node_id: str) -> int:
        """How many agents of that node are shown."""
        return self._offers[node_id]

    def rows(self) -> list[AgentRow]:
        """All that are live, by name."""
        return sorted(self._shown.values(), key=lambda row: (row.name, row.id))

    def named(self, name: str) -> list[str]:
        """The ids of all live agents of that name."""
        found = (self._record(signed) for signed in self._shelf.agents_named(name))
        return sorted(
            record.id
            for record in found
            if record is not None and self._light(record) is not Light.GONE
        )

    def names(self) -> Iterator[str]:
        for row, _ in zip(self._shown.values(), range(NEAR_NAMES_MAX), strict=False):
            yield row.name

    def get(self, agent: str) -> tuple[AgentRow, Light] | None:
        """One agent by its id, if it is to be shown."""
        row = self._shown.get(agent)
        if row is None:
            return None
        return row, Light.LIVE if row.live else Light.SUSPECT

    # What is told ----------------------------------------------------------------------------

    def look_again(self, node_id: str) -> list[tuple[str, AgentRow | None]]:
        """That node changed: its agents as they are now; None for one that is gone."""
        records = (self._record(signed) for signed in self._shelf.of(node_id))
        return [self._look(record) for record in records if record is not None]

    def changed(self, agent: str, signed: Signed | None) -> tuple[str, AgentRow | None]:
        """The record of that agent is another one now, or gone."""
        record = None if signed is None else self._record(signed)
        return self._show(agent, None) if record is None else self._look(record)

    def _look(self, record: AgentRecord) -> tuple[str, AgentRow | None]:
        light = self._light(record)
        if light is Light.GONE:
            return self._show(record.id, None)
        return self._show(record.id, row_of(record, light, self._name_of(record.node)))

    def _show(self, agent: str, row: AgentRow | None) -> tuple[str, AgentRow | None]:
        before = self._shown.get(agent)
        if row is None:
            if before is not None:
                del self._shown[agent]
                self._offers[before.node_id] -= 1
                if not self._offers[before.node_id]:
                    del self._offers[before.node_id]
                self._news.tell("withdrawn", _dimmed(before))
        elif row != before:
            self._shown[agent] = row
            self._offers[row.node_id] += before is None
            self._news.tell("offered" if before is None else "replaced", row)
        return agent, row

    def _record(self, signed: Signed) -> AgentRecord | None:
        record = signed.record
        theirs = isinstance(record, AgentRecord) and record.node != self._own_id
        return record if theirs and isinstance(record, AgentRecord) else None


def row_of(record: AgentRecord, light: Light, node_name: str = "") -> AgentRow:
    """An agent as its record describes it."""
    return AgentRow(
        record.id,
        record.name,
        record.node,
        record.title,
        record.about,
        record.tags,
        live=light is Light.LIVE,
        verified=True,  # by its signature
        access=record.access,
        version=record.version,
        node_name=node_name,
    )


def _dimmed(row: AgentRow) -> AgentRow:
    return msgspec.structs.replace(row, live=False)
