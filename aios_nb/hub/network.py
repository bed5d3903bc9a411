"""This node's part in the network: spreads what it offers, learns what others do, finds nodes.

Builds the catalogue, the gossip, the post and the DHT, and plugs them together. What each does is
its own business; here are only the clock, the sockets and the links they need.
"""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from aios_nb import params as p
from aios_nb.access import Principal
from aios_nb.addresses import scope_of
from aios_nb.errors import Busy, RpcError
from aios_nb.hub.catalogue import Catalogue, Change, Page, light_of
from aios_nb.hub.greeting import Greeting
from aios_nb.hub.others import Light, Others
from aios_nb.hub.peers import Peers
from aios_nb.hub.presence import Presence, State, declare
from aios_nb.hub.remembered import Remembered
from aios_nb.hub.sites import LargerSites
from aios_nb.hub.whereabouts import Whereabouts
from aios_nb.records import AgentRecord, NodeRecord, Scope, Signed, may_be_told

if TYPE_CHECKING:
    from aios_nb.config import Limits
    from aios_nb.hub.directory import Directory
    from aios_nb.hub.gossip import Member
    from aios_nb.hub.post import Post
    from aios_nb.hub.spreading import Spreading
    from aios_nb.identity import Identity
    from aios_nb.ports import Link, Links
    from aios_nb.store import Store

log = logging.getLogger("aios_nb.hub")

ACQUAINT_S = 2.0
"""After the start: so long questions wait for what the first nodes tell, and not a moment more."""
KEEP_S = 60.0
"""Between two savings of who is there."""


