"""Gossip on real sockets: ``python -m aios_nb.bench.gossipers JSON`` prints what was seen.

Many nodes in one process, each with its own key, catalogue and UDP socket, and the same shell
around the gossip as in a running node. They have no links: whatever happens, happens by datagrams.
"""

from __future__ import annotations

import asyncio
import random
import sys
import time

import msgspec

from aios_nb.bench.keys import identity
from aios_nb.bench.news import ABOUT, AROUND_BYTES, CEILING_S, Plan, Seen, enough
from aios_nb.bench.spec import Broken
from aios_nb.config import Limits
from aios_nb.errors import Unreachable
from aios_nb.hub.catalogue import Catalogue, Change
from aios_nb.hub.gossip import LAN, Gossip, Life, Member
from aios_nb.hub.gossip.packets import Ping, pack
from aios_nb.hub.post import Kind, Post
from aios_nb.hub.presence import Presence, State, declare
from aios_nb.hub.spreading import Spreading
from aios_nb.ports import Link
from aios_nb.records import Scope, Signed, agent_record, sign_record

HOST = "127.0.0.1"
NETWORK = "bench"
GREET_S = 0.06
"""Between two greetings by the same node: a post checks only so many signatures in a second."""
SETTLE_S = 3.0
PAUSE_S = 1.0
PROVEN_MIN = 0.9
_EPOCH = 1
_STEP = 17


class NoLinks:
    """The ways of a node that has none but datagrams."""

    async def reach(self, node_id: str) -> Link:
        raise Unreachable(f"{node_id} is reached by datagrams only", reason="no address")

    def link(self, _: str) -> Link | None:
        return None

    def linked(self) -> tuple[str, ...]:
        return ()

    def scope(self, _: str) -> Scope | None:
        return None

    async def news(self, _: str, within_s: float) -> None:
        await asyncio.sleep(within_s)

    async def met(self, _: float) -> None:
        return

    def joined(self) -> tuple[str, ...]:
        return ()


class Gossiper:
    """A node with nothing but its gossip."""

    def __init__(self, number: int) -> None:
        self.identity = identity("gossiper", number)
        self.node_id = self.identity.node_id
        self.presence = self._declared(0, State.ALIVE, 9)
        self.post = Post(self.identity, NETWORK, lambda: self.presence)
        self.dead: set[str] = set()
        self.catalogue = Catalogue(
            NETWORK,
            self.node_id,
            Limits(),
            now_ms=_now_ms,
            allowed=lambda _: False,
            scope_of_node=lambda _: Scope.LOOPBACK,
        )

    async def open(self) -> None:
        port = await self.post.open(HOST, 0)

        def speak(incarnation: int, state: State) -> Presence:
            self.presence = self._declared(incarnation, state, port)
            return self.presence

        self.gossip = Gossip(
            self.node_id,
            LAN,
            self.catalogue,
            speak,
            scope=Scope.LOOPBACK,
            rng=random.Random(),  # noqa: S311 - whom to tell first
            now=asyncio.get_running_loop().time(),
        )
        self.spreading = Spreading(
            self.gossip,
            self.catalogue,
            NoLinks(),
            self.post,
            own=tuple,
            places=lambda _: {},
            shut_out=lambda _: False,
            muted=False,
            on_changed=self._changed,
            on_superseded=lambda _: None,
        )
        self.post.on(Kind.GOSSIP, self.spreading.received)

    def begin_among(self, others: list[Gossiper]) -> None:
        """Know all of them already, and where they are."""
        for other in others:
            self.post.know(other.presence)
        self.gossip.begin_among(
            asyncio.get_running_loop().time(), [other.presence for other in others]
        )
        self.spreading.start()

    def greet(self, other: Gossiper) -> None:
        self.post.send(other.node_id, Kind.GOSSIP, pack([Ping(0)]))

    def publish(self, number: int) -> Signed:
        at = _now_ms()
        record = agent_record(
            net=NETWORK,
            node=self.node_id,
            name=f"agent-{number}",
            access="network",
            card=b"\0" * 32,
            seq=at,
            epoch=_EPOCH,
            now_ms=at,
            about=ABOUT,
        )
        signed = sign_record(self.identity, record)
        self.catalogue.own(signed)
        self.spreading.published(signed)
        return signed

    @property
    def sent_bytes(self) -> int:
        return self.post.sent_bytes + AROUND_BYTES * self.post.sent_datagrams

    async def close(self) -> None:
        await self.spreading.close()
        await self.post.close()

    def _changed(self, member: Member) -> None:
        if member.state is Life.DEAD:
            self.dead.add(member.node_id)
        else:
            self.post.know(member.presence)

    def _declared(self, incarnation: int, state: State, port: int) -> Presence:
        return declare(
            self.identity,
            NETWORK,
            epoch=_EPOCH,
            incarnation=incarnation,
            scope=Scope.LOOPBACK,
            address=(HOST, port),
            state=state,
        )


