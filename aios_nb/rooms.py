"""The rooms of one node: built, plugged into each other's ports, opened and closed on its loop."""

from __future__ import annotations

import asyncio
import functools
import itertools
import logging
import os
import secrets
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from aios_nb._version import __version__
from aios_nb.access import Caller, Principal, looks_strange, owner_of
from aios_nb.agents.definition import Definition
from aios_nb.config import Settings
from aios_nb.envelope import AgentRow
from aios_nb.errors import HomeError, InvalidParams
from aios_nb.home import Claim, RunInfo

if TYPE_CHECKING:
    from aios_nb.agents.library.librarian import Librarian
    from aios_nb.blobs import BlobStore
    from aios_nb.hub.imports import Imports
    from aios_nb.hub.looking import Looking
    from aios_nb.hub.network import Network
    from aios_nb.identity import Identity
    from aios_nb.ports import Outside
    from aios_nb.reception import Reception
    from aios_nb.records import Scope
    from aios_nb.store import Store, Tx
    from aios_nb.wire.dispatch import Dispatcher
    from aios_nb.wire.methods import Method

log = logging.getLogger("aios_nb.node")

UPKEEP_S = 30.0
TIDY_EVERY = 120
"""Upkeeps between two clearings-out: an hour."""


class Rooms:
    """The rooms of one node, on its loop. Imports late: a notebook should load at once."""

    def __init__(self, claim: Claim, settings: Settings) -> None:
        self._claim = claim
        self._settings = settings
        self._upkeep: asyncio.Task[None] | None = None
        self._closers: list[Any] = []
        self._soon: set[asyncio.Task[Any]] = set()
        self.url = ""
        """Where programs of this machine reach it; known once it listens."""
        self.on_withdrawn: Callable[[str], None] = lambda _: None

    async def open(self, definitions: Iterable[Definition], methods: Sequence[Method]) -> RunInfo:
        from aios_nb.agents.host import AgentHost
        from aios_nb.blobs import BlobStore
        from aios_nb.chat import Chat
        from aios_nb.client.local import LocalClient
        from aios_nb.hub.bindings import Bindings
        from aios_nb.hub.directory import Directory
        from aios_nb.hub.finding import Finding
        from aios_nb.hub.uses import Uses
        from aios_nb.identity import Identity
        from aios_nb.joining import JoinAddress
        from aios_nb.nodes import KnownNodes
        from aios_nb.reception import Reception
        from aios_nb.store import Store
        from aios_nb.tokens import Tokens

        settings, limits, claim = self._settings, self._settings.limits, self._claim
        home, name = claim.home, claim.name
        identity = Identity.load_or_create(home.key_path(name))
        node_id = identity.node_id
        store = Store.open(home.db_path(name))
        self._closers.append(store.close)

        epoch = store.now(lambda tx: _next_life(tx, node_id, name))
        self.nodes = KnownNodes(store, home, node_id)
        self.tokens = Tokens(store)
        blobs = BlobStore(home.blobs_path(name), store, limits, self._is_stranger)
        self.host_room = AgentHost(node_id, blobs, limits)
        self._closers.append(self.host_room.close)
        self.directory = Directory(identity, store, settings.network, epoch, name)
        self.finding = Finding(self.directory, Bindings(store))
        self.network = self._network(identity, store, epoch)
        self.uses = Uses(store, node_id, self.network.agent_record, self._used)
        self._closers.append(self.uses.close)
        self.looking = self._looking(node_id)
        self.imports = self._imports(store, blobs)
        self.chat = Chat(node_id, store, self.finding, blobs, limits, self._is_stranger)
        self._closers.append(self.chat.close)
        self._link(identity, store, blobs, epoch)
        reception = Reception(
            node_id,
            name,
            store,
            self.nodes,
            peers=lambda: self.network.peers(self.links.peers()),
            traffic=lambda: self.network.traffic(self.links.carried()),
            waiting=self.links.waiting,
            alive=lambda: self.network.alive(self.links.peers()),
            known=lambda: len(self.network.others),
            agents=lambda caller: len(self.directory.rows(caller)),
            counted=lambda: self.chat.callers.counted,
            superseded=lambda: self.directory.silent,
            name_of=self.network.name_of,
        )
        dispatcher = self._dispatcher(reception, blobs, methods)
        await self._host_all(definitions)
        self.client = LocalClient(dispatcher, owner_of(node_id), node_id, name)
        self.links.open(dispatcher)
        await self.chat.start(self._again)
        info = await self._serve(identity, dispatcher, blobs)
        self.network.start()
        for address in map(JoinAddress.parse, settings.join):
            self.links.join(address.url, address.node_id)
        reception.url = settings.public_url or info.url
        self._upkeep = asyncio.create_task(self._keep_up())
        return info

    def _librarian(self) -> Callable[[], Librarian]:
        """Makes it when it is first asked; what its folders are relative to is settled now."""
        home = self._claim.home
        folder = self._settings.library
        if folder is not None and not str(folder).startswith("~"):
            folder = folder.absolute()
        relative_to = Path.cwd() if "JPY_PARENT_PID" in os.environ else None  # in a notebook

        def hire() -> Librarian:
            from aios_nb.agents.library.bookmark import Bookmark
            from aios_nb.agents.library.librarian import Librarian

            return Librarian(
                folder,
                Bookmark(home.library_path(self._claim.name)),
                avoid=(home.path,),
                relative_to=relative_to,
                limits=self._settings.limits,
            )

        return hire

    def _dispatcher(
        self, reception: Reception, blobs: BlobStore, methods: Sequence[Method]
    ) -> Dispatcher:
        """Who answers for the part of a method's name before the dot."""
        from aios_nb.chat.paper import Paper
        from aios_nb.hub.imports import ImportDesk
        from aios_nb.hub.room import Hub
        from aios_nb.reception import TokenDesk
        from aios_nb.uploads import Uploads
        from aios_nb.wire.conformance import CONFORMANCE
        from aios_nb.wire.dispatch import Dispatcher

        limits = self._settings.limits
        return Dispatcher(
            {
                "node": reception,
                "nodes": reception,
                "tokens": TokenDesk(self.tokens),
                "agents": Hub(self.directory, self.finding, self.withdraw, self.uses, self.imports),
                "hub": ImportDesk(self.imports),
                "chat": self.chat,
                "aios": Paper(self.chat, self.nodes.weakest),
                "blobs": Uploads(blobs, limits, self._was_shown),
                "gossip": self.network,
            },
            extra=(*methods, *(CONFORMANCE if self._settings.conformance else ())),
            limits=limits,
        )

    def _link(self, identity: Identity, store: Store, blobs: BlobStore, epoch: int) -> None:
        """The way to other nodes, and what goes over it."""
        from aios_nb.chat.carrying import Carrying
        from aios_nb.chat.couriers import Couriers
        from aios_nb.joining import Pins
        from aios_nb.wire.peer.links import PeerLinks

        settings = self._settings
        self.links = PeerLinks(
            identity,
            settings.network,
            limits=settings.limits,
            name=self._claim.name,
            epoch=epoch,
            standing=self.nodes.standing,
            known=self.nodes.known,
            lookup=self._neighbours,
            told=self.network.whereabouts.places,
            ask_around=self.network.whereabouts.ask_around,
            record=self.directory.node_record,
            pins=Pins(store),
            on_up=self.network.linked,
            on_down=self.chat.lost,
            wide=bool(settings.public_url or settings.allow_hosts),
        )
        # Closed after the chat room: whoever waits for a run is told that it was interrupted. The
        # network before the links: its goodbye may go over one.
        self._closers[-1:-1] = [self.links.close, self.network.close]
        self.network.connect(self.links)
        couriers = Couriers(self.links, blobs, settings.limits.file_bytes)
        self.carrying = Carrying(identity.node_id, self.links, couriers)
        self.chat.exchange.files = couriers
        self.finding.connect(
            self.links,
            self.uses.counting(self.carrying.to),
            self._nodes_there,
            self.network.others,
            self.looking.search,
            self.looking.named,
            self.network.acquainted,
        )
        self.nodes.on_change = self._review

    def _review(self, node_id: str) -> None:
        """A node was allowed or shut out."""
        self.links.review(node_id)
        self.network.review(node_id)
        if self.nodes.standing(node_id) is None:
            self.chat.exchange.orphans.shut_out(node_id)

    def _again(self, caller: Principal, path: Sequence[str]) -> Principal | None:
        """A caller of the last life with the rights it has now."""
        if caller.kind is Caller.TOKEN:
            return self.tokens.caller(caller.id)
        return self.nodes.weakest(caller, path) if caller.is_node else caller

    def _network(self, identity: Identity, store: Store, epoch: int) -> Network:
        from aios_nb.hub.network import Network

        return Network(
            identity,
            self._settings.network,
            epoch,
            self.directory,
            store,
            self._settings.limits,
            allowed=lambda node: self.nodes.standing(node) is Caller.KNOWN,
            shut_out=lambda node: self.nodes.standing(node) is None,
            siblings=self._siblings,
            gossip=self._settings.gossip,
            dht=self._settings.dht,
        )

    def _looking(self, node_id: str) -> Looking:
        """The search over what this node and all others offer."""
        from aios_nb.hub.looking import Looking, standing_in
        from aios_nb.hub.searching import Searching

        network, directory = self.network, self.directory
        searching = Searching(standing_in(node_id, network.others))
        self._closers.append(searching.close)
        directory.on_offer, directory.on_end = searching.put, searching.drop
        network.on_agent = lambda agent, row: searching.put(row) if row else searching.drop(agent)
        return Looking(
            searching,
            network.larger_sites(),
            acquainted=network.acquainted,
            complete=lambda: network.knows_all,
            record=network.record_of,
            may_tell=network.may_tell,
        )

    def _imports(self, store: Store, blobs: BlobStore) -> Imports:
        """Programs of others, brought in by the owner; the way to them is loaded with the first."""
        from aios_nb.hub.imports import Imports

        def outside() -> Outside:
            from aios_nb.wire.outside import Outsiders

            return Outsiders(blobs, self._settings.limits)

        def can_be_asked() -> None:
            self.chat.exchange.agents_changed()

        imports = Imports(
            store, self.directory, outside, own_url=lambda: self.url, on_offer=can_be_asked
        )
        self._closers.append(imports.close)
        return imports

    def _nodes_there(self) -> set[str]:
        return {*self.links.linked(), *self.network.nodes()}

    def _used(self, agent: str) -> None:
        """An agent of another node was used: who watches sees its row with that."""
        found = self.network.others.get(agent)
        if found is not None:
            self.directory.news.tell("replaced", found[0])

    def _siblings(self) -> list[str]:
        """The running nodes of this home and network, the oldest first."""
        try:
            runs = sorted(self._claim.home.running(), key=lambda run: run.started_at)
        except HomeError as error:
            log.debug("the nodes of this home are not known: %s", error)
            return []
        network, own = self._settings.network, self._claim.name
        return [run.node_id for run in runs if run.network == network and run.name != own]

    def _neighbours(self, node_id: str) -> list[str]:
        """Where a node of the same home is."""
        return [run.url for run in self._claim.home.running() if run.node_id == node_id]

    def _is_stranger(self, caller: str) -> bool:
        return looks_strange(caller) and self.nodes.standing(caller) is not Caller.KNOWN

    def _was_shown(self, reader: Principal, message_id: str, sha256: str) -> bool:
        """Whether a node was sent this file: with what we asked it, or with our answer."""
        return self.carrying.shares(reader, message_id, sha256) or self.chat.gave(
            reader, message_id, sha256
        )

    async def _serve(self, identity: Identity, dispatcher: Dispatcher, blobs: BlobStore) -> RunInfo:
        """Open the door, and sign where it is."""
        from aios_nb.identity import answer_hello
        from aios_nb.wire.doors import Facts
        from aios_nb.wire.guard import Guard
        from aios_nb.wire.lobby import Lobby
        from aios_nb.wire.peer.frames import SUBPROTOCOL
        from aios_nb.wire.server import Server

        settings, name, node_id = self._settings, self._claim.name, identity.node_id
        token = secrets.token_urlsafe(32)
        guard = Guard(
            token,
            owner_of(node_id),
            limits=settings.limits,
            public_url=settings.public_url,
            allow_hosts=settings.allow_hosts,
            scoped=self.tokens.lookup,
            conformance=settings.conformance,
        )
        facts = Facts(
            node_id=node_id, name=name, version=__version__, url=lambda: settings.public_url or url
        )
        lobby = Lobby(
            dispatcher,
            identity,
            facts,
            blobs,
            settings.limits,
            conformance=settings.conformance,
            news=self.directory.news,
        )
        server = Server(
            dispatcher,
            blobs,
            guard,
            lambda nonce: answer_hello(identity, nonce, port),
            self.directory.wellknown,
            limits=settings.limits,
            links={SUBPROTOCOL: self.links.serve},
            doors=lobby.doors(),
        )
        host, port = await server.start(settings.host, settings.port)
        self.url = url = f"http://{_dialled(host)}:{port}"
        self.tokens.on_revoked = server.shut_out
        self._closers.insert(-3, server.stop)  # after the links, which came in through it
        scope, endpoint = _place(settings, host, port)
        udp = await self.network.open(scope, (settings.host, port), endpoint[1])
        endpoints = [endpoint] if udp is None else [endpoint, ("udp", endpoint[1], udp)]
        await self.directory.announce(name, scope, endpoints)
        return RunInfo(name=name, node_id=node_id, url=url, token=token, network=settings.network)

    def _own_rows(self, owner: Principal) -> list[AgentRow]:
        """What the owner offers, without the built-in agents."""
        builtin = {hosted.id for hosted in self.host_room.listing() if hosted.builtin}
        return [row for row in self.directory.rows(owner) if row.id not in builtin]

    async def _host_all(self, definitions: Iterable[Definition]) -> None:
        """What comes with every node, then the owner's, then what has a name they left free."""
        from aios_nb.agents.builtin import builtin_agents

        own = functools.partial(self._own_rows, owner_of(self.directory.node_id))
        for definition in builtin_agents(self._claim.name, own, self._librarian()):
            await self.host(definition, builtin=True)
        for definition in definitions:
            await self.host(definition)
        await self.imports.open()

    async def host(self, definition: Definition, *, builtin: bool = False) -> str:
        """Offer or replace an agent."""
        if definition.counted and not builtin:
            definition = self._numbered(definition)
        offer = self.host_room.host(definition, builtin=builtin)
        await self.directory.publish(offer)
        self.chat.exchange.agents_changed()
        return offer.id

    def _numbered(self, definition: Definition) -> Definition:
        """With the version it has by our count."""
        card = definition.published(self.directory.node_id)
        version = self.directory.counted(definition.name, card)
        return msgspec.structs.replace(definition, version=version)

    def host_soon(self, definition: Definition) -> None:
        task = asyncio.create_task(self.host(definition))
        self._soon.add(task)
        task.add_done_callback(self._hosted_soon)

    def _hosted_soon(self, task: asyncio.Task[str]) -> None:
        self._soon.discard(task)
        if not task.cancelled() and task.exception() is not None:
            log.error("an agent could not be hosted", exc_info=task.exception())

    async def withdraw(self, name: str) -> None:
        if self.host_room.find(name) is None and self.imports.has(name):
            raise InvalidParams(
                f"{name} is a program of others", hint=f"`aios-nb hub remove {name}` removes it"
            )
        self.host_room.withdraw(name)
        self.on_withdrawn(name)
        await self.directory.withdrawn(name)
        await self.imports.uncover(name)
        replaced = self.host_room.find(name)
        if replaced is not None:  # a built-in agent that was hidden behind it
            await self.directory.publish(replaced)

    async def _keep_up(self) -> None:
        for turn in itertools.count(1):
            await asyncio.sleep(UPKEEP_S)
            try:
                await self.chat.upkeep()
                await self.directory.refresh()
                if turn % TIDY_EVERY == 1:
                    await self.chat.tidy()
            except Exception:
                log.exception("upkeep")

    async def close(self) -> None:
        if self._upkeep is not None:
            self._upkeep.cancel()
        for task in self._soon:
            task.cancel()
        while self._closers:
            closer = self._closers.pop()
            try:
                await closer()
            except Exception:
                log.exception("stopping")


