"""Many gossip machines on one virtual clock, with a network that loses, delays and separates.

The machines, keys, signatures and catalogues are the real ones; only time and the wire are made up,
from a seed: the same seed gives the same run, packet by packet.
"""

from __future__ import annotations

import hashlib
import heapq
import random
from collections.abc import Callable, Iterable
from functools import partial

import msgspec

from aios_nb.hub.gossip import LAN, LIVING, Changed, Pace, Pull, Send, Superseded
from aios_nb.hub.presence import Presence
from aios_nb.records import Scope, Signed, may_be_told
from aios_nb.sim.virtual_node import VirtualNode

HEAD_BYTES = 33 + 28
"""Around each packet: our own head, and those of UDP and IP."""
BUFFERED_MAX = 200
"""Packets that wait in the socket of a frozen node; the rest is lost."""


class Weather(msgspec.Struct, frozen=True, kw_only=True):
    """What happens to packets on their way. Different delays also change their order."""

    loss: float = 0.0
    duplication: float = 0.0
    delay_s: tuple[float, float] = (0.010, 0.050)


class VirtualNetwork:
    """The clock, the wire, and everything that can be done to nodes."""

    def __init__(
        self,
        seed: int,
        *,
        pace: Pace = LAN,
        weather: Weather | None = None,
        on_change: Callable[[VirtualNode, Changed], None] | None = None,
    ) -> None:
        self.seed, self.pace, self.weather = seed, pace, weather or Weather()
        self.now = 0.0
        self.nodes: dict[str, VirtualNode] = {}
        self._on_change = on_change or (lambda _node, _change: None)
        self._rng = random.Random(seed)  # noqa: S311
        self._events: list[tuple[float, int, Callable[[], None]]] = []
        self._order = 0
        self._group: dict[str, int] = {}
        self._cut: set[tuple[str, str]] = set()
        self._links: set[frozenset[str]] = set()
        self._proven: dict[bytes, bool] = {}
        self._trace = hashlib.blake2b(digest_size=16)

    @property
    def trace(self) -> str:
        """A hash over every packet so far, with its time, sender and receiver."""
        return self._trace.hexdigest()

    @property
    def up(self) -> list[VirtualNode]:
        return [node for node in self.nodes.values() if node.is_up]

    def genuine(self, presence: Presence) -> bool:
        """The real check, once for the whole network instead of once for each node."""
        content = presence.to_bytes()
        known = self._proven.get(content)
        if known is None:
            known = self._proven[content] = presence.is_genuine()
        return known

    # Nodes -------------------------------------------------------------------------------

    def add(self, count: int = 1, *, scope: Scope = Scope.GLOBAL, skew_s: float = 0.0) -> None:
        """So many more nodes, started, that know nobody; ``skew_s``: the most their clocks err."""
        for _ in range(count):
            node = VirtualNode(
                self,
                len(self.nodes),
                scope,
                clock_s=self._rng.uniform(1000, 9000),
                skew_ms=int(self._rng.uniform(-skew_s, skew_s) * 1000),
            )
            self.nodes[node.node_id] = node
            node.start()
            self._settle(node)

    def node(self, number: int) -> VirtualNode:
        return list(self.nodes.values())[number]

    def join(self, node: VirtualNode, to: VirtualNode) -> None:
        """A link between them: each hears the other's word, and their scopes do not matter."""
        self._links.add(frozenset((node.node_id, to.node_id)))
        if self.reaches(node, to) and self.reaches(to, node):
            self._introduce(node, to)
            self._introduce(to, node)

    def join_all(self) -> None:
        """Everyone joins through the first node."""
        first, *others = self.up
        for node in others:
            self.join(node, first)

    def acquaint(self) -> None:
        """Everyone has met everyone, and it is no news: a network that has been there for long."""
        words = [node.gossip.presence for node in self.up]
        for node in self.up:
            node.gossip.begin_among(node.now(), words)
            self._settle(node)

    def kill(self, node: VirtualNode) -> None:
        node.is_up = False

    def restart(self, node: VirtualNode, to: VirtualNode) -> None:
        """Killed or not, it begins a new life and joins through another."""
        node.start()
        self._settle(node)
        self.join(node, to)

    def leave(self, node: VirtualNode) -> None:
        node.gossip.leave(node.now())
        self._settle(node)
        node.is_up = False

    def freeze(self, node: VirtualNode) -> None:
        """It does nothing, and does not notice; packets wait in its socket."""
        node.is_frozen = True

    def thaw(self, node: VirtualNode) -> None:
        node.is_frozen = False
        waiting, node.buffered = node.buffered, []
        for sender, packet in waiting:
            self._hand_over(node, sender, packet)
        self._tick(node)

    # The wire ----------------------------------------------------------------------------

    def partition(self, *groups: Iterable[VirtualNode]) -> None:
        """Only nodes of the same group reach each other; who is in none is in one more."""
        self._group = {
            node.node_id: number for number, group in enumerate(groups, 1) for node in group
        }

    def cut(self, sender: VirtualNode, receiver: VirtualNode) -> None:
        """Nothing goes this way any more; the other way is as it was."""
        self._cut.add((sender.node_id, receiver.node_id))

    def heal(self) -> None:
        self._group.clear()
        self._cut.clear()

    def reaches(self, sender: VirtualNode, receiver: VirtualNode) -> bool:
        """Whether packets go this way: between scopes only over a link."""
        linked = frozenset((sender.node_id, receiver.node_id)) in self._links
        if sender.scope is not receiver.scope and not linked:
            return False
        if (sender.node_id, receiver.node_id) in self._cut:
            return False
        return self._group.get(sender.node_id) == self._group.get(receiver.node_id)

    def inject(self, sender: VirtualNode, receiver: VirtualNode, packet: bytes) -> None:
        """A packet that the sender's machine did not make, but which comes from that node."""
        self._send(sender, receiver.node_id, packet)

    # Records -----------------------------------------------------------------------------

    def publish(self, node: VirtualNode, name: str, about: str = "") -> Signed:
        return self._spread(node, node.sign(name, about=about))

    def withdraw(self, node: VirtualNode, name: str) -> Signed:
        return self._spread(node, node.sign(name, withdrawn=True))

    def holders(self, signed: Signed) -> int:
        """How many running nodes have exactly this record."""
        return sum(node.catalogue.get(signed.key) == signed for node in self.up)

    def agrees(self) -> bool:
        """Whether each running node holds just the running ones for living, and has their word."""
        up = {node.node_id: node.gossip.presence for node in self.up}
        return all(
            {
                one: member.presence
                for one, member in node.gossip.members.items()
                if member.state in LIVING
            }
            == {one: presence for one, presence in up.items() if one != node.node_id}
            for node in self.up
        )

    # Time --------------------------------------------------------------------------------

    def run(self, seconds: float) -> None:
        """Let so much time pass."""
        self._run_to(self.now + seconds)

    def run_until(self, done: Callable[[], bool], within_s: float, every_s: float = 0.05) -> bool:
        """Let time pass until it is done, looking now and then; False if it never was."""
        end = self.now + within_s
        while not done():
            if self.now >= end:
                return False
            self._run_to(min(end, self.now + every_s))
        return True

    def _run_to(self, end: float) -> None:
        while self._events and self._events[0][0] <= end:
            self.now, _, event = heapq.heappop(self._events)
            event()
        self.now = end

    def _later(self, at: float, event: Callable[[], None]) -> None:
        self._order += 1
        heapq.heappush(self._events, (max(at, self.now), self._order, event))

    # Shells ------------------------------------------------------------------------------

    def _settle(self, node: VirtualNode) -> None:
        """Do what the machine wants, and wake it when it wants."""
        for instruction in node.gossip.take():
            match instruction:
                case Send(to, packet):
                    self._send(node, to, packet)
                case Pull(node_id):
                    self._later(
                        self.now + 2 * self._delay(), partial(self._pull, node, node.epoch, node_id)
                    )
                case Changed(member):
                    node.catalogue.node_changed(member.node_id, member.epoch)
                    self._on_change(node, instruction)
                case Superseded(epoch):
                    node.superseded_by = epoch
        at = node.from_own(node.gossip.next_at)
        if at < node.tick_at:
            node.tick_at = at
            self._later(at, partial(self._wake, node, at))

    def _wake(self, node: VirtualNode, at: float) -> None:
        if at == node.tick_at:
            node.tick_at = float("inf")
            if node.is_up and not node.is_frozen:
                self._tick(node)

    def _tick(self, node: VirtualNode) -> None:
        if node.is_up and node.from_own(node.gossip.next_at) <= self.now:
            node.gossip.tick(max(node.now(), node.gossip.next_at))
        self._settle(node)

    def _introduce(self, to: VirtualNode, who: VirtualNode) -> None:
        to.gossip.introduce(to.now(), who.gossip.presence)
        self._settle(to)

    def _send(self, node: VirtualNode, to: str, packet: bytes) -> None:
        node.sent_packets += 1
        node.sent_bytes += len(packet) + HEAD_BYTES
        receiver = self.nodes.get(to)
        if receiver is None or not self.reaches(node, receiver):
            return
        self._trace.update(f"{self.now:.6f} {node.node_id} {to} ".encode() + packet)
        for _ in range(1 + (self._rng.random() < self.weather.duplication)):
            if self._rng.random() >= self.weather.loss:
                event = partial(self._deliver, receiver, node, packet)
                self._later(self.now + self._delay(), event)

    def _deliver(self, receiver: VirtualNode, sender: VirtualNode, packet: bytes) -> None:
        if not receiver.is_up:
            return
        if receiver.is_frozen:
            if len(receiver.buffered) < BUFFERED_MAX:
                receiver.buffered.append((sender.node_id, packet))
            return
        self._hand_over(receiver, sender.node_id, packet)

    def _hand_over(self, receiver: VirtualNode, sender: str, packet: bytes) -> None:
        receiver.got_packets += 1
        if sender not in receiver.gossip.members:  # what a greeting would bring
            other = self.nodes[sender]
            if not (other.is_up and self.reaches(receiver, other)):
                return
            receiver.gossip.introduce(receiver.now(), other.gossip.presence)
        receiver.gossip.received(receiver.now(), sender, packet)
        self._settle(receiver)

    def _pull(self, node: VirtualNode, epoch: int, node_id: str) -> None:
        """Over a link: it works both ways or not at all."""
        other = self.nodes[node_id]
        both = self.reaches(node, other) and self.reaches(other, node)
        ready = node.is_up and other.is_up and not node.is_frozen and not other.is_frozen
        if not both or not ready or node.epoch != epoch:
            return
        scope = node.scope
        handles = [handle for handle, _ in other.catalogue.listing(range(128), scope)]
        contents = [other.catalogue.content(handle) for handle in handles]
        presences = [
            presence.to_bytes()
            for presence in other.gossip.presences()
            if may_be_told(presence.said.scope, scope)
        ]
        records = [content for content in contents if content is not None]
        node.gossip.pulled(node.now(), node_id, presences, records)
        self._settle(node)

    def _spread(self, node: VirtualNode, signed: Signed) -> Signed:
        node.catalogue.own(signed)
        node.gossip.published(node.now(), signed)
        self._settle(node)
        return signed

    def _delay(self) -> float:
        return self._rng.uniform(*self.weather.delay_s)
