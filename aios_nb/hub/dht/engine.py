"""The DHT of a node on the ``kademlia`` package, with everything between it and the wire replaced.

Importing this module imports the package: do it late.
"""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Callable, Iterable
from typing import NoReturn

from kademlia.network import Server  # type: ignore[import-untyped]

from aios_nb.errors import RecordError
from aios_nb.hub.dht.codec import Find, Found, Get
from aios_nb.hub.dht.contacts import Contact, Contacts
from aios_nb.hub.dht.interface import Carrier, Stored
from aios_nb.hub.dht.keys import key_of, number, point_of_node
from aios_nb.hub.dht.lookup import Candidate, Lookup, Step
from aios_nb.hub.dht.protocol import DhtProtocol
from aios_nb.hub.dht.publishing import Publishing
from aios_nb.hub.dht.reading import Reading
from aios_nb.hub.dht.size import Size, radius
from aios_nb.hub.dht.storage import NodeRecords
from aios_nb.hub.dht.tuning import Tuning
from aios_nb.hub.dht.upkeep import Upkeep
from aios_nb.hub.dht.walking import Walk
from aios_nb.hub.post import Kind
from aios_nb.hub.presence import Presence, State
from aios_nb.identity import Identity
from aios_nb.records import NodeRecord, Scope, Signed, may_be_told

_SIZE_S = 1.0
"""An estimate is good for that long."""


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


