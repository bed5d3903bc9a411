"""What a scenario hands to the report."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import msgspec

from aios_nb.bench.generator import Generator

INFORMATION = "none: for information"
"""The target of a scenario whose figures are only to be known."""


class Row(msgspec.Struct, kw_only=True):
    """One line of a table. ``met`` is None where there is no target to meet."""

    line: str
    figures: dict[str, str]
    target: str = ""
    met: bool | None = None


class Result(msgspec.Struct, kw_only=True):
    rows: Sequence[Row]
    raw: Mapping[str, Any] = {}
    """Every window, by line: what the medians were taken from."""
    notes: Sequence[str] = ()


class Bench(msgspec.Struct, frozen=True, kw_only=True):
    """What a scenario is given to work with."""

    generator: Generator
    rounds: int
    quick: bool


class Scenario(msgspec.Struct, frozen=True, kw_only=True):
    """A question, the figure that answers it well, and why it is asked."""

    name: str
    title: str
    target: str
    why: str
    run: Callable[[Bench], Result]


def figure(value: float | None, digits: int = 0) -> str:
    """A number for a table; a dash where it could not be read."""
    return "-" if value is None else f"{value:,.{digits}f}"
