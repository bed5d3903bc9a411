"""Which other nodes the owner knows, and what that lets them do here."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from collections.abc import Set as AbstractSet

from aios_nb.access import Caller, Principal, lowered
from aios_nb.errors import HomeError, InvalidParams
from aios_nb.home import Home
from aios_nb.store import Store, Tx

log = logging.getLogger("aios_nb.nodes")

LOOK_AGAIN_S = 1.0
"""How long what the run files said is believed: looking takes a lock and a file for each node."""
ALLOWED = "allowed"
BLOCKED = "blocked"


class KnownNodes:
    """The nodes that were allowed or shut out, and those of the same home that run now."""

    def __init__(
        self, store: Store, home: Home, own_id: str, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._store = store
        self._home = home
        self._own_id = own_id
        self._clock = clock
        self._state: dict[str, str] = dict(store.read("SELECT id, state FROM nodes"))
        self._here: frozenset[str] = frozenset()
        self._look_at = clock()
        self.on_change: Callable[[str], None] = lambda _: None
        """Told which node was allowed or shut out: links to it have other rights from then on."""

    @property
    def blocked(self) -> AbstractSet[str]:
        """The nodes that are shut out."""
        return {node for node, state in self._state.items() if state == BLOCKED}

    def known(self) -> AbstractSet[str]:
        """The nodes that are no strangers at this moment."""
        allowed = {node for node, state in self._state.items() if state == ALLOWED}
        return (allowed | self._running()) - {self._own_id} - self.blocked

    def standing(self, node_id: str) -> Caller | None:
        """What a node is to this one, at this moment; ``None`` if it is shut out."""
        if node_id == self._own_id:
            return Caller.OWNER
        state = self._state.get(node_id)
        if state == BLOCKED:
            return None
        known = state == ALLOWED or node_id in self._running()
        return Caller.KNOWN if known else Caller.NODE

    def weakest(self, principal: Principal, path: Sequence[str]) -> Principal | None:
        """The caller with the rights that every node on the way here has too.

        ``path`` is the opener's node id, then the ids of agents. ``None`` when a node that is
        shut out had a part in it.
        """
        if len(path) == 1 and path[0] == principal.id:
            standing = self.standing(principal.id)
            if standing is principal.kind:
                return principal  # nobody else had a part in it
        steps = {step.rpartition("@")[2] for step in path}
        if principal.is_node:
            steps.add(principal.id)  # its own standing may be another one since the link began
        for node in steps:
            standing = self.standing(node)
            if standing is None:
                return None
            principal = lowered(principal, standing)
        return principal

    async def allow(self, node: str) -> None:
        """Let it call agents with access ``known``."""
        await self._let(node, ALLOWED)

    async def block(self, node: str) -> None:
        """Shut it out."""
        await self._let(node, BLOCKED)

    async def _let(self, node: str, state: str) -> None:
        if node == self._own_id:
            raise InvalidParams("that is this node itself")

        def apply(tx: Tx) -> None:
            tx.execute(
                "INSERT OR REPLACE INTO nodes VALUES (?, ?, ?)", (node, state, int(time.time()))
            )

        def committed(_: None) -> None:
            self._state[node] = state
            self.on_change(node)

        await self._store.write_through(apply, committed)

    def _running(self) -> frozenset[str]:
        """The nodes of this home whose run file is there and whose lock is held."""
        now = self._clock()
        if now >= self._look_at:
            self._look_at = now + LOOK_AGAIN_S
            try:
                self._here = frozenset(run.node_id for run in self._home.running())
            except HomeError as error:
                log.warning("the nodes of this home are not known: %s", error)
                self._here = frozenset()
        return self._here
