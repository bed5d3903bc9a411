"""From what was typed to an agent: of this node, or of another that it knows.

A bare name is this node's agent, else the one it was used for before, else the only one that the
network has. ``name@nodeid`` needs nobody: it says who must answer, and the link proves it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Sequence
from typing import Any

from aios_nb.access import Caller, Principal
from aios_nb.envelope import NODE_ID, AgentRow
from aios_nb.errors import AgentFailed, ConnectionLost, NoSuchAgent, RpcError, Unreachable
from aios_nb.hub.bindings import Bindings
from aios_nb.hub.directory import Directory, read_ref
from aios_nb.hub.others import Others
from aios_nb.hub.remote import RemoteAgent, Told, read_card
from aios_nb.hub.searching import NOTHING, Page
from aios_nb.ports import Carrier, Links, Target
from aios_nb.richtext import one_line

log = logging.getLogger("aios_nb.hub")

ASK_S = 3.0
"""How long a joined node may take to say whether it has an agent."""
CARD_S = 10.0
"""The same for a card that a person wants to see."""
CONFIRMED_S = 30.0
"""How long the answer of a name's node counts: asking again for each message would cost a turn."""
SAID_CHARS = 200
"""Of what another node says went wrong."""
PREFIX_NEW = 12
"""Characters of the id of a node that was not used before: nobody finds a key for 60 bits. Of one
that was, four do; fewer are not read as an id."""

_PEOPLE = frozenset({Caller.OWNER, Caller.TOKEN})
"""Whose use of a name binds it, and who sees the ids of nodes in errors."""

CarrierFor = Callable[[str], Carrier]
AskSites = Callable[[str], Awaitable[Sequence[str]]]
Search = Callable[[str, int, Principal, int], Awaitable[Page]]


