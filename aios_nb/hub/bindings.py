"""What bare names mean on this node, once they were used for an agent of another one."""

from __future__ import annotations

import time
from collections.abc import Iterable

from aios_nb.store import Store, Tx


class Bindings:
    """Names and the agent each stands for. Written once, never changed."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._agents: dict[str, str] = dict(store.read("SELECT name, agent FROM bindings"))

    def get(self, name: str) -> str | None:
        """The agent id this name was used for."""
        return self._agents.get(name)

    def names(self) -> Iterable[str]:
        return self._agents.keys()

    def nodes(self) -> set[str]:
        """The nodes whose agents were used by name."""
        return {agent.partition("@")[2] for agent in self._agents.values()}

    async def bind(self, name: str, agent: str) -> str:
        """What the name stands for from now on: ``agent``, or another that was faster."""

        def apply(tx: Tx) -> str:
            tx.execute(
                "INSERT OR IGNORE INTO bindings VALUES (?, ?, ?)", (name, agent, int(time.time()))
            )
            row = tx.execute("SELECT agent FROM bindings WHERE name = ?", (name,)).fetchone()
            kept: str = row[0]
            return kept

        kept = await self._store.write(apply)
        self._agents[name] = kept
        return kept
