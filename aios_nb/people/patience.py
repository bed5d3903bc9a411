"""A word to the person who waits, when the agent's node has gone silent."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from aios_nb.client import SiteClient
from aios_nb.errors import AiosError, Unreachable
from aios_nb.people.wording import what

SILENT_S = 3.0
"""Without a word for so long, its node is asked whether it is there."""


class Patience:
    """Says once that an agent's node is away, while its reply is waited for."""

    def __init__(
        self,
        client: SiteClient,
        agent: str,
        say: Callable[[str], None],
        *,
        on: bool = True,
        stop: str = "Ctrl-C",
    ) -> None:
        """``stop``: what ends the wait, where this person is."""
        self._client = client
        self._agent = agent
        self._say = say
        self._stop = stop
        self._heard = False
        self._task = asyncio.create_task(self._wait()) if on else None

    def heard(self) -> None:
        """Something came."""
        self._heard = True

    async def stop(self) -> None:
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def _wait(self) -> None:
        while True:
            self._heard = False
            await asyncio.sleep(SILENT_S)
            if not self._heard and await self._is_away():
                return

    async def _is_away(self) -> bool:
        try:
            await self._client.call("agents.card", agent=self._agent)
        except Unreachable as error:
            if not self._heard:
                self._say(f"{what(error)}; waiting for it ({self._stop} stops)")
                return True
        except AiosError:
            return True  # whatever it is, the reply itself will say it
        return False
