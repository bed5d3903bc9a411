"""What happens in a conversation that is watched, as few messages instead of many.

Agents talk faster than people read. A place that watches is told at most once in five seconds, of
all that was said since; and where more than ten messages come in a minute, only how many there
were, once a minute. A state machine on a given clock.
"""

from __future__ import annotations

from collections import Counter, deque

import msgspec

from aios_bots.core.model import Rich

GATHER_S = 5.0
CROWD_PER_MIN = 10
SUMMARY_S = 60.0
_MINUTE_S = 60.0
NAMED = 4
"""So many of those who speak are named in a summary."""


class Entry(msgspec.Struct, frozen=True):
    """One thing that happened."""

    seq: int
    event_id: str
    who: str
    rich: Rich
    """In short."""
    said: bool = True
    """Somebody said it; else it is a remark, and does not count."""


class Bundle(msgspec.Struct, frozen=True):
    """What a place is to be told now."""

    entries: tuple[Entry, ...]
    upto: int
    """With it, the place has what happened up to this ``seq``."""
    crowded: bool = False
    """There is too much of it to show."""

    @property
    def summary(self) -> str:
        """How much there was, and of whom."""
        whose = Counter(one.who for one in self.entries if one.said)
        count = whose.total()
        named = [f"{who} {times}" for who, times in whose.most_common(NAMED)]
        more = len(whose) - len(named)
        names = ", ".join([*named, *([f"{more} more"] if more > 0 else [])])
        return f"{count} messages: {names}" if count != 1 else f"1 message: {names}"


class Crowd:
    """What one place was not told yet."""

    def __init__(self, upto: int) -> None:
        self.upto = upto
        """What happened up to this ``seq`` is here, or was told."""
        self._entries: list[Entry] = []
        self._said: deque[float] = deque()
        self._told = float("-inf")

    def add(self, seq: int, entry: Entry | None, now: float) -> None:
        """Something happened; ``None``: nothing to tell of."""
        self.upto = max(self.upto, seq)
        if entry is not None:
            self._entries.append(entry)
            if entry.said:
                self._said.append(now)

    def change(self, event_id: str, rich: Rich) -> bool:
        """It says something else now; False: that was told already."""
        for at, entry in enumerate(self._entries):
            if entry.event_id == event_id:
                self._entries[at] = msgspec.structs.replace(entry, rich=rich)
                return True
        return False

    def crowded(self, now: float) -> bool:
        while self._said and self._said[0] + _MINUTE_S <= now:
            self._said.popleft()
        return len(self._said) > CROWD_PER_MIN

    def wait(self, now: float) -> float | None:
        """Seconds until the place is to be told; None: there is nothing."""
        if not self._entries:
            return None
        rest = SUMMARY_S if self.crowded(now) else GATHER_S
        return max(0.0, self._told + rest - now)

    def look(self, now: float) -> Bundle:
        """What to tell now."""
        return Bundle(tuple(self._entries), self.upto, self.crowded(now))

    def told(self, bundle: Bundle, now: float) -> None:
        """The place will have it, whatever happens."""
        self._told = now
        del self._entries[: len(bundle.entries)]
