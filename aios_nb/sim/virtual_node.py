"""One node of a virtual network: the real machine, key and catalogue, with made-up clocks."""

from __future__ import annotations

import hashlib
import random
from typing import Protocol

from aios_nb.config import Limits
from aios_nb.hub.catalogue import Catalogue
from aios_nb.hub.gossip import Gossip, Pace
from aios_nb.hub.presence import Presence, State, declare
from aios_nb.identity import Identity
from aios_nb.records import Scope, Signed, agent_record, next_seq, sign_record, withdrawal

START_MS = 1_800_000_000_000
"""What the clocks on the wall show when a network begins."""
NET = "main"
_HOSTS = {Scope.LOOPBACK: "127.0.0.1", Scope.PRIVATE: "10.{}.{}.1", Scope.GLOBAL: "5.{}.{}.1"}
_CARD = b"\0" * 32


class Surroundings(Protocol):
    """What a node needs of the network it is in."""

    seed: int
    pace: Pace
    now: float

    def genuine(self, presence: Presence) -> bool: ...


class VirtualNode:
    """One machine with its catalogue, its clocks, and what its shell would keep."""

    def __init__(
        self, network: Surroundings, number: int, scope: Scope, *, clock_s: float, skew_ms: int
    ) -> None:
        seed = hashlib.sha256(f"{network.seed}/{number}".encode()).digest()
        self.identity = Identity.from_seed(seed)
        self.node_id = self.identity.node_id
        self.scope = scope
        self.is_up = self.is_frozen = False
        self.epoch = 0
        self.superseded_by: int | None = None
        self.buffered: list[tuple[str, bytes]] = []
        self.sent_packets = self.sent_bytes = self.got_packets = 0
        self.tick_at = float("inf")
        self._network, self._number = network, number
        self._clock_s, self._skew_ms = clock_s, skew_ms
        self._seqs: dict[str, int] = {}

    def now(self) -> float:
        """Its own clock; no two nodes' clocks began at the same time."""
        return self._network.now + self._clock_s

    def now_ms(self) -> int:
        """What it takes for the time of day."""
        return START_MS + int(self._network.now * 1000) + self._skew_ms

    def from_own(self, at: float) -> float:
        """A time of its own clock as the network's."""
        return at - self._clock_s

    def start(self) -> None:
        """A new life: nothing of the one before is known any more, but its number was saved."""
        self.epoch = max(self.epoch + 1, self.now_ms())
        self.is_up, self.is_frozen = True, False
        self.superseded_by = None
        self.buffered.clear()
        self.catalogue = Catalogue(
            NET,
            self.node_id,
            Limits(),
            now_ms=self.now_ms,
            allowed=lambda _: False,
            scope_of_node=self._scope_of,
        )
        self.gossip = Gossip(
            self.node_id,
            self._network.pace,
            self.catalogue,
            self._speak,
            scope=self.scope,
            rng=random.Random(f"{self._network.seed}/{self._number}/{self.epoch}"),  # noqa: S311
            now=self.now(),
            genuine=self._network.genuine,
        )

    def sign(self, name: str, *, about: str = "", withdrawn: bool = False) -> Signed:
        """The next record of its agent of that name, or its end."""
        self._seqs[name] = seq = next_seq(self._seqs.get(name), self.now_ms())
        record = agent_record(
            net=NET,
            node=self.node_id,
            name=name,
            access="network",
            card=_CARD,
            seq=seq,
            epoch=self.epoch,
            now_ms=self.now_ms(),
            about=about,
        )
        if withdrawn:
            record = withdrawal(record, seq=seq, epoch=self.epoch, now_ms=self.now_ms())
        return sign_record(self.identity, record)

    def _speak(self, incarnation: int, state: State) -> Presence:
        host = _HOSTS[self.scope].format(self._number // 250, self._number % 250)
        return declare(
            self.identity,
            NET,
            epoch=self.epoch,
            incarnation=incarnation,
            scope=self.scope,
            address=(host, 10_000 + self._number),
            state=state,
        )

    def _scope_of(self, node_id: str) -> Scope | None:
        if node_id == self.node_id:
            return self.scope
        member = self.gossip.members.get(node_id)
        return None if member is None else member.scope
