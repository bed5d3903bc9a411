"""Which agents of other nodes were used from here: how often, and what they were like then.

An agent whose card is another one since is marked until it is used again. Its record names the
hash of its card, so nobody has to be asked. A version that its node counts is not in that card: to
run a cell again changes nothing that the agent says of itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from aios_nb.access import owner_of
from aios_nb.envelope import AgentRow, Outcome, Task, iso_ms
from aios_nb.ports import Carrier, Run
from aios_nb.records import AgentRecord
from aios_nb.store import Store, Tx

USED_MAX = 5000
"""Agents that are remembered; those not used for longest are forgotten."""
GATHER_S = 0.5
"""How long uses wait for others: a busy agent costs a row and a notice in each, not one a call."""


class Said(msgspec.Struct, frozen=True):
    """What an agent said of itself in its record."""

    title: str = ""
    about: str = ""
    tags: tuple[str, ...] = ()
    version: str = ""
    access: str = ""


class Used(msgspec.Struct, frozen=True):
    talks: int
    card: str = ""
    """The hash of its card when it was last used; empty if it was not known."""


class Uses:
    """The uses of one node, on its loop."""

    def __init__(
        self,
        store: Store,
        node_id: str,
        record: Callable[[str], AgentRecord | None],
        told: Callable[[str], None] = lambda _: None,
    ) -> None:
        """``record``: of an agent, as the network has it now. ``told``: its row is another one."""
        self._store = store
        self._owner = owner_of(node_id).id
        self._record = record
        self._told = told
        self._used: dict[str, Used] = {
            agent: Used(talks, card)
            for agent, talks, card in store.read("SELECT agent, talks, card FROM used_agents")
        }
        self._fresh: dict[str, AgentRecord | None] = {}
        """Used since the last time it was saved, with what the agent was like."""
        self._saving: asyncio.Task[None] | None = None

    async def close(self) -> None:
        """Save what is not saved yet."""
        if self._saving is not None:
            self._saving.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._saving
        await self._save()

    # Counting --------------------------------------------------------------------------------

    def counting(self, carrier_for: Callable[[str], Carrier]) -> Callable[[str], Carrier]:
        """The same carriers; what they carry for the owner or for a token is counted."""
        return lambda node: _Counting(carrier_for(node), self)

    def is_ours(self, task: Task) -> bool:
        """Whether a person asks, and not another node through one of our agents."""
        return task.caller == self._owner or task.caller.startswith("token:")

    def now(self, agent: str) -> AgentRecord | None:
        return self._record(agent)

    def count(self, agent: str, record: AgentRecord | None) -> None:
        """It answered; ``record`` is what it was like when it was asked."""
        before = self._used.get(agent, Used(0))
        card = before.card if record is None else record.card.hex()
        self._used[agent] = Used(before.talks + 1, card)
        self._fresh[agent] = record or self._fresh.get(agent)
        if self._saving is None or self._saving.done():
            self._saving = asyncio.get_running_loop().create_task(self._soon())

    async def _soon(self) -> None:
        await asyncio.sleep(GATHER_S)
        while self._fresh:
            for agent in self._fresh:
                self._told(agent)
            await self._save()

    async def _save(self) -> None:
        now = int(time.time() * 1000)
        rows = [(agent, self._used[agent], record) for agent, record in self._fresh.items()]

        def apply(tx: Tx) -> None:
            for agent, used, record in rows:
                _write(tx, agent, used, record, now)
            tx.execute(
                "DELETE FROM used_agents WHERE agent NOT IN"
                " (SELECT agent FROM used_agents ORDER BY at DESC LIMIT ?)",
                (USED_MAX,),
            )

        if rows:
            await self._store.write(apply)
        for agent, used, _ in rows:
            if self._used[agent] is used:  # not used again meanwhile
                self._fresh.pop(agent, None)

    # Showing ---------------------------------------------------------------------------------

    def shown(self, row: AgentRow) -> AgentRow:
        """The row with what is known of its use."""
        used = self._used.get(row.id)
        if used is None:
            return row
        changed = self._differs(row.id, used)
        return msgspec.structs.replace(row, talks=used.talks, changed=changed)

    def all_shown(self, rows: Sequence[AgentRow]) -> list[AgentRow]:
        return [self.shown(row) for row in rows]

    def last(self, agent: str) -> dict[str, Any] | None:
        """How an agent was when it was last used, and when that was; None if it never was."""
        used = self._used.get(agent)
        if used is None:
            return None
        found = self._store.read("SELECT at, said FROM used_agents WHERE agent = ?", (agent,))
        if not found and agent not in self._fresh:
            return None
        at, said = found[0] if found else (0, "")
        if agent in self._fresh:  # not saved yet
            at, said = int(time.time() * 1000), _said(self._fresh[agent]) or said
        then = msgspec.to_builtins(msgspec.json.decode(said, type=Said)) if said else None
        return {
            "at": iso_ms(at),
            "talks": used.talks,
            "changed": self._differs(agent, used),
            "said": then,
        }

    def _differs(self, agent: str, used: Used) -> bool:
        record = self._record(agent) if used.card else None
        return record is not None and record.card.hex() != used.card


def _write(tx: Tx, agent: str, used: Used, record: AgentRecord | None, now: int) -> None:
    tx.execute(
        "INSERT INTO used_agents VALUES (?, ?, ?, ?, ?) ON CONFLICT (agent) DO UPDATE SET"
        " talks = excluded.talks, at = excluded.at, card = excluded.card,"
        " said = CASE excluded.said WHEN '' THEN said ELSE excluded.said END",
        (agent, used.talks, now, used.card, _said(record)),
    )


def _said(record: AgentRecord | None) -> str:
    if record is None:
        return ""
    words = Said(record.title, record.about, record.tags, record.version, record.access)
    return msgspec.json.encode(words).decode()


class _Counting:
    """Is a ``ports.Carrier``."""

    __slots__ = ("_carrier", "_uses")

    def __init__(self, carrier: Carrier, uses: Uses) -> None:
        self._carrier = carrier
        self._uses = uses

    async def carry(self, task: Task, run: Run) -> Outcome:
        if not self._uses.is_ours(task):
            return await self._carrier.carry(task, run)
        record = self._uses.now(task.agent)
        outcome = await self._carrier.carry(task, run)
        self._uses.count(task.agent, record)
        return outcome
