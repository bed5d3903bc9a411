"""Who is in the network, as far as this node knows. Judges nothing; keeps its indexes true."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator, Mapping
from enum import StrEnum

import msgspec

from aios_nb.hub.catalogue.digest import Digest, bucket_of
from aios_nb.hub.gossip.packets import raw_id
from aios_nb.hub.presence import Presence
from aios_nb.records import Scope, may_be_told

MEMBERS_MAX = 5000
"""With the dead ones, who give way first, and then those we only heard of."""
_FEW_MET = 16


class Life(StrEnum):
    ALIVE = "alive"
    SUSPECT = "suspect"
    """Our own probes fail; it is shown last."""
    DEAD = "dead"
    LEFT = "left"
    """It said so itself."""


LIVING = frozenset({Life.ALIVE, Life.SUSPECT})


class Member(msgspec.Struct, frozen=True):
    """One node, as it was when this was made: a change makes another one."""

    node_id: str
    state: Life
    presence: Presence
    """Its own last word, with a signature that was checked."""
    since: float
    """When it came into this state."""

    @property
    def epoch(self) -> int:
        return self.presence.said.epoch

    @property
    def incarnation(self) -> int:
        return self.presence.said.incarnation

    @property
    def life(self) -> tuple[int, int]:
        return self.presence.said.epoch, self.presence.said.incarnation

    @property
    def scope(self) -> Scope:
        return self.presence.said.scope


class Drawn:
    """Ids in a list to draw from, that also knows where each one is."""

    __slots__ = ("_place", "list")

    def __init__(self) -> None:
        self.list: list[str] = []
        self._place: dict[str, int] = {}

    def add(self, node_id: str) -> None:
        self._place[node_id] = len(self.list)
        self.list.append(node_id)

    def remove(self, node_id: str) -> bool:
        """Whether it was there."""
        place = self._place.pop(node_id, None)
        if place is None:
            return False
        last = self.list.pop()
        if last != node_id:
            self.list[place] = last
            self._place[last] = place
        return True


class Members(Mapping[str, Member]):
    """All other nodes, with the living ones in a list to draw from and in a digest to compare."""

    def __init__(self) -> None:
        self._all: dict[str, Member] = {}
        self._far: dict[str, Scope] = {}
        self._living, self._met, self._unmet = Drawn(), Drawn(), Drawn()
        self._spoke: set[str] = set()
        self._gone: dict[str, None] = {}
        """Dead and left; who went first is first."""
        self._digest = Digest()
        self._buckets: dict[int, dict[str, None]] = {}
        self.suspects = 0

    def __getitem__(self, node_id: str) -> Member:
        return self._all[node_id]

    def __iter__(self) -> Iterator[str]:
        return iter(self._all)

    def __len__(self) -> int:
        return len(self._all)

    @property
    def size(self) -> int:
        """Of the network: the living, and this node."""
        return len(self._living.list) + 1

    @property
    def living(self) -> list[str]:
        """In no order that means anything; not to be changed."""
        return self._living.list

    @property
    def met(self) -> list[str]:
        """The living who have spoken to us themselves."""
        return self._met.list

    @property
    def unmet(self) -> list[str]:
        """The living of whom others told us: made up, as far as we know."""
        return self._unmet.list

    @property
    def is_full(self) -> bool:
        return len(self._all) >= MEMBERS_MAX

    @property
    def gone(self) -> Mapping[str, None]:
        return self._gone

    # Changing ----------------------------------------------------------------------------

    def put(self, member: Member) -> None:
        """Keep it, new or changed; whether there is room for a new one is for the caller."""
        before = self._all.get(member.node_id)
        if before is not None:
            self._unlist(before)
        self._all[member.node_id] = member
        self._list(member)

    def drop(self, node_id: str) -> None:
        self._far.pop(node_id, None)
        self._unlist(self._all.pop(node_id))
        self._spoke.discard(node_id)

    def meet(self, node_id: str) -> None:
        """It spoke to us itself."""
        if node_id not in self._spoke:
            self._spoke.add(node_id)
            if self._unmet.remove(node_id):
                self._met.add(node_id)

    def weakest(self) -> Member | None:
        """Who gives way: who is gone for longest, else who was heard of last, but never met."""
        if self._gone:
            return self._all[next(iter(self._gone))]
        return self._all[self._unmet.list[-1]] if self._unmet.list else None

    def _list(self, member: Member) -> None:
        node_id = member.node_id
        if member.state not in LIVING:
            self._gone[node_id] = None
            return
        self.suspects += member.state is Life.SUSPECT
        self._living.add(node_id)
        (self._met if node_id in self._spoke else self._unmet).add(node_id)
        self.toggle(member.presence)
        self._buckets.setdefault(bucket_of(raw_id(node_id)), {})[node_id] = None

    def _unlist(self, member: Member) -> None:
        node_id = member.node_id
        if member.state not in LIVING:
            del self._gone[node_id]
            return
        self.suspects -= member.state is Life.SUSPECT
        for drawn in (self._living, self._met, self._unmet):
            drawn.remove(node_id)
        self.toggle(member.presence)
        del self._buckets[bucket_of(raw_id(node_id))][node_id]

    def toggle(self, presence: Presence) -> None:
        """Into the digest or out of it; for this node's own word, which is no member."""
        raw = raw_id(presence.node_id)
        said = presence.said
        life = said.epoch.to_bytes(8, "big") + said.incarnation.to_bytes(4, "big")
        stamp = hashlib.blake2b(raw + life, digest_size=8).digest()
        self._digest.toggle(raw, stamp, said.scope)

    def seen_from(self, presence: Presence, over: Scope | None) -> None:
        """That node speaks to us over a link of this scope; None: at the address it signed."""
        if over is None or may_be_told(presence.said.scope, over):
            self._far.pop(presence.node_id, None)
        elif presence.node_id in self._all:
            self._far[presence.node_id] = over

    # Looking -----------------------------------------------------------------------------

    def distance(self, member: Member) -> Scope:
        """How far away a peer is: what may be told to it, and believed from it as to addresses.

        What it says of itself, unless we know that it is further away than that.
        """
        return self._far.get(member.node_id, member.scope)

    def draw(self, rng: random.Random, count: int) -> list[str]:
        """Some of the living, by chance."""
        return rng.sample(self._living.list, min(count, len(self._living.list)))

    def choose(self, rng: random.Random, count: int) -> list[str]:
        """The same, with some that we have met among them.

        A flood of made-up nodes would otherwise get all that we have to tell.
        """
        if not self.unmet or not self.met:
            return self.draw(rng, count)
        share = count // 3 if len(self.met) < _FEW_MET else count // 2
        share += rng.random() < 1 / 2  # of one, half
        sure = rng.sample(self.met, min(share, len(self.met)))
        chosen = dict.fromkeys([*sure, *self.draw(rng, count)])
        return list(chosen)[:count]

    def sums(self, scope: Scope) -> bytes:
        return self._digest.to_bytes(scope)

    def differing(self, theirs: bytes, scope: Scope) -> list[int]:
        return self._digest.differing(theirs, scope)

    def in_bucket(self, bucket: int, scope: Scope) -> list[Member]:
        """The living ones that a peer of this scope may know, in the order of their ids."""
        found = (self._all[node_id] for node_id in self._buckets.get(bucket, ()))
        told = (member for member in found if may_be_told(member.scope, scope))
        return sorted(told, key=lambda member: raw_id(member.node_id))
