"""The sessions of clients that speak the older protocol: whose they are, and how many.

A session ends when its client says so, when it was idle for long, when its caller has opened too
many others, or when its caller is shut out.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

from aios_nb.access import Principal
from aios_nb.wire.mcp.news import Changed

IDLE_S = 1800.0
PER_CALLER = 500
"""All strangers are one caller: they push out each other's oldest sessions, and nobody else's."""


class Session:
    """One of them."""

    __slots__ = ("busy", "deep", "id", "peer", "seen", "telling", "untold", "watched", "who")

    def __init__(self, id_: str, who: Principal, now: float) -> None:
        self.id = id_
        self.who = who
        self.seen = self.deep = now
        """When it was last heard of; and when by the SDK."""
        self.busy = 0
        """Requests of it that are being answered, the open stream included."""
        self.peer: Any = None
        """Where notices go, once the client is ready for them."""
        self.watched: set[str] = set()
        """Resources that the client wants to hear of."""
        self.telling = False
        """The last notice has not been taken yet."""
        self.untold = Changed()
        """What came since."""


class Sessions:
    """All of them, by id, the oldest first."""

    def __init__(self, most: int = PER_CALLER, clock: Callable[[], float] = time.monotonic) -> None:
        self._most = most
        self._clock = clock
        self._all: dict[str, Session] = {}

    def __len__(self) -> int:
        return len(self._all)

    def opened(self, id_: str, who: Principal) -> list[Session]:
        """Remember a new one; gives those that have to go for it."""
        self.forget_idle()
        self._all[id_] = Session(id_, who, self._clock())
        own = self.of(who.id)
        return [self._all.pop(session.id) for session in own[: -self._most]]

    def begin(self, session: Session) -> None:
        """The SDK has a request of it."""
        session.busy += 1

    def end(self, session: Session) -> None:
        session.busy -= 1
        session.seen = session.deep = self._clock()

    def touch(self, session: Session) -> None:
        """It was heard of, without the SDK."""
        session.seen = self._clock()

    def get(self, id_: str | None) -> Session | None:
        return None if id_ is None else self._all.get(id_)

    def gone(self, id_: str) -> None:
        self._all.pop(id_, None)

    def of(self, caller: str) -> list[Session]:
        return [session for session in self._all.values() if session.who.id == caller]

    def shut_out(self, caller: str) -> list[Session]:
        """Forget all of that caller; gives them, to be ended."""
        return [self._all.pop(session.id) for session in self.of(caller)]

    def listening(self) -> Iterator[Session]:
        """Those that take notices."""
        self.forget_idle()
        return (session for session in list(self._all.values()) if session.peer is not None)

    def forget_idle(self) -> None:
        late = self._clock() - IDLE_S
        for session in list(self._all.values()):
            if session.busy == 0 and session.seen < late:
                del self._all[session.id]
