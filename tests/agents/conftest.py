"""A small house for agents: the real host and loop, the node's services kept in memory."""

from __future__ import annotations

import asyncio
import hashlib
import threading
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from aios_nb.agents import AgentHost, decorator, describe
from aios_nb.config import Limits
from aios_nb.envelope import AgentRow, Event, FileRef, Kind, Outcome, Sender, Task, new_id

NODE = "a" * 32
OWNER = f"owner@{NODE}"
CEILING_S = 30.0


class MemoryBlobs:
    def __init__(self) -> None:
        self.content: dict[str, bytes] = {}
        self.owners: dict[str, str] = {}

    async def put(
        self, content: bytes, name: str, mime: str, owner: str, *, stranger: bool = False
    ) -> FileRef:
        sha256 = hashlib.sha256(content).hexdigest()
        self.content[sha256] = content
        self.owners[sha256] = owner
        return FileRef(name, mime, len(content), sha256)

    def may_read(self, sha256: str, reader: object) -> bool:
        return sha256 in self.content

    def read(self, sha256: str) -> bytes:
        return self.content[sha256]


class MemoryRun:
    """A ``ports.Run`` whose other agents are those of the same house.

    Like the real one it must be touched on the loop only, and says so.
    """

    def __init__(self, house: House) -> None:
        self._house = house
        self._loop_thread = threading.get_ident()
        self.pieces: list[str] = []
        self.notes: list[tuple[str, float | None]] = []
        self.cancelled = False
        self.answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.asked = asyncio.Event()
        self.refuse: Exception | None = None
        self.rows: list[AgentRow] = []
        self.left_s = 60.0
        self.begun = False
        self.stranger = False
        self.why_late: Callable[[], tuple[str, str] | None] | None = None

    def _here(self) -> None:
        assert threading.get_ident() == self._loop_thread, "touched outside the loop"

    @property
    def messages(self) -> list[Event]:
        self._here()
        return [Event("m0", 1, Kind.MESSAGE, Sender(OWNER, "human"), "earlier")]

    @property
    def seconds_left(self) -> float:
        self._here()
        return self.left_s

    @property
    def text(self) -> str:
        return "".join(self.pieces)

    def begin(self) -> None:
        self.begun = True

    def delta(self, text: str) -> None:
        self._here()
        if self.refuse is not None:
            raise self.refuse
        self.pieces.append(text)

    def progress(self, note: str, fraction: float | None) -> None:
        self._here()
        self.notes.append((note, fraction))

    async def call(self, agent: str, text: str, *, data: Any = None, files: Any = ()) -> Outcome:
        self._here()
        child = self._house.task(agent.partition("@")[0], text, data=data, files=tuple(files))
        return await self._house.host.carry(child, self._house.run())

    async def search(self, words: str, limit: int) -> list[AgentRow]:
        self._here()
        return self.rows[:limit]

    async def ask_user(self, question: str) -> str:
        self._here()
        self.asked.set()
        return await self.answer


class House:
    """One host with its services, open inside ``play``."""

    def __init__(self, limits: Limits | None = None) -> None:
        self.blobs = MemoryBlobs()
        self.host = AgentHost(NODE, self.blobs, limits)

    def add(self, target: Any, **card: Any) -> str:
        definition = describe(target, **card)
        self.host.host(definition)
        return definition.name

    def run(self) -> MemoryRun:
        return MemoryRun(self)

    def task(self, name: str, text: str = "", **fields: Any) -> Task:
        return Task(
            f"{name}@{NODE}", text, new_id("m"), new_id("r"), "c1",
            Sender(OWNER, "human"), OWNER, **fields,
        )  # fmt: skip

    async def ask(self, name: str, text: str = "", run: MemoryRun | None = None) -> Outcome:
        return await self.host.carry(self.task(name, text), run or self.run())

    def start(
        self, name: str, text: str = "", run: MemoryRun | None = None
    ) -> asyncio.Task[Outcome]:
        return asyncio.create_task(self.ask(name, text, run))


Scene = Callable[[House], Awaitable[Any]]


@pytest.fixture
def play() -> Callable[..., Any]:
    """Run a scene in a fresh house on a real loop; afterwards no thread and no task is left."""

    def run(scene: Scene, limits: Limits | None = None, *, leaves_threads: bool = False) -> Any:
        async def main() -> Any:
            house = House(limits)
            try:
                async with asyncio.timeout(CEILING_S):
                    return await scene(house)
            finally:
                await house.host.close()
                others = asyncio.all_tasks() - {asyncio.current_task()}
                assert not others, "a task was left"
                assert leaves_threads or not agent_threads(), "a thread was left"

        return asyncio.run(main())

    return run


def agent_threads() -> list[str]:
    return [t.name for t in threading.enumerate() if t.name.startswith("aios-agent")]


@pytest.fixture(autouse=True)
def nothing_declared() -> Iterator[None]:
    """Each test starts with no declared agents and no node."""
    decorator.declared.clear()
    decorator.set_sink(None)
    yield
    decorator.declared.clear()
    decorator.set_sink(None)
