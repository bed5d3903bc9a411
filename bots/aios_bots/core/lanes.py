"""The open calls of each place, of which the first is in memory and the others in the outbox."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

from aios_bots.core.model import Op, Outgoing, Place
from aios_bots.core.outbox import Row

Key = tuple[str, str, bool]


class Lane:
    """One place: its calls go one after the other. ``answers``: those that answer a press."""

    __slots__ = ("answers", "asked", "away", "place", "row", "timer", "tries")

    def __init__(self, place: Place, *, answers: bool) -> None:
        self.place, self.answers = place, answers
        self.row: Row | None = None
        """What goes first here: it waits for its turn, is on its way, or is held by ``timer``."""
        self.timer: asyncio.TimerHandle | None = None
        self.away = False
        """It is held because the app could not be reached."""
        self.tries = 0
        """Failures in a row."""
        self.asked = False
        """The app has answered since the first call was last of unknown fate."""

    @property
    def chat(self) -> str:
        return self.place.chat

    def begin(self, row: Row) -> None:
        self.row, self.tries, self.asked = row, 0, False

    def let_go(self) -> bool:
        """Hold it no longer; gives whether it was held."""
        timer, self.timer, self.away = self.timer, None, False
        if timer is not None:
            timer.cancel()
        return timer is not None


class Lanes:
    """The places that have something to go, and those of them to look at."""

    def __init__(self) -> None:
        self._lanes: dict[Key, Lane] = {}
        self._touched: dict[Key, Lane] = {}

    def touch(self, place: Place, *, answers: bool = False) -> None:
        """Something came for that place."""
        key = (place.chat, place.topic, answers)
        lane = self._lanes.get(key)
        if lane is None:
            lane = self._lanes[key] = Lane(place, answers=answers)
        if lane.row is None:
            self._touched[key] = lane

    def touched(self) -> list[Lane]:
        """The places whose first call is not in memory, once."""
        found = list(self._touched.values())
        self._touched.clear()
        return found

    def drop(self, lane: Lane) -> None:
        """Nothing is left there."""
        key = (lane.place.chat, lane.place.topic, lane.answers)
        lane.let_go()
        lane.row = None
        if self._lanes.get(key) is lane:
            del self._lanes[key]
            self._touched.pop(key, None)

    def clear(self) -> None:
        for lane in list(self._lanes.values()):
            self.drop(lane)

    def __iter__(self) -> Iterator[Lane]:
        return iter(list(self._lanes.values()))


def about(out: Outgoing) -> str:
    """Names the message that a call is about: two of those must not overtake each other."""
    if out.op in {Op.SEND, Op.ANSWER} or not out.target:
        return out.key
    return f"{out.place.chat}/{out.target}"
