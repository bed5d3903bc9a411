"""Records that others say they have: asked for until they come, of one after the other."""

from __future__ import annotations

import random
from collections.abc import Iterator

WANTED_MAX = 2048
TRIES = 10
_SLOWER = 1.2
"""Each time it waits so much longer."""
_SOURCES_MAX = 8


class _Wanted:
    __slots__ = ("again_at", "sources", "tries")

    def __init__(self, source: str) -> None:
        self.sources = [source]
        self.tries = 0
        self.again_at = 0.0

    def add(self, source: str, rng: random.Random) -> None:
        """One more who has it. Whoever came first must not keep all others out."""
        if source in self.sources:
            return
        if len(self.sources) < _SOURCES_MAX:
            self.sources.append(source)
        else:
            self.sources[rng.randrange(_SOURCES_MAX)] = source


class Wanting:
    """What was asked for, of whom, and when it is asked for again."""

    def __init__(self, every_s: float, rng: random.Random) -> None:
        self._every_s, self._rng = every_s, rng
        self._of: dict[bytes, _Wanted] = {}
        self.next_at = float("inf")

    def __len__(self) -> int:
        return len(self._of)

    def add(self, now: float, handle: bytes, source: str) -> bool:
        """Whether to ask that node now; else it is kept in mind."""
        wanted = self._of.get(handle)
        if wanted is not None:
            wanted.add(source, self._rng)
            return False
        if len(self._of) >= WANTED_MAX:
            del self._of[next(iter(self._of))]
        wanted = self._of[handle] = _Wanted(source)
        self._ask(now, wanted)
        return True

    def drop(self, handle: bytes) -> None:
        """It came."""
        self._of.pop(handle, None)

    def due(self, now: float) -> Iterator[tuple[bytes, str]]:
        """What to ask for again, and whom."""
        if now < self.next_at:
            return
        self.next_at = float("inf")
        for handle, wanted in list(self._of.items()):
            if wanted.again_at > now:
                self.next_at = min(self.next_at, wanted.again_at)
            elif wanted.tries >= TRIES:
                del self._of[handle]
            else:
                self._ask(now, wanted)
                for source in self._rng.sample(wanted.sources, min(2, len(wanted.sources))):
                    yield handle, source

    def _ask(self, now: float, wanted: _Wanted) -> None:
        wanted.tries += 1
        wanted.again_at = now + self._every_s * _SLOWER ** (wanted.tries - 1)
        self.next_at = min(self.next_at, wanted.again_at)
