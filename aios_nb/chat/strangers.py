"""The pool that strangers share: how many calls, how much work, how many bytes in the log.

A key costs nothing, so a limit per key limits nobody: all strangers together get so much, and one
of them a quarter of it. The owner, tokens and known nodes take nothing out of this pool and never
wait for it.

Pure: it takes a clock, keeps counts, and says ``Busy``. What is in the database is counted by
``Retention``, which also throws away what may go when this pool asks for it.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from typing import Any

import msgspec

from aios_nb.config import KB, Limits
from aios_nb.errors import Busy

BURST_S = 4.0
"""Calls may come this much ahead of their rate."""
FAIR_PART = 4
"""One stranger gets one part in so many of the runs, the rate and the work."""
WINDOW_S = 60.0
"""Work is counted over the last minute."""
COUNTED_RUN_S = 60.0
"""A run counts as this much work at most: the rest of a longer one was waiting for somebody."""
REPLY_BYTES = 64 * KB
"""Kept free for the reply of each run; a longer one is stored all the same."""
TIDY_PAUSE_S = 10.0
"""A full pool asks for a tidy this often at most."""
ROW_BYTES = 300
"""What an event takes besides its text, data, files and note, roughly; indexes included."""
CONVERSATION_BYTES = 300
"""What a conversation takes besides its events."""
_VOUCH = "its owner can `allow` your node"

_encode = msgspec.json.Encoder().encode


def weight(text: str, data: Any = None, note_bytes: int = 0) -> int:
    """The bytes an event takes in the log, as ``Retention`` counts them."""
    encoded = 0 if data is None else len(_encode(data))
    return ROW_BYTES + _utf8(text) + encoded + note_bytes


def _utf8(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode(errors="replace"))


class Ticket:
    """One run of a stranger. Handed back once, by ``done`` or by ``refuse``; more is ignored."""

    __slots__ = ("_hand_back",)

    def __init__(self, hand_back: Callable[[float, bool], None]) -> None:
        self._hand_back: Callable[[float, bool], None] | None = hand_back

    def done(self, seconds: float) -> None:
        """The run is over, and its agent was at work so long."""
        self._back(seconds, stored=True)

    def refuse(self) -> None:
        """It was not stored after all: nothing runs, and its bytes are free again."""
        self._back(0.0, stored=False)

    def _back(self, seconds: float, *, stored: bool) -> None:
        hand_back, self._hand_back = self._hand_back, None
        if hand_back is not None:
            hand_back(seconds, stored)


class Pool:
    """What strangers have taken, and whether one more call fits."""

    def __init__(self, limits: Limits, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._runs = _Shares(limits.stranger_runs)
        self._rate = limits.stranger_calls_per_s
        self._bucket = _Bucket(self._rate, clock())
        self._buckets: dict[str, _Bucket] = {}
        """Of those who called in the last seconds, the longest silent first."""
        self._work = _Shares(limits.stranger_seconds_per_min)
        self._spent: deque[tuple[float, str, float]] = deque()
        self._limit = limits.stranger_log_bytes
        # All that is kept free for replies is a tenth of the whole at most.
        self._reply = min(REPLY_BYTES, self._limit // (10 * max(1, limits.stranger_runs)))
        self._asked_at = -TIDY_PAUSE_S + clock()
        self.ask_for_tidy: Callable[[], None] = lambda: None
        """Called when there is no room; not more often than every ``TIDY_PAUSE_S``."""
        self.bytes = 0
        """What strangers have in the log: counted now and then, added up in between."""

    @property
    def runs(self) -> int:
        """Runs under way."""
        return int(self._runs.taken)

    def admit(self, caller: str, stored_bytes: int) -> Ticket:
        """A ticket for one run, whose request takes so many bytes in the log.

        Raises ``Busy``, and has then taken nothing.
        """
        now = self._check(caller, stored_bytes)
        own = self._buckets.pop(caller, None) or _Bucket(self._rate / FAIR_PART, now)
        own.take()
        self._bucket.take()
        self._buckets[caller] = own  # the last to be silent
        self.bytes += stored_bytes
        return self._ticket(caller, stored_bytes)

    def check(self, caller: str) -> None:
        """``Busy`` if this caller would get no ticket now: before anything is written for it."""
        self._check(caller, 0)

    def readmit(self, caller: str) -> Ticket:
        """A ticket for a run that was taken before a restart: never refused, already stored."""
        return self._ticket(caller, 0)

    def stored(self, count: int) -> None:
        """So many more bytes of strangers are in the log, or fewer: replies, what was deleted."""
        self.bytes = max(0, self.bytes + count)

    def no_room(self) -> Busy:
        """What a stranger is told when the database is to take no more; asks for a tidy."""
        now = self._clock()
        if now - self._asked_at >= TIDY_PAUSE_S:
            self._asked_at = now
            self.ask_for_tidy()
        return Busy(
            "this node keeps nothing more for strangers at present",
            hint=f"try again later; {_VOUCH}",
            retry_after_s=max(1.0, round(self._asked_at + TIDY_PAUSE_S - now, 1)),
        )

    def _check(self, caller: str, stored_bytes: int) -> float:
        now = self._clock()
        self._forget(now)
        if not self._runs.has_room(caller):
            raise Busy(
                "this node does not do more for strangers at once",
                hint=f"wait for an answer; {_VOUCH}",
            )
        if not self._work.has_room(caller):
            oldest = self._spent[0][0] if self._spent else now
            raise Busy(
                "agents of this node have worked enough for strangers this minute",
                hint=f"wait a little; {_VOUCH}",
                retry_after_s=max(1.0, round(oldest + WINDOW_S - now, 1)),
            )
        if self.bytes + stored_bytes + (self.runs + 1) * self._reply > self._limit:
            raise self.no_room()
        own = self._buckets.get(caller)
        wait_s = max(self._bucket.wait_s(now), own.wait_s(now) if own is not None else 0.0)
        if wait_s > 0:
            raise Busy(
                "strangers call this node too often",
                hint=f"call less often; {_VOUCH}",
                retry_after_s=max(0.1, round(wait_s, 2)),
            )
        return now

    def _ticket(self, caller: str, stored_bytes: int) -> Ticket:
        self._runs.add(caller, 1)

        def hand_back(seconds: float, stored: bool) -> None:  # noqa: FBT001 - a ticket's own
            self._runs.add(caller, -1)
            if not stored:
                self.stored(-stored_bytes)
            if seconds > 0:
                work = min(seconds, COUNTED_RUN_S)
                self._work.add(caller, work)
                self._spent.append((self._clock(), caller, work))

        return Ticket(hand_back)

    def _forget(self, now: float) -> None:
        while self._spent and self._spent[0][0] <= now - WINDOW_S:
            _, caller, work = self._spent.popleft()
            self._work.add(caller, -work)
        if not self._spent:
            self._work.clear()  # what rounding left
        while self._buckets:
            caller = next(iter(self._buckets))
            if not self._buckets[caller].is_full(now):
                return
            del self._buckets[caller]


class _Shares:
    """So much for all together, and a fair part of it for one."""

    def __init__(self, most: float) -> None:
        self._most = most
        self._most_for_one = max(1.0, most / FAIR_PART)
        self._by: dict[str, float] = {}
        self.taken = 0.0

    def has_room(self, caller: str) -> bool:
        return self.taken < self._most and self._by.get(caller, 0.0) < self._most_for_one

    def add(self, caller: str, amount: float) -> None:
        self.taken += amount
        left = self._by.get(caller, 0.0) + amount
        if left > 1e-6:  # noqa: PLR2004 - less is what rounding left
            self._by[caller] = left
        else:
            self._by.pop(caller, None)

    def clear(self) -> None:
        self._by.clear()
        self.taken = 0.0


class _Bucket:
    """Calls at a rate, and ``BURST_S`` of them at once after a pause."""

    __slots__ = ("_at", "_left", "_rate")

    def __init__(self, rate: float, now: float) -> None:
        self._rate = rate
        self._left = self._most
        self._at = now

    @property
    def _most(self) -> float:
        return max(1.0, self._rate * BURST_S)

    def wait_s(self, now: float) -> float:
        """Seconds until the next call may come; 0 when it may now."""
        self._left = min(self._most, self._left + (now - self._at) * self._rate)
        self._at = now
        return max(0.0, (1.0 - self._left) / self._rate) if self._rate else BURST_S

    def take(self) -> None:
        self._left -= 1.0

    def is_full(self, now: float) -> bool:
        return self._left + (now - self._at) * self._rate >= self._most
