"""Links to nodes that no datagram reaches, dialled when there is something to tell them.

What a node signs of itself may name anyone's address: so there is a budget for each target, over
all nodes that are said to be there, as for hellos.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections import OrderedDict
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from aios_nb.errors import RpcError
from aios_nb.hub.post.budgets import HelloBudget
from aios_nb.hub.post.places import Place
from aios_nb.records import Scope

if TYPE_CHECKING:
    from aios_nb.ports import Links

log = logging.getLogger("aios_nb.hub")

AT_ONCE = 4
TRY_AGAIN_S = 10.0
ENOUGH_LINKS = 64
"""With so many, word gets around: only a node that is doubted is worth another one."""
REMEMBERED_MAX = 5000


class Dialling:
    """Dials beside whatever goes on; nobody waits for it."""

    def __init__(
        self,
        links: Links,
        places: Callable[[str], Mapping[str, Scope]],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``places`` are the URLs at which a node says it is."""
        self._links = links
        self._places = places
        self._clock = clock
        self._budget = HelloBudget()
        self._not_before: OrderedDict[str, float] = OrderedDict()
        self._under_way: set[asyncio.Task[None]] = set()

    def dial(self, node_id: str, *, doubted: bool) -> None:
        """Have a link to that node soon, if it may be had."""
        now = self._clock()
        if len(self._under_way) >= AT_ONCE or now < self._not_before.get(node_id, 0.0):
            return
        if not doubted and len(self._links.linked()) >= ENOUGH_LINKS:
            return
        targets = [(_place(url), scope) for url, scope in self._places(node_id).items()]
        if not targets:
            return
        self._not_before[node_id] = now + TRY_AGAIN_S
        if len(self._not_before) > REMEMBERED_MAX:
            self._not_before.popitem(last=False)
        if not all(self._budget.take(*target, now) for target in targets):
            return
        task = asyncio.get_running_loop().create_task(self._reach(node_id, targets))
        self._under_way.add(task)
        task.add_done_callback(self._under_way.discard)

    async def close(self) -> None:
        tasks = tuple(self._under_way)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _reach(self, node_id: str, targets: list[tuple[Place, Scope]]) -> None:
        try:
            await self._links.reach(node_id)
        except RpcError as problem:
            log.debug("no link to %s: %s", node_id, problem)
            return
        for target in targets:
            self._budget.answered(*target)


def _place(url: str) -> Place:
    parts = urlsplit(url)
    return parts.hostname or "", parts.port or 0
