"""Who comes and goes, for whoever watches."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator
from typing import Any

from aios_nb.bell import Bell
from aios_nb.envelope import AgentRow

NEWS_KEPT = 1000


class News:
    """The last changes, numbered, for whoever watches."""

    def __init__(self) -> None:
        self._kept: deque[tuple[int, dict[str, Any]]] = deque(maxlen=NEWS_KEPT)
        self._bell = Bell()
        self.last = 0

    def tell(self, event: str, row: AgentRow) -> None:
        self.last += 1
        self._kept.append((self.last, {"event": event, "agent": row}))
        self._bell.ring()

    def since(self, number: int) -> list[dict[str, Any]]:
        """Changes after this one; those too old to be kept are left out."""
        return [change for n, change in self._kept if n > number]

    async def wait(self, number: int) -> None:
        while self.last <= number:
            await self._bell.wait()


class AgentWatch:
    """``agents.watch``: who is here, then who comes and goes. Is a ``ports.Notices``."""

    notification = "agents.event"
    result_first = True

    def __init__(self, news: News, rows: list[AgentRow]) -> None:
        self._news = news
        self._seen = news.last
        self._rows = rows

    async def result(self) -> Any:
        return {"agents": self._rows}

    async def __aiter__(self) -> AsyncIterator[dict[str, Any]]:
        while True:
            await self._news.wait(self._seen)
            changes = self._news.since(self._seen)
            self._seen = self._news.last
            for change in changes:
                yield change

    def close(self) -> None:
        """Nothing to let go of."""
