"""Nodes of a DHT on real sockets, and on a hall where whoever is called hears it at once."""

from __future__ import annotations

import asyncio
import hashlib
import random
import selectors
import time
from collections.abc import Awaitable, Callable
from typing import Any, Self

from aios_nb.hub.dht.engine import KademliaDht
from aios_nb.hub.dht.tuning import Tuning
from aios_nb.hub.post import Post
from aios_nb.hub.presence import Presence, declare
from aios_nb.identity import Identity
from aios_nb.records import NodeRecord, Scope, Signed, node_record, sign_record

NET = "village"
STILL = Tuning(first_refresh_s=3600.0)
"""Nothing happens unasked."""


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def identity(name: str) -> Identity:
    return Identity.from_seed(hashlib.sha256(name.encode()).digest())


def record_of(who: Identity, *, seq: int | None = None, net: str = NET, **more: Any) -> Signed:
    at = more.pop("at", None) or now_ms()
    made: NodeRecord = node_record(
        net=net,
        node=who.node_id,
        name="house",
        scope=more.pop("scope", Scope.LOOPBACK),
        endpoints=[("http", "127.0.0.1", 8000)],
        seq=at if seq is None else seq,
        epoch=more.pop("epoch", 1),
        now_ms=at,
    )
    return sign_record(who, made)


def presence_of(
    who: Identity,
    host: str = "127.0.0.1",
    port: int = 9,
    *,
    incarnation: int = 0,
    scope: Scope = Scope.LOOPBACK,
    net: str = NET,
) -> Presence:
    return declare(who, net, epoch=1, incarnation=incarnation, scope=scope, address=(host, port))


class House:
    """One node with a post and a socket of its own."""

    def __init__(self, name: str, tuning: Tuning = STILL, **more: Any) -> None:
        self.identity = identity(name)
        self.node_id = self.identity.node_id
        self.presence = presence_of(self.identity)
        self.post = Post(self.identity, NET, lambda: self.presence)
        self.dht = KademliaDht(
            self.identity,
            NET,
            self.post,
            lambda: self.presence,
            rng=random.Random(name),
            tuning=tuning,
            **more,
        )
        self.post.on_met = lambda presence: self.dht.meet(presence, proven=True)

    async def open(self) -> House:
        port = await self.post.open("127.0.0.1", 0)
        self.presence = presence_of(self.identity, port=port)
        return self

    def record(self, **more: Any) -> Signed:
        return record_of(self.identity, **more)

    async def close(self) -> None:
        await self.dht.close()
        await self.post.close()


class Village:
    """Many houses; each joined by knowing one of the others."""

    def __init__(self, seed: int = 1) -> None:
        self.rng = random.Random(seed)
        self.houses: list[House] = []

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        for house in self.houses:
            await house.close()

    async def build(self, count: int, tuning: Tuning = STILL) -> None:
        for _ in range(count):
            await self.add(tuning)

    async def add(self, tuning: Tuning = STILL, **more: Any) -> House:
        house = await House(f"house {len(self.houses)}", tuning, **more).open()
        if self.houses:
            house.dht.meet(self.rng.choice(self.houses).presence)
            await house.dht.settle()
        self.houses.append(house)
        return house

    async def publish(self) -> None:
        for house in self.houses:
            await house.dht.put(house.record())

    async def kill(self, count: int) -> list[House]:
        """The houses that are left."""
        gone = set(self.rng.sample(self.houses, count))
        for house in gone:
            await house.close()
        return [house for house in self.houses if house not in gone]


class Hall:
    """A network without sockets: addresses are whatever their owners say."""

    def __init__(self) -> None:
        self.receivers: dict[str, Callable[[str, bytes], None]] = {}
        self.met: dict[str, Callable[[Presence], None]] = {}
        self.presences: dict[str, Presence] = {}
        self._greeted: set[tuple[str, str]] = set()

    def line(self, node_id: str) -> Line:
        return Line(self, node_id)

    def carry(self, sender: str, to: str, body: bytes) -> bool:
        asyncio.get_running_loop().call_soon(self._deliver, sender, to, body)
        return True

    def _deliver(self, sender: str, to: str, body: bytes) -> None:
        receiver = self.receivers.get(to)
        if receiver is None:
            return
        if (sender, to) not in self._greeted and to in self.met:
            self._greeted.add((sender, to))
            self.met[to](self.presences[sender])
        receiver(sender, body)


class Line:
    """One node's end of the hall."""

    def __init__(self, hall: Hall, node_id: str) -> None:
        self._hall = hall
        self._node_id = node_id
        self.known: dict[str, Presence] = {}
        self._proven: set[str] = set()

    def know(self, presence: Presence) -> None:
        if self.known.get(presence.node_id) != presence:
            self.known[presence.node_id] = presence
            self._proven.discard(presence.node_id)

    def send(self, to: str, kind: int, body: bytes) -> bool:
        assert kind == 3
        assert len(body) <= 1300
        known = self.known.get(to)
        if known is None or not (to in self._proven or known.is_genuine()):
            return False
        self._proven.add(to)
        return self._hall.carry(self._node_id, to, body)

    def on(self, kind: int, receiver: Callable[[str, bytes], None]) -> None:
        self._hall.receivers[self._node_id] = receiver


class Leaping(selectors.DefaultSelector):
    """Where others would wait for the next timer, time leaps there."""

    now = 0.0

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        ready = super().select(0 if timeout is not None else None)
        if not ready:
            self.now += timeout or 0.0
        return ready


class TimelessLoop(asyncio.SelectorEventLoop):
    """For stories in a hall: waiting takes no time, and a slow machine makes nobody late."""

    def __init__(self) -> None:
        self._leaping = Leaping()
        super().__init__(self._leaping)

    def time(self) -> float:
        return self._leaping.now


def run(
    story: Callable[[], Awaitable[None]],
    loop: Callable[[], asyncio.AbstractEventLoop] = asyncio.new_event_loop,
) -> None:
    """Live through it, and see that no task is left and no exception went unheard."""

    async def watched() -> None:
        unheard: list[dict[str, Any]] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, what: unheard.append(what))
        await story()
        await asyncio.sleep(0)
        left = asyncio.all_tasks() - {asyncio.current_task()}
        assert not left
        assert not unheard

    with asyncio.Runner(loop_factory=loop) as runner:
        runner.run(watched())


async def until(true: Callable[[], object]) -> None:
    """Wait for something that happens by itself, with a ceiling far above what it takes."""
    async with asyncio.timeout(30):
        while not true():  # noqa: ASYNC110 - nothing in the node is made only to be waited for
            await asyncio.sleep(0.02)
