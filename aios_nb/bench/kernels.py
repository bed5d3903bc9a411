"""Real kernels, as JupyterLab starts them: a notebook's path, one home, cells that are run."""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from aios_nb.bench import owner
from aios_nb.bench.contestants import child_env
from aios_nb.bench.spec import Broken
from aios_nb.home import Home, RunInfo, default_name

START_S = 60.0
CELL_S = 60.0
LOOK_S = 0.02


class Notebook:
    """One kernel and the node in it."""

    def __init__(self, path: str, home: Path) -> None:
        from jupyter_client.manager import KernelManager

        self._home = Home(home)
        self._name, _ = default_name({"JPY_SESSION_NAME": path})
        self._manager = KernelManager(kernel_name="python3")
        env = child_env(AIOS_HOME=str(home), JPY_SESSION_NAME=path)
        self._manager.start_kernel(env={**os.environ, **env})
        self._client = self._manager.client()
        self._client.start_channels()
        self._client.wait_for_ready(timeout=START_S)
        self._run: RunInfo | None = None

    def cell(self, code: str) -> str:
        """What this cell prints. Raises ``Broken`` when it fails."""
        printed: list[str] = []

        def heard(message: dict[str, Any]) -> None:
            if message["msg_type"] == "stream":
                printed.append(message["content"]["text"])

        reply = self._client.execute_interactive(code, timeout=CELL_S, output_hook=heard)
        if reply["content"]["status"] != "ok":
            raise Broken(f"a cell failed: {reply['content'].get('evalue', reply['content'])}")
        return "".join(printed)

    def begin(self, code: str) -> None:
        """Start a cell; it runs when this returns. An interrupt before that would be for nobody."""
        wanted = self._client.execute(f"print('begun', flush=True)\n{code}")
        while True:
            message = self._client.get_iopub_msg(timeout=CELL_S)
            if message["msg_type"] == "stream" and message["parent_header"]["msg_id"] == wanted:
                return

    def interrupt(self) -> None:
        self._manager.interrupt_kernel()
        self._client.wait_for_ready(timeout=START_S)

    @property
    def run(self) -> RunInfo:
        """Its node's address, by the run files of the home."""
        if self._run is None:
            self._run = _until(self._started, START_S, "no node has started")
        return self._run

    def ask(self, method: str, **params: Any) -> Any:
        """The result of a call over HTTP, as the node's owner."""
        return owner.ask(self.run.url, self.run.token, method, params, CELL_S)

    def sees(self, agent: str, about: str) -> bool:
        """Whether its hub shows this agent of another node, alive and with these words."""
        rows = self.ask("agents.search", query="tag:bench", limit=50)["agents"]
        return any(r["name"] == agent and r["about"] == about and r["live"] for r in rows)

    def close(self) -> None:
        self._client.stop_channels()
        self._manager.shutdown_kernel(now=False)

    def _started(self) -> RunInfo | None:
        return next((run for run in self._home.running() if run.name == self._name), None)


def waited(seen: Callable[[], bool], within_s: float, what: str) -> float:
    """Seconds until it was seen."""
    begun = time.perf_counter()
    _until(lambda: seen() or None, within_s, what)
    return time.perf_counter() - begun


def _until(look: Callable[[], Any], within_s: float, what: str) -> Any:
    ends = time.monotonic() + within_s
    while (found := look()) is None:
        if time.monotonic() > ends:
            raise Broken(f"{what} within {within_s:.0f} s")
        time.sleep(LOOK_S)
    return found


@contextlib.contextmanager
def notebook(path: str, home: Path) -> Iterator[Notebook]:
    """A kernel for the length of a block."""
    made = Notebook(path, home)
    try:
        yield made
    finally:
        made.close()
