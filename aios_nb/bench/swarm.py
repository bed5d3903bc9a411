"""A DHT of many nodes in one process: ``python -m aios_nb.bench.swarm JSON``.

Ours and the stock package's run side by side, each node with a socket of its own, and take turns
with a raw UDP echo. Prints every latency as one line of JSON.
"""

from __future__ import annotations

import asyncio
import logging
import random
import sys
import time
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any

import msgspec

from aios_nb.bench.keys import identity
from aios_nb.bench.lookups import Plan, Seen, Timed, now
from aios_nb.hub.dht.engine import KademliaDht
from aios_nb.hub.dht.tuning import Tuning
from aios_nb.hub.post import Post
from aios_nb.hub.presence import Presence, declare
from aios_nb.records import Scope, Signed, node_record, sign_record

HOST = "127.0.0.1"
NETWORK = "bench"
ECHOES = 200
SETTLING = Tuning(first_refresh_s=3600.0)
"""Nothing is done unasked while the clock runs."""


class Member:
    """A node of ours, with nothing but its DHT."""

    def __init__(self, number: int, rng: random.Random) -> None:
        self.identity = identity("swarm", number)
        self.node_id = self.identity.node_id
        self.presence = self._presence(9)
        self.post = Post(self.identity, NETWORK, self.own)
        self.dht = KademliaDht(
            self.identity, NETWORK, self.post, self.own, rng=rng, tuning=SETTLING
        )
        self.post.on_met = lambda presence: self.dht.meet(presence, proven=True)

    def own(self) -> Presence:
        return self.presence

    def _presence(self, port: int) -> Presence:
        return declare(
            self.identity,
            NETWORK,
            epoch=1,
            incarnation=0,
            scope=Scope.LOOPBACK,
            address=(HOST, port),
        )

    async def open(self) -> None:
        self.presence = self._presence(await self.post.open(HOST, 0))

    def record(self) -> Signed:
        at = time.time_ns() // 1_000_000
        made = node_record(
            net=NETWORK,
            node=self.node_id,
            name="swarm",
            scope=Scope.LOOPBACK,
            endpoints=[("http", HOST, self.presence.said.port)],
            seq=at,
            epoch=1,
            now_ms=at,
        )
        return sign_record(self.identity, made)

    async def publish(self) -> bool:
        return (await self.dht.put(self.record())).holders > 0

    async def find(self, node_id: str) -> bool:
        signed = await self.dht.get(node_id)
        return signed is not None and signed.record.node == node_id

    async def close(self) -> None:
        await self.dht.close()
        await self.post.close()


class Stock:
    """The package as it is."""

    def __init__(self, value: bytes) -> None:
        self.servers: list[Any] = []
        self.keys: list[str] = []
        self._value = value

    async def build(self, count: int, rng: random.Random) -> None:
        from kademlia.network import Server  # type: ignore[import-untyped]

        logging.getLogger("kademlia").setLevel(logging.CRITICAL)
        logging.getLogger("rpcudp").setLevel(logging.CRITICAL)
        for _ in range(count):
            server = Server()
            await server.listen(0, HOST)
            if self.servers:
                other = rng.choice(self.servers).transport.get_extra_info("sockname")
                await server.bootstrap([other])
            self.servers.append(server)

    async def publish(self, server: Any, key: str) -> bool:
        self.keys.append(key)
        return bool(await server.set(key, self._value))

    async def find(self, server: Any, key: str) -> bool:
        return bool(await server.get(key) == self._value)

    def kill(self, servers: Sequence[Any]) -> None:
        for server in servers:
            server.stop()
            self.servers.remove(server)


class Echo(asyncio.DatagramProtocol):
    """One end of a raw round trip."""

    def __init__(self, *, answers: bool) -> None:
        self._answers = answers
        self._heard: asyncio.Future[None] | None = None
        self.transport: asyncio.DatagramTransport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport  # type: ignore[assignment]

    def datagram_received(self, data: bytes, addr: Any) -> None:
        if self._answers:
            self.transport.sendto(data, addr)
        elif self._heard is not None and not self._heard.done():
            self._heard.set_result(None)

    async def call(self, to: Any) -> bool:
        self._heard = asyncio.get_running_loop().create_future()
        self.transport.sendto(b"x" * 200, to)
        await self._heard
        return True


