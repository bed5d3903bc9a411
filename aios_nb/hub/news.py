"""Who comes and goes, for whoever watches."""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from typing import Any

import msgspec

from aios_nb.bell import Bell
from aios_nb.changes import changes
from aios_nb.envelope import AgentRow

NEWS_KEPT = 1000
FIRST_ROWS = 2000
"""Of those who are there when a watch begins: all of a large network would not fit a message."""


class News:
    """The last changes, numbered, for whoever watches."""

    def __init__(self) -> None:
        self._kept: deque[tuple[int, dict[str, Any]]] = deque(maxlen=NEWS_KEPT)
        self._bell = Bell()
        self._watches: weakref.WeakSet[AgentWatch] = weakref.WeakSet()
        self.last = 0

    @property
    def watched(self) -> bool:
        """Whether somebody looks on."""
        return bool(self._watches)

    def look_on(self, watch: AgentWatch) -> None:
        self._watches.add(watch)

    def look_away(self, watch: AgentWatch) -> None:
        self._watches.discard(watch)

    def tell(self, event: str, row: AgentRow) -> None:
        self.last += 1
        self._kept.append((self.last, {"event": event, "agent": row}))
        self._bell.ring()

    def since(self, number: int) -> list[dict[str, Any]] | None:
        """All changes after this one; None when some of them are too old to be kept."""
        if self._kept and self._kept[0][0] > number + 1:
            return None
        return [change for n, change in self._kept if n > number]

    async def wait(self, number: int) -> None:
        while self.last <= number:
            await self._bell.wait()


class AgentWatch:
    """``agents.watch``: who is here, then who comes and goes. Is a ``ports.Notices``."""

    notification = "agents.event"
    result_first = True

    def __init__(
        self,
        news: News,
        rows: Callable[[], Sequence[AgentRow]],
        shown: Callable[[AgentRow], AgentRow] = lambda row: row,
    ) -> None:
        """``shown``: a row as the one who watches sees it; ``rows`` are so already."""
        self._shown = shown
        self._news = news
        self._seen = news.last
        self._rows = rows
        self._told = {row.id: row for row in rows()}
        """Who is there, as the one who watches knows it."""
        self._first = tuple(self._told.values())
        news.look_on(self)

    async def result(self) -> Any:
        """Who is there; if that is too many for one answer, how many more there are."""
        more = max(0, len(self._first) - FIRST_ROWS)
        return {"agents": self._first[:FIRST_ROWS], "more": more}

    async def __aiter__(self) -> AsyncIterator[dict[str, Any]]:
        while True:
            await self._news.wait(self._seen)
            news = self._news.since(self._seen)
            self._seen = self._news.last
            for change in self._missed() if news is None else news:
                told = {"event": change["event"], "agent": self._shown(change["agent"])}
                self._know(told)
                yield told

    def _missed(self) -> Iterator[dict[str, Any]]:
        """For one too far behind: the difference to what it knows."""
        now = {row.id: row for row in self._rows()}
        for event, row in list(changes(self._told, now)):
            live = event != "withdrawn" and row.live
            yield {"event": event, "agent": msgspec.structs.replace(row, live=live)}

    def _know(self, change: dict[str, Any]) -> None:
        row = change["agent"]
        self._told.pop(row.id, None)
        if change["event"] != "withdrawn":
            self._told[row.id] = row

    def close(self) -> None:
        self._news.look_away(self)
