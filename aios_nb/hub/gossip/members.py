"""Who is in the network, as far as this node knows. Judges nothing; keeps its indexes true."""

from __future__ import annotations

import hashlib
import random
from collections.abc import Iterator, Mapping
from enum import StrEnum

import msgspec

from aios_nb.hub.catalogue.digest import Digest, bucket_of, may_be_told
from aios_nb.hub.gossip.packets import raw_id
from aios_nb.hub.presence import Presence
from aios_nb.records import Scope

MEMBERS_MAX = 5000
"""With the dead ones, who give way first."""


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


class Members(Mapping[str, Member]):
    """All other nodes, with the living ones in a list to draw from and in a digest to compare."""

    def __init__(self) -> None:
        self._all: dict[str, Member] = {}
        self._living: list[str] = []
        self._place: dict[str, int] = {}
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
        return len(self._living) + 1

    @property
    def living(self) -> list[str]:
        """In no order that means anything; not to be changed."""
        return self._living

    @property
    def gone(self) -> Mapping[str, None]:
        return self._gone

    # Changing ----------------------------------------------------------------------------

    def put(self, member: Member) -> bool:
        """Keep it, new or changed; False if there is no room for another one."""
        before = self._all.get(member.node_id)
        if before is None:
            if len(self._all) >= MEMBERS_MAX and not self._make_room():
                return False
        else:
            self._unlist(before)
        self._all[member.node_id] = member
        self._list(member)
        return True

    def drop(self, node_id: str) -> None:
        self._unlist(self._all.pop(node_id))

    def _make_room(self) -> bool:
        if not self._gone:
            return False
        self.drop(next(iter(self._gone)))
        return True

    def _list(self, member: Member) -> None:
        node_id = member.node_id
        if member.state not in LIVING:
            self._gone[node_id] = None
            return
        self.suspects += member.state is Life.SUSPECT
        self._place[node_id] = len(self._living)
        self._living.append(node_id)
        self.toggle(member.presence)
        self._buckets.setdefault(bucket_of(raw_id(node_id)), {})[node_id] = None

    def _unlist(self, member: Member) -> None:
        node_id = member.node_id
        if member.state not in LIVING:
            del self._gone[node_id]
            return
        self.suspects -= member.state is Life.SUSPECT
        place, last = self._place.pop(node_id), self._living.pop()
        if last != node_id:
            self._living[place] = last
            self._place[last] = place
        self.toggle(member.presence)
        del self._buckets[bucket_of(raw_id(node_id))][node_id]

    def toggle(self, presence: Presence) -> None:
        """Into the digest or out of it; for this node's own word, which is no member."""
        raw = raw_id(presence.node_id)
        said = presence.said
        life = said.epoch.to_bytes(8, "big") + said.incarnation.to_bytes(4, "big")
        stamp = hashlib.blake2b(raw + life, digest_size=8).digest()
        self._digest.toggle(raw, stamp, said.scope)

    # Looking -----------------------------------------------------------------------------

    def draw(self, rng: random.Random, count: int) -> list[str]:
        """Some of the living, by chance."""
        return rng.sample(self._living, min(count, len(self._living)))

    def sums(self, scope: Scope) -> bytes:
        return self._digest.to_bytes(scope)

    def differing(self, theirs: bytes, scope: Scope) -> list[int]:
        return self._digest.differing(theirs, scope)

    def in_bucket(self, bucket: int, scope: Scope) -> list[Member]:
        """The living ones that a peer of this scope may know, in the order of their ids."""
        found = (self._all[node_id] for node_id in self._buckets.get(bucket, ()))
        told = (member for member in found if may_be_told(member.scope, scope))
        return sorted(told, key=lambda member: raw_id(member.node_id))
