"""Nodes as processes: started, called, looked at from outside, killed."""

from __future__ import annotations

import contextlib
import http.client
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

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
AGENTS = HERE / "agents_for_hostile.py"
WAIT_S = 60.0
"""A ceiling for what should take a moment."""
LOOK_S = 0.05


def environment(home: Path, **more: str) -> dict[str, str]:
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in {"AIOS_NODE", "AIOS_DEBUG", "JPY_SESSION_NAME"}
    }
    return {**kept, "AIOS_HOME": str(home), "PYTHONPATH": str(ROOT), **more}


def until(happened: Callable[[], Any], what: str) -> Any:
    """What ``happened`` gives, as soon as it is true."""
    end = time.monotonic() + WAIT_S
    while not (found := happened()):
        if time.monotonic() > end:
            pytest.fail(f"waited in vain until {what}")
        time.sleep(LOOK_S)
    return found


class NodeProcess:
    """A node in a process of its own. Its standard error, with its log, goes to a file."""

    def __init__(
        self,
        home: Path,
        *args: str,
        limits: dict[str, Any] | None = None,
        before_start: Callable[[], None] | None = None,
        **env: str,
    ) -> None:
        self.home = home
        self.log_path = home.with_name(f"{home.name}-{time.monotonic_ns()}.log")
        command = [sys.executable, "-m", "aios_nb", "up", "--json", "--agents", str(AGENTS), *args]
        if limits is not None:
            command = [sys.executable, str(HERE / "tuned_node.py"), json.dumps(limits), str(AGENTS)]
        with self.log_path.open("wb") as log:
            self.process = subprocess.Popen(
                command,
                env=environment(home, **env),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                preexec_fn=before_start,  # noqa: PLW1509 - a limit of the system, set before exec
            )
        assert self.process.stdout is not None
        self.said: dict[str, str] = json.loads(self.process.stdout.readline() or b"{}")
        if not self.said:
            self.kill()
            pytest.fail(f"the node did not start: {self.log()}")
        self.url, self.token = self.said["url"], self.said["token"]
        self.port = int(self.url.rpartition(":")[2])
        self.run_path = home / "run" / f"{self.said['name']}.json"

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def db_path(self) -> Path:
        return self.home / f"{self.said['name']}.db"

    def kill(self) -> None:
        """kill -9, and wait for the corpse."""
        self.process.kill()
        self._reap()

    def stop(self) -> int:
        """SIGTERM, and the exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self._reap()

    def _reap(self) -> int:
        try:
            return self.process.wait(WAIT_S)
        finally:
            if self.process.stdout is not None:
                self.process.stdout.close()

    @property
    def alive(self) -> bool:
        return self.process.poll() is None

    def log(self) -> str:
        return self.log_path.read_text(errors="replace")

    def complaints(self) -> list[str]:
        """Lines of the log that tell of our own mistakes."""
        words = ("ERROR", "CRITICAL", "Traceback", "never retrieved", "never awaited")
        return [line for line in self.log().splitlines() if any(word in line for word in words)]

    # From outside -----------------------------------------------------------------------

    def post(self, body: bytes, **headers: str) -> tuple[int, bytes]:
        """POST /rpc with the token; status and body."""
        return self.request("POST", "/rpc", body, Authorization=f"Bearer {self.token}", **headers)

    def request(
        self, method: str, path: str, body: bytes | None = None, **headers: str
    ) -> tuple[int, bytes]:
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=WAIT_S)
        with contextlib.closing(connection):
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            return answer.status, answer.read()

    def answer(self, method: str, **params: Any) -> dict[str, Any]:
        """The JSON-RPC response to one call of the owner."""
        call = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        status, body = self.post(json.dumps(call).encode())
        assert status == 200, (status, body)
        answer: dict[str, Any] = json.loads(body)
        return answer

    def call(self, method: str, **params: Any) -> Any:
        answer = self.answer(method, **params)
        assert "result" in answer, answer
        return answer["result"]

    def calls(self, method: str, many: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
        """The responses to many calls of one method, in order; sent in batches."""
        for start in range(0, len(many), 100):
            batch = [
                {"jsonrpc": "2.0", "id": number, "method": method, "params": params}
                for number, params in enumerate(many[start : start + 100])
            ]
            _, body = self.post(json.dumps(batch).encode())
            yield from sorted(json.loads(body), key=lambda answer: answer["id"])

    # The process ------------------------------------------------------------------------

    def open_files(self) -> int:
        return sum(1 for _ in Path(f"/proc/{self.pid}/fd").iterdir())

    def memory_bytes(self) -> int:
        pages = int(Path(f"/proc/{self.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE")
