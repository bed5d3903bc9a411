"""One run at a time per conversation and agent; a few may wait, in order."""

from __future__ import annotations

import asyncio

Turn = asyncio.Future[None]
"""A place in line; done when it is one's turn."""
Lane = tuple[str, str]
"""A conversation and an agent."""


class Lanes:
    """Who runs, and who waits behind."""

    def __init__(self, waiting: int) -> None:
        self._limit = waiting
        self._lanes: dict[Lane, list[Turn]] = {}

    def full(self, lane: Lane) -> bool:
        waiting = self._lanes.get(lane)
        return waiting is not None and len(waiting) >= self._limit

    def enter(self, lane: Lane) -> Turn | None:
        """``None``: go at once. Otherwise wait for this, in line."""
        waiting = self._lanes.get(lane)
        if waiting is None:
            self._lanes[lane] = []
            return None
        turn: Turn = asyncio.get_running_loop().create_future()
        waiting.append(turn)
        return turn

    def leave(self, lane: Lane, turn: Turn | None) -> None:
        """Let the next one go; one that gives up while it waits only leaves the line."""
        waiting = self._lanes.get(lane)
        if turn is not None and waiting is not None and (turn.cancelled() or not turn.done()):
            if turn in waiting:
                waiting.remove(turn)
            return
        while waiting:
            following = waiting.pop(0)
            if not following.done():
                following.set_result(None)
                return
        self._lanes.pop(lane, None)
