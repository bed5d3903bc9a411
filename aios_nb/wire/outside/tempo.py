"""How fast others may keep us busy. The clock is the loop's."""

from __future__ import annotations

import asyncio
import time

MESSAGES_PER_S = 300.0
MESSAGES_AT_ONCE = 1000
"""Each costs us up to a millisecond, and its sender nothing."""


class Tempo:
    """Lets so many things pass at once, then so many in a second."""

    def __init__(self, per_s: float = MESSAGES_PER_S, at_once: int = MESSAGES_AT_ONCE) -> None:
        self._pause_s = 1.0 / per_s
        self._ahead_s = at_once / per_s
        self._paid_until = 0.0

    async def hold(self, count: int = 1) -> None:
        """Return when it is time for so many more."""
        now = time.monotonic()
        self._paid_until = max(self._paid_until, now) + count * self._pause_s
        late = self._paid_until - now - self._ahead_s
        if late > 0:
            await asyncio.sleep(late)
