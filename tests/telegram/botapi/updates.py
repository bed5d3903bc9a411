"""A bot's updates: kept until confirmed, given out by long polling to one poller at a time."""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.telegram.botapi.errors import ApiError
from tests.telegram.botapi.settings import LONGEST_POLL_S, UPDATE_LIFETIME_S, Settings, Times

ONLY_BY_NAME = frozenset({"chat_member", "message_reaction", "message_reaction_count"})
"""Kinds that a bot gets only if it names them in ``allowed_updates``."""

OTHER_POLLER = (
    "terminated by other getUpdates request; make sure that only one bot instance is running"
)
WEBHOOK_ACTIVE = (
    "can't use getUpdates method while webhook is active; use deleteWebhook to delete the webhook"
    " first"
)
Alive = Callable[[], bool]
"""Whether the poller is still on the line."""


@dataclass(eq=False)
class Update:
    """One update, with the chat or person it must stay in order with."""

    id: int
    body: dict[str, Any]
    queue: int
    at: float
    tries: int = 0
    not_before: float = 0.0
    busy: bool = False


class Updates:
    """The queue of one bot."""

    def __init__(self, times: Times, settings: Settings, changed: Callable[[], None]) -> None:
        self.pending: list[Update] = []
        self.allowed: frozenset[str] = frozenset()
        self.confirmed: list[int] = []
        self.conflicts = 0
        self.webhook_active = False
        self.next_id = random.randrange(10_000_000, 900_000_000)
        self.arrived = asyncio.Event()
        self._times = times
        self._settings = settings
        self.changed = changed
        self._poll: asyncio.Future[None] | None = None
        self._alive: Alive = lambda: True
        self._next_conflict_at = 0.0

    def add(self, kind: str, body: dict[str, Any], queue: int = 0) -> int | None:
        """The id that the update got; None if the bot does not want such updates."""
        wanted = kind in self.allowed if self.allowed else kind not in ONLY_BY_NAME
        return self.inject({kind: body}, queue) if wanted else None

    def inject(self, raw: dict[str, Any], queue: int = 0) -> int:
        """Any object at all as an update: an unknown kind, fields missing, types wrong.

        With a number that was there before it is that update once more.
        """
        number, given = self.next_id, raw.get("update_id")
        if isinstance(given, int) and given < number:
            number = given
        else:
            self.next_id += 1
        body = {"update_id": number, **raw}
        self.pending.append(Update(number, body, queue, self._times.now()))
        self._wake()
        return number

    def forget_all(self) -> None:
        self.pending.clear()
        self.changed()

    def allow(self, kinds: Any) -> None:
        """Take ``allowed_updates``; None leaves what was asked for before."""
        if isinstance(kinds, list):
            self.allowed = frozenset(str(kind) for kind in kinds)

    def drop_old(self) -> None:
        horizon = self._times.now() - UPDATE_LIFETIME_S
        self.pending = [update for update in self.pending if update.at >= horizon]

    def done(self, update: Update) -> None:
        """A webhook took it."""
        with contextlib.suppress(ValueError):  # dropped meanwhile
            self.pending.remove(update)
        self.confirmed.append(update.id)
        self.changed()

    async def get(
        self, offset: int, limit: int, seconds: int, kinds: Any, alive: Alive
    ) -> list[dict[str, Any]]:
        """What getUpdates answers: waits if there is nothing, 409 if it is not the only one."""
        if self.webhook_active:
            await self._conflict(WEBHOOK_ACTIVE)
        self.interrupt(OTHER_POLLER)
        self.allow(kinds)
        self.drop_old()
        self._confirm(offset)
        if not self.pending and seconds > 0 and self._settings.long_polls:
            await self._wait(min(seconds, LONGEST_POLL_S), alive)
        limit = limit if 1 <= limit <= 100 else 100
        return [update.body for update in self.pending[:limit]]

    def interrupt(self, why: str) -> None:
        """End the poll that waits, if one does, with a conflict; a dead one without."""
        if not self._alive():
            self.cut()
        if self._poll and not self._poll.done():
            self._poll.set_exception(ApiError(409, why))
            self._poll = None

    def cut(self) -> None:
        """End the poll that waits without an answer: the line is dead."""
        if self._poll and not self._poll.done():
            self._poll.set_exception(ConnectionResetError())
            self._poll = None

    async def _wait(self, seconds: float, alive: Alive) -> None:
        self._alive = alive
        poll = self._poll = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(seconds):
                await poll
        except TimeoutError:
            pass
        except ApiError as error:
            await self._conflict(error.description.partition(": ")[2])
        finally:
            if self._poll is poll:
                self._poll = None

    async def _conflict(self, why: str) -> None:
        """Raise a 409; soon after another one only after a pause."""
        self.conflicts += 1
        self.changed()
        now = self._times.now()
        if now < self._next_conflict_at:
            await asyncio.sleep(self._settings.conflict_pause_s)
        else:
            self._next_conflict_at = now + self._settings.conflict_pause_s
        raise ApiError(409, why)

    def _confirm(self, offset: int) -> None:
        if offset > 0:
            gone = [update for update in self.pending if update.id < offset]
        else:
            gone = self.pending[:offset] if offset < 0 else []
        self.confirmed += [update.id for update in gone]
        dropped = set(gone)
        self.pending = [update for update in self.pending if update not in dropped]
        if gone:
            self.changed()

    def _wake(self) -> None:
        self.arrived.set()
        if self._poll and not self._poll.done():
            self._poll.set_result(None)
        self.changed()
