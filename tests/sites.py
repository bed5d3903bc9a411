"""A real node for a test: started in a home of its own, stopped at the end."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from aios_nb.agents.definition import describe
from aios_nb.client.interface import Flow
from aios_nb.config import Limits, Settings
from aios_nb.node import Node, Rooms


class TestSite:
    """A node and short words for its methods."""

    __test__ = False

    def __init__(self, home: Path, agents: Iterable[Any] = (), **settings: Any) -> None:
        definitions = [describe(agent) if callable(agent) else agent for agent in agents]
        self.node = Node(
            Settings(**{"name": "test", "home": home, **settings}), definitions
        ).start()

    @property
    def rooms(self) -> Rooms:
        """The inside of the running node: for what no method shows."""
        return self.node._open_rooms()

    def call(self, method: str, **params: Any) -> Any:
        return self.node.run(lambda: self.node.client.call(method, **params))

    def start(self, method: str, **params: Any) -> Any:
        """The same without waiting: a future."""
        return self.node.loop.submit(self.node.client.call(method, **params))

    def stream(self, **params: Any) -> tuple[list[dict[str, Any]], Any]:
        """Deltas and result of ``chat.stream``."""

        async def read() -> tuple[list[dict[str, Any]], Any]:
            flow = self.node.client.notices("chat.stream", **params)
            deltas = [delta async for delta in flow]
            return deltas, await flow.result()

        return self.node.run(read)

    def flow(self, method: str, **params: Any) -> Flow:
        return self.node.client.notices(method, **params)

    def history(self, conversation: str) -> list[dict[str, Any]]:
        return self.call("chat.history", conversation=conversation)["messages"]

    def on_loop(self, work: Callable[[], Any]) -> Any:
        """Run a plain function on the node's loop."""

        async def run() -> Any:
            return work()

        return self.node.run(run)

    def stop(self) -> None:
        self.node.stop()


def limits(**changed: Any) -> Limits:
    return Limits(**changed)


class Slow:
    """A text that takes its time to be made; ``threads``: where it was."""

    def __init__(self, text: str) -> None:
        self._text = text
        self.threads: list[str] = []

    def __str__(self) -> str:
        self.threads.append(threading.current_thread().name)
        return self._text


class Gate:
    """An agent's door for tests: it says when it was entered, and waits to be let on."""

    def __init__(self) -> None:
        self.entered: list[str] = []
        self._arrivals = 0
        self._changed = asyncio.Event()
        self._open = asyncio.Event()

    async def pass_through(self, text: str) -> None:
        self.entered.append(text)
        self._changed.set()
        await self._open.wait()

    async def arrived(self, count: int) -> None:
        while len(self.entered) < count:
            self._changed.clear()
            await self._changed.wait()

    def open(self) -> None:
        self._open.set()