class Finding:
    """Agents by name, near and far. Is a ``ports.Finder``.

    It knows this node only until ``connect``.
    """

    def __init__(
        self,
        directory: Directory,
        bindings: Bindings,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._directory = directory
        self._bindings = bindings
        self._clock = clock
        self._links: Links | None = None
        self._carrier_for: CarrierFor | None = None
        self._nodes: Callable[[], Iterable[str]] = tuple
        self._others: Others | None = None
        self._ask_sites: AskSites | None = None
        self._acquainted: Callable[[], Awaitable[None]] | None = None
        self._search: Search | None = None
        self._used = bindings.nodes()
        self._confirmed: dict[str, float] = {}
        """When the node of a bound name was last asked whether it still has that agent."""

    def connect(
        self,
        links: Links,
        carrier_for: CarrierFor,
        nodes: Callable[[], Iterable[str]] = tuple,
        others: Others | None = None,
        search: Search | None = None,
        ask_sites: AskSites | None = None,
        acquainted: Callable[[], Awaitable[None]] | None = None,
    ) -> None:
        """The way to other nodes, who carries tasks to one, and which nodes are there right now.

        ``others`` are the agents that the network tells of; ``search`` finds among all;
        ``ask_sites`` gives the ids of a name that larger sites know of. ``acquainted`` waits for
        what those tell who are there at the start.
        """
        self._links = links
        self._carrier_for = carrier_for
        self._nodes = nodes
        self._others = others
        self._search = search
        self._ask_sites = ask_sites
        self._acquainted = acquainted

    # Without asking anyone -------------------------------------------------------------------

    def local(self, ref: str, caller: Principal) -> Target:
        return self._directory.local(ref, caller)

    def resolve(self, ref: str, caller: Principal) -> Target:
        named = read_ref(ref)
        # For a caller who has no key, no other node could say what they may do.
        if named is None or caller.kind is Caller.ANYONE or self._carrier_for is None:
            return self.local(ref, caller)
        name, node = named
        if node is not None:
            node = self._whole(ref, node, caller)
            return self.local(ref, caller) if self._is_ours(node) else self._far(name, node, caller)
        bound = self._bindings.get(name)
        # Our own agent keeps its name, for those who may not call it too: what is meant for it
        # must not go elsewhere.
        if bound is None or self._directory.has(name):
            return self._named_here(ref, caller)
        return self._far(name, bound.partition("@")[2], caller)

    async def search(self, words: str, limit: int, caller: Principal) -> Sequence[AgentRow]:
        return (await self.page(words, limit, caller)).rows

    async def page(self, words: str, limit: int, caller: Principal, offset: int = 0) -> Page:
        """The same from some place on, and how many there are."""
        if self._search is None:
            return NOTHING
        return await self._search(words, limit, caller, offset)

    def others(self) -> Sequence[AgentRow]:
        """All agents of other nodes that the network tells of, by name."""
        return () if self._others is None else self._others.rows()

    def _named_here(self, ref: str, caller: Principal) -> Target:
        try:
            return self.local(ref, caller)
        except NoSuchAgent:
            raise self._no_such(ref, caller) from None

    def _is_ours(self, node: str) -> bool:
        return node == self._directory.node_id

    def _far(self, name: str, node: str, caller: Principal) -> RemoteAgent:
        if self._carrier_for is None:
            raise self._no_such(f"{name}@{node}", caller)
        if caller.is_owner:
            self._used.add(node)
        return RemoteAgent(f"{name}@{node}", self._carrier_for(node))

    def _whole(self, ref: str, typed: str, caller: Principal) -> str:
        """The node id that begins so. Raises ``NoSuchAgent`` for none, several or too little."""
        if NODE_ID.fullmatch(typed):
            return typed
        found = sorted(node for node in self._known() if node.startswith(typed))
        if len(found) > 1:
            name = ref.partition("@")[0]
            raise self._several(ref, [f"{name}@{node}" for node in found], caller)
        if not found:
            raise self._no_such(ref, caller)
        used = self._is_ours(found[0]) or found[0] in self._used
        if len(typed) < PREFIX_NEW and not used:
            error = self._no_such(ref, caller)
            error.hint = f"of a node that was not used before, type {PREFIX_NEW} characters or more"
            raise error
        return found[0]

    def _known(self) -> set[str]:
        joined = self._links.joined() if self._links is not None else ()
        return {self._directory.node_id, *self._used, *joined, *self._nodes()}

    def _no_such(self, ref: str, caller: Principal) -> NoSuchAgent:
        more: list[str] = []
        if caller.kind in _PEOPLE:
            more += self._bindings.names()
            more += self._others.names() if self._others is not None else ()
        return self._directory.no_such(ref, caller, more)

    def _several(self, ref: str, ids: Collection[str], caller: Principal) -> NoSuchAgent:
        if caller.kind not in _PEOPLE:
            return self._no_such(ref, caller)
        return NoSuchAgent(
            f"several agents are called {ref[:96]}: {', '.join(map(self._with_node, ids))}",
            hint=f"type the id of the one you mean; {PREFIX_NEW} characters of its node will do",
            near=list(ids),
        )

    def _with_node(self, agent: str) -> str:
        """Its id, and what people call its node."""
        found = self._others.get(agent) if self._others is not None else None
        name = one_line(found[0].node_name)[:48] if found else ""
        return f"{agent} ({name})" if name else agent

    # Asking others ---------------------------------------------------------------------------

    async def seek(self, ref: str, caller: Principal) -> Target:
        try:
            target = self.resolve(ref, caller)
        except NoSuchAgent:
            if not self._may_be_elsewhere(ref, caller):
                raise
            return await self._seek_name(ref, caller, bind=caller.kind in _PEOPLE)
        if target.is_remote and "@" not in ref:
            await self._still_there(ref, target.id, caller)
        return target

    async def check(self, ref: str, caller: Principal) -> Target:
        """The same, and asks the agent's node whether it has it; one that is away is believed."""
        target = await self.seek(ref, caller)
        if target.is_remote and "@" in ref and await self._offers(target.id) is False:
            raise self._no_such(ref, caller)
        return target

    def _may_be_elsewhere(self, ref: str, caller: Principal) -> bool:
        named = read_ref(ref)
        return (
            named is not None
            and named[1] is None
            and caller.kind is not Caller.ANYONE
            and not self._directory.has(named[0])
        )

    async def _seek_name(self, name: str, caller: Principal, *, bind: bool) -> Target:
        found = await self._who_offers(name)
        if len(found) > 1:
            raise self._several(name, found, caller)
        if not found:
            raise self._no_such(name, caller)
        agent = found[0]
        if bind:
            bound = await self._bindings.bind(name, agent)
            if bound != agent:  # another question was faster and met another answer
                raise self._several(name, sorted({bound, agent}), caller)
            self._confirmed[name] = self._clock()
        return self._far(name, agent.partition("@")[2], caller)

    async def _still_there(self, name: str, agent: str, caller: Principal) -> None:
        """Raises ``NoSuchAgent`` when the agent of a bound name is gone."""
        last = self._confirmed.get(name)
        if last is not None and self._clock() - last < CONFIRMED_S:
            return
        if await self._offers(agent) is not False:
            self._confirmed[name] = self._clock()
            return
        others = [other for other in await self._who_offers(name) if other != agent]
        if not others or caller.kind not in _PEOPLE:
            raise self._no_such(name, caller)
        raise NoSuchAgent(
            f"{name} was {agent} until now, which is gone; there is {', '.join(others)}",
            hint="type the whole id of the one you mean",
            near=[agent, *others],
        )

    async def _who_offers(self, name: str) -> list[str]:
        """The ids of all agents of that name that the network tells of or a joined node has.

        Only joined nodes are asked, all at once: an agent for known nodes has no record.
        """
        if self._links is None:
            return []
        await self._links.met(ASK_S)
        if self._acquainted is not None:
            await self._acquainted()
        told = self._others.named(name) if self._others is not None else []
        nodes = set(self._links.joined()) - {self._directory.node_id}
        ids = sorted({f"{name}@{node}" for node in nodes} - set(told))
        answers = await asyncio.gather(*(self._offers(agent) for agent in ids))
        asked = {agent for agent, offered in zip(ids, answers, strict=True) if offered}
        elsewhere = await self._ask_sites(name) if self._ask_sites is not None else ()
        return sorted({*told, *asked, *elsewhere})

    async def _offers(self, agent: str) -> bool | None:
        """Whether its node says that it has this agent; None if it says nothing useful."""
        try:
            told = await self._ask_card(agent, ASK_S)
        except NoSuchAgent:
            return False
        except RpcError as error:
            log.debug("asked for %s: %s", agent, error)
            return None
        return told.card.id == agent

    # Cards of other nodes --------------------------------------------------------------------

    async def remote_card(self, ref: str, caller: Principal) -> Told:
        """The card of another node's agent, as that node tells it now. Looking binds no name.

        Raises ``NoSuchAgent`` or ``Unreachable``.
        """
        try:
            target = self.resolve(ref, caller)
        except NoSuchAgent:
            if not self._may_be_elsewhere(ref, caller):
                raise
            target = await self._seek_name(ref, caller, bind=False)
        return await self._ask_card(target.id, CARD_S)

    async def _ask_card(self, agent: str, within_s: float) -> Told:
        node = agent.partition("@")[2]
        if self._links is None:
            raise Unreachable.node_of(agent, "no address")
        try:
            async with asyncio.timeout(within_s):
                link = await self._links.reach(node)
                answer: Any = await link.call("agents.card", {"agent": agent})
        except Unreachable as error:
            raise Unreachable.node_of(agent, str(error.data.get("reason"))) from error
        except NoSuchAgent:
            # In our own words: theirs are data.
            raise NoSuchAgent(
                f"no such agent: {agent}", hint="its node has none for you", near=[]
            ) from None
        except RpcError as error:
            said = one_line(error.message)[:SAID_CHARS]
            raise AgentFailed(f"the node of {agent} does not give its card: {said}") from error
        except (TimeoutError, ConnectionLost) as error:
            raise Unreachable.node_of(agent, "no answer") from error
        return read_card(answer, agent, self._directory.network, int(time.time() * 1000))