class News:
    """Waits until a record is nearly everywhere."""

    def __init__(self, nodes: list[Gossiper]) -> None:
        self._missing = 0
        self._key = ""
        self._everywhere = asyncio.Event()
        for node in nodes:
            node.catalogue.on_change = self._change

    async def spread(self, node: Gossiper, number: int, nodes: int) -> float:
        self._missing, self._key = enough(nodes), f"agent/{NETWORK}/{node.node_id}/agent-{number}"
        self._everywhere.clear()
        began = time.monotonic()
        node.publish(number)
        try:
            async with asyncio.timeout(CEILING_S):
                await self._everywhere.wait()
        except TimeoutError:
            return CEILING_S
        return time.monotonic() - began

    def _change(self, change: Change) -> None:
        if change.key == self._key:
            self._missing -= 1
            if self._missing == 0:
                self._everywhere.set()


async def measure(plan: Plan) -> Seen:
    """Let them know each other and greet, then publish, then count bytes."""
    begun = time.perf_counter()
    nodes = [Gossiper(number) for number in range(plan.nodes)]
    for node in nodes:
        await node.open()
    for node in nodes:
        node.begin_among(nodes)
    await _greet_all(nodes)
    seen = Seen(pairs=plan.nodes * (plan.nodes - 1))
    news, turns = News(nodes), asyncio.create_task(_turns(seen))
    for number in range(plan.records):
        seen.spread_s.append(
            await news.spread(nodes[number * _STEP % len(nodes)], number, len(nodes))
        )
        await asyncio.sleep(PAUSE_S)
    seen.idle_bytes = await _bytes(nodes, plan.seconds, None)
    seen.busy_bytes = await _bytes(nodes, plan.seconds, plan.records)
    turns.cancel()
    seen.wronged = sum(len(node.dead) for node in nodes)
    for node in nodes:
        await node.close()
    seen.took_s = time.perf_counter() - begun
    return seen


async def _greet_all(nodes: list[Gossiper]) -> None:
    """Two who never spoke exchange their words first: that is over in an old network."""
    for far in range(1, len(nodes) // 2 + 1):
        for place, node in enumerate(nodes):
            node.greet(nodes[(place + far) % len(nodes)])
        await asyncio.sleep(GREET_S)
    await asyncio.sleep(SETTLE_S)
    proven = sum(
        node.post.proven(other.node_id) for node in nodes for other in nodes if other is not node
    )
    share = proven / (len(nodes) * (len(nodes) - 1))
    if share < PROVEN_MIN:
        raise Broken(f"only {share:.0%} of the nodes have greeted each other")


async def _bytes(nodes: list[Gossiper], seconds: float, number: int | None) -> float:
    """Sent by each in a second; with a new record each second if there is a ``number``."""
    before, began = 0, 0.0
    for second in range(int(SETTLE_S + seconds)):
        if second == int(SETTLE_S):
            before, began = sum(node.sent_bytes for node in nodes), time.monotonic()
        if number is not None:
            nodes[(number + second) * _STEP % len(nodes)].publish(number + second)
        await asyncio.sleep(1)
    sent = sum(node.sent_bytes for node in nodes) - before
    return sent / (time.monotonic() - began) / len(nodes)


async def _turns(seen: Seen) -> None:
    """How long the loop keeps its nodes waiting: they share one process."""
    while True:
        began = time.perf_counter()
        await asyncio.sleep(0)
        seen.lag_s = max(seen.lag_s, time.perf_counter() - began)
        await asyncio.sleep(0.01)


def _now_ms() -> int:
    return time.time_ns() // 1_000_000


if __name__ == "__main__":
    asked = msgspec.json.decode(sys.argv[1], type=Plan)
    print(msgspec.json.encode(asyncio.run(measure(asked))).decode())
