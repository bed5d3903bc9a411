"""A node started by the command line, and the command line against it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

AGENTS = Path(__file__).with_name("agents_for_tests.py")
ROOT = Path(__file__).resolve().parents[2]
WAIT_S = 60


def environment(home: Path, **more: str) -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in {"AIOS_NODE", "AIOS_DEBUG", "JPY_SESSION_NAME", "NO_COLOR"}
    }
    return {**kept, "AIOS_HOME": str(home), "PYTHONPATH": str(ROOT), "COLUMNS": "100", **more}


class Cli:
    """``aios-nb`` as people and scripts run it, in one home."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self._started: list[Up] = []

    def __call__(
        self,
        *args: str,
        stdin: str = "",
        **env: str,
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "aios_nb", *args],
            input=stdin,
            env=environment(self.home, **env),
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=WAIT_S,
            check=False,
        )

    def json(self, *args: str) -> Any:
        done = self(*args, "--json")
        assert done.stderr == ""
        assert done.returncode == 0
        return json.loads(done.stdout)

    def start(self, *args: str) -> Up:
        up = Up(self.home, *args)
        self._started.append(up)
        return up

    def end(self) -> None:
        """Leave no node behind, also when a test failed half way."""
        for up in self._started:
            if up.process.poll() is None:
                up.process.kill()
            if up.process.stdout is not None and not up.process.stdout.closed:
                up.process.communicate(timeout=WAIT_S)


class Up:
    """A running ``aios-nb up --json``."""

    def __init__(self, home: Path, *args: str) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-m", "aios_nb", "up", "--json", *args],
            env=environment(home),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            encoding="utf-8",
        )
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            _, complaint = self.process.communicate(timeout=WAIT_S)
            pytest.fail(f"the node did not start: {complaint}")
        self.said: dict[str, str] = json.loads(line)

    def stop(self, number: int = signal.SIGTERM) -> tuple[int, str, str]:
        """Exit code, the rest of stdout, stderr."""
        if self.process.poll() is None:
            self.process.send_signal(number)
        out, err = self.process.communicate(timeout=WAIT_S)
        return self.process.returncode, out, err


@pytest.fixture
def cli(aios_home: Path) -> Iterator[Cli]:
    """The command line in a home of its own, where nothing runs."""
    made = Cli(aios_home)
    yield made
    made.end()


@pytest.fixture(scope="session")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    """The command line in a home where one node runs, with the agents for tests."""
    cli = Cli(tmp_path_factory.mktemp("site") / "home")
    up = cli.start("--name", "alice", "--agents", str(AGENTS))
    yield cli
    try:
        code, out, _ = up.stop()
    finally:
        cli.end()
    assert (code, out) == (0, "")
