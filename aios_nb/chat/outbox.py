"""When to try again to bring a task to another node. No I/O, no clock.

What waits is not kept here: it is in the log, as a request without an end, and the next start of
the node goes on with it.
"""

from __future__ import annotations

import random
from collections.abc import Callable

FIRST_PAUSE_S = 0.05
LONGEST_PAUSE_S = 5.0

HOPELESS = frozenset({"left", "no address", "refused"})
"""Reasons for which somebody who waits is told at once."""


class Attempts:
    """The attempts of one task."""

    __slots__ = ("_chance", "_pause_s", "acknowledged", "sent_times")

    def __init__(self, chance: Callable[[], float] = random.random) -> None:
        self._chance = chance
        self._pause_s = FIRST_PAUSE_S
        self.sent_times = 0
        self.acknowledged = False
        """Its host has told something of it: it is in the log there."""

    @property
    def delivered(self) -> bool:
        """It was sent over a link that worked: it may have arrived."""
        return self.sent_times > 0

    @property
    def may_be_taken(self) -> bool:
        """An earlier attempt may have been taken: a host that is busy now must be asked again."""
        return self.acknowledged or self.sent_times > 1

    def sent(self) -> None:
        self.sent_times += 1

    def heard(self) -> None:
        self.acknowledged = True
        self._pause_s = FIRST_PAUSE_S

    def pause_s(self, at_least: float = 0.0) -> float:
        """How long to wait before the next attempt; twice as long each time, never in step."""
        pause, self._pause_s = self._pause_s, min(self._pause_s * 2, LONGEST_PAUSE_S)
        return max(at_least, pause * (0.5 + self._chance() / 2))

    def may_wait(self, reason: str, *, patient: bool) -> bool:
        """Whether to try again at all, after a host could not be reached."""
        return patient or self.delivered or reason not in HOPELESS
