"""The sessions with an MCP server: opened when needed, used for a while, closed without a trace."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable

from aios_nb.errors import Busy, RpcError
from aios_nb.wire.outside.session import Session
from aios_nb.wire.outside.ways import Way

IDLE_S = 60.0
"""A session that nobody uses is closed after this long."""
SESSIONS_MAX = 8
"""Of one server, one for each caller."""


class Sessions:
    """The sessions with one server: one for each key, lent to one call after another."""

    def __init__(self, dial: Callable[[], Way], who: str) -> None:
        self._dial = dial
        self._who = who
        self._kept: dict[str, Session] = {}
        self._users: dict[Session, int] = {}
        self._timers: dict[Session, asyncio.TimerHandle] = {}
        self._turns: dict[str, asyncio.Lock] = {}
        self._endings: set[asyncio.Task[None]] = set()
        self._closed = False

    @contextlib.asynccontextmanager
    async def fresh(self) -> AsyncIterator[Session]:
        """One of its own, closed at the end."""
        session = Session(self._dial(), self._who)
        self._users[session] = 1
        try:
            await session.opened()
            yield session
        finally:
            session.spent = True
            self._give_back(session)

    @contextlib.asynccontextmanager
    async def lent(
        self, key: str, check: Callable[[Session], Awaitable[None]]
    ) -> AsyncIterator[Session]:
        """The session of that key, after it has passed the check.

        One that was kept may have died meanwhile: if so the check finds out, and a new one is
        opened; nothing was called yet.
        """
        while True:
            async with self._turns.setdefault(key, asyncio.Lock()):
                session, is_new = await self._session(key)
            try:
                try:
                    await check(session)
                except RpcError:
                    session.spent = True
                    if is_new:
                        raise
                    continue
                yield session
                return
            finally:
                self._give_back(session)

    async def _session(self, key: str) -> tuple[Session, bool]:
        kept = self._kept.get(key)
        if kept is not None and kept.is_open:
            self._take(kept)
            return kept, False
        if self._closed:
            raise Busy("this node is stopping")
        self._make_room()
        session = self._kept[key] = Session(self._dial(), self._who)
        self._take(session)
        try:
            await session.opened()
        except BaseException:
            session.spent = True
            self._give_back(session)
            raise
        return session, True

    def _make_room(self) -> None:
        for key, session in list(self._kept.items()):
            if not session.is_open and not self._users.get(session):
                del self._kept[key]
                self._end(session)
        if len(self._kept) < SESSIONS_MAX:
            return
        idle = next((key for key, one in self._kept.items() if not self._users.get(one)), None)
        if idle is None:
            raise Busy("too many callers use this MCP server at once")
        self._end(self._kept.pop(idle))

    def _take(self, session: Session) -> None:
        self._users[session] = self._users.get(session, 0) + 1
        timer = self._timers.pop(session, None)
        if timer is not None:
            timer.cancel()

    def _give_back(self, session: Session) -> None:
        self._users[session] -= 1
        if self._users[session]:
            return
        del self._users[session]
        if session.is_open and not self._closed:
            loop = asyncio.get_running_loop()
            self._timers[session] = loop.call_later(IDLE_S, self._idle, session)
        else:
            self._idle(session)

    def _idle(self, session: Session) -> None:
        for key, kept in list(self._kept.items()):
            if kept is session:
                del self._kept[key]
                if not self._turns[key].locked():
                    del self._turns[key]
        self._end(session)

    def _end(self, session: Session) -> None:
        if session.is_over:
            return
        timer = self._timers.pop(session, None)
        if timer is not None:
            timer.cancel()
        ending = asyncio.create_task(session.close(), name="mcp session ends")
        self._endings.add(ending)
        ending.add_done_callback(self._endings.discard)

    async def close(self) -> None:
        """End them all, also those in use."""
        self._closed = True
        for session in [*self._kept.values(), *self._users]:
            session.spent = True
            self._end(session)
        self._kept.clear()
        while self._endings:
            await asyncio.wait(self._endings)
