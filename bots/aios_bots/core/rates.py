"""How often something may happen, on a clock that is given."""

from __future__ import annotations

from collections import deque

_HAIR = 1e-9
"""What is lacking by less is there: a wait so short that the clock does not move has no end."""


class Bucket:
    """So many at once, and one more every ``1 / per_s`` seconds."""

    def __init__(self, per_s: float, burst: int) -> None:
        self._per_s, self._burst = per_s, burst
        self._left, self._at = float(burst), float("-inf")

    def wait(self, now: float, spare: int = 0) -> float:
        """Seconds until one may go and ``spare`` are left; 0 if at once."""
        lacking = min(1 + spare, self._burst) - self._filled(now)
        return lacking / self._per_s if lacking > _HAIR else 0.0

    def take(self, now: float) -> None:
        self._left = self._filled(now) - 1
        self._at = max(now, self._at)

    def full(self, now: float) -> bool:
        return self._filled(now) >= self._burst - _HAIR

    def _filled(self, now: float) -> float:
        if self._left >= self._burst:
            return self._left
        filled = self._left + max(0.0, now - self._at) * self._per_s
        return min(float(self._burst), filled)


class Window:
    """So many in any stretch of ``seconds``."""

    def __init__(self, most: int, seconds: float) -> None:
        self._most, self._seconds = most, seconds
        self._times: deque[float] = deque()

    def wait(self, now: float, spare: int = 0) -> float:
        """Seconds until one may go and ``spare`` are left; 0 if at once."""
        self._forget(now)
        over = len(self._times) + 1 + min(spare, self._most - 1) - self._most
        return max(0.0, self._times[over - 1] + self._seconds - now) if over > 0 else 0.0

    def take(self, now: float) -> None:
        self._times.append(max(now, self._times[-1] if self._times else now))

    def full(self, now: float) -> bool:
        """Whether nothing of it is used."""
        self._forget(now)
        return not self._times

    def _forget(self, now: float) -> None:
        while self._times and self._times[0] + self._seconds <= now:
            self._times.popleft()


class Turnstile:
    """So many at the other side in any stretch of ``seconds``, however long each is on its way.

    When it arrives is not known: some time between going and coming back. So it counts while it is
    out, and for as long again after it came back.
    """

    def __init__(self, most: int, seconds: float) -> None:
        self._most, self._back = most, Window(most, seconds)
        self._out = 0

    def wait(self, now: float) -> float | None:
        """Seconds until one more may go; None: when one has come back."""
        if self._out >= self._most:
            return None
        return self._back.wait(now, self._out)

    def enter(self) -> None:
        """One goes."""
        self._out += 1

    def leave(self, now: float) -> None:
        """One came back."""
        self._out -= 1
        self._back.take(now)
