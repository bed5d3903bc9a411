"""Answers that come in pieces: a reply as it is written, a log as it grows."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Any

from aios_nb.access import Principal
from aios_nb.chat.conversation import Conversation
from aios_nb.chat.log import Log
from aios_nb.chat.reading import Reader
from aios_nb.chat.runs import Run
from aios_nb.envelope import Delta, Event


class ReplyStream:
    """``chat.stream`` of a run under way: deltas, then the result. Is a ``ports.Notices``."""

    notification = "chat.delta"
    result_first = False

    def __init__(
        self, run: Run, offset: int, result: Callable[[Run], Any], beyond: str = ""
    ) -> None:
        self._run = run
        self._offset = offset
        self._result = result
        self._beyond = beyond

    def __aiter__(self) -> AsyncIterator[Delta]:
        return self._run.deltas(self._offset, self._beyond)

    async def result(self) -> Any:
        await self._run.settled(self._beyond)
        return self._result(self._run)

    def close(self) -> None:
        """Nothing to let go of: a run does not depend on who listens."""


class StoredStream:
    """``chat.stream`` of a run that is over."""

    notification = "chat.delta"
    result_first = False

    def __init__(self, delta: Delta | None, result: Callable[[], Any]) -> None:
        self._delta = delta
        self._result = result

    async def __aiter__(self) -> AsyncIterator[Delta]:
        if self._delta is not None:
            yield self._delta

    async def result(self) -> Any:
        return self._result()

    def close(self) -> None:
        """Nothing to let go of."""


class LogWatch:
    """``chat.watch``: the events a caller may see, from a cursor on, for as long as it listens.

    Each watch reads the log at its own pace; nothing is queued for a slow one.
    """

    notification = "chat.event"
    result_first = True

    def __init__(
        self,
        log: Log,
        reader: Reader,
        conversation: Conversation | None,
        principal: Principal,
        after: int,
    ) -> None:
        self._log = log
        self._reader = reader
        self._conversation = conversation
        self._principal = principal
        self._cursor = after
        self._closed = False

    async def result(self) -> Any:
        start: dict[str, Any] = {"cursor": self._cursor}
        if self._conversation is not None:
            start["seq"] = self._reader.seq_at(self._conversation, self._cursor)
        return start

    async def __aiter__(self) -> AsyncIterator[Event]:
        while not self._closed:
            upto = self._log.cursor
            events = self._reader.since(self._cursor, self._conversation, self._principal)
            for event in events:
                self._cursor = event.cursor
                yield event
            if not events:
                self._cursor = max(self._cursor, upto)
                await self._log.news(self._cursor)

    def close(self) -> None:
        """Ends at the next event; whoever iterates may also simply stop."""
        self._closed = True
