"""The imports of one node: brought in, looked at, approved, removed.

A program of others is looked at by a real handshake, and what it says of itself is pinned when its
owner brings it in. One that says something else later is marked, and nothing is asked of it until
its owner has seen what changed and approved it.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from collections.abc import Callable, Sequence

import msgspec

from aios_nb.envelope import CatalogEntry, Seen
from aios_nb.errors import AiosError, InvalidParams, NoSuchAgent, Unreachable, UsageError
from aios_nb.hub.directory import Directory
from aios_nb.hub.imports.agent import ImportedAgent
from aios_nb.hub.imports.entry import Address, Entry, ImportRow, Options
from aios_nb.hub.imports.naming import chosen, named_after
from aios_nb.hub.imports.pace import Pace
from aios_nb.hub.imports.reaching import closed, found_at, let_go, netloc, ways
from aios_nb.hub.imports.shelf import Shelf
from aios_nb.ports import Outside, Outsider
from aios_nb.store import Store

log = logging.getLogger("aios_nb.hub")

IMPORTS_MAX = 200
LOOKS_AT_ONCE = 4


class Imports:
    """Lives on the node's loop. ``outside`` is made when the first import needs it."""

    def __init__(
        self,
        store: Store,
        directory: Directory,
        outside: Callable[[], Outside],
        *,
        own_url: Callable[[], str] = lambda: "",
        on_offer: Callable[[], None] = lambda: None,
        pace: Pace | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``on_offer``: told when an import can be asked that could not be before."""
        self._shelf = Shelf(store)
        self._directory = directory
        self._make_outside = outside
        self._outside: Outside | None = None
        self._own_url = own_url
        self._on_offer = on_offer
        self._pace = pace or Pace()
        self._clock = clock
        self._agents: dict[str, ImportedAgent] = {}
        self._adding = asyncio.Lock()
        """Names are given one after the other."""
        self._pulse: asyncio.Task[None] | None = None

    # Start and stop --------------------------------------------------------------------------

    async def open(self) -> None:
        """Offer what was brought in before, and look at it in the background."""
        for entry in self._shelf.entries():
            await self._offer(self._agent(entry))
        if self._agents:
            self._beat()

    async def close(self) -> None:
        """Leave nothing running of theirs."""
        if self._pulse is not None:
            self._pulse.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._pulse
        for agent in self._agents.values():
            agent.gone = True
        await asyncio.gather(*map(let_go, self._agents.values()))
        if self._outside is not None:
            await self._outside.close()

    def _outsiders(self) -> Outside:
        if self._outside is None:
            self._outside = self._make_outside()
        return self._outside

    # What people do --------------------------------------------------------------------------

    async def add(
        self, address: Address, options: Options, *, name: str | None, kind: str | None
    ) -> ImportRow:
        """Meet what is there, and offer it. Raises an ``AiosError`` in one line.

        What is here already is only looked at again, so that a cell may run twice.
        """
        self._check(address)
        known = self._at(address)
        if known is not None:
            return await self._again(known, options, name=name, kind=kind)
        if name is not None and not self.has(name):  # else it may be found to be that very one
            chosen(name, self._taken)
        if len(self._agents) >= IMPORTS_MAX:
            raise UsageError(f"{IMPORTS_MAX} imports are the most", hint="remove one first")
        outsider = await self._met(address, options, kind)
        try:
            seen = await self._seen(outsider)
            async with self._adding:
                known = self._at(found_at(outsider))
                if known is None:
                    agent = await self._named(outsider, seen, options, name)
        except BaseException:
            await closed(outsider)
            raise
        if known is not None:
            await closed(outsider)
            return await self._again(known, options, name=name, kind=kind)
        self._beat()
        return agent.row()

    async def _again(
        self, agent: ImportedAgent, options: Options, *, name: str | None, kind: str | None
    ) -> ImportRow:
        """One that is here already, as it is now. Raises ``UsageError`` if another is wanted."""
        entry = agent.entry
        wanted = (name or entry.name, kind or entry.kind, options)
        if wanted != (entry.name, entry.kind, entry.options):
            raise UsageError(
                f"it is here already, as {entry.name}",
                hint=f"to have it in another way, first: aios-nb hub remove {entry.name}",
            )
        await self._look(agent)
        return self.row(agent.name)

    async def _met(self, address: Address, options: Options, kind: str | None) -> Outsider:
        given = ways(address, options)
        try:
            async with asyncio.timeout(self._pace.meet_s):
                return await self._outsiders().meet(address, kind=kind, **given)
        except TimeoutError:
            raise Unreachable(
                f"nothing answered within {self._pace.meet_s:g} s", reason="no answer"
            ) from None

    async def _named(
        self, outsider: Outsider, seen: Seen, options: Options, name: str | None
    ) -> ImportedAgent:
        """Give it a name that is free now, and keep it."""
        address = found_at(outsider)
        self._check(address)
        if name is None:
            name = named_after(seen.title, outsider.kind, self._taken)
        else:
            chosen(name, self._taken)
        entry = Entry(name, outsider.kind, address, options, seen, seen, int(time.time()))
        await self._shelf.put(entry)
        agent = self._agent(entry, outsider)
        self._looked(agent)
        await self._offer(agent)
        return agent

    async def entries(self, url: str, *, local: bool) -> Sequence[CatalogEntry]:
        """What a catalog lists: nothing of it is asked or offered."""
        return await self._outsiders().entries(url, local=local)

    def rows(self) -> list[ImportRow]:
        return [self.row(name) for name in sorted(self._agents)]

    def row(self, name: str) -> ImportRow:
        agent = self.get(name)
        return agent.row(hidden=self._directory.offer(name) is not agent)

    def get(self, name: str) -> ImportedAgent:
        """The import of that name or id. Raises ``NoSuchAgent``."""
        bare, _, node = name.partition("@")
        agent = self._agents.get(bare)
        if agent is None or not self._directory.node_id.startswith(node):
            raise NoSuchAgent(
                f"no import {name[:96]!r}", hint=f"there is {', '.join(self._agents) or 'none'}"
            )
        return agent

    def has(self, name: str) -> bool:
        return name in self._agents

    def has_address(self, address: Address) -> bool:
        return self._at(address) is not None

    async def remove(self, name: str) -> ImportedAgent:
        """Forget it: its pins, its conversations' names, its sessions."""
        agent = self.get(name)
        agent.gone = True
        del self._agents[agent.name]
        await self._shelf.drop(agent.name)
        if self._directory.offer(agent.name) is agent:
            await self._directory.withdrawn(agent.name)
        await let_go(agent)
        return agent

    async def approve(self, name: str, pin: str | None = None) -> ImportRow:
        """Take it as it was last seen; ``pin``: only if that is what was shown."""
        agent = self.get(name)
        seen = agent.entry.seen
        if pin is not None and pin != seen.pin:
            raise InvalidParams(
                f"{agent.name} changed again since it was shown", hint="look at it once more"
            )
        await self._take(agent, msgspec.structs.replace(agent.entry, approved=seen))
        if self._directory.offer(agent.name) is agent:
            await self._directory.publish(agent)
        self._on_offer()
        return self.row(agent.name)

    async def refresh(self, name: str | None = None) -> list[ImportRow]:
        """Look at one or all of them now."""
        agents = list(self._agents.values()) if name is None else [self.get(name)]
        await self._look_at(agents)
        return [self.row(agent.name) for agent in agents if not agent.gone]

    async def uncover(self, name: str) -> None:
        """An own agent is withdrawn: the import of that name can be asked again."""
        agent = self._agents.get(name)
        if agent is not None and not self._directory.has(name):
            await self._offer(agent)

    # Looking ---------------------------------------------------------------------------------

    def _beat(self) -> None:
        if self._pulse is None or self._pulse.done():
            self._pulse = asyncio.get_running_loop().create_task(
                self._look_round(), name="aios-imports"
            )

    async def _look_round(self) -> None:
        """Look at what is due: all once, then again while somebody watches."""
        while True:
            now, watched = self._clock(), self._directory.news.watched
            due = [
                agent
                for agent in self._agents.values()
                if agent.next_look <= now and (watched or not agent.looks)
            ]
            try:
                await self._look_at(due)
            except Exception:
                log.exception("looking at imports")
            await asyncio.sleep(self._pace.turn_s)

    async def _look_at(self, agents: Sequence[ImportedAgent]) -> None:
        turns = asyncio.Semaphore(LOOKS_AT_ONCE)

        async def one(agent: ImportedAgent) -> None:
            async with turns:
                await self._look(agent)

        await asyncio.gather(*map(one, agents))

    async def _look_before_use(self, agent: ImportedAgent) -> None:
        """What was seen a moment ago counts; one that was silent is tried at every use."""
        if not agent.live or agent.next_look <= self._clock():
            await self._look(agent)

    async def _look(self, agent: ImportedAgent) -> None:
        """See what it is now. Whoever waits for somebody else's look takes that one."""
        before = agent.looks
        async with agent.looking:
            if agent.gone or agent.looks > before:
                return
            was = (agent.live, agent.changed)
            try:
                seen = await self._seen(self._reached(agent))
                if agent.gone:
                    return
                if seen != agent.entry.seen:
                    await self._take(agent, msgspec.structs.replace(agent.entry, seen=seen))
                self._looked(agent)
            except AiosError as error:
                self._looked(agent, why=error.message)
            except Exception:
                log.exception("looking at the import %s", agent.name)
                self._looked(agent, why="it could not be looked at; the log says why")
        if was != (agent.live, agent.changed):
            self._directory.restate(agent)

    def _reached(self, agent: ImportedAgent) -> Outsider:
        """The way to it, made when it is first needed: what it lacks may be there by then."""
        if agent.outsider is None:
            entry = agent.entry
            given = ways(entry.address, entry.options)
            agent.outsider = self._outsiders().known(entry.address, kind=entry.kind, **given)
        return agent.outsider

    async def _seen(self, outsider: Outsider) -> Seen:
        try:
            async with asyncio.timeout(self._pace.look_s):
                return await outsider.look()
        except TimeoutError:
            raise Unreachable(
                f"no answer within {self._pace.look_s:g} s", reason="no answer"
            ) from None

    def _looked(self, agent: ImportedAgent, why: str | None = None) -> None:
        agent.looks += 1
        if why is None:
            agent.answered(int(time.time() * 1000))
        else:
            agent.silent(why)
        agent.next_look = self._clock() + self._pace.pause_s(agent.failures)

    # Inside ----------------------------------------------------------------------------------

    async def _offer(self, agent: ImportedAgent) -> None:
        """Let it be found, unless an own agent has its name: that one is never hidden."""
        self._agents[agent.name] = agent
        if not self._directory.has(agent.name):
            await self._directory.publish(agent)
            self._on_offer()

    async def _take(self, agent: ImportedAgent, entry: Entry) -> None:
        await self._shelf.put(entry)
        agent.take(entry)

    def _agent(self, entry: Entry, outsider: Outsider | None = None) -> ImportedAgent:
        memory = self._shelf.memory(entry.name)
        return ImportedAgent(
            entry, self._directory.node_id, outsider, memory, self._look_before_use
        )

    def _taken(self, name: str) -> bool:
        return self._directory.has(name) or name in self._agents

    def _at(self, address: Address) -> ImportedAgent | None:
        found = (agent for agent in self._agents.values() if agent.entry.address == address)
        return next(found, None)

    def _check(self, address: Address) -> None:
        """Raises ``UsageError`` for ourselves."""
        if isinstance(address, str) and netloc(address) == netloc(self._own_url()) != "":
            raise UsageError(
                "that is this node itself", hint="its agents are in the hub; `aios-nb agents`"
            )
