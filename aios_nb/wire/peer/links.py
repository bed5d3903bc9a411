"""The links of a node: one for each other node, dialled when needed, kept warm when joined.

If two nodes dial each other at the same moment, both see two links and both keep the one that the
lower node id dialled. The other one takes nothing new and ends when what it carries has ended.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any

from aios_nb.access import Caller, Principal
from aios_nb.addresses import scope_of, urls_of
from aios_nb.config import Limits
from aios_nb.errors import RecordError, Unreachable, UsageError
from aios_nb.identity import Identity, from_base64url, to_base64url
from aios_nb.records import NodeRecord, Scope, check_time, parse
from aios_nb.wire.peer.accept import Door
from aios_nb.wire.peer.answering import Desk
from aios_nb.wire.peer.channel import Channel
from aios_nb.wire.peer.crowd import Crowd
from aios_nb.wire.peer.dial import Dialler, NoLink
from aios_nb.wire.peer.frames import CREDIT_BYTES, FRAME_BYTES, Ready
from aios_nb.wire.peer.joins import Joins
from aios_nb.wire.peer.link import PeerLink
from aios_nb.wire.peer.peerbook import PeerBook
from aios_nb.wire.peer.pulse import TICK_S

if TYPE_CHECKING:
    from aios_nb.joining import Pins
    from aios_nb.wire.dispatch import Dispatcher
    from aios_nb.wire.peer.handshake import Session

log = logging.getLogger(__name__)

IDLE_S = 120.0
"""A link on which nothing was asked for so long is closed, unless it is to be kept warm."""
SETTLE_S = 10.0
"""A node that has a link does not dial. One that does, later than this, has lost the old one."""
CLOSE_WAIT_S = 1.0
REVIEW_TICKS = 10
"""Run files come and go: what a node may do is looked up again after so many ticks."""


Places = Mapping[str, Scope]
"""URLs that others told, each with the scope it must stay within."""


def _nowhere(_: str) -> Sequence[str]:
    return ()


def _untold(_: str) -> Places:
    return {}


async def _unheard_of(_: str) -> Places:
    return {}


def _nothing(_: str) -> None:
    return


class PeerLinks:
    """The way to other nodes, and theirs to this one. It is a ``ports.Links``."""

    def __init__(
        self,
        identity: Identity,
        network: str,
        *,
        limits: Limits | None = None,
        name: str = "",
        epoch: int = 0,
        standing: Callable[[str], Caller | None],
        known: Callable[[], Iterable[str]] | None = None,
        lookup: Callable[[str], Sequence[str]] = _nowhere,
        told: Callable[[str], Places] = _untold,
        ask_around: Callable[[str], Awaitable[Places]] = _unheard_of,
        record: Callable[[], bytes | None] = lambda: None,
        pins: Pins | None = None,
        on_up: Callable[[str], None] = _nothing,
        on_down: Callable[[str], None] = _nothing,
        idle_s: float = IDLE_S,
        wide: bool = False,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """``standing`` says what a node is here (None: blocked), ``lookup`` where it may be (URLs).

        ``told`` is what its own signed record says of that, ``ask_around`` what others find out.
        ``known`` lists the nodes that are no strangers; left out, any may be one of them.
        ``record`` gives this node's own signed record. ``on_up`` and ``on_down`` are told when a
        node has a link and when it has none any more. A ``wide`` node may stand behind a proxy:
        where a link seems to come from says nothing there.
        """
        self._node_id = identity.node_id
        self._network = network
        self._limits = limits or Limits()
        self._name = name
        self._epoch = epoch
        self._standing = standing
        self._known = known
        self._lookup = lookup
        self._told = told
        self._ask_around = ask_around
        self._record = record
        self._on_up = on_up
        self._on_down = on_down
        self._idle_s = idle_s
        self._wide = wide
        self._clock = clock
        self._desk: Desk | None = None
        self._links: dict[str, PeerLink] = {}
        self._book = PeerBook(clock)
        self._dialling: dict[str, asyncio.Task[PeerLink]] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._news: dict[str, set[asyncio.Future[None]]] = {}
        self._timer: asyncio.TimerHandle | None = None
        self._ticks = 0
        self._closed = False
        self._joins = Joins(self, self._first_dial, pins, clock)
        self._crowd = Crowd(self._limits, self._joins.keeps)
        self._all = self._crowd.links
        self._dialler = Dialler(identity, network, self._limits)
        self._door = Door(
            identity,
            network,
            self._limits,
            standing=standing,
            has_room=self._crowd.has_room,
            make_room=self._crowd.make_room,
            expected=self._expects_known,
            ready=self._ready,
            adopt=self._accepted,
            clock=clock,
        )
        self.serve = self._door.serve
        """For ``Server(links={SUBPROTOCOL: …})``."""

    def _expects_known(self) -> bool:
        """Whether a node that is no stranger has no link yet."""
        return self._known is None or any(node not in self._links for node in self._known())

    def open(self, dispatcher: Dispatcher) -> None:
        """Answer calls by ``dispatcher`` from now on. Nothing is linked before."""
        self._desk = Desk(dispatcher, self._limits)

    # Reaching -------------------------------------------------------------------------

    async def reach(self, node_id: str) -> PeerLink:
        """The link to that node, dialled if there is none: one attempt, however many ask.

        Raises ``Unreachable`` with ``data.reason``: ``left``, ``no address``, ``no answer`` or
        ``refused``.
        """
        link = self._links.get(node_id)
        if link is not None and link.is_open:
            return link
        if node_id == self._node_id or self._standing(node_id) is None or self._closed:
            raise _unreachable(node_id, "refused", "this node does not link to it")
        dialling = self._dialling.get(node_id)
        if dialling is None:
            dialling = self._dialling[node_id] = self._spawn(self._seek(node_id))
            dialling.add_done_callback(lambda done: self._dialled_out(node_id, done))
        try:
            return await asyncio.shield(dialling)
        except NoLink as problem:
            link = self._links.get(node_id)
            if link is not None and link.is_open:  # it was faster
                return link
            raise _unreachable(node_id, problem.reason, str(problem)) from None
        except asyncio.CancelledError:
            task = asyncio.current_task()
            if task is None or task.cancelling() or not dialling.cancelled():
                raise
            raise _unreachable(node_id, "refused", "this node is stopping") from None

    async def news(self, node_id: str, within_s: float) -> None:
        """Return when that node may have become reachable, or after so many seconds."""
        waiter = asyncio.get_running_loop().create_future()
        self._news.setdefault(node_id, set()).add(waiter)
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(within_s):
                    await waiter
        finally:
            waiting = self._news.get(node_id, set())
            waiting.discard(waiter)
            if not waiting:
                self._news.pop(node_id, None)

    def link(self, node_id: str) -> PeerLink | None:
        """The link to that node, if there is one now."""
        link = self._links.get(node_id)
        return link if link is not None and link.is_open else None

    def linked(self) -> Sequence[str]:
        """The nodes that have a link now, by id."""
        return tuple(self._links)

    def scope(self, node_id: str) -> Scope | None:
        """How far that node is away, by the address of its link; None without a link."""
        link = self.link(node_id)
        return None if link is None else self._over(link)

    def _over(self, link: PeerLink) -> Scope | None:
        return Scope.GLOBAL if self._wide and not link.dialled else scope_of(link.address)

    def join(self, url: str, expects: str | None = None) -> None:
        """Keep a link to the node at ``url``, from now on.

        Without ``expects``, who answers first is remembered.
        """
        if self._desk is None or self._closed:
            raise UsageError("links are not open")
        self._joins.add(url, expects, self._spawn)

    def joined(self) -> Sequence[str]:
        """The nodes that were joined, by id, as far as known yet."""
        return self._joins.ids()

    def waiting(self) -> list[dict[str, str]]:
        """The joined URLs without a link: ``url``, ``node_id`` if known, and ``problem``."""
        return self._joins.waiting()

    async def met(self, within_s: float) -> None:
        """Return when every joined node was dialled once, or after so many seconds."""
        await self._joins.met(within_s)

    # Looking --------------------------------------------------------------------------

    def peers(self) -> list[dict[str, Any]]:
        """The rows of ``node.peers``, as far as links tell."""
        return self._book.rows(self._latency, [(each.node_id, *each.carried) for each in self._all])

    def carried(self) -> tuple[int, int]:
        """Bytes sent and received over all links since the start."""
        sent, received = self._book.carried
        for link in self._all:
            sent, received = sent + link.carried[0], received + link.carried[1]
        return sent, received

    def _latency(self, node_id: str) -> float | None:
        link = self._links.get(node_id)
        found = link.latency_ms if link is not None else None
        return None if found is None else round(found, 3)

    def review(self, node_id: str) -> None:
        """The owner allowed or blocked that node: what its links may do is another thing now."""
        if self._rights(node_id):
            self._tell(node_id)

    async def close(self) -> None:
        """Say goodbye to all; no task and no socket is left."""
        self._closed = True
        self._door.close()
        self._joins.close()
        for task in self._dialling.values():
            task.cancel()
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        await asyncio.sleep(0)  # answers that are ready get queued
        for link in self._all:
            link.leave()
        if self._all:
            await asyncio.wait([link.over for link in self._all], timeout=CLOSE_WAIT_S)
        for link in tuple(self._all):
            link.abort("left")
        if self._all:
            await asyncio.wait([link.over for link in self._all])
        if self._tasks:
            await asyncio.wait(self._tasks)
        if self._desk is not None:
            await self._desk.close()
        await self._dialler.close()

    # Dialling -------------------------------------------------------------------------

    async def _seek(self, node_id: str) -> PeerLink:
        """Try the addresses of that node, one after the other. Raises ``NoLink``."""
        seen = self._book.get(node_id)
        places: dict[str, Scope | None] = dict.fromkeys(self._joins.urls(node_id))
        places |= {url.rstrip("/"): None for url in self._lookup(node_id)}
        heard = dict.fromkeys(seen.urls, seen.scope) if seen is not None else {}
        places |= {url: heard[url] for url in heard if url not in places}
        told = self._told(node_id)
        places |= {url: told[url] for url in told if url not in places}
        problems: dict[str, str] = {}
        link = await self._try(node_id, places, problems)
        if link is None and not (seen is not None and seen.left):
            found = await self._ask_around(node_id)
            more = {url: found[url] for url in found if url not in places}
            link = self.link(node_id) or await self._try(node_id, more, problems)
        if link is not None:
            return link
        if seen is not None and seen.left:
            raise NoLink("left", "it said goodbye")
        if not problems:
            raise NoLink("no address", "nobody has said where it is")
        reason = "no answer" if "no answer" in problems else "refused"
        raise NoLink(reason, problems[reason])

    async def _try(
        self, node_id: str, places: Mapping[str, Scope | None], problems: dict[str, str]
    ) -> PeerLink | None:
        """A link by the first of these URLs that gives one; else why not, by reason."""
        joined = self._joins.urls(node_id)
        for url, scope in places.items():
            try:
                return await self._dial(url, node_id, scope)
            except NoLink as problem:
                if problem.node_id is not None and url in joined:
                    problem = self._joins.another(url, problem.node_id, node_id)
                problems[problem.reason] = str(problem)
                self._book.failed(node_id, url)
                link = self.link(node_id)
                if link is not None:
                    return link
        return None

    async def _dial(self, url: str, expects: str | None, scope: Scope | None) -> PeerLink:
        if self._desk is None or self._closed:
            raise NoLink("refused", "links are not open")
        mine = self._ready()
        channel, session, theirs = await self._dialler.dial(url, mine, expects=expects, scope=scope)
        caller = self._standing(session.node_id)
        if caller is None or self._closed:
            channel.abort()
            channel.release()
            raise NoLink("refused", f"{session.node_id} is blocked here")
        link = self._made(self._desk, channel, session, mine, theirs, caller, dialled=True)
        self._up(link, theirs)
        self._book.note(link.node_id).url = url
        self._spawn(self._hold(link))
        return self._links.get(link.node_id, link)

    async def _first_dial(self, url: str) -> PeerLink:
        """A link to whoever is there."""
        return await self._dial(url, None, None)

    def _dialled_out(self, node_id: str, done: asyncio.Task[PeerLink]) -> None:
        del self._dialling[node_id]
        if not done.cancelled():
            done.exception()  # seen: all who asked may have gone

    # Links ----------------------------------------------------------------------------

    def _ready(self) -> Ready:
        record = self._record()
        return Ready(
            credit=CREDIT_BYTES,
            frame=FRAME_BYTES,
            message=self._limits.body_bytes,
            streams=self._limits.ws_calls,
            epoch=self._epoch,
            name=self._name,
            record=None if record is None else to_base64url(record),
        )

    def _made(
        self,
        desk: Desk,
        channel: Channel,
        session: Session,
        mine: Ready,
        theirs: Ready,
        caller: Caller,
        *,
        dialled: bool,
    ) -> PeerLink:
        return PeerLink(
            channel,
            session,
            desk,
            Principal(caller, session.node_id),
            dialled=dialled,
            mine=mine,
            theirs=theirs,
            clock=self._clock,
            on_weight=self._crowd.weigh,
        )

    async def _accepted(
        self, channel: Channel, session: Session, theirs: Ready, caller: Caller
    ) -> None:
        if self._desk is None or self._closed:
            return
        mine = self._ready()
        link = self._made(self._desk, channel, session, mine, theirs, caller, dialled=False)
        self._up(link, theirs)
        await self._run(link)

    async def _hold(self, link: PeerLink) -> None:
        try:
            await self._run(link)
        finally:
            link.release()

    async def _run(self, link: PeerLink) -> None:
        try:
            await link.run()
        finally:
            self._all.discard(link)
            self._book.ended(link.node_id, *link.carried)
            if self._links.get(link.node_id) is link:
                del self._links[link.node_id]
                self._book.down(link.node_id, link.why)
                self._on_down(link.node_id)

    def _up(self, link: PeerLink, theirs: Ready) -> None:
        """Give the link its place, beside or instead of one that is there."""
        node_id = link.node_id
        self._all.add(link)
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_later(TICK_S, self._tick)
        old = self._links.get(node_id)
        if old is not None and old.is_open and not self._replaces(link, old):
            link.drain("replaced")
            return
        self._links[node_id] = link
        self._book.up(node_id, link.name)
        self._learn(link, theirs.record)
        restarted = old is not None and old.epoch != link.epoch
        if restarted:
            self._on_down(node_id)
        if old is None or restarted:
            self._on_up(node_id)
        self._tell(node_id)

    def _replaces(self, new: PeerLink, old: PeerLink) -> bool:
        """Whether the new link stays; the one that does not is on its way out."""
        if new.epoch != old.epoch:
            if new.epoch < old.epoch:
                return False
            old.abort("replaced")
        elif new.dialled == old.dialled or self._clock() - old.since > SETTLE_S:
            old.abort("replaced")
        elif new.dialled != (self._node_id < new.node_id):
            return False
        else:
            old.drain("replaced")
        return True

    def _learn(self, link: PeerLink, told: str | None) -> None:
        """Where that node says it is, if its record is good."""
        if told is None:
            return
        try:
            record = parse(from_base64url(told)).record
            check_time(record, int(time.time() * 1000))
        except (RecordError, ValueError) as problem:
            log.debug("the record of %s: %s", link.node_id, problem)
            return
        if (
            isinstance(record, NodeRecord)
            and record.node == link.node_id
            and record.net == self._network
        ):
            seen = self._book.note(link.node_id)
            seen.urls, seen.scope = urls_of(record, self._over(link)), record.scope
            if seen.url not in seen.urls:  # it may have been elsewhere before
                seen.url = next(iter(seen.urls), seen.url)

    def _rights(self, node_id: str) -> bool:
        """Give its links the rights it has now; False if it has none."""
        caller = self._standing(node_id)
        for link in tuple(self._all):
            if link.node_id != node_id:
                continue
            if caller is None:
                link.abort("blocked")
            elif caller is not link.principal.kind:
                link.principal = Principal(caller, node_id)
        return caller is not None

    def _tell(self, node_id: str) -> None:
        for waiter in self._news.get(node_id, ()):
            if not waiter.done():
                waiter.set_result(None)

    def _tick(self) -> None:
        self._timer = None
        if not self._all or self._closed:
            return
        self._timer = asyncio.get_running_loop().call_later(TICK_S, self._tick)
        self._ticks += 1
        for link in tuple(self._all):
            link.tick(kept=self._joins.keeps(link.node_id), idle_s=self._idle_s)
        self._crowd.weigh()
        if self._ticks % REVIEW_TICKS == 0:
            for node_id in tuple(self._links):
                self._rights(node_id)

    def _spawn(self, work: Any) -> asyncio.Task[Any]:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task


def _unreachable(node_id: str, reason: str, why: str) -> Unreachable:
    return Unreachable(f"{node_id} cannot be reached: {reason}", hint=why, reason=reason)
