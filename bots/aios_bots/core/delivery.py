"""Rows of the outbox on their way to the app, and what becomes of each.

The first row of each place waits at the gate of its chat, is marked as on its way (committed), and
is called. What the app says about it is judged in ``verdict`` and done here. A send of unknown fate
may be made again once only, so before that the app is asked for something harmless: an outage of
ten minutes must not use up that one chance.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import TypeVar

import msgspec

from aios_bots.core.adapter import (
    Adapter,
    CallError,
    Content,
    Flooded,
    Moved,
    NotTaken,
    Unreachable,
    Unsure,
)
from aios_bots.core.gatehouse import Gatehouse
from aios_bots.core.lanes import Lane, Lanes, about
from aios_bots.core.model import Attachment, Op, Outgoing, Place
from aios_bots.core.outbox import REPEATS_MAX, Row
from aios_bots.core.pacing import Rank, Rates
from aios_bots.core.reach import pause
from aios_bots.core.secret import described
from aios_bots.core.store import BotStore
from aios_bots.core.verdict import After, Unread, as_send, judged
from aios_nb.errors import Busy, ConnectionLost, NotRunning

log = logging.getLogger("aios_bots.postman")

T = TypeVar("T")

CALL_MAX_S = 300.0
"""An adapter that has not come back by then never will."""
SHUT_MIN_S = 1.0
ASK_AFTER_REPEATS = 3
"""From so many on, an edit of unknown fate waits for an app that answers."""
DISK_PAUSE_S = 1.0


class Delivery:
    """The rows of one bot, from their place to the app."""

    def __init__(
        self,
        store: BotStore,
        adapter: Adapter,
        content: Content,
        clock: Callable[[], float],
        rates: Rates | None,
    ) -> None:
        self.gates = Gatehouse(clock, rates, adapter.is_group, self._load)
        self.lanes = Lanes()
        self.parked: dict[str, str] = {}
        """The chats that do not want the bot, and why."""
        self._moved: dict[str, str] = {}
        self._store, self._outbox = store, store.outbox
        self._adapter, self._content = adapter, content

    # For the postman ---------------------------------------------------------------------------

    def now_at(self, place: Place) -> Place:
        """The same place, if its chat has another id now."""
        chat = self._moved.get(place.chat)
        return place if chat is None else msgspec.structs.replace(place, chat=chat)

    def touch_all(self, chat: str | None = None) -> None:
        """Look at all places with open rows, or at those of that chat."""
        for place in self._outbox.places(chat):
            self.lanes.touch(place)
            self.lanes.touch(place, answers=True)
        self.gates.soon()

    def release(self) -> None:
        """Try at once what is held because the app could not be reached."""
        for lane in self.lanes:
            if lane.away:
                self._resume(lane)

    async def small(self, out: Outgoing) -> bool:
        """Make a call that need not succeed; gives whether it did."""
        return await self._told(out) is None

    # From the outbox to the gate ---------------------------------------------------------------

    def _load(self) -> None:
        for lane in self.lanes.touched():
            row = None
            try:
                if lane.chat not in self.parked:
                    row = self._outbox.head(lane.place, answers=lane.answers)
            except Exception as error:  # noqa: BLE001 - one place must not stop all
                log.warning("the calls of a chat cannot be read: %s", described(error))
            if row is None:
                self.lanes.drop(lane)
            else:
                lane.begin(row)
                self._queue(lane, row)

    def _queue(self, lane: Lane, row: Row, *, first: bool = False) -> None:
        lane.row = row
        if row.out.op is Op.SEND:  # what was being written is there
            self.gates.drop(lane.place.topic, lane.chat, Rank.TYPING)
        self.gates.enter(
            about(row.out),
            lane.chat,
            Rank.FINAL,
            lambda: self._deliver(lane, row),
            name=row.out.key,
            dropped=lambda: self.lanes.drop(lane),
            first=first,
        )

    def _next(self, lane: Lane) -> None:
        """The first row of a lane is done with, or has another place: look again."""
        self.lanes.drop(lane)
        self.lanes.touch(lane.place, answers=lane.answers)
        self.gates.soon()

    def _pause(self, lane: Lane, *, away: bool = False) -> None:
        """Hold a lane for a while, longer with each failure."""
        lane.tries += 1
        lane.let_go()
        lane.away = away
        loop = asyncio.get_running_loop()
        lane.timer = loop.call_later(pause(lane.tries), self._resume, lane)

    def _resume(self, lane: Lane) -> None:
        if lane.let_go() and lane.row is not None and self.gates.running:
            self._queue(lane, lane.row)

    # One row -----------------------------------------------------------------------------------

    async def _deliver(self, lane: Lane, row: Row) -> None:
        try:
            if _wants_asking(row) and not lane.asked:
                await self._ask(lane, row)
                return
            taken = await self._kept(lambda: self._outbox.take(row.out.key))
            if taken is None:  # given up meanwhile
                self._next(lane)
            elif taken.out.op in {Op.EDIT, Op.DELETE, Op.REACT} and not taken.out.target:
                await self._without_target(lane, taken)
            else:
                await self._try(lane, taken)
        except Exception:
            # Ours, not the app's. A row that was marked as on its way must not stay so.
            await self._kept(lambda: self._outbox.uncertain(row.out.key))
            self._pause(lane)
            raise

    async def _try(self, lane: Lane, row: Row) -> None:
        try:
            msg_id = await self._made(row.out)
        except CallError as error:
            await self._refused(lane, row, error)
            return
        self._answered()
        out = msgspec.structs.replace(row.out, place=self.now_at(row.out.place))
        await self._kept(lambda: self._outbox.sent(out, msg_id))
        self._next(lane)

    async def _refused(self, lane: Lane, row: Row, error: CallError) -> None:
        key, verdict = row.out.key, judged(row.out, row.repeats, error)
        if verdict.after in {After.AGAIN, After.SHUT, After.GONE, After.MOVED}:
            await self._kept(lambda: self._outbox.again(key))
        await self._heard(row.out.place.chat, error)
        match verdict.after:
            case After.AGAIN:
                self._pause(lane, away=isinstance(error, NotTaken))
            case After.UNSURE if await self._kept(lambda: self._outbox.uncertain(key)):
                lane.row = msgspec.structs.replace(row, repeats=row.repeats + 1)
                lane.asked = False
                self._pause(lane)
            case After.UNSURE:
                log.warning("a message may not have arrived: %s", described(error))
                self._next(lane)
            case After.SHUT:
                self._queue(lane, row, first=True)
            case After.GONE | After.MOVED:
                self._next(lane)
            case After.INSTEAD:
                await self._instead(lane, row, verdict.out or row.out)
            case After.DEAD:
                log.warning("a call was not taken: %s", described(error))
                await self._give_up(lane, key, described(error))

    async def _without_target(self, lane: Lane, row: Row) -> None:
        """The message that a row is about has no id: it never arrived, or not yet."""
        if self._outbox.fate(row.out.target_key).open:
            await self._kept(lambda: self._outbox.again(row.out.key))
            self._pause(lane)
        elif row.out.op is Op.EDIT:
            await self._instead(lane, row, as_send(row.out))
        else:
            await self._give_up(lane, row.out.key, "its message never arrived")

    async def _instead(self, lane: Lane, row: Row, out: Outgoing) -> None:
        await self._kept(lambda: self._outbox.instead(out))
        self._queue(lane, Row(row.seq, out), first=True)

    async def _give_up(self, lane: Lane, key: str, why: str) -> None:
        await self._kept(lambda: self._outbox.dead(key, why))
        self._next(lane)

    async def _ask(self, lane: Lane, row: Row) -> None:
        """See whether the app answers, before a call that may be made this once only."""
        error = None
        if self._adapter.caps.typing:
            error = await self._told(Outgoing(key="", place=lane.place, op=Op.TYPING))
        if isinstance(error, NotTaken | Unsure):
            self._pause(lane, away=True)
        elif isinstance(error, Unreachable | Moved):
            self._next(lane)
        else:
            lane.asked = True
            self._queue(lane, row, first=True)

    # The call itself ---------------------------------------------------------------------------

    async def _told(self, out: Outgoing) -> CallError | None:
        try:
            await self._made(out)
        except CallError as error:
            await self._heard(out.place.chat, error)
            return error
        self._answered()
        return None

    async def _made(self, out: Outgoing) -> str:
        try:
            async with asyncio.timeout(CALL_MAX_S):
                made = await self._adapter.call(out, self._read)
        except CallError:
            raise
        except Exception as error:
            log.debug("the adapter failed here", exc_info=True)
            raise Unsure(described(error)) from error
        self.gates.went()
        return made

    async def _read(self, file: Attachment) -> bytes:
        try:
            return await self._content(file)
        except (NotRunning, ConnectionLost, Busy) as error:
            raise Unread(file.name, later=True) from error
        except Exception as error:
            log.debug("a file cannot be read", exc_info=True)
            raise Unread(file.name, later=False) from error

    async def _kept(self, write: Callable[[], Awaitable[T]]) -> T:
        """Write down what happened, however long the disk refuses: else it would happen again."""
        while True:
            try:
                return await write()
            except Busy as error:
                await asyncio.sleep(error.data.get("retry_after_s") or DISK_PAUSE_S)

    # What the app said, for others than this call ----------------------------------------------

    async def _heard(self, chat: str, error: CallError) -> None:
        if isinstance(error, NotTaken | Unsure):
            if self.gates.reach.failed(chat):
                log.warning("the app cannot be reached: %s", described(error))
            return
        if isinstance(error, Unread):
            return
        self._answered()
        if isinstance(error, Flooded):
            seconds = max(error.seconds, SHUT_MIN_S)
            self.gates.refused(chat, seconds)
            await self._kept(lambda: self._store.shut(chat, seconds))
        elif isinstance(error, Unreachable):
            await self.park(chat, described(error))
        elif isinstance(error, Moved) and error.chat not in {"", chat}:
            await self.move(chat, error.chat)

    def _answered(self) -> None:
        if self.gates.reach.answered():
            log.info("the app can be reached again")
            self.release()
            self.gates.soon()

    async def park(self, chat: str, why: str) -> None:
        """The chat does not want the bot: what is for it waits."""
        if chat in self.parked:
            return
        self.parked[chat] = why
        self._clear(chat)
        await self._kept(lambda: self._store.park(chat, why))
        await self._kept(lambda: self._store.people.note("", "shut out", f"chat {chat}: {why}"))

    async def move(self, old: str, new: str) -> None:
        """The chat has another id now, and so has everything that is kept about it."""
        if self._moved.get(old) == new or old == new:
            return
        self._moved[old] = new
        self._moved.pop(new, None)
        self._clear(old)
        await self._kept(lambda: self._outbox.move(old, new))
        self.touch_all(new)
        await self._kept(lambda: self._store.people.note("", "moved", f"chat {old} is {new} now"))

    def _clear(self, chat: str) -> None:
        """Nothing waits for that chat any more; what is out comes back by itself."""
        self.gates.forget(chat)
        for lane in self.lanes:
            if lane.chat == chat and lane.timer is not None:
                self.lanes.drop(lane)


def _wants_asking(row: Row) -> bool:
    """Whether a row is tried only when the app is known to answer."""
    return row.repeats >= (REPEATS_MAX if row.out.op is Op.SEND else ASK_AFTER_REPEATS)
