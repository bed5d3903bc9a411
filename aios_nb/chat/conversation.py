"""A conversation in memory, and the shelf of those in use."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from itertools import islice

from aios_nb.access import Principal

LIVE_CONVERSATIONS = 4096
"""Conversations kept in memory; the others come back from the database when asked for."""


class Conversation:
    """A conversation in memory. ``n`` is its number in the database, 0 before the first commit."""

    __slots__ = (
        "agents", "created", "gone", "holds", "id", "ids", "last_seq", "lock", "members", "n",
        "opener", "parent", "theirs", "title",
    )  # fmt: skip

    def __init__(
        self,
        conversation_id: str,
        opener: str,
        agents: list[str],
        *,
        title: str = "",
        parent: str | None = None,
        members: Iterable[str] = (),
        created: int = 0,
        n: int = 0,
        last_seq: int = 0,
        ids: Iterable[str] = (),
        theirs: str = "",
    ) -> None:
        self.id = conversation_id
        self.opener = opener
        self.agents = agents
        self.title = title
        self.parent = parent
        self.members = set(members)
        self.created = created
        self.n = n
        self.last_seq = last_seq
        self.ids = set(ids)
        self.theirs = theirs
        """Its id at its home, if that is another node: this is our side log of it."""
        self.gone = False
        """Deleted, or about to be: nobody finds it any more."""
        self.holds = 0
        """Writes and runs under way. Two copies in memory would give out the same ``seq``."""
        self.lock: asyncio.Lock | None = None

    def visible_to(self, principal: Principal) -> bool:
        if self.gone:
            return False
        if principal.is_owner or principal.id == self.opener or principal.id in self.members:
            return True
        # A bridge sees what one of the people behind it was joined to.
        return bool(principal.prefix) and any(map(principal.speaks_for, self.members))

    @property
    def known_as(self) -> str:
        """The id its opener knows it by."""
        return self.theirs or self.id

    def changing(self) -> asyncio.Lock:
        """Held by who reads and then changes title, agents or members."""
        if self.lock is None:
            self.lock = asyncio.Lock()
        return self.lock


class Shelf:
    """The conversations in memory, the longest unused first."""

    def __init__(self) -> None:
        self._live: dict[str, Conversation] = {}

    def get(self, conversation_id: str) -> Conversation | None:
        found = self._live.pop(conversation_id, None)
        if found is not None:
            self._live[conversation_id] = found  # used last
        return found

    def put(self, conversation: Conversation) -> None:
        self._live[conversation.id] = conversation
        if len(self._live) > LIVE_CONVERSATIONS:
            free = (old for old in self._live.values() if not old.holds)
            for old in list(islice(free, LIVE_CONVERSATIONS // 8)):
                self.drop(old)

    def drop(self, conversation: Conversation) -> None:
        """Forget it: it was never stored, or it is deleted, or it is long unused."""
        if self._live.get(conversation.id) is conversation:
            del self._live[conversation.id]

    def drop_unstored(self, conversation: Conversation) -> None:
        """Forget one that came to nothing: never stored, and nobody is at it."""
        if conversation.n == 0 and conversation.holds == 0:
            self.drop(conversation)
