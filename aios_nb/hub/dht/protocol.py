"""Questions and answers between nodes, over the post.

Of the package's protocol there is left what it is good at: its place between server, table and
storage, and the book of outstanding questions. What it takes from the wire, whom it believes and
how long it waits is decided here.
"""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from typing import Any, NoReturn

from kademlia.node import Node  # type: ignore[import-untyped]
from kademlia.protocol import KademliaProtocol  # type: ignore[import-untyped]

from aios_nb.hub.dht import codec
from aios_nb.hub.dht.answering import Answering
from aios_nb.hub.dht.codec import Answer, Find, Found, Kept, Put, Question
from aios_nb.hub.dht.contacts import Contact, Contacts
from aios_nb.hub.dht.keys import point_of_node
from aios_nb.hub.dht.pending import Greeting, Listener, Pending
from aios_nb.hub.dht.routing import Routes
from aios_nb.hub.dht.storage import NodeRecords
from aios_nb.hub.dht.tuning import Tuning
from aios_nb.records import Scope

_SMOOTHING = 0.1
_GONE_AFTER = 2
"""Questions without an answer, the last of them asked only to see."""
_GRACE_S = 0.05


class DhtProtocol(KademliaProtocol):  # type: ignore[misc]
    """One node's side of every conversation."""

    def __init__(
        self,
        source_node: Node,
        storage: NodeRecords,
        ksize: int,
        *,
        contacts: Contacts,
        send: Callable[[str, bytes], bool],
        clock: Callable[[], float],
        rng: random.Random,
        tuning: Tuning,
    ) -> None:
        super().__init__(source_node, storage, ksize)
        self._wait_timeout = tuning.hard_timeout_s
        self._outstanding: dict[int, Pending] = {}
        self.storage: NodeRecords = storage
        self.contacts = contacts
        self.counts: Counter[str] = Counter()
        self.closed = False
        self._send = send
        self._clock = clock
        self._rng = rng
        self._tuning = tuning
        self._rtt_s: float | None = None
        self._checking: set[bytes] = set()
        self.router = Routes(self, source_node, tuning, clock, self.check)
        self._answering = Answering(self.router, storage, self.counts, clock, tuning)

    def __getattr__(self, name: str) -> NoReturn:
        """A name that is not there is an error, not a remote call."""
        raise AttributeError(f"{type(self).__name__} has no {name}")

    def close(self) -> None:
        """Answer nobody, and tell everyone who waits that nothing will come."""
        self.closed = True
        for pending in list(self._outstanding.values()):
            del self._outstanding[pending.number]
            pending.timer.cancel()
            pending.listener.lost(pending)

    # What comes in -----------------------------------------------------------------------

    def datagram_received(self, data: bytes, addr: str) -> None:
        """A message of the node ``addr``; the post has proven that it is its."""
        if self.closed:
            return
        try:
            message = codec.read(data)
            if isinstance(message, Found | Kept):
                self._accept_response(message.number, message, addr)
            else:
                self._accept_request(message.number, message, addr)
        except ValueError:
            self.counts["malformed"] += 1
        except Exception:  # noqa: BLE001 (no datagram may stop the node)
            self.counts["failed"] += 1

    def _accept_request(self, msg_id: int, data: Question, address: str) -> None:  # noqa: ARG002
        point = point_of_node(address)
        asker = self.contacts.get(point)
        if not self._answering.allows(point, asker):
            self.counts["over the limit"] += 1
            return
        self.counts["asked"] += 1
        if asker is not None:
            self._heard(asker)
        self._send(address, codec.write(self._answering.answer(data, point, asker)))

    def _accept_response(self, msg_id: int, data: Answer, address: str) -> None:
        pending = self._outstanding.get(msg_id)
        if pending is None or pending.contact.node_id != address:
            self.counts["unasked"] += 1
            return
        if isinstance(data, Kept) is not (pending.kind is Put):
            self.counts["malformed"] += 1
            return
        del self._outstanding[msg_id]
        pending.timer.cancel()
        if not pending.stage:
            self._timed(pending)
        pending.contact.confirmed = pending.contact.genuine = True
        self._heard(pending.contact)
        pending.listener.answered(pending, data)

    def _timed(self, pending: Pending) -> None:
        took = asyncio.get_running_loop().time() - pending.sent_at
        pending.contact.timed(took)
        before = self._rtt_s
        self._rtt_s = took if before is None else before + _SMOOTHING * (took - before)

    def _heard(self, contact: Contact) -> None:
        contact.failures = 0
        contact.overdue = False
        contact.seen = True
        contact.heard_at = self._clock()
        self.router.add_contact(contact)

    # What goes out -----------------------------------------------------------------------

    def ask(
        self, contact: Contact, kind: type[Question], listener: Listener, about: Any, *args: Any
    ) -> Pending | None:
        """Put a question; None if there is no way to that node."""
        pending = Pending(
            kind(self._rng.getrandbits(codec.NUMBER_BITS), *args),
            contact,
            listener,
            about,
            hedge_s=self._hedge_s(contact),
            sent_at=asyncio.get_running_loop().time(),
        )
        if self.closed or not self._send(contact.node_id, pending.body):
            self.counts["no way"] += 1
            return None
        self.counts["questions"] += 1
        self._outstanding[pending.number] = pending
        self._wait(pending, pending.hedge_s)
        return pending

    def _hedge_s(self, contact: Contact) -> float:
        tuning = self._tuning
        loopback = contact.scope is Scope.LOOPBACK
        floor = tuning.hedge_floor_loopback_s if loopback else tuning.hedge_floor_s
        rtt = contact.rtt_s if contact.rtt_s is not None else self._rtt_s or 0.0
        return min(max(floor, tuning.hedge_rtts * rtt), tuning.hard_timeout_s)

    def _wait(self, pending: Pending, until_s: float) -> None:
        """Look again when the question is that old."""
        pending.due = pending.sent_at + until_s
        loop = asyncio.get_running_loop()
        pending.timer = loop.call_at(pending.due, self._timeout, pending.number)

    def _timeout(self, msg_id: int) -> None:
        pending = self._outstanding.get(msg_id)
        if pending is None:
            return
        now = asyncio.get_running_loop().time()
        if now - pending.due > self._tuning.stall_s and pending.excused_at < pending.stage:
            # We slept, and the answer may lie in the socket: the peer gets its time anew. Once at
            # each stage, so that a lookup ends also on a machine that is always late.
            pending.excused_at = pending.stage
            age = pending.due - pending.sent_at
            pending.sent_at += now - pending.due
            self._wait(pending, age + _GRACE_S)
            return
        pending.stage += 1
        hard = self._tuning.hard_timeout_s
        if pending.stage == 1:
            pending.contact.overdue = True
            # A lost datagram is made good here; a peer that is gone costs one more. Where the
            # post is still greeting, the first one waits there and another would help nothing.
            if pending.contact.confirmed:
                self._send(pending.contact.node_id, pending.body)
            # However late we are ourselves, that one gets its time too.
            again = now - pending.sent_at + pending.hedge_s
            self._wait(pending, min(max(self._tuning.late_hedges * pending.hedge_s, again), hard))
            pending.listener.slow(pending)
        elif pending.stage == 2:  # noqa: PLR2004
            self._wait(pending, hard)
            pending.contact.failures += 1
            pending.listener.late(pending)
        else:
            del self._outstanding[msg_id]
            self.counts["unanswered"] += 1
            self._failed(pending.contact)
            pending.listener.lost(pending)

    def _failed(self, contact: Contact) -> None:
        if not contact.confirmed or contact.failures >= _GONE_AFTER:
            self.router.remove_contact(contact)
        else:
            self.check(contact)

    def check(self, contact: Contact) -> None:
        """See whether this contact is still there; its bucket is told by how that ends."""
        if contact.id not in self._checking:
            self._checking.add(contact.id)
            greeting = Greeting(self._checking)
            if not self.ask(contact, Find, greeting, None, self.source_node.id, b""):
                self._checking.discard(contact.id)
                self.router.remove_contact(contact)

    # What the package would do, and we do not ---------------------------------------------

    def welcome_if_new(self, node: Contact) -> None:
        """Known from now on. No keys are handed over: who wants them kept publishes them again."""
        self.router.add_contact(node)

    def connection_made(self, transport: Any) -> None:
        raise NotImplementedError("the post has the socket")


for _name in (
    "_solve_datagram", "rpc_stun", "rpc_ping", "rpc_store", "rpc_find_node", "rpc_find_value",
    "call_ping", "call_store", "call_find_node", "call_find_value", "handle_call_response",
):  # fmt: skip
    # Nothing that trusts its caller stays within reach.
    setattr(DhtProtocol, _name, None)
