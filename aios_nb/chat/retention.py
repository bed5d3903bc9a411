"""What is kept how long. The owner's conversations stay; what others leave here is bounded.

Of strangers and of known nodes, conversations go after a number of days, and the longest unused
first when they take more room than they may. Ids of calls are remembered for as long as the
contract says, also when their conversation is gone (``Log.delete``). Strangers' ids are forgotten
earlier when room is needed, but never within an hour of their deadline: then the pool is full.

All of it in small steps: the node answers in between.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import AsyncIterator, Callable, Sequence

from aios_nb.access import looks_strange
from aios_nb.chat.callers import DAY_MS, Callers
from aios_nb.chat.conversation import Conversation
from aios_nb.chat.log import Log
from aios_nb.chat.strangers import CONVERSATION_BYTES, ROW_BYTES, Pool
from aios_nb.config import Limits
from aios_nb.errors import Busy

log = logging.getLogger("aios_nb.chat")

AFTER_DEADLINE_MS = 3_600_000
"""An id is known at least this long after the deadline of its call."""
ROOM_AGAIN = 0.8
"""What is over its limit is made this full again, so that not every call needs a tidy."""
PAUSE_S = 10.0
"""Between two tidies that were asked for."""
FRUITLESS_PAUSE_S = 60.0
"""After one that made no room: only time helps."""
DELETED_AT_ONCE = 16
"""Conversations that share a commit; some milliseconds of the loop."""
ROWS_AT_ONCE = 100
"""Conversations or ids that are read in one step."""
ID_BYTES = ROW_BYTES + 48
"""What is left of a call when its conversation is deleted."""

# Of nodes and of anyone: the owner has an "@", tokens their prefix (``looks_strange``).
_BY_NUMBER = """
    SELECT c.n, c.id, c.opener, coalesce(
        (SELECT e.at FROM events e WHERE e.conversation = c.n ORDER BY e.seq DESC LIMIT 1),
        c.created
    )
    FROM conversations c
    WHERE c.n > ? AND instr(c.opener, '@') = 0 AND c.opener NOT LIKE 'token:%'
    ORDER BY c.n LIMIT ?
"""
_BY_USE = """
    SELECT touched, n, id, opener FROM conversations
    WHERE touched > 0 AND (touched, n) > (?, ?)
        AND instr(opener, '@') = 0 AND opener NOT LIKE 'token:%'
    ORDER BY touched, n LIMIT ?
"""
_SIZES = """
    SELECT conversation, sum(length(CAST(text || data || files || call AS BLOB)) + ?),
        sum(caller > 0)
    FROM events WHERE conversation IN (SELECT value FROM json_each(?)) GROUP BY conversation
"""
_IDS = """
    SELECT e.seq, e.cursor, k.id, length(CAST(e.call AS BLOB)) + ?,
        CASE WHEN e.call = '' THEN e.at ELSE json_extract(e.call, '$[1]') END
    FROM events e JOIN callers k ON k.n = e.caller
    WHERE e.conversation IS NULL AND (e.seq, e.cursor) > (?, ?)
    ORDER BY e.seq, e.cursor LIMIT ?
"""

Size = tuple[str, int, int]
"""A conversation's id, its bytes, and what is left of them when it is deleted."""


