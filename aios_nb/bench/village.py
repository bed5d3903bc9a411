"""Many nodes as processes of their own, each in its own home, joined through one of them."""

from __future__ import annotations

import contextlib
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from aios_nb.bench import owner
from aios_nb.bench.contestants import child_env, end, first_line
from aios_nb.bench.spec import Broken

ANSWER_WAIT_S = 10.0
LOOK_S = 0.05
LOOKERS = 4
SAID_CHARS = 300
WORK = "carries water"
"""What every agent of a village says of itself."""
_AGENT = """import aios_nb as aios

@aios.agent(name="{name}-carrier", about="{name} {work}", tags=["village"])
async def carrier(text):
    return "{name} carried " + text
"""


class View(NamedTuple):
    """What one node sees of the others."""

    states: Mapping[str, str]
    """By node id."""
    agents: frozenset[str]
    """The ids of those that are live."""


class Villager:
    """One node: its home stays when its process ends."""

    def __init__(self, name: str, folder: Path, arguments: Sequence[str]) -> None:
        self.name = name
        self._folder = folder
        self._arguments = arguments
        self.process: subprocess.Popen[bytes] | None = None
        self.ready: Mapping[str, Any] = {}

    @property
    def node_id(self) -> str:
        return str(self.ready["node_id"])

    @property
    def address(self) -> str:
        return f"{self.ready['url']}#{self.node_id}"

    @property
    def agent(self) -> str:
        return f"{self.name}-carrier@{self.node_id}"

    def launch(self, join: str | None = None) -> None:
        """Start its process; ``wait`` says when it is ready."""
        self.close()
        self._folder.mkdir(parents=True, exist_ok=True)
        agents = self._folder / "village.py"
        agents.write_text(_AGENT.format(name=self.name, work=WORK), encoding="utf-8")
        command = ["up", "--json", "--name", self.name, "--agents", str(agents)]
        command += ["--join", join] if join else []
        with (self._folder / "said.log").open("ab") as said:
            self.process = subprocess.Popen(  # noqa: S603 (our own module)
                [sys.executable, "-m", "aios_nb", *command, *self._arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=said,
                env=child_env(AIOS_HOME=str(self._folder / "home")),
            )

    def wait(self) -> float:
        """The moment of its ready line."""
        line = first_line(self._running())
        try:
            ready = msgspec.json.decode(line, type=dict[str, Any])
        except msgspec.DecodeError:
            ready = {}
        if "url" not in ready:  # it says why not on its one output or the other
            said = f"{line.decode(errors='replace')} {self.said()}".strip()
            raise Broken(f"{self.name} did not start: {said[-SAID_CHARS:]}")
        self.ready = ready
        return time.monotonic()

    def signal(self, number: signal.Signals) -> None:
        self._running().send_signal(number)
        if number is signal.SIGKILL:
            self._running().wait()

    def said(self) -> str:
        """What it wrote to its terminal."""
        return (self._folder / "said.log").read_text(encoding="utf-8", errors="replace")

    def ask(self, method: str, **params: Any) -> Any:
        """The result of a call, as its owner."""
        url, token = self.ready["url"], self.ready["token"]
        return owner.ask(url, token, method, params, ANSWER_WAIT_S)

    def view(self) -> View:
        """By tag alone: the first search by words reads a model, thirty of them at a time here."""
        peers = self.ask("node.peers")["peers"]
        found = self.ask("agents.search", query="tag:village", limit=200)["agents"]
        live = frozenset(row["id"] for row in found if row["live"])
        return View({row["node_id"]: row["state"] for row in peers}, live)

    def close(self) -> None:
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                self.process.send_signal(signal.SIGCONT)
            end(self.process)

    def _running(self) -> subprocess.Popen[bytes]:
        if self.process is None:
            raise Broken(f"{self.name} was not started")
        return self.process


class Village:
    """The nodes, and how long they take to agree."""

    def __init__(self, folder: Path, *arguments: str) -> None:
        self._folder = folder
        self._arguments = arguments
        self.all: list[Villager] = []
        self._pool = ThreadPoolExecutor(LOOKERS)

    def settle(self, count: int) -> float:
        """Start so many nodes, all joined through the first. When the last of them was ready."""
        new = [
            Villager(f"v{n}", self._folder / f"v{n}", self._arguments)
            for n in range(len(self.all), len(self.all) + count)
        ]
        first = not self.all
        self.all += new  # before they start: whatever happens, they are ended
        if first:
            new[0].launch()
            new.pop(0).wait()
        return self._start(new)

    def restart(self, gone: Sequence[Villager]) -> float:
        """Start these again in their homes. When the last of them was ready."""
        return self._start(gone)

    def _start(self, nodes: Sequence[Villager]) -> float:
        for villager in nodes:
            villager.launch(self.all[0].address)
        return max((villager.wait() for villager in nodes), default=time.monotonic())

    def until(
        self, seen: Callable[[Villager, View], bool], by: Sequence[Villager], within_s: float
    ) -> float:
        """The moment when the last of these nodes saw it. Raises ``Broken`` with who did not."""
        ends = time.monotonic() + within_s
        missing = list(by)
        while missing:
            views = list(self._pool.map(Villager.view, missing))
            missing = [who for who, view in zip(missing, views, strict=True) if not seen(who, view)]
            if missing and time.monotonic() > ends:
                views = [who.view() for who in missing[:2]]
                raise Broken(f"{len(missing)} of {len(by)} never saw it; the first: {views}")
            if missing:
                time.sleep(LOOK_S)
        return time.monotonic()

    def views(self, by: Sequence[Villager]) -> list[View]:
        return list(self._pool.map(Villager.view, by))

    def close(self) -> None:
        self._pool.shutdown()
        for villager in self.all:
            with contextlib.suppress(ProcessLookupError):
                if villager.process is not None:
                    villager.process.send_signal(signal.SIGCONT)
                    villager.process.terminate()
        for villager in self.all:
            villager.close()


@contextlib.contextmanager
def village(*arguments: str) -> Iterator[Village]:
    """An empty village in a folder of its own; all its processes are ended on the way out."""
    with tempfile.TemporaryDirectory(prefix="aios-village-", ignore_cleanup_errors=True) as folder:
        made = Village(Path(folder), *arguments)
        try:
            yield made
        finally:
            made.close()


def knows_all(others: Sequence[Villager]) -> Callable[[Villager, View], bool]:
    """Whether a node sees all of them alive, with their agents."""

    def seen(who: Villager, view: View) -> bool:
        return all(
            other is who
            or (view.states.get(other.node_id) == "alive" and other.agent in view.agents)
            for other in others
        )

    return seen


def sees_gone(others: Sequence[Villager]) -> Callable[[Villager, View], bool]:
    """Whether a node sees all of them dead or not at all, and none of their agents."""

    def seen(_: Villager, view: View) -> bool:
        return all(
            view.states.get(other.node_id, "dead") in {"dead", "left"}
            and other.agent not in view.agents
            for other in others
        )

    return seen
