"""How many runs of an agent go on at once, and who waits.

A run that waits for another agent or for a person lends its slot meanwhile, so that teams that
call each other in a circle cannot block: whoever waits holds nothing.

There are two lines. Strangers stand in the second one, which moves only when the first is empty,
and they never hold the last slot while there is more than one: the owner waits for no stranger.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable
from typing import TypeVar

T = TypeVar("T")


class Slots:
    """A counter with two queues. Lives on one event loop."""

    __slots__ = ("_closed", "_ours", "_theirs", "for_strangers", "free", "limit", "strangers")

    def __init__(self, limit: int, for_strangers: int | None = None) -> None:
        self.limit = limit
        self.free = limit
        most = limit - 1 if for_strangers is None else for_strangers
        self.for_strangers = max(1, most)
        """Slots that strangers may hold together."""
        self.strangers = 0
        """Slots that strangers hold."""
        self._closed = False
        self._ours: deque[asyncio.Future[bool]] = deque()
        self._theirs: deque[asyncio.Future[bool]] = deque()

    @property
    def waiting(self) -> int:
        return len(self._ours) + len(self._theirs)

    def take_now(self, *, stranger: bool = False) -> bool:
        """A slot without waiting, if there is one and nobody waits for it."""
        if self.free <= 0 or self._ours:
            return False
        if stranger:
            if self._theirs or self.strangers >= self.for_strangers:
                return False
            self.strangers += 1
        self.free -= 1
        return True

    async def take(self, *, first: bool = False, stranger: bool = False) -> bool:
        """A slot, sooner or later; False when these slots were closed meanwhile.

        ``first`` is for runs that had a slot before: they hold work half done, and stand at the
        head of their line.
        """
        if self._closed:
            return False
        if self.take_now(stranger=stranger):
            return True
        turn: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        line = self._theirs if stranger else self._ours
        if first:
            line.appendleft(turn)
        else:
            line.append(turn)
        try:
            return await turn
        except asyncio.CancelledError:
            if turn in line:
                line.remove(turn)
            elif not turn.cancelled() and turn.result():
                self.give(stranger=stranger)
            raise

    def force(self, *, stranger: bool = False) -> None:
        """A slot at once, over the limit if need be; the count recovers by itself."""
        self.free -= 1
        self.strangers += stranger

    def give(self, *, stranger: bool = False) -> None:
        self.free += 1
        self.strangers -= stranger
        self._serve()

    def close(self) -> None:
        """Send everyone who waits away; they look again for the agent."""
        self._closed = True
        for line in (self._ours, self._theirs):
            while line:
                turn = line.popleft()
                if not turn.done():
                    turn.set_result(False)

    def _serve(self) -> None:
        while self.free > 0 and self._ours:
            turn = self._ours.popleft()
            if not turn.done():
                self.free -= 1
                turn.set_result(True)
        while self.free > 0 and self._theirs and self.strangers < self.for_strangers:
            turn = self._theirs.popleft()
            if not turn.done():
                self.free -= 1
                self.strangers += 1
                turn.set_result(True)


class Lease:
    """The slots one run holds. Given back when its last holder drops it."""

    __slots__ = ("_held", "_holders", "_retaking", "_slots", "_stranger", "_waits")

    def __init__(self, slots: Slots, *, stranger: bool = False) -> None:
        self._slots = [slots]
        self._stranger = stranger
        self._held = True
        self._holders = 1
        self._waits = 0
        self._retaking = False

    @property
    def held(self) -> bool:
        return self._held

    async def also(self, slots: Slots) -> bool:
        """Hold one of these slots too; False when they were closed meanwhile.

        Taken last, so that no circle of waiting can form.
        """
        taken = await slots.take(stranger=self._stranger)
        if taken:
            self._slots.append(slots)
        return taken

    def share(self) -> None:
        """One more holder, such as a thread that may outlive the call."""
        self._holders += 1

    def drop(self) -> None:
        self._holders -= 1
        if not self._holders:
            self._release()

    async def lend(self, waited: Awaitable[T]) -> T:
        """The result of ``waited``; the slots are free for others until it comes.

        With several waits at once the slots come back after the last one: a run that still waits
        for anything must hold nothing.
        """
        self._waits += 1
        self._release()
        try:
            result = await waited
        except asyncio.CancelledError:
            self._resume_now()
            raise
        except BaseException:
            await self._resume()
            raise
        await self._resume()
        return result

    def _release(self) -> None:
        if self._held:
            self._held = False
            for slots in self._slots:
                slots.give(stranger=self._stranger)

    def _may_resume(self) -> bool:
        self._waits -= 1
        return not (self._waits or self._held or self._retaking or not self._holders)

    def _resume_now(self) -> None:
        # A cancelled wait must not queue again: the cancel would wait for a stranger's run.
        if self._may_resume():
            for slots in self._slots:
                slots.force(stranger=self._stranger)
            self._held = True

    async def _resume(self) -> None:
        if not self._may_resume():
            return
        self._retaking = True
        taken = 0
        try:
            for slots in self._slots:
                if not await slots.take(first=True, stranger=self._stranger):
                    slots.force(stranger=self._stranger)  # closed: who was at work may finish
                taken += 1
        except asyncio.CancelledError:
            for slots in self._slots[taken:]:
                slots.force(stranger=self._stranger)
            raise
        finally:
            self._retaking = False
            self._held = True
            if self._waits or not self._holders:
                self._release()
