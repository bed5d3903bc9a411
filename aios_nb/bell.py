"""Waiting until somebody rings."""

from __future__ import annotations

import asyncio


class Bell:
    """Wakes everyone who waits, once. Waiters check again themselves what they waited for."""

    __slots__ = ("_waiting",)

    def __init__(self) -> None:
        self._waiting: set[asyncio.Future[None]] | None = None

    def ring(self) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is not None:
            for waiter in waiting:
                _done(waiter)

    async def wait(self, within_s: float | None = None) -> None:
        """Return when it rings, or after so many seconds."""
        loop = asyncio.get_running_loop()
        waiter: asyncio.Future[None] = loop.create_future()
        waiting = self._waiting
        if waiting is None:
            waiting = self._waiting = set()
        waiting.add(waiter)
        timer = None if within_s is None else loop.call_later(within_s, _done, waiter)
        try:
            await waiter
        finally:
            waiting.discard(waiter)
            if timer is not None:
                timer.cancel()


def _done(waiter: asyncio.Future[None]) -> None:
    if not waiter.done():
        waiter.set_result(None)
