"""A crowd of nodes with fresh keys, at a node's door: ``python -m aios_nb.bench.strangers``.

Prints a line when it is ready, then takes ``go`` and ``rest`` and answers each with how many
knocked so far and how many were answered. It has the lowest priority: what a crowd does to a node
is asked, not what it does to the machine both happen to share.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from typing import Any

from aios_nb.access import Caller
from aios_nb.bench.keys import identity
from aios_nb.errors import AiosError
from aios_nb.wire.dispatch import Dispatcher
from aios_nb.wire.methods import METHODS
from aios_nb.wire.peer.links import PeerLinks

AT_ONCE = 20
KEYS_PER_S = 500
LOWEST_PRIORITY = 19
TEXT = "x" * 500


class Deaf:
    """Answers nothing: strangers only ask."""

    def __getattr__(self, _: str) -> Any:
        return lambda *_: None


class Crowd:
    """Knocks with one fresh key after another."""

    def __init__(self, url: str, node_id: str) -> None:
        self._url = url
        self._node_id = node_id
        self._dispatcher = Dispatcher({row.name.partition(".")[0]: Deaf() for row in METHODS})
        self.going = asyncio.Event()
        self.knocked = self.answered = 0
        self._next = 0.0

    async def knock(self) -> None:
        """Come as a new node, ask once, and leave; again and again."""
        while await self.going.wait():
            self.knocked += 1
            await self._in_time()
            stranger = identity("stranger", self.knocked)
            links = PeerLinks(
                stranger, "main", standing=lambda _: Caller.NODE, lookup=lambda _: [self._url]
            )
            links.open(self._dispatcher)
            try:
                link = await links.reach(self._node_id)
                await link.call("aios.message", self._envelope(stranger.node_id))
                self.answered += 1
            except AiosError:
                await asyncio.sleep(0)  # turned away, as most are
            finally:
                await links.close()

    async def _in_time(self) -> None:
        """Wait until it is this one's turn: so many a second, however fast they are sent away."""
        now = asyncio.get_running_loop().time()
        self._next = max(self._next, now) + 1 / KEYS_PER_S
        await asyncio.sleep(self._next - now)

    def _envelope(self, node_id: str) -> dict[str, Any]:
        return {
            "envelope": {
                "sender": {"id": f"owner@{node_id}", "type": "human"},
                "recipient": {"id": f"bench_echo@{self._node_id}", "type": "agent"},
                "message_type": "request",
                "content": {"task": TEXT},
                "routing": {"path": [node_id]},
            }
        }


async def stand(url: str, node_id: str) -> None:
    """Do as standard input says, until it ends."""
    crowd = Crowd(url, node_id)
    knocking = [asyncio.create_task(crowd.knock()) for _ in range(AT_ONCE)]
    print(json.dumps({"url": url}), flush=True)
    while command := (await asyncio.to_thread(sys.stdin.readline)).strip():
        (crowd.going.set if command == "go" else crowd.going.clear)()
        print(json.dumps({"knocked": crowd.knocked, "answered": crowd.answered}), flush=True)
    for task in knocking:
        task.cancel()


if __name__ == "__main__":
    os.nice(LOWEST_PRIORITY)
    asyncio.run(stand(sys.argv[1], sys.argv[2]))