async def _raw() -> Callable[[], Awaitable[bool]]:
    loop = asyncio.get_running_loop()
    far, _ = await loop.create_datagram_endpoint(lambda: Echo(answers=True), local_addr=(HOST, 0))
    _, near = await loop.create_datagram_endpoint(lambda: Echo(answers=False), local_addr=(HOST, 0))
    return lambda: near.call(far.get_extra_info("sockname"))


async def measure(plan: Plan) -> Seen:
    """Build both, let them take turns, kill a fifth, then more until it is three tenths."""
    rng = random.Random(plan.nodes)  # noqa: S311 - the same network each time
    echo = await _raw()
    begun = now()
    members: list[Member] = []
    for number in range(plan.nodes):
        member = Member(number, rng)
        await member.open()
        if members:
            member.dht.meet(rng.choice(members).presence)
            await member.dht.settle()
        members.append(member)
    build_s = now() - begun
    stock = Stock(members[0].record().to_bytes())
    await stock.build(plan.nodes, rng)
    raw, ours_set, ours_get, stock_set, stock_get = (Timed() for _ in range(5))

    def finds(askers: Sequence[Member]) -> list[Callable[[], Awaitable[bool]]]:
        pairs = [(rng.choice(askers), rng.choice(members)) for _ in range(plan.gets)]
        return [partial(one.find, other.node_id) for one, other in pairs]

    def asked(what: str) -> int:
        return sum(member.dht.stats[what] for member in members)

    for turn in range(plan.rounds):
        mine = members[turn :: plan.rounds]
        keys = [f"{turn} {number}" for number in range(-(-plan.sets // plan.rounds))]
        await raw.take([echo] * ECHOES)
        await ours_set.take([member.publish for member in mine])
        await stock_set.take(
            [partial(stock.publish, rng.choice(stock.servers), key) for key in keys]
        )
    set_questions = asked("put questions") / max(1, asked("puts"))
    for _ in range(plan.rounds):
        await raw.take([echo] * ECHOES)
        await ours_get.take(finds(members))
        pairs = [(rng.choice(stock.servers), rng.choice(stock.keys)) for _ in range(plan.gets)]
        await stock_get.take([partial(stock.find, server, key) for server, key in pairs])
    get_questions = asked("get questions") / max(1, asked("gets"))
    after: dict[str, Timed] = {}
    questions_after: dict[str, float] = {}
    shuffled = rng.sample(members, len(members))
    dead = 0
    for place, share in enumerate((0.2, 0.3)):
        gone = int(share * plan.nodes)
        for member in shuffled[dead:gone]:
            await member.close()
        stock.kill(stock.servers[: gone - dead])
        dead = gone
        # Who asked after the first kill knows some of the dead; the second time others ask.
        fresh = shuffled[int(0.3 * plan.nodes) :][place::2]
        before = asked("gets"), asked("get questions")
        after[f"{share:.0%}"] = timed = Timed()
        await timed.take(finds(fresh))
        gets = asked("gets") - before[0]
        questions_after[f"{share:.0%}"] = (asked("get questions") - before[1]) / max(1, gets)
    stock_after = Timed()
    await asyncio.gather(
        *(
            stock_after.take(
                [partial(stock.find, rng.choice(stock.servers), rng.choice(stock.keys))]
            )
            for _ in range(plan.stock_after_kill)
        )
    )
    contacts = sum(len(member.dht.protocol.router) for member in members) / len(members)
    for member in shuffled[dead:]:
        await member.close()
    stock.kill(list(stock.servers))
    return Seen(
        raw=raw,
        build_s=build_s,
        set=ours_set,
        get=ours_get,
        get_questions=get_questions,
        set_questions=set_questions,
        stock_set=stock_set,
        stock_get=stock_get,
        after=after,
        questions_after=questions_after,
        stock_after_ms=[took for each in stock_after.rounds for took in each],
        hedge_ms=SETTLING.hedge_floor_loopback_s * 1e3,
        contacts=contacts,
    )


if __name__ == "__main__":
    print(
        msgspec.json.encode(
            asyncio.run(measure(msgspec.json.decode(sys.argv[1], type=Plan)))
        ).decode()
    )
