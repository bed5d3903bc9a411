"""The servers that are compared. Each is a child process on a loopback port of its own.

A contestant prints one JSON line when it is ready, as ``aios-nb up --json`` does.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import selectors
import shlex
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import IO, Any

import msgspec

from aios_nb.bench import others, owner, usage
from aios_nb.bench.spec import Broken, Missing, Target, Work

READY_WAIT_S = 60.0
END_WAIT_S = 10.0
SAID_BYTES = 2000
"""How much of a failed child's last words is quoted."""
ALLOWED_AT_ONCE = 100
ALLOWED_S = 60.0
PACKAGE_ROOT = Path(__file__).resolve().parents[2]
AGENTS_FILE = Path(__file__).with_name("agents.py")


class Contestant:
    """A server that runs, and what it said when it was ready."""

    def __init__(
        self, name: str, process: subprocess.Popen[bytes], ready: Mapping[str, Any], start_s: float
    ) -> None:
        self.name = name
        self.process = process
        self.ready = ready
        self.start_s = start_s
        """From the start of the process to its ready line."""

    @property
    def pid(self) -> int:
        return self.process.pid

    @property
    def rss_mb(self) -> float | None:
        return usage.rss_mb(self.pid)

    def target(self, work: Work, concurrency: int, **more: Any) -> Target:
        """This server as something to send to."""
        return Target(
            url=self.ready["url"],
            work=work,
            concurrency=concurrency,
            token=self.ready.get("token"),
            node_id=self.ready.get("node_id"),
            pid=self.pid,
            **more,
        )


