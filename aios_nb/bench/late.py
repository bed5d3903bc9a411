"""One who comes late: ``python -m aios_nb.bench.late seed COUNT`` or ``join URL#NODEID COUNT``.

The seed is a node whose catalogue has so many records of publishers that are made up, with genuine
keys. The other joins it, and prints how long it took to hold the same, and how its loop felt.
"""

from __future__ import annotations

import asyncio
import signal
import sys
import threading
import time
from collections.abc import Sequence

import msgspec

from aios_nb.bench.keys import identity
from aios_nb.bench.news import Told
from aios_nb.bench.spec import Broken
from aios_nb.config import Settings
from aios_nb.hub.network import Network
from aios_nb.hub.presence import Presence, declare
from aios_nb.loop import own_process
from aios_nb.node import Node
from aios_nb.records import Scope, agent_record, peek, sign_record

NETWORK = "late"
EACH = 10
"""Records of one publisher."""
PATIENCE_S = 60.0
BEAT_S = 0.001
_WORDS = "carries water to whoever asks for it, number {} of a long row of carriers"


def records(count: int) -> tuple[list[Presence], list[bytes]]:
    """Presences and records of publishers who are not there."""
    now = int(time.time() * 1000)
    presences, contents = [], []
    for number in range(-(-count // EACH)):
        one = identity("late", number)
        word = declare(one, NETWORK, epoch=now, incarnation=0, scope=Scope.LOOPBACK, address=None)
        presences.append(word)
        for place in range(min(EACH, count - number * EACH)):
            record = agent_record(
                net=NETWORK,
                node=one.node_id,
                name=f"carrier-{place}",
                access="network",
                card=b"\0" * 32,
                seq=now,
                epoch=now,
                now_ms=now,
                about=_WORDS.format(number * EACH + place),
                tags=["water"],
            )
            contents.append(sign_record(one, record).to_bytes())
    return presences, contents


def _network(node: Node) -> Network:
    return node._open_rooms().network  # noqa: SLF001 - no method fills a catalogue


def seed(count: int) -> None:
    """Run until told to stop; the ready line comes when the catalogue is full."""
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    node = Node(Settings(name="seed", network=NETWORK)).start()
    own_process()
    presences, contents = records(count)

    async def fill() -> None:
        network = _network(node)
        gossip = network._started().gossip  # noqa: SLF001
        for presence in presences:
            gossip.introduce(asyncio.get_running_loop().time(), presence)
        for content in contents:
            network.catalogue.offer(content)
        if len(network.catalogue) < count:
            raise Broken(f"the catalogue took {len(network.catalogue)} of {count} records")

    node.run(fill)
    run = node.run_info
    if run is None:
        raise Broken("a started node has no address")
    print(msgspec.json.encode({"url": run.url, "node_id": run.node_id}).decode(), flush=True)
    stop.wait()
    node.stop()


def join(address: str, count: int) -> Told:
    """Join, learn, and say how it was."""
    node = Node(Settings(name="late", network=NETWORK, join=(address,))).start()
    own_process()
    try:
        told = node.run(lambda: _learn(node, address.rpartition("#")[2], count))
        contents = [signed.to_bytes() for signed in _network(node).catalogue.agents()]
        _verify([one for one in contents if b"carrier-" in one], told)
        return told
    finally:
        node.stop()


async def _learn(node: Node, other: str, count: int) -> Told:
    ready = beat = time.perf_counter()
    spent = time.process_time()
    network, told = _network(node), Told(0.0, 0.0, 0.0, 0.0, 0.0, [])
    own = sum(1 for _ in network.catalogue.of(node.node_id))
    linked = False
    while len(network.catalogue) - own < count:
        if not linked and network.member(other) is not None:
            linked, told.linked_s = True, beat - ready
        await asyncio.sleep(BEAT_S)
        now = time.perf_counter()
        told.gaps_s.append(now - beat - BEAT_S)
        beat = now
        if beat - ready > PATIENCE_S:
            raise Broken(f"only {len(network.catalogue)} records after {PATIENCE_S:.0f} s")
    told.learned_s, told.cpu_s = beat - ready, time.process_time() - spent
    return told


def _verify(contents: Sequence[bytes], told: Told) -> None:
    begun, spent = time.perf_counter(), time.process_time()
    for content in contents:
        peek(content).prove()
    told.verify_s, told.verify_cpu_s = time.perf_counter() - begun, time.process_time() - spent


if __name__ == "__main__":
    if sys.argv[1] == "seed":
        seed(int(sys.argv[2]))
    else:
        print(msgspec.json.encode(join(sys.argv[2], int(sys.argv[3]))).decode())
