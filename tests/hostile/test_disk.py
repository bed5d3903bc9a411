"""A full disk: nothing is acknowledged that is not kept, nothing crashes, and it goes on later."""

from __future__ import annotations

import concurrent.futures
import hashlib
import json
import os
import resource
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import FIRST_COMPLETED
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.hostile.nodes import WAIT_S, NodeProcess, environment
from tests.hostile.test_kill import check_database, check_history, histories, outcome_of

BUSY = -32005
FILE_LIMIT_BYTES = 2 << 20
DISK = "8m"
SPARE_BYTES = 2_000_000
"""Room for many rounds of calls: how they fall into batches, and what each costs, is chance."""
LARGE_CHARS = 600_000
"""More than what is left when a batch of calls has found no room."""
AT_ONCE = 16
CALLS_MOST = 20_000
TEXT = "x" * 2000

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="Linux limits and disks")


class Quota:
    """No file of the node may grow beyond a size."""

    def __init__(self, home: Path) -> None:
        self.home = home

    @staticmethod
    def before_start() -> None:
        _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
        resource.setrlimit(resource.RLIMIT_FSIZE, (FILE_LIMIT_BYTES, hard))

    def fill(self) -> None:
        """It fills by itself."""

    @staticmethod
    def give_back(node: NodeProcess) -> None:
        _, hard = resource.prlimit(node.pid, resource.RLIMIT_FSIZE)
        resource.prlimit(node.pid, resource.RLIMIT_FSIZE, (hard, hard))


class Small:
    """A disk of a few megabytes, nearly full of other things."""

    before_start = None

    def __init__(self, home: Path) -> None:
        self.home = home
        self._ballast = home.parent / "ballast"

    def fill(self) -> None:
        disk = os.statvfs(self.home)
        left = disk.f_bavail * disk.f_frsize - SPARE_BYTES
        self._ballast.write_bytes(b"x" * max(0, left))

    def give_back(self, _node: NodeProcess) -> None:
        self._ballast.unlink()


@contextmanager
def disk(kind: str, tmp_path: Path) -> Iterator[Quota | Small]:
    if kind == "quota":
        yield Quota(tmp_path / "home")
        return
    place = tmp_path / "disk"
    place.mkdir()
    made = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", f"size={DISK}", "none", str(place)],
        capture_output=True,
        check=False,
    )
    if made.returncode:
        pytest.skip("no small disk can be mounted here")
    try:
        yield Small(place / "home")
    finally:
        subprocess.run(["umount", "-l", str(place)], check=False)


@pytest.mark.parametrize("kind", ["quota", "small"])
def test_a_full_disk_loses_nothing_that_was_acknowledged(start, tmp_path, kind):
    with disk(kind, tmp_path) as small:
        node = start(home=small.home, before_start=small.before_start)
        small.fill()

        def send(number: int) -> tuple[str, dict[str, Any]]:
            name = f"m{number}"
            return name, node.answer("chat.send", agent="echo", text=name + TEXT, message_id=name)

        answers: dict[str, dict[str, Any]] = {}
        with concurrent.futures.ThreadPoolExecutor(AT_ONCE) as pool:
            numbers = iter(range(CALLS_MOST))
            waiting = {pool.submit(send, next(numbers)) for _ in range(AT_ONCE)}
            while not any("error" in answer for answer in answers.values()):
                done, waiting = concurrent.futures.wait(waiting, return_when=FIRST_COMPLETED)
                answers |= dict(call.result() for call in done)
                waiting |= {pool.submit(send, next(numbers)) for _ in done}

            # It is full for everybody, it says so, and it lives.
            large = node.answer("chat.send", agent="echo", text="x" * LARGE_CHARS)
            assert large["error"]["code"] == BUSY
            content = os.urandom(2 * FILE_LIMIT_BYTES)
            name = hashlib.sha256(content).hexdigest()
            auth = f"Bearer {node.token}"
            assert node.request("PUT", f"/blobs/{name}", content, Authorization=auth)[0] == 503
            assert node.call("node.info")["node_id"] == node.said["node_id"]

            small.give_back(node)
            answers |= dict(call.result() for call in waiting)
        refused = {name: a["error"] for name, a in answers.items() if "error" in a}
        assert {error["code"] for error in refused.values()} == {BUSY}, refused
        assert all(error["data"]["retry_after_s"] > 0 for error in refused.values())
        taken = {name: outcome_of(a) for name, a in answers.items() if "result" in a}
        assert len(taken) > AT_ONCE
        for name in refused:
            again = send(int(name[1:]))[1]
            # Its request may have been kept and only its end not: then it is known as cut.
            taken[name] = outcome_of(again)
        assert node.call("chat.send", agent="echo", text="room again")["text"] == "room again"
        assert {outcome[0] for outcome in taken.values()} <= {"done", "interrupted"}

        logs = histories(node)
        for rows in logs.values():
            for row in rows:
                row["text"] = row["text"].removesuffix(TEXT)
        told = {
            name: (status, text.removesuffix(TEXT), *rest)
            for name, (status, text, *rest) in taken.items()
            if status == "done"
        }
        check_history(logs, told)
        assert node.stop() == 0
        assert "Traceback" not in node.log()
        check_database(node.db_path)


def test_a_node_that_finds_no_room_says_so_in_one_line(tmp_path):
    def no_room() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))

    done = subprocess.run(
        [sys.executable, "-B", "-m", "aios_nb", "up", "--json"],
        env=environment(tmp_path / "home"),
        capture_output=True,
        text=True,
        preexec_fn=no_room,
        timeout=WAIT_S,
        check=False,
    )
    assert done.returncode != 0
    assert json.loads(done.stdout)["error"]["message"]
    assert "Traceback" not in done.stderr
    assert 1 <= len(done.stderr.strip().splitlines()) <= 2, done.stderr