def child_env(**more: str) -> dict[str, str]:
    """Our environment, with this very package first and nothing that slows one side only."""
    env = {name: value for name, value in os.environ.items() if not name.startswith("AIOS_")}
    paths = [str(PACKAGE_ROOT), *filter(None, [env.get("PYTHONPATH")])]
    env["PYTHONPATH"] = os.pathsep.join(paths)
    env |= {"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    return env | more


def pipes(process: subprocess.Popen[bytes]) -> tuple[IO[bytes], IO[bytes]]:
    """A child's standard input and output."""
    if process.stdin is None or process.stdout is None:
        raise Broken("a child that was started without pipes")
    return process.stdin, process.stdout


def asked(process: subprocess.Popen[bytes], line: bytes) -> bytes:
    """The line that a child answers to a line."""
    stdin, stdout = pipes(process)
    try:
        stdin.write(line + b"\n")
        stdin.flush()
    except BrokenPipeError:
        return b""
    return stdout.readline()


def printed(arguments: Sequence[str], **env: str) -> bytes:
    """What a Python with these arguments prints before it ends well."""
    done = subprocess.run(  # noqa: S603 (our own modules)
        [sys.executable, *arguments], capture_output=True, env=child_env(**env), check=False
    )
    if done.returncode:
        words = done.stderr.decode(errors="replace").strip().splitlines()
        raise Broken(f"{shlex.join(arguments[:2])} failed: {words[-1] if words else 'in silence'}")
    return done.stdout


def end(process: subprocess.Popen[bytes]) -> None:
    """Ask a child to stop, and see that it does."""
    if process.stdin is not None:
        with contextlib.suppress(BrokenPipeError):
            process.stdin.close()
    process.terminate()
    try:
        process.wait(END_WAIT_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    if process.stdout is not None:
        process.stdout.close()


@contextlib.contextmanager
def running(name: str, arguments: Sequence[str], env: Mapping[str, str]) -> Iterator[Contestant]:
    """A child that has said it is ready; ended on the way out."""
    with tempfile.TemporaryFile() as said:
        begun = time.perf_counter()
        process = subprocess.Popen(  # noqa: S603 (our own modules)
            [sys.executable, *arguments],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said,
            env=dict(env),
        )
        try:
            line = first_line(process)
            start_s = time.perf_counter() - begun
            try:
                ready = msgspec.json.decode(line)
            except msgspec.DecodeError:
                raise Broken(f"{name} did not start: {_last_words(said, line)}") from None
            yield Contestant(name, process, ready, start_s)
        finally:
            end(process)


def first_line(process: subprocess.Popen[bytes]) -> bytes:
    """What a child says when it is ready; empty if it never does."""
    _, stdout = pipes(process)
    with selectors.DefaultSelector() as selector:
        selector.register(stdout, selectors.EVENT_READ)
        if not selector.select(READY_WAIT_S):
            return b""
    return stdout.readline()


def _last_words(said: IO[bytes], line: bytes) -> str:
    said.seek(0, os.SEEK_END)
    said.seek(max(0, said.tell() - SAID_BYTES))
    words = (line + said.read()).decode(errors="replace").strip().splitlines()
    return words[-1] if words else "no ready line"


def baseline(kind: str) -> contextlib.AbstractContextManager[Contestant]:
    """One of the servers of ``baselines``: echo, events, spawn-bare, spawn-stack."""
    return running(kind, ["-m", "aios_nb.bench.baselines", kind], child_env())


def other(kind: str, *arguments: str) -> contextlib.AbstractContextManager[Contestant]:
    """One of the servers of ``others``. Raises ``Missing`` where it cannot run."""
    missing = [name for name in others.NEEDS[kind] if not importlib.util.find_spec(name)]
    if missing:
        raise Missing(f"{', '.join(missing)} is not installed: pip install 'aios-nb[bench]'")
    return running(kind, ["-m", "aios_nb.bench.others", kind, *arguments], child_env())


def _home() -> tempfile.TemporaryDirectory[str]:
    return tempfile.TemporaryDirectory(prefix="aios-bench-", ignore_cleanup_errors=True)


@contextlib.contextmanager
def _at_home(name: str, *arguments: str) -> Iterator[Contestant]:
    with _home() as home, running(name, arguments, child_env(AIOS_HOME=home)) as contestant:
        yield contestant


def node() -> contextlib.AbstractContextManager[Contestant]:
    """Our node with the bench agents and ``bench.echo``, in a home of its own."""
    return _at_home("node", "-m", "aios_nb.bench.bare")


@contextlib.contextmanager
def two_nodes() -> Iterator[tuple[Contestant, Contestant]]:
    """Two of these in two homes, of which the first is joined to the second and allowed there."""
    bare = ["-m", "aios_nb.bench.bare"]
    with (
        _home() as here,
        _home() as there,
        running("far node", [*bare, "--name", "far"], child_env(AIOS_HOME=there)) as far,
    ):
        join = f"{far.ready['url']}#{far.ready['node_id']}"
        arguments = [*bare, "--name", "near", "--join", join]
        with running("near node", arguments, child_env(AIOS_HOME=here)) as near:
            allow(far, [near.ready["node_id"]])
            yield near, far


def allow(node: Contestant, others: Sequence[str]) -> None:
    """Let these nodes call what known nodes may, at their own pace."""
    for at in range(0, len(others), ALLOWED_AT_ONCE):
        batch = [
            {"jsonrpc": "2.0", "id": number, "method": "nodes.allow", "params": {"node": other}}
            for number, other in enumerate(others[at : at + ALLOWED_AT_ONCE])
        ]
        answers = owner.post(node.ready["url"], node.ready["token"], batch, ALLOWED_S)
        if any("result" not in answer for answer in answers):
            raise Broken(f"nodes were not allowed: {answers[0]}")


def command() -> contextlib.AbstractContextManager[Contestant]:
    """The same by the command that people type."""
    return _at_home("up", "-m", "aios_nb", "up", "--json", "--agents", str(AGENTS_FILE))


def notebook() -> contextlib.AbstractContextManager[Contestant]:
    """A process whose main thread is ours to keep busy while a node lives in it."""
    return _at_home("notebook", "-m", "aios_nb.bench.cell")
