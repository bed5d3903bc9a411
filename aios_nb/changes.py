"""What changed between two pictures of who is there, for whoever missed the events between."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Literal, TypeVar

Row = TypeVar("Row")
Change = Literal["offered", "replaced", "withdrawn"]


def changes(before: Mapping[str, Row], after: Mapping[str, Row]) -> Iterator[tuple[Change, Row]]:
    """The fewest events that lead from one to the other; who left first. Keys are agents' ids."""
    for agent, row in before.items():
        if agent not in after:
            yield "withdrawn", row
    for agent, row in after.items():
        if agent not in before:
            yield "offered", row
        elif before[agent] != row:
            yield "replaced", row
