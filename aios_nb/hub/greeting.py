"""Whom a node turns to by itself: the nodes of its own home, and those it knew before."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Awaitable, Callable, Iterable, Sequence

from aios_nb.errors import RpcError

log = logging.getLogger("aios_nb.hub")

LOOK_S = 0.5
LOOK_LATER_S = 2.0
"""Between two looks at the run files: soon after the start, and later."""
EAGER_S = 10.0
SIBLINGS_AT_ONCE = 2
"""Nodes of this home that are dialled: through them the others become known."""
TRY_AGAIN_S = 30.0
OLD_FRIENDS_AT_ONCE = 3

Reach = Callable[[str], Awaitable[object]]


class Greeting:
    """Links to siblings that are not members yet and, when alone, to nodes it knew before."""

    def __init__(
        self,
        *,
        siblings: Callable[[], Iterable[str]],
        friends: Callable[[], Sequence[str]],
        is_member: Callable[[str], bool],
        is_alone: Callable[[], bool],
        reach: Reach,
        rng: random.Random,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``siblings`` are the running nodes of this home, the oldest first."""
        self._siblings = siblings
        self._friends = friends
        self._is_member = is_member
        self._is_alone = is_alone
        self._reach = reach
        self._rng = rng
        self._clock = clock
        self._not_before: dict[str, float] = {}
        self.looked = asyncio.Event()
        """Set when whoever was there at the start has been greeted, or did not answer."""

    async def run(self) -> None:
        """Look and greet, for ever."""
        eager_until = self._clock() + EAGER_S
        while True:
            await self.look()
            self.looked.set()
            await asyncio.sleep(LOOK_S if self._clock() < eager_until else LOOK_LATER_S)

    async def look(self) -> None:
        """Greet whoever should be greeted now."""
        new = [node for node in self._siblings() if self._may_try(node)][:SIBLINGS_AT_ONCE]
        if not new and self._is_alone():
            friends = [node for node in self._friends() if self._may_try(node)]
            new = self._rng.sample(friends, min(OLD_FRIENDS_AT_ONCE, len(friends)))
        if new:
            await asyncio.gather(*map(self._greet, new))

    def _may_try(self, node: str) -> bool:
        return not self._is_member(node) and self._clock() >= self._not_before.get(node, 0.0)

    async def _greet(self, node: str) -> None:
        # Whoever answers becomes a member by what is exchanged then; one look later at most.
        self._not_before[node] = self._clock() + TRY_AGAIN_S
        try:
            await self._reach(node)
        except RpcError as problem:
            log.debug("%s was greeted in vain: %s", node, problem)
