"""Whether the other end of a link is still there, judged fairly. No I/O; the clock is given."""

from __future__ import annotations

from collections.abc import Callable
from enum import Enum

TICK_S = 1.0
PING_AFTER_S = 10.0
"""Nothing was heard for so long: ask."""
SILENCE_S = 40.0
"""Nothing at all was heard for so long: gone."""
LATE_S = 1.0
"""A tick that comes this much too late says that we were held up, not the other side."""
SMOOTHING = 0.2
"""The weight of the newest round trip."""


class Verdict(Enum):
    """What a tick finds."""

    FINE = "fine"
    PING = "ping"
    DEAD = "dead"


class Pulse:
    """Counts the silence of the other side, and not our own.

    A kernel whose cell holds the interpreter for a minute hears nothing either. Its ticks come late
    then, and a late tick begins a fresh period. One more tick passes before the last verdict: what
    waited in the socket is read by then.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._ticked = self._since = clock()
        self._asked = False
        self._doubt = False
        self._pinged = 0.0
        self.latency_ms: float | None = None

    def tick(self, *, heard: bool) -> Verdict:
        """What to do now. To be called every ``TICK_S`` with whether anything was heard since."""
        now = self._clock()
        late = now - self._ticked > TICK_S + LATE_S
        self._ticked = now
        if heard or late:
            self._since = now
            self._asked = self._doubt = False
            return Verdict.FINE
        silence = now - self._since
        if silence >= SILENCE_S:
            verdict = Verdict.DEAD if self._doubt else Verdict.FINE
            self._doubt = True
            return verdict
        if silence >= PING_AFTER_S and not self._asked:
            self._asked = True
            return Verdict.PING
        return Verdict.FINE

    def pinged(self) -> None:
        """A ping leaves now."""
        self._pinged = self._clock()

    def ponged(self) -> None:
        """Its answer is here."""
        took_ms = (self._clock() - self._pinged) * 1000
        if self.latency_ms is None:
            self.latency_ms = took_ms
        else:
            self.latency_ms += SMOOTHING * (took_ms - self.latency_ms)