class Retention:
    """Throws away what may go, and counts what strangers have."""

    def __init__(
        self,
        the_log: Log,
        limits: Limits,
        callers: Callers,
        pool: Pool,
        is_stranger: Callable[[str], bool] = looks_strange,
    ) -> None:
        self._log = the_log
        self._limits = limits
        self._callers = callers
        self._pool = pool
        self._is_stranger = is_stranger
        self._lock = asyncio.Lock()
        self._asked: asyncio.Task[None] | None = None
        self._not_before = 0.0
        pool.ask_for_tidy = callers.ask_for_tidy = self.ask

    async def count(self) -> None:
        """Tell the pool what strangers have in the log."""
        async with self._lock:
            await self._log.save_touched()
            await self._counted()

    async def apply(self) -> int:
        """Delete what is too old or too much; returns how many conversations went."""
        async with self._lock:
            await self._log.save_touched()
            gone = await self._delete_old()
            await self._log.forget_calls(self._limits.call_memory_days)
            gone += await self._shrink_known()
            gone += await self._shrink_strangers(self._limits.stranger_log_bytes)
            await self._callers.forget()
            return gone

    def ask(self) -> None:
        """Strangers have no room left: look for some soon, if the last look is not just over."""
        loop = asyncio.get_running_loop()
        if self._asked is None and loop.time() >= self._not_before:
            self._asked = loop.create_task(self._make_room())

    async def close(self) -> None:
        """Leave no task behind."""
        if self._asked is not None:
            self._asked.cancel()
            await asyncio.gather(self._asked, return_exceptions=True)

    async def delete(self, conversation: Conversation) -> None:
        """Delete one, but for the memory of its call ids."""
        keep_after = int(time.time() * 1000 - self._limits.call_memory_days * DAY_MS)
        conversation.gone = True
        try:
            await self._log.delete(conversation, keep_after)
        except Busy:
            conversation.gone = False
            raise

    async def _make_room(self) -> None:
        before = self._pool.bytes
        try:
            async with self._lock:
                await self._log.save_touched()
                await self._shrink_strangers(int(self._limits.stranger_log_bytes * ROOM_AGAIN))
        except Busy as error:
            log.warning("no room was made for strangers: %s", error)
        finally:
            self._asked = None
            fruitless = self._pool.bytes >= before
            pause_s = FRUITLESS_PAUSE_S if fruitless else PAUSE_S
            self._not_before = asyncio.get_running_loop().time() + pause_s

    # Too old ---------------------------------------------------------------------------------

    async def _delete_old(self) -> int:
        now = time.time() * 1000
        stranger_before = int(now - self._limits.stranger_log_days * DAY_MS)
        known_before = int(now - self._limits.known_log_days * DAY_MS)
        old: list[str] = []
        n = 0
        while rows := self._log.store.read(_BY_NUMBER, (n, ROWS_AT_ONCE)):
            n = rows[-1][0]
            old += [
                conversation_id
                for _, conversation_id, opener, last in rows
                if last <= (stranger_before if self._is_stranger(opener) else known_before)
            ]
            await asyncio.sleep(0)
        gone = 0
        for start in range(0, len(old), DELETED_AT_ONCE):
            gone += len(await self._delete_unused(old[start : start + DELETED_AT_ONCE]))
        return gone

    # Too much --------------------------------------------------------------------------------

    async def _shrink_known(self) -> int:
        sizes = await self._sizes(strangers=False)
        over = sum(size for _, size, _ in sizes) - self._limits.known_log_bytes
        if over <= 0:
            return 0
        spare = int(self._limits.known_log_bytes * (1 - ROOM_AGAIN))
        return await self._delete_longest_unused(sizes, over + spare, lambda _: None)

    async def _shrink_strangers(self, most: int) -> int:
        """Make room if they have more than this; the pool knows at every step how far it is."""
        sizes = await self._counted()
        has = self._pool.bytes
        goal = int(self._limits.stranger_log_bytes * ROOM_AGAIN) if has > most else has
        crowded = self._callers.is_full  # and who has events or ids here cannot be forgotten
        if crowded:
            goal = min(goal, int(has * ROOM_AGAIN))
        gone = await self._delete_longest_unused(sizes, has - goal, self._pool.stored)
        await self._forget_ids(has if crowded else self._pool.bytes - goal)
        if crowded:
            await self._callers.forget()
        return gone

    async def _delete_longest_unused(
        self, sizes: Sequence[Size], excess: int, tell: Callable[[int], None]
    ) -> int:
        """Delete from the front until so many bytes are free; ``tell`` hears of each step."""
        gone = 0
        waiting = iter(sizes)
        while excess > 0:
            freed: dict[str, int] = {}
            for conversation_id, size, left in waiting:
                freed[conversation_id] = size - left
                if len(freed) == DELETED_AT_ONCE or sum(freed.values()) >= excess:
                    break
            if not freed:
                break
            for conversation_id in await self._delete_unused(list(freed)):
                excess -= freed[conversation_id]
                tell(-freed[conversation_id])
                gone += 1
        return gone

    async def _delete_unused(self, conversation_ids: Sequence[str]) -> list[str]:
        """Delete these in one commit, but for those in use; returns which went."""
        found = [self._log.get(conversation_id) for conversation_id in conversation_ids]
        free = [one for one in found if one is not None and not one.holds and not one.gone]
        for one in free:
            one.gone = True  # from this moment on: the deletions begin a turn of the loop later
        await asyncio.gather(*map(self.delete, free))
        return [one.id for one in free]

    async def _forget_ids(self, excess: int) -> None:
        """Forget ids of strangers' calls that need not be known any more, until that is free."""
        now = int(time.time() * 1000)
        async for ids in self._ids():
            if excess <= 0:
                return
            due = []
            for cursor, size, deadline in ids:
                if excess > 0 and deadline + AFTER_DEADLINE_MS < now:
                    due.append(cursor)
                    excess -= size
                    self._pool.stored(-size)
            if due:
                await self._log.forget_rows(due)

    # Counting --------------------------------------------------------------------------------

    async def _counted(self) -> list[Size]:
        """Count what strangers have, tell the pool, and return their conversations."""
        before = self._pool.bytes
        sizes = await self._sizes(strangers=True)
        count = sum(size for _, size, _ in sizes)
        async for ids in self._ids():
            count += sum(size for _, size, _ in ids)
        # What came in meanwhile counts on top, and some of it twice: rather that than not at all.
        self._pool.stored(count - before)
        return sizes

    async def _sizes(self, *, strangers: bool) -> list[Size]:
        """Conversations of strangers, or of known nodes, the longest unused first."""
        read = self._log.store.read
        sizes: list[Size] = []
        touched = n = 0
        while rows := read(_BY_USE, (touched, n, ROWS_AT_ONCE)):
            touched, n = rows[-1][:2]
            chosen = {row[1]: row[2] for row in rows if self._is_stranger(row[3]) is strangers}
            counts = {
                number: (size, calls)
                for number, size, calls in read(_SIZES, (ROW_BYTES, json.dumps(list(chosen))))
            }
            for number, conversation_id in chosen.items():
                size, calls = counts.get(number, (0, 0))
                sizes.append((conversation_id, size + CONVERSATION_BYTES, calls * ID_BYTES))
            await asyncio.sleep(0)
        return sizes

    async def _ids(self) -> AsyncIterator[list[tuple[int, int, int]]]:
        """Strangers' ids whose conversation is gone: cursor, bytes, deadline (unix ms)."""
        seq = cursor = 0
        while True:
            rows = self._log.store.read(_IDS, (ROW_BYTES, seq, cursor, ROWS_AT_ONCE))
            if not rows:
                return
            seq, cursor = rows[-1][:2]
            yield [
                (place, size, deadline)
                for _, place, caller, size, deadline in rows
                if self._is_stranger(caller)
            ]
            await asyncio.sleep(0)
