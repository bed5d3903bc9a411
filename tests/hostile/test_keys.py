"""A key costs nothing: a thousand fresh ones flood a node, and its owner hardly notices."""

from __future__ import annotations

import asyncio
import sqlite3
from collections import Counter
from pathlib import Path
from typing import Any

from aios_nb.access import Caller
from aios_nb.errors import AiosError
from aios_nb.identity import Identity
from aios_nb.wire.dispatch import Dispatcher
from aios_nb.wire.methods import METHODS
from aios_nb.wire.peer.links import PeerLinks
from tests.hostile.conftest import Start
from tests.hostile.nodes import NodeProcess

KEYS = 1000
AT_ONCE = 100
LOG_BYTES = 300_000
TEXT = "x" * 2000


class Rooms:
    """What a flooding node answers: nothing."""

    def __getattr__(self, _: str) -> Any:
        return lambda *_: None


def links_of(node: NodeProcess, identity: Identity) -> PeerLinks:
    links = PeerLinks(identity, "main", standing=lambda _: Caller.NODE, lookup=lambda _: [node.url])
    names = {row.name.partition(".")[0] for row in METHODS}
    rooms = dict.fromkeys(names, Rooms())
    links.open(Dispatcher(rooms))
    return links


def envelope(identity: Identity, node_id: str, text: str) -> dict[str, Any]:
    return {
        "envelope": {
            "sender": {"id": f"owner@{identity.node_id}", "type": "human"},
            "recipient": {"id": f"counter@{node_id}", "type": "agent"},
            "message_type": "request",
            "content": {"task": text},
            "routing": {"path": [identity.node_id]},
        }
    }


async def ask(node: NodeProcess, identity: Identity, text: str) -> str:
    """How one stranger fares."""
    node_id = node.said["node_id"]
    links = links_of(node, identity)
    try:
        async with asyncio.timeout(60):
            link = await links.reach(node_id)
            answer = await link.call("aios.message", envelope(identity, node_id, text))
        return str(answer["content"]["status"])
    except (AiosError, TimeoutError) as problem:
        return type(problem).__name__
    finally:
        await links.close()


async def flood(node: NodeProcess, seen: Counter[str]) -> None:
    places = asyncio.Semaphore(AT_ONCE)

    async def one() -> None:
        async with places:
            seen[await ask(node, Identity.generate(), TEXT)] += 1

    await asyncio.gather(*(one() for _ in range(KEYS)))


def test_a_thousand_fresh_keys_do_not_keep_the_owner_or_a_friend_out(
    start: Start, tmp_path: Path
) -> None:
    limits = {"stranger_log_bytes": LOG_BYTES, "callers": 300}
    node = start(home=tmp_path / "home", limits=limits)
    friend = Identity.generate()
    node.call("nodes.allow", node=friend.node_id)
    seen: Counter[str] = Counter()
    own: list[str] = []

    async def owner() -> None:
        while sum(seen.values()) < KEYS:
            number = len(own)
            answer = await asyncio.to_thread(
                node.call, "chat.send", agent="counter", text=f"mine {number}"
            )
            own.append(answer["text"])

    async def both() -> str:
        flooding = asyncio.create_task(flood(node, seen))
        await owner()
        await flooding
        return await ask(node, friend, "a friend")

    assert asyncio.run(both()) == "success"
    assert own == [f"counted mine {number}" for number in range(len(own))]
    assert set(seen) <= {"success", "Busy", "Unreachable", "ConnectionLost"}
    assert seen["success"] > 0
    assert seen["Busy"] + seen["Unreachable"] + seen["ConnectionLost"] > 0
    assert node.alive
    assert node.complaints() == []
    callers = node.call("node.callers")["callers"]
    assert len(callers) <= limits["callers"] + 2
    assert node.stop() == 0
    with sqlite3.connect(node.db_path) as db:
        [(size,)] = db.execute(
            "SELECT sum(length(e.text) + length(e.data)) FROM events e JOIN conversations c"
            " ON c.n = e.conversation WHERE c.opener NOT LIKE '%@%' AND c.opener != ?",
            (friend.node_id,),
        )
        [(kept,)] = db.execute("SELECT count(*) FROM callers")
    assert (size or 0) <= LOG_BYTES
    assert kept <= limits["callers"] + 2