class KademliaDht(Server):  # type: ignore[misc]
    """Keeps node records near their keys and finds them there. Has no socket: the post has."""

    protocol: DhtProtocol
    storage: NodeRecords

    def __init__(
        self,
        identity: Identity,
        network: str,
        post: Carrier,
        presence: Callable[[], Presence],
        *,
        clock: Callable[[], float] = time.monotonic,
        now_ms: Callable[[], int] = _now_ms,
        rng: random.Random | None = None,
        tuning: Tuning | None = None,
    ) -> None:
        self.tuning = tuning or Tuning()
        self.network = network
        self._clock = clock
        self._now_ms = now_ms
        self._rng = rng or random.SystemRandom()
        self._presence = presence
        point = point_of_node(identity.node_id)
        storage = NodeRecords(network, point, now_ms, self.tuning, self._scope)
        super().__init__(self.tuning.k, self.tuning.lanes, point, storage)
        self.storage = storage  # the package takes an empty one for none
        self._contacts = Contacts(
            network,
            point,
            self._scope,
            know=post.know,
            most=self.tuning.remembered_contacts,
        )
        self._post = post
        self._identity = identity
        self.protocol = self._create_protocol()
        self._size = Size()
        self._nodes = 0.0
        self._size_until = float("-inf")
        self._walks: set[Walk] = set()
        self._upkeep = Upkeep(self, self._rng)
        self.published: dict[bytes, Signed] = {}
        """What is this node's own to publish again."""
        post.on(Kind.DHT, self._received)

    def _create_protocol(self) -> DhtProtocol:
        return DhtProtocol(
            self.node,
            self.storage,
            self.ksize,
            contacts=self._contacts,
            send=lambda to, body: self._post.send(to, Kind.DHT, body),
            clock=self._clock,
            rng=self._rng,
            tuning=self.tuning,
        )

    def _received(self, sender: str, body: bytes) -> None:
        self.protocol.datagram_received(body, sender)

    def _scope(self) -> Scope:
        return self._presence().said.scope

    # The interface -----------------------------------------------------------------------

    def meet(self, presence: Presence, *, proven: bool = False) -> None:
        """There is such a node. It is asked before it is believed to be there."""
        if self.protocol.closed:
            return
        if presence.said.state is State.LEFT:
            gone = self._contacts.left(presence, proven=proven)
            if gone is not None:
                self.protocol.router.remove_contact(gone)
            return
        contact = self._contacts.take(presence, proven=proven)
        if contact is not None and not contact.routed:
            contact.heard_at = self._clock()
            self.protocol.router.add_contact(contact)
            self._upkeep.wake()

    async def get(self, node_id: str) -> Signed | None:
        """The newest record of this node; None only when nobody is left who might know."""
        return await self.get_digest(key_of(node_id))

    async def get_digest(self, key: bytes) -> Signed | None:
        """The newest record under a key."""
        reading = Reading(key, self.storage, self.tuning.quorum)
        lookup = self._lookup(key)

        def found(_: Candidate, answer: Found) -> None:
            if answer.record:
                reading.heard(answer.record)
                if reading.is_enough(lookup.is_crowded):
                    walk.finish()

        def patient() -> bool:
            return reading.best is None

        walk = Walk(self.protocol, lookup, Get, key, found, patient=patient)
        await self._run(walk)
        self.stats["gets"] += 1
        self.stats["get questions"] += lookup.asked
        self.stats["forged records"] += reading.forged
        return reading.best

    async def put(self, signed: Signed) -> Stored:
        """Have this record kept by everyone in the region of its key."""
        record = signed.record
        if not isinstance(record, NodeRecord) or record.net != self.network:
            raise RecordError("only node records of this network are kept in the DHT")
        key = key_of(record.node)
        if record.node == self._identity.node_id:
            self.published[key] = signed
            self._upkeep.published()
        return await self.set_digest(key, signed.to_bytes())

    async def set_digest(self, dkey: bytes, value: bytes) -> Stored:
        """Have this content, a record of that key, kept."""
        signed = self.storage.check(dkey, value)
        if signed is None:
            raise RecordError("this is no good record for that key")
        wanted = self.replicas
        stored, crowded = await self._publish(dkey, signed, wanted)
        if crowded and wanted < self.tuning.k:
            stored, _ = await self._publish(dkey, signed, self.tuning.k)
        return stored

    async def _publish(self, dkey: bytes, signed: Signed, wanted: int) -> tuple[Stored, bool]:
        """Who keeps it then, and whether somebody crowds that key."""
        scope = signed.record.scope  # type: ignore[union-attr]
        value = signed.to_bytes()
        lookup = self._lookup(dkey, wanted=wanted)
        publishing = Publishing(
            self.protocol,
            lookup,
            dkey,
            value,
            wanted=wanted,
            may_hold=lambda contact: may_be_told(scope, contact.scope),
        )
        await self._run(Walk(self.protocol, lookup, Find, dkey, publishing.found))
        answered = lookup.nearest(Step.ANSWERED)
        distance = number(self.node.id) ^ lookup.target
        near = len(answered) < wanted or distance < answered[wanted - 1].distance
        here = (near or distance <= lookup.radius) and self.storage.offer(dkey, value)
        await publishing.complete()
        self.stats["puts"] += 1
        self.stats["put questions"] += lookup.asked + len(publishing.holders)
        return Stored(len(publishing.holders), here), lookup.is_crowded()

    async def close(self) -> None:
        """End every lookup, and leave no task and no timer behind."""
        self.protocol.close()
        for walk in list(self._walks):
            walk.finish()
        await self._upkeep.close()

    # How it stands -----------------------------------------------------------------------

    @property
    def stats(self) -> Counter[str]:
        """What was asked, answered, refused and dropped."""
        return self.protocol.counts

    @property
    def size(self) -> float:
        """How many other nodes there seem to be."""
        now = self._clock()
        if now >= self._size_until:
            near = self.protocol.router.find_neighbors(self.node, 2 * self.tuning.k)
            distances = [contact.long_id ^ self.node.long_id for contact in near]
            self._nodes = self._size.estimate(distances, len(self.protocol.router))
            self._size_until = now + _SIZE_S
        return self._nodes

    @property
    def replicas(self) -> int:
        """How many nodes shall keep a record."""
        small = self.size < self.tuning.small_network
        return self.tuning.small_k if small else self.tuning.k

    def is_alone(self) -> bool:
        """Whether nobody has been heard of yet, or is left."""
        return not any(contact.seen for contact in self.protocol.router)

    def contacts(self) -> list[Presence]:
        """Nodes that were heard, the nearest first: worth remembering for the next start."""
        near: Iterable[Contact] = self.protocol.router.nearest(self.node.long_id)
        return [contact.presence for contact in near if contact.seen]

    # Lookups -----------------------------------------------------------------------------

    def _lookup(
        self, target: bytes, *, wanted: int | None = None, asks_max: int | None = None
    ) -> Lookup:
        router = self.protocol.router
        point = number(target)
        router.touch(point)
        nodes = self.size
        reach = radius(nodes, wanted or self.tuning.k)
        return Lookup(
            target,
            self.node.id,
            router.around(point, reach) or router.nearest(point),
            radius=reach,
            nodes=nodes,
            tuning=self.tuning,
            rng=self._rng,
            known=self._contacts.get,
            wanted=wanted,
            asks_max=asks_max,
        )

    async def _run(self, walk: Walk) -> None:
        if self.protocol.closed:
            return
        self._walks.add(walk)
        try:
            await walk.run()
        finally:
            self._walks.discard(walk)

    async def walk_to(self, target: bytes, asks_max: int | None = None) -> list[int]:
        """Get to know nodes near a point; how far those that answered are from it."""
        lookup = self._lookup(target, asks_max=asks_max)

        def found(_: Candidate, __: Found) -> None:
            """What matters is that they answered."""

        await self._run(Walk(self.protocol, lookup, Find, target, found))
        return [each.distance for each in lookup.nearest(Step.ANSWERED)]

    async def settle(self) -> None:
        """Get to know one's own neighbours, then some nodes of every other part."""
        await self._upkeep.settle()

    def resize(self, samples: list[list[int]]) -> None:
        """So far are the nearest nodes from some points that nobody chose."""
        self._size.clear()
        for distances in samples:
            self._size.sample(distances[: self.tuning.k])

    # What the package would do, and we do not ----------------------------------------------

    def _refused(self, *_: object, **__: object) -> NoReturn:
        raise NotImplementedError("the post has the socket, and nothing is pickled")

    listen = bootstrap = bootstrap_node = _refused
    save_state = save_state_regularly = load_state = _refused
    refresh_table = _refresh_table = bootstrappable_neighbors = set = _refused

    def stop(self) -> None:
        """Answer nobody any more; ``close`` also waits for what is under way."""
        self.protocol.close()
