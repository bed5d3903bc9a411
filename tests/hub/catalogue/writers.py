"""Nodes that sign records, and a catalogue to offer them to."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import msgspec

from aios_nb.config import Limits
from aios_nb.hub.catalogue import Catalogue, Change, Event
from aios_nb.identity import TAG_RECORD, Identity
from aios_nb.records import (
    AgentRecord,
    Record,
    Scope,
    Signed,
    agent_record,
    node_record,
    sign_record,
    withdrawal,
)

NOW = 1_800_000_000_000
EPOCH = NOW - 1000
CARD = b"c" * 32


class Time:
    """Milliseconds that pass only when a test says so."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> int:
        return self.now


class Writer:
    """A node with a key of its own; the same number is the same node."""

    def __init__(self, number: int) -> None:
        self.identity = Identity.from_seed(number.to_bytes(32, "big"))
        self.id = self.identity.node_id

    def agent(self, name: str = "adder", *, seq: int = NOW, **fields: Any) -> Signed:
        fields = {"net": "main", "epoch": EPOCH, "now_ms": seq, "about": "adds"} | fields
        record = agent_record(
            node=self.id, name=name, access="network", card=CARD, seq=seq, **fields
        )
        return sign_record(self.identity, record)

    def ended(self, name: str = "adder", *, seq: int = NOW + 1, epoch: int = EPOCH) -> Signed:
        offered = self.agent(name, epoch=epoch).record
        assert isinstance(offered, AgentRecord)
        record = withdrawal(offered, seq=seq, epoch=epoch, now_ms=seq)
        return sign_record(self.identity, record)

    def node(self, *, scope: Scope = Scope.LOOPBACK, seq: int = NOW, **fields: Any) -> Signed:
        fields = {"net": "main", "epoch": EPOCH, "now_ms": seq, "name": "node"} | fields
        ends = [("http", "127.0.0.1", 8765)]
        record = node_record(node=self.id, scope=scope, endpoints=ends, seq=seq, **fields)
        return sign_record(self.identity, record)

    def changed(self, signed: Signed, **fields: Any) -> Signed:
        """The same record with other values, signed again."""
        return sign_record(self.identity, msgspec.structs.replace(signed.record, **fields))

    def raw(self, record: Record, **fields: Any) -> bytes:
        """A map with any fields at all, signed as it is."""
        plain = msgspec.to_builtins(record, builtin_types=(bytes,)) | fields
        payload = msgspec.msgpack.encode(dict(sorted(plain.items())))
        return self.identity.public_key + self.identity.sign(TAG_RECORD, payload) + payload


@functools.cache
def writer(number: int) -> Writer:
    return Writer(number)


OWN, ALICE, BOB, CAROL = (writer(number) for number in range(1, 5))


def everywhere(_: str) -> Scope | None:
    return Scope.LOOPBACK


def nobody(_: str) -> bool:
    return False


class Watched:
    """A catalogue with the clock it runs by and all that it told."""

    def __init__(
        self,
        limits: Limits | None = None,
        *,
        allowed: Callable[[str], bool] = nobody,
        scope_of_node: Callable[[str], Scope | None] = everywhere,
    ) -> None:
        self.time = Time()
        self.told: list[Change] = []
        self.mirror: dict[str, Signed] = {}
        """What one who only listens believes to be there."""
        self.catalogue = Catalogue(
            "main",
            OWN.id,
            limits or Limits(),
            now_ms=self.time,
            allowed=allowed,
            scope_of_node=scope_of_node,
        )
        self.catalogue.on_change = self._listen

    def _listen(self, change: Change) -> None:
        self.told.append(change)
        before, after = change.before, change.after
        assert self.mirror.get(change.key) == before
        assert (change.event is Event.PUT) == (before is None)
        assert (change.event is Event.DROPPED) == (after is None)
        if after is None:
            del self.mirror[change.key]
        else:
            self.mirror[change.key] = after

    def keys(self) -> set[str]:
        return set(self.mirror)


def check(watched: Watched) -> None:
    """All ways to look at the catalogue tell the same, and so does its digest."""
    catalogue, mirror = watched.catalogue, watched.mirror
    assert len(catalogue) == len(mirror)
    handles = {catalogue.handle(key): signed for key, signed in mirror.items()}
    for handle, signed in handles.items():
        assert catalogue.get(signed.key) == signed
        assert catalogue.content(handle) == signed.to_bytes()
    nodes = {signed.record.node for signed in mirror.values()}
    of_nodes = [signed for node in nodes for signed in catalogue.of(node)]
    assert {signed.key: signed for signed in of_nodes} == mirror
    offered = {
        signed.key: signed
        for signed in mirror.values()
        if isinstance(signed.record, AgentRecord) and not signed.record.withdrawn
    }
    assert {signed.key: signed for signed in catalogue.agents()} == offered
    names = {signed.record.name for signed in offered.values()}
    named = [signed for name in names for signed in catalogue.agents_named(name)]
    assert {signed.key: signed for signed in named} == offered
    for scope in Scope:
        listed = dict(catalogue.listing(range(128), scope))
        assert catalogue.digest(scope) == recomputed(listed)
        assert set(listed) <= set(handles)
    assert set(dict(catalogue.listing(range(128), Scope.LOOPBACK))) == set(handles)
    crowds = (catalogue._shelf.agents, catalogue._shelf.nodes)
    foreign = [signed for signed in mirror.values() if signed.record.node != OWN.id]
    assert sum(map(len, crowds)) == len(foreign)
    assert set(catalogue._shelf.publishers) == nodes


def recomputed(listed: dict[bytes, bytes]) -> bytes:
    """The digest of what is listed, made anew."""
    sums = [0] * 128
    for handle, version in listed.items():
        sums[handle[0] >> 1] ^= int.from_bytes(version, "big")
    return b"".join(one.to_bytes(8, "big") for one in sums)
