"""Gives the gossip its clock, its datagrams and its links."""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

import msgspec

from aios_nb import params as p
from aios_nb.access import Principal
from aios_nb.errors import Busy, ConnectionLost, InvalidParams, RecordError, RpcError, UsageError
from aios_nb.hub.catalogue import Catalogue, Page, page, take_in
from aios_nb.hub.dialling import Dialling
from aios_nb.hub.gossip import Changed, Gossip, Member, Pull, Send, Superseded, still_there
from aios_nb.hub.gossip.trust import Allowance
from aios_nb.hub.presence import Presence, peek
from aios_nb.records import Scope, Signed, may_be_told

if TYPE_CHECKING:
    from aios_nb.hub.post import Post
    from aios_nb.ports import Link, Links

log = logging.getLogger("aios_nb.hub")

PULLS_AT_ONCE = 4
PULL_S = 20.0
PAGES_MAX = 400
"""Of one pull: 100 MB as JSON."""
PRESENCES_AT_ONCE = 32
"""Between two turns of the loop: each costs a signature check."""
SYNC_BURST = 64
SYNC_PER_S = 4.0
"""Pages that one node may ask for, at once and for long."""
ASKERS_MAX = 2000


class Spreading:
    """The gossip of a running node. Its methods ``packet`` and ``sync`` answer other nodes."""

    def __init__(
        self,
        gossip: Gossip,
        catalogue: Catalogue,
        links: Links,
        post: Post | None,
        *,
        own: Callable[[], Sequence[Signed]],
        places: Callable[[str], Mapping[str, Scope]],
        shut_out: Callable[[str], bool],
        muted: bool,
        on_changed: Callable[[Member], None],
        on_superseded: Callable[[int], None],
    ) -> None:
        """``post`` is None where datagrams do not pass: then everything goes over links.

        ``own`` gives the records of this node, ``places`` where another one says it is. A node that
        is ``shut_out`` is neither heard nor told anything. If ``muted``, we learn from links who is
        there, and nothing else happens.
        """
        self.gossip = gossip
        self._catalogue = catalogue
        self._links = links
        self._post = post
        self._own = own
        self._dialling = Dialling(links, places)
        self._shut_out = shut_out
        self._muted = muted
        self._on_changed = on_changed
        self._on_superseded = on_superseded
        self._loop = asyncio.get_running_loop()
        self._timer: asyncio.TimerHandle | None = None
        self._pulling: dict[str, asyncio.Task[None]] = {}
        self._turnstile = asyncio.Semaphore(PULLS_AT_ONCE)
        self._askers: dict[str, Allowance] = {}
        self._closed = False

    # What happens ----------------------------------------------------------------------------

    def received(self, sender: str, body: bytes) -> None:
        """A packet came, as a datagram or over a link."""
        if self._shut_out(sender):
            return
        if self._muted:
            answer = still_there(body)
            if answer is not None:
                self._deliver(sender, answer)
            return
        self.gossip.received(self._loop.time(), sender, body)
        self.act()

    def linked(self, node_id: str) -> None:
        """There is a link to that node: it lives, and may know what we do not."""
        self.gossip.heard(self._loop.time(), node_id)
        self._pull(node_id, anyway=True)
        self.act()

    def published(self, signed: Signed) -> None:
        """One of our own records is new."""
        self.gossip.published(self._loop.time(), signed)
        self.act()

    async def close(self) -> None:
        """Say goodbye, and stop."""
        self.gossip.leave(self._loop.time())
        self.act()
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()
        pulling = tuple(self._pulling.values())
        for task in pulling:
            task.cancel()
        if pulling:
            await asyncio.wait(pulling)
        await self._dialling.close()

    def start(self) -> None:
        """Let time pass from now on."""
        self.act()

    def _tick(self) -> None:
        self._timer = None
        self.gossip.tick(self._loop.time())
        self.act()

    # What is done ----------------------------------------------------------------------------

    def act(self) -> None:
        """Carry out what the gossip wants, and come back when it wants to be asked again."""
        if self._closed:
            return
        for wanted in self.gossip.take():
            if isinstance(wanted, Send):
                self._send(wanted.to, wanted.packet)
            elif isinstance(wanted, Changed):
                self._on_changed(wanted.member)
            elif isinstance(wanted, Pull):
                self._pull(wanted.node_id)
            elif isinstance(wanted, Superseded):
                self._on_superseded(wanted.epoch)
        self._come_back(self.gossip.next_at)

    def _come_back(self, due: float) -> None:
        if due == math.inf or self._muted:
            return
        if self._timer is not None:
            if self._timer.when() <= due:
                return
            self._timer.cancel()
        self._timer = self._loop.call_at(due, self._tick)

    def _send(self, to: str, packet: bytes) -> None:
        if not self._muted and not self._shut_out(to):
            self._deliver(to, packet)

    def _deliver(self, to: str, packet: bytes) -> None:
        from aios_nb.hub.post import Kind

        if self._post is not None and self._post.send(to, Kind.GOSSIP, packet):
            return
        link = self._links.link(to)
        if link is not None:
            link.notify("gossip.packet", {"data": packet})
            return
        member = self.gossip.members.get(to)
        if member is not None:
            self._dialling.dial(to, doubted=member.state != "alive")

    # In bulk, over a link --------------------------------------------------------------------

    def _pull(self, node_id: str, *, anyway: bool = False) -> None:
        if node_id in self._pulling or self._closed or (self._muted and not anyway):
            return
        task = self._loop.create_task(self._fetch(node_id))
        self._pulling[node_id] = task
        task.add_done_callback(lambda _: self._pulling.pop(node_id, None))

    async def pulled(self) -> None:
        """Return when what is being fetched right now has come, or failed to."""
        if self._pulling:
            await asyncio.wait(tuple(self._pulling.values()))

    async def _fetch(self, node_id: str) -> None:
        try:
            async with self._turnstile, asyncio.timeout(PULL_S):
                link = await self._links.reach(node_id)
                await self._pages(link)
        except (RpcError, ConnectionLost, TimeoutError, msgspec.ValidationError) as problem:
            log.debug("nothing pulled from %s: %s", node_id, problem)

    def scope(self, node_id: str) -> Scope | None:
        """What may be told to that node, and believed from it, as to where others are.

        An address of a link may be a proxy's. A datagram that came back from where the node says
        it is proves more: it is inside the same machine or network as we are.
        """
        by_link = self._links.scope(node_id)
        member = self.gossip.members.get(node_id)
        if by_link is None or member is None or self._post is None:
            return by_link
        return member.scope if self._post.proven(node_id) else by_link

    async def _pages(self, link: Link) -> None:
        scope = self.scope(link.node_id)
        if scope is None:
            return
        digest, after = self._catalogue.digest(scope), ""
        for _ in range(PAGES_MAX):
            answer = await link.call("gossip.sync", {"digest": digest, "after": after})
            part = msgspec.convert(answer, Page)
            await self._meet(link.node_id, part.presences, scope)
            if not self._muted:
                await take_in(self._catalogue, part.records, scope)
            after = part.after or ""
            if not after or self._closed:
                return

    async def _meet(self, teller: str, presences: Sequence[bytes], scope: Scope) -> None:
        fit = []
        for content in presences:
            told = _read(content)
            if told is not None and told.node_id == teller:
                # Of itself it may say anything: it is at the other end of this link.
                self.gossip.introduce(self._loop.time(), told, scope)
            elif told is not None and may_be_told(told.said.scope, scope):
                fit.append(content)
        self.act()
        for start in range(0, len(fit), PRESENCES_AT_ONCE):
            some = fit[start : start + PRESENCES_AT_ONCE]
            self.gossip.pulled(self._loop.time(), teller, some, ())
            self.act()
            await asyncio.sleep(0)

    # What other nodes ask --------------------------------------------------------------------

    def packet(self, principal: Principal, params: p.Packet) -> None:
        """``gossip.packet``: what else would be a datagram."""
        self.received(principal.id, params.data)

    def sync(self, principal: Principal, params: p.Sync) -> Page:
        """``gossip.sync``: a page of what that node lacks."""
        self._pay(principal.id)
        scope = Scope.LOOPBACK if principal.is_owner else self.scope(principal.id)
        if scope is None:
            raise Busy("this link is on its way out", hint="try again")
        try:
            found = page(
                self._catalogue,
                scope,
                digest=params.digest or None,
                presences=self.gossip.presences(),
                after=params.after or None,
            )
        except UsageError as problem:
            raise InvalidParams(problem.message, hint=problem.hint) from None
        me = self.gossip.presence
        if params.after or may_be_told(me.said.scope, scope):
            return found
        # Whoever has a link to us knows where we are: of ourselves we tell everyone.
        own = tuple(signed.to_bytes() for signed in self._own())
        return Page(
            presences=(me.to_bytes(), *found.presences),
            records=(*own, *found.records),
            after=found.after,
        )

    def _pay(self, node_id: str) -> None:
        """A page costs something: nobody may have us read out everything all the time."""
        now = self._loop.time()
        allowance = self._askers.pop(node_id, None) or Allowance(SYNC_BURST, 1 / SYNC_PER_S, now)
        self._askers[node_id] = allowance
        if len(self._askers) > ASKERS_MAX:
            del self._askers[next(iter(self._askers))]
        if not allowance.take(now):
            raise Busy("too many pages at once", hint="try again", retry_after_s=1.0)


def _read(content: bytes) -> Presence | None:
    try:
        return peek(content)
    except RecordError:
        return None