class Network:
    """Who is there, who offers what, and where a node is. Nothing is sent before ``open``."""

    def __init__(
        self,
        identity: Identity,
        network: str,
        epoch: int,
        directory: Directory,
        store: Store,
        limits: Limits,
        *,
        allowed: Callable[[str], bool],
        shut_out: Callable[[str], bool],
        siblings: Callable[[], Iterable[str]],
        gossip: bool = True,
        dht: bool = True,
        rng: random.Random | None = None,
    ) -> None:
        """``siblings`` are the running nodes of this home, the oldest first.

        Without ``gossip`` nothing is spread or learned but who is at the other end of a link.
        """
        self._shut_out = shut_out
        self._gossips = gossip
        self._has_dht = dht
        self._identity = identity
        self._network = network
        self._epoch = epoch
        self._directory = directory
        self._siblings = siblings
        self._rng = rng or random.Random()  # noqa: S311 (whom to ask first, not a secret)
        self._presence: Presence | None = None
        self._scope = Scope.LOOPBACK
        self._address: tuple[str, int] | None = None
        self._links: Links | None = None
        self._post: Post | None = None
        self._spreading: Spreading | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._greeting: Greeting | None = None
        self._settles_at = 0.0
        self._remembered = Remembered(store)
        self.catalogue = Catalogue(
            network,
            identity.node_id,
            limits,
            now_ms=lambda: int(time.time() * 1000),
            allowed=allowed,
            scope_of_node=self._scope_of,
        )
        self.catalogue.on_change = self._record_changed
        self.whereabouts = Whereabouts(self.catalogue, self._remembered, self._met_nodes)
        self.others = Others(
            identity.node_id, self.catalogue, self._light, directory.news, self.name_of
        )
        self._peers = Peers(self.catalogue, self.whereabouts, self.others)
        self.on_agent: Callable[[str, Any], None] = lambda _agent, _row: None
        """Told of an agent of another node that is new or another one (its row), or gone (None)."""
        directory.on_record = self._published
        directory.held = lambda: len(self.catalogue)

    # Coming and going ------------------------------------------------------------------------

    def connect(self, links: Links) -> None:
        """The way to other nodes."""
        self._links = links

    async def open(self, scope: Scope, bind: tuple[str, int], host: str) -> int | None:
        """Take part from now on. ``host`` is how others reach us; the UDP port, if there is one."""
        from aios_nb.hub.dht.engine import KademliaDht
        from aios_nb.hub.gossip import LAN, LOCAL, WAN, Gossip
        from aios_nb.hub.post import Kind, Post
        from aios_nb.hub.spreading import Spreading

        if self._links is None:
            raise RuntimeError("connect comes first")
        self._scope = scope
        address = await _address_of(host, scope)
        self._presence = self._speak(0, State.ALIVE)
        wanted = address and (self._gossips or self._has_dht)
        post = (
            Post(self._identity, self._network, self.presence, refuses=self._shut_out)
            if wanted
            else None
        )
        if post is not None and address is not None:
            try:
                self._address = (address, await post.open(*bind))
            except OSError as problem:
                log.warning("no datagrams, only links: %s", problem)
                post = None
        self._post = post
        gossip = Gossip(
            self._identity.node_id,
            {Scope.LOOPBACK: LOCAL, Scope.PRIVATE: LAN, Scope.GLOBAL: WAN}[scope],
            self.catalogue,
            self._speak,
            scope=scope,
            rng=self._rng,
            now=asyncio.get_running_loop().time(),
        )
        self._spreading = Spreading(
            gossip,
            self.catalogue,
            self._links,
            post,
            own=self._directory.records,
            places=self.whereabouts.places,
            shut_out=self._shut_out,
            muted=not self._gossips,
            on_changed=self._member_changed,
            on_superseded=self._superseded,
        )
        dht = None
        if post is not None and self._has_dht:
            dht = KademliaDht(self._identity, self._network, post, self.presence)
        self.whereabouts.open(scope, dht)
        if post is not None:
            post.on(Kind.GOSSIP, self._spreading.received)
            post.on_met = self._met
        return self._address[1] if self._address else None

    def start(self) -> None:
        """Look for others, now that everything of ours is open and signed."""
        spreading = self._started()
        for signed in self._directory.records():
            self._published(signed)
        spreading.start()
        self._settles_at = asyncio.get_running_loop().time() + ACQUAINT_S
        self._greeting = greeting = Greeting(
            siblings=self._siblings,
            friends=self._remembered.nodes,
            is_member=lambda node: self.member(node) is not None,
            is_alone=lambda: not spreading.gossip.members,
            reach=self._reach,
            rng=self._rng,
        )
        self._spawn(greeting.run())
        self._spawn(self.whereabouts.keep_stored(self._rng))
        self._spawn(self._keep_up())

    async def acquainted(self) -> None:
        """Return when the nodes that were there at the start have told what they know.

        Who runs all cells of a notebook asks for agents of other notebooks before any was met.
        """
        left = self._settles_at - asyncio.get_running_loop().time()
        if self._greeting is None or left <= 0:
            return
        with suppress(TimeoutError):
            async with asyncio.timeout(left):
                await self._greeting.looked.wait()
                await self._started().pulled()

    async def close(self) -> None:
        """Say goodbye to all; no task and no socket is left."""
        for task in tuple(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        if self._spreading is not None:
            await self._remember()
            await self._spreading.close()
        await self.whereabouts.close()
        if self._post is not None:
            await self._post.close()

    # What is known ---------------------------------------------------------------------------

    def presence(self) -> Presence:
        """Our own word, as it is now."""
        if self._presence is None:
            raise RuntimeError("the network is not open")
        return self._presence

    def member(self, node_id: str) -> Member | None:
        """What the gossip knows of that node."""
        return None if self._spreading is None else self._spreading.gossip.members.get(node_id)

    def members(self) -> Sequence[Member]:
        """All others, as the gossip sees them; nobody without it."""
        if self._spreading is None or not self._gossips:
            return ()
        return tuple(self._spreading.gossip.members.values())

    def nodes(self) -> list[str]:
        """The nodes that are there right now, by id."""
        return [one.node_id for one in self.members() if one.state in {"alive", "suspect"}]

    async def peers(self, linked: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """The rows of ``node.peers``: those of the links, and all that the gossip knows."""
        await self.acquainted()
        return await self._peers.rows(linked, self.members(), self._post)

    def alive(self, linked: Sequence[Mapping[str, Any]]) -> int:
        """How many of those rows are alive."""
        if self._spreading is None or not self._gossips:
            return self._peers.alive(linked, {})
        gossip = self._spreading.gossip
        return gossip.alive + self._peers.alive(linked, gossip.members)

    def traffic(self, by_links: tuple[int, int]) -> dict[str, int]:
        """Bytes since the start, by what they were for."""
        from aios_nb.hub.post import Kind

        told = {"link_sent": by_links[0], "link_received": by_links[1]}
        for name, kind in (("gossip", Kind.GOSSIP), ("dht", Kind.DHT)):
            tally = None if self._post is None else self._post.carried(kind)
            told[f"{name}_sent"] = 0 if tally is None else tally.sent
            told[f"{name}_received"] = 0 if tally is None else tally.received
        return told

    def name_of(self, node_id: str) -> str:
        """What that node calls itself; empty as long as nobody told."""
        return self._peers.name_of(node_id)

    def agent_record(self, agent: str) -> AgentRecord | None:
        """What the network says of an agent, by its id; nothing of one that was withdrawn."""
        signed = self._signed(agent)
        record = None if signed is None else signed.record
        return record if isinstance(record, AgentRecord) and not record.withdrawn else None

    def record_of(self, agent: str) -> bytes | None:
        """The signed record of an agent, by its id."""
        signed = self._signed(agent)
        return None if signed is None else signed.to_bytes()

    def _signed(self, agent: str) -> Signed | None:
        name, _, node = agent.partition("@")
        return self.catalogue.get(f"agent/{self._network}/{node}/{name}")

    def larger_sites(self) -> LargerSites:
        """For what has no room here."""
        return LargerSites(
            self._network,
            sites=self._larger,
            reach=self._reach,
            light=self._light_if_known,
            name_of=self.name_of,
        )

    @property
    def knows_all(self) -> bool:
        """Whether all that is out there has its place here."""
        return self._gossips and not self.catalogue.crowded

    def _larger(self) -> list[str]:
        """The nodes that hold more than this one, the largest first; without gossip, the joined.

        How much a node holds it says now and then: where none seems larger, those with a link are
        asked. They may hold another part of the whole.
        """
        if self._links is None:
            return []
        if not self._gossips:
            return list(self._links.joined())
        held = len(self.catalogue)
        sizes = {node_id: self._size_of(node_id) for node_id in self.nodes()}
        larger = [node_id for node_id, size in sizes.items() if size > held]
        found = larger or [node_id for node_id in self._links.linked() if node_id in sizes]
        return sorted(found, key=lambda node_id: -sizes[node_id])

    def _size_of(self, node_id: str) -> int:
        signed = self.catalogue.node_record(node_id)
        record = None if signed is None else signed.record
        return record.index if isinstance(record, NodeRecord) else 0

    def may_tell(self, node_id: str, peer: str) -> bool:
        """Whether a peer may hear of that node: not if it is only for those nearer to us."""
        about, over = self._scope_of(node_id), self._started().scope(peer)
        own = node_id == self._identity.node_id
        return own or (about is not None and over is not None and may_be_told(about, over))

    # What other nodes ask --------------------------------------------------------------------

    def packet(self, principal: Principal, params: p.Packet) -> None:
        """``gossip.packet``: what else would be a datagram."""
        self._started().packet(principal, params)

    def sync(self, principal: Principal, params: p.Sync) -> Page:
        """``gossip.sync``: a page of what that node lacks."""
        return self._started().sync(principal, params)

    # What happens ----------------------------------------------------------------------------

    def linked(self, node_id: str) -> None:
        """There is a link to that node now."""
        if self._spreading is not None and (self._gossips or self._has_dht):
            self._spreading.linked(node_id)

    def review(self, node_id: str) -> None:
        """The owner allowed or blocked that node."""
        self.catalogue.node_changed(node_id)
        if self._shut_out(node_id):
            if self._post is not None:
                self._post.forget(node_id)
        elif self.member(node_id) is not None:
            self._spawn(self._greet_again(node_id))
        self._show(node_id)

    async def _greet_again(self, node_id: str) -> None:
        """It may do more than before: by a link both hear what they missed."""
        try:
            await self._reach(node_id)
        except RpcError as problem:
            log.debug("%s is let in, but not there: %s", node_id, problem)
        else:
            self.linked(node_id)

    def _show(self, node_id: str) -> None:
        for agent, row in self.others.look_again(node_id):
            self.on_agent(agent, row)

    def _met(self, presence: Presence) -> None:
        """A node greeted us from its own address."""
        if self._shut_out(presence.node_id):
            return
        spreading = self._started()
        spreading.gossip.introduce(asyncio.get_running_loop().time(), presence)
        spreading.act()

    def _published(self, signed: Signed) -> None:
        """A record of ours is new."""
        self.catalogue.own(signed)
        if self._spreading is not None:
            self._spreading.published(signed)
        if isinstance(signed.record, NodeRecord):
            self.whereabouts.publish(signed)

    def _member_changed(self, member: Member) -> None:
        """Someone came, went, or is doubted."""
        if self._post is not None and member.state in {"alive", "suspect"}:
            self._post.know(member.presence)
        if member.state == "alive":
            self.whereabouts.meet(member.presence)
        self.catalogue.node_changed(member.node_id, member.epoch)
        self._show(member.node_id)

    def _record_changed(self, change: Change) -> None:
        record = change.signed.record
        if record.node == self._identity.node_id:
            return
        if isinstance(record, AgentRecord):
            self.on_agent(*self.others.changed(record.id, change.after))
            return
        self._peers.forget(record.node)
        if change.before is None or change.before.record.name != record.name:
            self._show(record.node)  # its agents were there before its name

    def _superseded(self, epoch: int) -> None:
        if not self._directory.silent:
            self._directory.silent = True
            log.warning(
                "another process runs with the key of this node (since %s): this one publishes"
                " nothing any more",
                time.strftime("%H:%M:%S", time.localtime(epoch / 1000)),
            )

    def _light(self, record: AgentRecord) -> Light:
        member = self.member(record.node)
        if member is None or self._shut_out(record.node):
            return Light.GONE
        return light_of(record, member.state, member.epoch)

    def _light_if_known(self, record: AgentRecord) -> Light | None:
        known = self._gossips and self.member(record.node) is not None
        return self._light(record) if known or self._shut_out(record.node) else None

    def _scope_of(self, node_id: str) -> Scope | None:
        if node_id == self._identity.node_id:
            return self._scope
        member = self.member(node_id)
        return None if member is None else member.presence.said.scope

    def _speak(self, incarnation: int, state: State) -> Presence:
        self._presence = declare(
            self._identity,
            self._network,
            epoch=self._epoch,
            incarnation=incarnation,
            scope=self._scope,
            address=self._address,
            state=state,
        )
        return self._presence

    def _met_nodes(self) -> int:
        return 0 if self._spreading is None else self._spreading.gossip.size - 1

    # By the way ------------------------------------------------------------------------------

    async def _keep_up(self) -> None:
        while True:
            await asyncio.sleep(KEEP_S)
            try:
                await self._expire()
                await self._remember()
            except Exception:
                log.exception("upkeep of the network")

    async def _expire(self) -> None:
        more = self.catalogue.expire()
        while more:
            await asyncio.sleep(0)
            more = self.catalogue.expire()

    async def _remember(self) -> None:
        living = (one.node_id for one in self.members() if one.state == "alive")
        found = (self.catalogue.node_record(node_id) for node_id in living)
        await self._remembered.keep([signed for signed in found if signed is not None])

    async def _reach(self, node_id: str) -> Link:
        if self._links is None:
            raise RuntimeError("connect comes first")
        return await self._links.reach(node_id)

    def _started(self) -> Spreading:
        if self._spreading is None:
            raise Busy("this node is not part of the network yet", hint="try again")
        return self._spreading

    def _spawn(self, work: Any) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("in the network", exc_info=task.exception())


async def _address_of(host: str, scope: Scope) -> str | None:
    """The IP address that others send datagrams to; None if there is none of that scope."""
    if scope_of(host) is scope:
        return host
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, None)
    except OSError:
        return None
    addresses = (str(place[0]) for *_, place in found)
    return next((address for address in addresses if scope_of(address) is scope), None)
