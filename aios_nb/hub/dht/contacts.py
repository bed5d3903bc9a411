"""Nodes as the DHT knows them: by their own signed word, and by how they answered."""

from __future__ import annotations

import ipaddress
from collections import OrderedDict
from collections.abc import Callable

from kademlia.node import Node  # type: ignore[import-untyped]

from aios_nb.errors import RecordError
from aios_nb.hub.dht.keys import point_of_key
from aios_nb.hub.presence import Presence, State, peek
from aios_nb.identity import PUBLIC_KEY_BYTES
from aios_nb.records import Scope, may_be_told

_SMOOTHING = 0.25
_LOOKED_AT = 32
_PREFIX_BITS = {4: 24, 6: 48}


class Contact(Node):  # type: ignore[misc]
    """A node, by the latest of its own words."""

    def __init__(self, presence: Presence) -> None:
        host, port = presence.address or ("", 0)
        super().__init__(point_of_key(presence.pk), host, port)
        self.node_id = presence.node_id
        self.presence = presence
        self.scope = presence.said.scope
        self.prefix = prefix_of(presence)
        self.genuine = False
        """Its signature was checked, here or by the post."""
        self.routed = False
        """It is in the routing table."""
        self.counted_prefix: str | None = None
        """What it is counted under there."""
        self.confirmed = False
        """It answered us."""
        self.seen = False
        """It answered or asked us: it is where it says."""
        self.failures = 0
        """Questions without an answer since the last one with."""
        self.overdue = False
        """It should have answered the latest one by now."""
        self.heard_at = 0.0
        self.rtt_s: float | None = None

    @property
    def is_doubtful(self) -> bool:
        """Whether others are better asked first."""
        return self.overdue or self.failures > 0

    def timed(self, rtt_s: float) -> None:
        """An answer took that long."""
        before = self.rtt_s
        self.rtt_s = rtt_s if before is None else before + _SMOOTHING * (rtt_s - before)

    def moved(self, presence: Presence) -> None:
        """The node said something newer of itself."""
        elsewhere = presence.address != self.presence.address
        host, port = presence.address or ("", 0)
        self.ip, self.port = host, port
        self.presence = presence
        self.scope = presence.said.scope
        self.prefix = prefix_of(presence)
        self.genuine = True
        if elsewhere:
            self.confirmed = self.seen = self.overdue = False
            self.failures = 0
            self.rtt_s = None


def prefix_of(presence: Presence) -> str | None:
    """The network block that one party probably owns as a whole; None where that says nothing."""
    if presence.address is None or presence.said.scope is not Scope.GLOBAL:
        return None
    ip = ipaddress.ip_address(presence.said.host)
    ip = getattr(ip, "ipv4_mapped", None) or ip
    return str(ipaddress.ip_network((ip, _PREFIX_BITS[ip.version]), strict=False))


class Contacts:
    """The nodes that were named here, by point. The least used are forgotten.

    A signature is checked where two words of one node differ; otherwise by the post, which sends
    nothing to an address before. Who answered from there is proven by that.
    """

    def __init__(
        self,
        network: str,
        own_point: bytes,
        scope: Callable[[], Scope],
        *,
        know: Callable[[Presence], None],
        most: int,
    ) -> None:
        self._network = network
        self._own_point = own_point
        self._scope = scope
        self._know = know
        self._most = most
        self._known: OrderedDict[bytes, Contact] = OrderedDict()
        self.refused = 0

    def __len__(self) -> int:
        return len(self._known)

    def get(self, point: bytes) -> Contact | None:
        contact = self._known.get(point)
        if contact is not None:
            self._known.move_to_end(point)
        return contact

    def read(self, content: bytes) -> Contact | None:
        """The contact these bytes tell of; None if it is of no use here."""
        try:
            presence = peek(content)
        except RecordError:
            self.refused += 1
            return None
        return self.take(presence)

    def take(self, presence: Presence, *, proven: bool = False) -> Contact | None:
        """The contact of this presence, or of what its node said later."""
        point = point_of_key(presence.pk)
        known = self.get(point)
        if not self._is_usable(presence, point):
            self.refused += 1
            return known
        if known is None:
            contact = self._known[point] = Contact(presence)
            if len(self._known) > self._most:
                self._forget_one()
        else:
            contact = known
            if not self._is_later(presence, known, proven=proven):
                return known
            known.moved(presence)
        contact.genuine = contact.genuine or proven
        self._know(presence)
        return contact

    def left(self, presence: Presence, *, proven: bool) -> Contact | None:
        """The contact that says here that it goes; it is forgotten."""
        point = point_of_key(presence.pk)
        known = self._known.get(point)
        if known is None or presence.rank <= known.presence.rank:
            return None
        if not (proven or presence.is_genuine()):
            self.refused += 1
            return None
        return self._known.pop(point)

    def _is_later(self, presence: Presence, known: Contact, *, proven: bool) -> bool:
        if presence.sig == known.presence.sig and presence.payload == known.presence.payload:
            known.genuine = known.genuine or proven
            return False
        if known.genuine and presence.rank <= known.presence.rank:
            return False
        if not (proven or presence.is_genuine()):
            self.refused += 1
            return False
        if not known.genuine:
            known.genuine = known.presence.is_genuine()
        later = not known.genuine or presence.rank > known.presence.rank
        known.genuine = True
        return later

    def _forget_one(self) -> None:
        """The least used one; whoever is in the routing table is passed over."""
        for _ in range(_LOOKED_AT):
            point, contact = self._known.popitem(last=False)
            if not contact.routed:
                return
            self._known[point] = contact

    def _is_usable(self, presence: Presence, point: bytes) -> bool:
        said = presence.said
        return (
            said.net == self._network
            and said.state is State.ALIVE
            and said.port > 0
            and point != self._own_point
            and may_be_told(said.scope, self._scope())
        )


def point_in(content: bytes) -> bytes | None:
    """The point of the node that a statement says it is of; nothing is proven yet."""
    key = content[:PUBLIC_KEY_BYTES]
    return point_of_key(key) if len(key) == PUBLIC_KEY_BYTES else None
