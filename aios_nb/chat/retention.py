"""What is kept how long. The owner's conversations stay; strangers' logs are bounded.

Strangers' conversations go after a number of days, and the longest unused first when they take
more room than they may. Ids of calls are remembered for as long as the contract says, also when
their conversation is gone (``Log.delete``).
"""

from __future__ import annotations

import time

from aios_nb.chat.conversation import Conversation
from aios_nb.chat.log import Log
from aios_nb.config import Limits
from aios_nb.errors import Busy

DAY_MS = 86_400_000
ROW_BYTES = 300
"""What an event takes besides its text and data, roughly."""


class Retention:
    """Throws away what may go."""

    def __init__(self, log: Log, owner: str, limits: Limits) -> None:
        self._log = log
        self._owner = owner
        self._limits = limits

    async def apply(self) -> int:
        """Delete what is too old or too much; returns how many conversations went."""
        await self._log.save_touched()
        gone = 0
        for conversation_id in self._too_old() | self._too_much():
            conversation = self._log.get(conversation_id)
            if conversation is not None and not conversation.holds:  # what is in use stays
                await self.delete(conversation)
                gone += 1
        await self._log.forget_calls(self._limits.call_memory_days)
        return gone

    async def delete(self, conversation: Conversation) -> None:
        """Delete one, but for the memory of its call ids."""
        keep_after = int(time.time() * 1000 - self._limits.call_memory_days * DAY_MS)
        conversation.gone = True
        try:
            await self._log.delete(conversation, keep_after)
        except Busy:
            conversation.gone = False
            raise

    def _too_old(self) -> set[str]:
        before = int(time.time() * 1000 - self._limits.stranger_log_days * DAY_MS)
        rows = self._log.store.read(
            "SELECT c.id FROM conversations c WHERE c.opener != ? AND c.created < ? AND NOT EXISTS"
            " (SELECT 1 FROM events e WHERE e.conversation = c.n AND e.at >= ?)",
            (self._owner, before, before),
        )
        return {row[0] for row in rows}

    def _too_much(self) -> set[str]:
        rows = self._log.store.read(
            "SELECT c.id, sum(length(e.text) + coalesce(length(e.data), 0) + ?)"
            " FROM conversations c JOIN events e ON e.conversation = c.n"
            " WHERE c.opener != ? GROUP BY c.n ORDER BY c.touched DESC",
            (ROW_BYTES, self._owner),
        )
        room = self._limits.stranger_log_bytes
        over = set()
        for conversation_id, size in rows:
            room -= size
            if room < 0:
                over.add(conversation_id)
        return over
