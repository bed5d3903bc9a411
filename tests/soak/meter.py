"""How large processes are while they work, and by how much they grew."""

from __future__ import annotations

import statistics
from dataclasses import dataclass, field
from pathlib import Path

from aios_nb.bench.usage import rss_mb

WARM_SHARE = 0.25
"""Of the time: caches fill, pools open."""


@dataclass
class Meter:
    """One process."""

    name: str
    pid: int
    samples: list[tuple[float, float, int]] = field(default_factory=list)
    """Seconds, MB, open handles."""

    def look(self, at: float) -> tuple[float, int]:
        memory = rss_mb(self.pid) or 0.0
        handles = sum(1 for _ in Path(f"/proc/{self.pid}/fd").iterdir())
        self.samples.append((at, memory, handles))
        return memory, handles

    def growth(self) -> tuple[float, int]:
        """MB and handles between the first and the last tenth of what came after the warm-up."""
        warm = self.samples[-1][0] * WARM_SHARE
        after = [sample for sample in self.samples if sample[0] >= warm]
        few = max(1, len(after) // 10)
        memory = _rise([one for _, one, _ in after], few)
        return memory, round(_rise([float(one) for _, _, one in after], few))


def _rise(values: list[float], few: int) -> float:
    return statistics.median(values[-few:]) - statistics.median(values[:few])