def _next_life(tx: Tx, node_id: str, name: str) -> int:
    """The epoch of this start, saved before anyone sees it."""
    from aios_nb.records import next_epoch

    _check_owner(tx, node_id, name)
    row = tx.execute("SELECT value FROM meta WHERE key = 'epoch'").fetchone()
    epoch = next_epoch(row[0] if row else None, int(time.time() * 1000))
    tx.execute("INSERT OR REPLACE INTO meta VALUES ('epoch', ?)", (epoch,))
    return epoch


def _check_owner(tx: Tx, node_id: str, name: str) -> None:
    """A database without its key is another node's past: going on would mix two identities."""
    row = tx.execute("SELECT value FROM meta WHERE key = 'node_id'").fetchone()
    if row is not None and row[0] != node_id:
        raise HomeError(
            f"{name}.db belongs to another key than keys/{name}.key",
            hint="bring the old key file back, or start under another --name",
        )
    tx.execute("INSERT OR REPLACE INTO meta VALUES ('node_id', ?)", (node_id,))


def _dialled(host: str) -> str:
    """How programs of this machine reach a bound address."""
    local = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - not bound here
    return f"[{local}]" if ":" in local else local


def _place(settings: Settings, host: str, port: int) -> tuple[Scope, tuple[str, str, int]]:
    """From where the node can be reached, and how."""
    from aios_nb.records import Scope

    if settings.public_url:
        url = urlsplit(settings.public_url)
        return Scope.GLOBAL, (
            url.scheme,
            url.hostname or host,
            url.port or (443 if url.scheme == "https" else 80),
        )
    if settings.allow_hosts:
        return Scope.PRIVATE, ("http", settings.allow_hosts[0], port)
    return Scope.LOOPBACK, ("http", host, port)
