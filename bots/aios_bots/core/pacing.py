"""When each call of an app may go: one gate per chat, for everything that goes there.

An app that is called too often answers "wait so long". Who goes on calling is shut out for hours,
and who waits with everything lets all chats stand still for one. So every call, typing and
previews included, comes through here; only the chat that was named waits; and what is shown only
for a moment is dropped before something final has to wait for it.

A state machine on a given clock: whoever drives it makes the calls and sleeps.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Callable
from enum import IntEnum
from itertools import count

import msgspec

from aios_bots.core.rates import Bucket, Window

FORGET_ABOVE_CHATS = 256
"""With more, chats that wait for nothing are forgotten."""
_HAIR_S = 1e-9
"""A wait so short is none: a clock may not move by it."""
SPARE_FOR_FINALS = 3
"""Of the global rate and of a group's, previews leave so many; of a private chat's, one."""


class Rank(IntEnum):
    """The lower goes first."""

    FINAL = 0
    """Must arrive, in the order in which it was asked for."""
    PREVIEW = 1
    TYPING = 2


class Rates(msgspec.Struct, frozen=True):
    """How often Telegram may be called, a little below what it allows."""

    all_per_s: int = 26
    """Turns come a little late and are counted from then: it comes to 25. Thirty are allowed."""
    private_per_s: float = 1.0
    private_burst: int = 3
    group_per_min: int = 18


class Call(msgspec.Struct, frozen=True):
    key: str
    """The message that it is about: a newer preview of it replaces an older one."""
    chat: str
    rank: Rank
    group: bool = False
    name: str = ""
    """Whatever tells this call from others about the same message, for who drives the pacer."""


class _Chat:
    """What waits for one chat, and how often it was called."""

    def __init__(self, rate: Bucket | Window, spare: int) -> None:
        self.rate, self.spare = rate, spare
        self.until = float("-inf")
        self.finals: deque[tuple[int, Call]] = deque()
        self.shown: dict[tuple[Rank, str], tuple[int, Call]] = {}
        """Previews and typing, by rank and key."""
        self.due: float | None = None
        self.ready: tuple[Rank, int] | None = None
        """Where the pacer will find it: among those that wait until then, or that may go."""

    def first(self) -> tuple[Rank, int, Call] | None:
        if self.finals:
            number, call = self.finals[0]
            return Rank.FINAL, number, call
        waiting = ((call.rank, number, call) for number, call in self.shown.values())
        return min(waiting, key=lambda one: one[:2], default=None)

    def pop(self, call: Call) -> None:
        if call.rank is Rank.FINAL:
            self.finals.popleft()
        else:
            del self.shown[call.rank, call.key]

    def wait(self, now: float, rank: Rank) -> float:
        return max(self.until - now, self.rate.wait(now, self.spare if rank else 0), 0.0)

    def idle(self, now: float) -> bool:
        return not self.finals and not self.shown and now >= self.until and self.rate.full(now)


class Pacer:
    """The calls of one bot. ``clock`` gives seconds and never goes back."""

    def __init__(self, clock: Callable[[], float], rates: Rates | None = None) -> None:
        self._clock = clock
        self._rates = rates or Rates()
        self._all = Window(self._rates.all_per_s, 1.0)
        self._chats: dict[str, _Chat] = {}
        self._forget_at = FORGET_ABOVE_CHATS
        self._numbers = count()
        self._ready: list[tuple[Rank, int, str]] = []
        self._later: list[tuple[float, str]] = []

    def put(self, call: Call) -> bool:
        """Let a call wait for its turn. False: it is not wanted now, and is forgotten."""
        now = self._clock()
        chat = self._chat(call, now)
        if call.rank is Rank.FINAL:
            chat.finals.append((next(self._numbers), call))
            chat.shown.pop((Rank.PREVIEW, call.key), None)  # what is final needs no preview
            self._place(call.chat, chat, now)
            return True
        if now < chat.until or any(one.key == call.key for _, one in chat.finals):
            return False
        place = (call.rank, call.key)
        number = chat.shown[place][0] if place in chat.shown else next(self._numbers)
        chat.shown[place] = (number, call)
        self._place(call.chat, chat, now)
        return True

    def take(self) -> Call | None:
        """The next call to make now, which counts from now; None if all have to wait."""
        now = self._clock()
        self._settle(now)
        found = self._first_ready()
        if found is None:
            return None
        chat, (rank, _, call) = found
        if self._all.wait(now, _spare(rank)) > 0:
            return None
        heapq.heappop(self._ready)
        chat.ready = None
        chat.pop(call)
        chat.rate.take(now)
        self._all.take(now)
        self._place(call.chat, chat, now)
        return call

    def wait(self) -> float | None:
        """Seconds until ``take`` may give something; None while nothing waits."""
        now = self._clock()
        self._settle(now)
        waits: list[float] = []
        found = self._first_ready()
        if found is not None:
            waits.append(self._all.wait(now, _spare(found[1][0])))
        if self._later:
            waits.append(max(self._later[0][0] - now, self._all.wait(now)))
        return min(waits, default=None)

    # A chat that has something to go is in one of two heaps: where it is found costs the same with
    # ten chats and with ten thousand. What changes is added anew, and the old entry, which the
    # chat does not confirm, is dropped when its turn comes.

    def _place(self, name: str, chat: _Chat, now: float) -> None:
        """Put a chat where it belongs by what goes first there."""
        first = chat.first()
        if first is None:
            chat.due = chat.ready = None
            return
        rank, number, _ = first
        wait = chat.wait(now, rank)
        if wait > _HAIR_S:
            chat.ready = None
            due = now + wait
            if chat.due is None or due < chat.due:  # else it is looked at too early, and again
                chat.due = due
                heapq.heappush(self._later, (due, name))
        elif chat.ready != (rank, number):
            chat.due, chat.ready = None, (rank, number)
            heapq.heappush(self._ready, (rank, number, name))

    def _settle(self, now: float) -> None:
        """Look again at the chats that have waited long enough."""
        later = self._later
        while later:
            due, name = later[0]
            chat = self._chats.get(name)
            current = chat is not None and chat.due == due
            if current and due > now + _HAIR_S:
                return
            heapq.heappop(later)
            if chat is not None and current:
                chat.due = None
                self._place(name, chat, now)

    def _first_ready(self) -> tuple[_Chat, tuple[Rank, int, Call]] | None:
        ready = self._ready
        while ready:
            rank, number, name = ready[0]
            chat = self._chats.get(name)
            if chat is not None and chat.ready == (rank, number):
                first = chat.first()
                if first is not None and first[:2] == (rank, number):
                    return chat, first
            heapq.heappop(ready)
        return None

    def close(self, chat: str, seconds: float, *, group: bool = False) -> list[Call]:
        """The app said to wait: nothing goes to that chat until then.

        What was dropped because of it: previews and typing. Finals wait. A shorter wait never
        shortens a longer one.
        """
        now = self._clock()
        found = self._chat(Call("", chat, Rank.FINAL, group), now)
        found.until = max(found.until, now + seconds)
        dropped = [call for _, call in found.shown.values()]
        found.shown.clear()
        self._place(chat, found, now)
        return dropped

    def again(self, call: Call) -> None:
        """A call that was taken did not get through: it waits again, before all others there."""
        now = self._clock()
        chat = self._chat(call, now)
        if call.rank is Rank.FINAL:
            chat.finals.appendleft((-next(self._numbers), call))
            self._place(call.chat, chat, now)

    def drop(self, call: Call) -> bool:
        """A preview or typing is not wanted any more; gives whether it still waited."""
        chat = self._chats.get(call.chat)
        if chat is None or chat.shown.pop((call.rank, call.key), None) is None:
            return False
        self._place(call.chat, chat, self._clock())
        return True

    def forget(self, chat: str) -> list[Call]:
        """Nothing goes there any more; what waited. How often it was called is still known."""
        found = self._chats.get(chat)
        if found is None:
            return []
        waited = [call for _, call in (*found.finals, *found.shown.values())]
        found.finals.clear()
        found.shown.clear()
        found.due = found.ready = None
        return waited

    def busy(self, chat: str) -> bool:
        """Whether a call to that chat would have to wait."""
        found, now = self._chats.get(chat), self._clock()
        if self._all.wait(now, SPARE_FOR_FINALS) > 0:
            return True
        return found is not None and (bool(found.finals) or found.wait(now, Rank.PREVIEW) > 0)

    def closed(self) -> dict[str, float]:
        """The chats that the app closed, and for how many seconds more."""
        now = self._clock()
        return {name: chat.until - now for name, chat in self._chats.items() if chat.until > now}

    def waiting(self) -> int:
        """How many finals wait."""
        return sum(len(chat.finals) for chat in self._chats.values())

    def _chat(self, call: Call, now: float) -> _Chat:
        found = self._chats.get(call.chat)
        if found is None:
            if len(self._chats) >= self._forget_at:
                self._chats = {
                    name: chat for name, chat in self._chats.items() if not chat.idle(now)
                }
                self._forget_at = max(FORGET_ABOVE_CHATS, 2 * len(self._chats))
            found = self._chats[call.chat] = self._new(group=call.group)
        return found

    def _new(self, *, group: bool) -> _Chat:
        rates = self._rates
        if group:
            return _Chat(Window(rates.group_per_min, 60.0), SPARE_FOR_FINALS)
        return _Chat(Bucket(rates.private_per_s, rates.private_burst), spare=1)


def _spare(rank: Rank) -> int:
    return SPARE_FOR_FINALS if rank else 0
