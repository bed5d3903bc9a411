"""Work beside all else on one loop, that ends together."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from typing import Any

from aios_nb.errors import AiosError

log = logging.getLogger("aios_nb.notebook")


class Errands:
    """Tasks that nobody waits for. What goes wrong in one is for the log."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[None]] = set()

    def run(self, job: Coroutine[Any, Any, Any]) -> None:
        task = asyncio.get_running_loop().create_task(self._guarded(job))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        task.add_done_callback(lambda _: job.close())  # one dropped before its first step

    def drop(self) -> None:
        """Let all of them end."""
        for task in self._tasks:
            task.cancel()

    async def close(self) -> None:
        """The same, and wait until they have."""
        self.drop()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _guarded(self, job: Coroutine[Any, Any, Any]) -> None:
        try:
            await job
        except AiosError as error:
            log.debug("a chat's errand: %s", error)
        except Exception:
            log.exception("a chat's errand failed")
