"""Fair comparison on a shared machine: short windows that take turns, and ratios per round.

Absolute figures of two runs differ by what else the machine does. Two windows half a second apart
see the same machine, so only their ratio is trusted, and the median over rounds of that.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence

import msgspec

from aios_nb.bench.spec import Window

WARM_UP_S = 0.4
WINDOW_S = 0.5


class Spread(msgspec.Struct, frozen=True):
    """A median with the lowest and highest round beside it."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.median:.2f} ({self.low:.2f}..{self.high:.2f})"


def order(turn: int, count: int) -> list[int]:
    """Who goes when: the first place moves on each round, every second round runs backwards."""
    rotated = [(place + turn) % count for place in range(count)]
    return rotated[::-1] if turn % 2 else rotated


def alternate(lines: Mapping[str, Callable[[], Window]], rounds: int) -> dict[str, list[Window]]:
    """The windows of every line, one per round, taken in turns."""
    names = list(lines)
    taken: dict[str, list[Window]] = {name: [] for name in names}
    for turn in range(rounds):
        for place in order(turn, len(names)):
            taken[names[place]].append(lines[names[place]]())
    return taken


def spread(values: Sequence[float]) -> Spread:
    """Median, lowest and highest; of nothing, NaN."""
    if not values:
        nan = float("nan")
        return Spread(nan, nan, nan)
    return Spread(statistics.median(values), min(values), max(values))


def median(windows: Sequence[Window], pick: Callable[[Window], float | None]) -> float | None:
    """The median of a figure, or None where it could not be read."""
    values = [value for value in map(pick, windows) if value is not None]
    return statistics.median(values) if values else None


def ratio(
    ours: Sequence[Window], unit: Sequence[Window], pick: Callable[[Window], float | None]
) -> Spread | None:
    """A figure in units of the same round's baseline; None where it could not be read."""
    quotients = []
    for window, base in zip(ours, unit, strict=True):
        value, per = pick(window), pick(base)
        if value is not None and per:
            quotients.append(value / per)
    return spread(quotients) if quotients else None


def rate(window: Window) -> float:
    return window.rate


def cpu(window: Window) -> float | None:
    return window.cpu_us


def first(window: Window) -> float | None:
    return window.first_p50
