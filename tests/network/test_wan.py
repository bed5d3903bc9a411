"""Three hosts, 80 ms apart, losing two packets of a hundred: joined, found, asked, lost, healed."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.network import wan

ONE_WAY_S = 0.04
LOSS = 0.02
PATIENCE_S = 90.0
PORT = 8765
_AGENT = """
import aios_nb as aios

@aios.agent(name="{name}", about="{about}")
async def answer(text):
    return "{name} says " + text
"""
ABOUTS = ("translates old letters", "counts the stars at night", "bakes bread")

missing = wan.why_not()
pytestmark = [
    pytest.mark.skipif(missing is not None, reason=f"*** NO REAL NETWORK: {missing} ***"),
    pytest.mark.timeout(400),
]


class Host:
    """A node on a host of its own."""

    def __init__(self, wire: wan.Wan, number: int, home: Path) -> None:
        self._wire = wire
        self.number = number
        self.name = f"host{number}"
        self._home = home
        self._process: subprocess.Popen[bytes] | None = None
        self.ready: dict[str, Any] = {}

    def up(self, join: Host | None = None) -> None:
        self._home.mkdir(exist_ok=True)
        agents = self._home / "agents.py"
        agents.write_text(_AGENT.format(name=self.name, about=ABOUTS[self.number]))
        address = wan.host(self.number)
        reach = ["--host", address, "--allow-host", address, "--port", str(PORT)]
        joined = ["--join", f"{join.ready['url']}#{join.ready['node_id']}"] if join else []
        self._process = subprocess.Popen(
            self._command("up", "--json", "--name", self.name, "--agents", agents, *reach, *joined),
            stdout=subprocess.PIPE,
            env=self._env(),
        )
        assert self._process.stdout is not None
        self.ready = json.loads(self._process.stdout.readline())

    def say(self, *words: object) -> Any:
        """What a command answers, run on that host."""
        done = subprocess.run(
            self._command(*words, "--json"), env=self._env(), capture_output=True, check=False
        )
        assert done.returncode == 0, done.stderr.decode()
        return json.loads(done.stdout)

    def finds(self, words: str) -> list[str]:
        return [row["id"] for row in self.say("search", words)["agents"] if row["live"]]

    def sees(self, other: Host) -> str | None:
        rows = {row["node_id"]: row["state"] for row in self.say("peers")["peers"]}
        return rows.get(other.ready["node_id"])

    @property
    def agent(self) -> str:
        return f"{self.name}@{self.ready['node_id']}"

    def end(self, how: signal.Signals = signal.SIGTERM) -> None:
        if self._process is not None:
            self._process.send_signal(how)
            self._process.wait(30)
            assert self._process.stdout is not None
            self._process.stdout.close()
            self._process = None

    def _command(self, *words: object) -> list[str]:
        return [*self._wire.inside(self.number), sys.executable, "-m", "aios_nb", *map(str, words)]

    def _env(self) -> dict[str, str]:
        return {**os.environ, "AIOS_HOME": str(self._home / "home")}


@pytest.fixture
def hosts(tmp_path: Path) -> Iterator[tuple[wan.Wan, list[Host]]]:
    with wan.wan(3, ONE_WAY_S, LOSS) as wire:
        made = [Host(wire, n, tmp_path / f"host{n}") for n in range(3)]
        yield wire, made
        for host in made:
            host.end()


def until(done: Callable[[], bool]) -> float:
    began = time.monotonic()
    while not done():
        assert time.monotonic() < began + PATIENCE_S
        time.sleep(0.2)
    return time.monotonic() - began


def test_three_hosts_join_find_call_lose_one_and_heal(hosts: tuple[wan.Wan, list[Host]]):
    wire, (a, b, c) = hosts
    a.up()
    b.up(join=a)
    c.up(join=a)

    until(lambda: b.agent in c.finds("stars"))
    assert c.say("ask", b.agent, "hello")["text"] == "host1 says hello"
    until(lambda: c.sees(b) == "alive" == b.sees(c))

    wire.cut(b.number)
    until(lambda: a.sees(b) == "dead" == c.sees(b))
    assert c.sees(a) == "alive" == a.sees(c)
    assert b.agent not in c.finds("stars")

    wire.heal(b.number)
    until(lambda: c.sees(b) == "alive" == b.sees(c))
    until(lambda: b.agent in c.finds("stars"))
    assert c.say("ask", b.agent, "again")["text"] == "host1 says again"

    a.end(signal.SIGKILL)  # who brought them together is gone
    until(lambda: b.sees(a) == "dead" == c.sees(a))
    assert c.say("ask", b.agent, "still")["text"] == "host1 says still"
    assert wire.carried()["lost"] > 0
