"""Real kernels with this very interpreter, each driven as a notebook page drives it."""

from __future__ import annotations

import atexit
import json
import os
import queue
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from dataclasses import dataclass, field
from http.client import HTTPResponse
from pathlib import Path
from typing import Any

import pytest
from IPython.core.interactiveshell import InteractiveShell
from jupyter_client.manager import KernelManager
from traitlets.config import Config

import aios_nb
from aios_nb import unload_ipython_extension
from aios_nb.agents import decorator
from aios_nb.errors import from_wire
from aios_nb.home import default_name

CEILING_S = 60.0
"""For something that never comes; nothing here takes a fraction of it."""
ROOT = Path(aios_nb.__path__[0]).parent


@dataclass
class Cell:
    """What became of one cell so far."""

    id: str
    status: str = ""
    error: str = ""
    printed: str = ""
    outputs: list[dict[str, Any]] = field(default_factory=list)

    @property
    def shown(self) -> list[dict[str, Any]]:
        """What there is to see; a bar that has gone leaves an output with nothing in it."""
        return [one for one in self.outputs if any(one.values())]

    @property
    def text(self) -> str:
        """Everything it shows, as text."""
        return self.printed + "\n".join(one.get("text/plain", "") for one in self.shown)


class Notebook:
    """A kernel and the cells that were run in it."""

    def __init__(self, folder: Path, home: Path, env: dict[str, str] | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
        self._env = {
            **os.environ,
            "AIOS_HOME": str(home),
            "IPYTHONDIR": str(folder / "ipython"),
            "JUPYTER_RUNTIME_DIR": str(folder / "runtime"),
            "JPY_SESSION_NAME": str(folder / "analysis.ipynb"),
            "PYTHONPATH": path,
            **(env or {}),
        }
        self._folder = folder
        self.home = home
        self.manager = KernelManager(connection_file=str(folder / "kernel.json"))
        self.manager.shutdown_wait_time = CEILING_S  # killed, it could not say goodbye
        self.cells: dict[str, Cell] = {}
        self._replies: dict[str, dict[str, Any]] = {}
        self.displays: dict[str, dict[str, Any]] = {}
        """What is shown under a display id now."""
        self.lost: str = ""
        """What was printed and belongs to no cell."""
        self._start()

    def _start(self) -> None:
        self.manager.start_kernel(env=self._env, cwd=str(self._folder))
        self._connect()

    def _connect(self) -> None:
        self.client = self.manager.client()
        self.client.start_channels()
        self.client.wait_for_ready(timeout=CEILING_S)

    def begin(self, code: str, cell_id: str = "") -> Cell:
        """Run a cell, without waiting for it. ``cell_id``: say which one, as JupyterLab does."""
        content = {"code": code, "silent": False, "store_history": True, "user_expressions": {},
                   "allow_stdin": self.client.allow_stdin, "stop_on_error": True}  # fmt: skip
        message = self.client.session.msg("execute_request", content)
        if cell_id:
            message["metadata"]["cellId"] = cell_id
        self.client.shell_channel.send(message)
        cell = self.cells[message["header"]["msg_id"]] = Cell(message["header"]["msg_id"])
        return cell

    def run(self, code: str) -> Cell:
        """Run a cell to its end. One that fails is a failure of the test."""
        cell = self.finish(self.begin(code))
        assert cell.status == "ok", cell.error
        return cell

    def fail(self, code: str) -> str:
        """The error of a cell that is to fail."""
        cell = self.finish(self.begin(code))
        assert cell.status == "error", cell.text
        return cell.error

    def finish(self, cell: Cell) -> Cell:
        self.until(lambda: cell.status)
        # And the reply: ipykernel 7.3 may hang when the next request comes while it sends this.
        self.reply(cell.id)
        return cell

    def reply(self, message_id: str) -> dict[str, Any]:
        """What the kernel answered to a request. After an error it is ready for the next one."""
        while message_id not in self._replies:
            message = self.client.get_shell_msg(timeout=CEILING_S)
            self._replies[message["parent_header"]["msg_id"]] = message["content"]
        content = self._replies.pop(message_id)
        if content["status"] == "error":
            # For a moment it drops every cell: of "Run All" the rest is not run after a failure.
            while self.reply(self.client.execute("", silent=True))["status"] == "aborted":
                pass
        return content

    def value(self, expression: str) -> Any:
        """What an expression gives, by way of JSON."""
        cell = self.run(f"import json; print('=>' + json.dumps({expression}))")
        return json.loads(cell.printed.rpartition("=>")[2])

    def until(self, condition: Callable[[], Any]) -> None:
        """Read what the kernel tells until this holds."""
        deadline = time.monotonic() + CEILING_S
        while not condition():
            try:
                self._read(self.client.get_iopub_msg(timeout=0.2))
            except queue.Empty:
                assert self.manager.is_alive(), "the kernel died"
                assert time.monotonic() < deadline, list(self.cells.values())[-1]

    def eventually(self, expression: str, wanted: Any = True) -> None:
        """Look again and again, until an expression gives this."""
        deadline = time.monotonic() + CEILING_S
        while (found := self.value(expression)) != wanted:
            assert time.monotonic() < deadline, found
            time.sleep(0.05)

    def rpc(self, method: str, **params: Any) -> Any:
        """Call the node as another program of this user: over HTTP, whatever the kernel does."""
        with self._post("application/json", method, params) as answer:
            told = json.loads(answer.read())
        if "error" in told:
            raise from_wire(told["error"])
        return told["result"]

    def stream(self, **params: Any) -> Iterator[str]:
        """The pieces of an answer, as they come."""
        with self._post("text/event-stream", "chat.stream", params) as answer:
            for line in answer:
                told = json.loads(line[6:]) if line.startswith(b"data: ") else {}
                if "error" in told:
                    raise from_wire(told["error"])
                if piece := told.get("params", {}).get("text"):
                    yield piece

    def _post(self, accept: str, method: str, params: dict[str, Any]) -> HTTPResponse:
        info = self.run_info
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
        request = urllib.request.Request(f"{info['url']}/rpc", body.encode())
        request.add_header("Authorization", f"Bearer {info['token']}")
        request.add_header("Content-Type", "application/json")
        request.add_header("Accept", accept)
        response: HTTPResponse = urllib.request.urlopen(request, timeout=CEILING_S)
        return response

    def calling(self, method: str, **params: Any) -> Future[Any]:
        """The same, without waiting for it."""
        future: Future[Any] = Future()

        def call() -> None:
            try:
                future.set_result(self.rpc(method, **params))
            except Exception as error:  # noqa: BLE001 - raised where it is waited for
                future.set_exception(error)

        threading.Thread(target=call, daemon=True).start()
        return future

    def get(self, path: str) -> bytes:
        """What the node serves to anyone."""
        return self.fetch(f"{self.run_info['url']}{path}")

    def fetch(self, url: str) -> bytes:
        with urllib.request.urlopen(url, timeout=CEILING_S) as answer:
            return bytes(answer.read())

    @property
    def run_info(self) -> dict[str, Any]:
        """The run file of the notebook's node."""
        name = default_name(self._env)[0]
        path = self.home / "run" / f"{name}.json"
        found: dict[str, Any] = json.loads(path.read_text())
        return found

    def interrupt(self) -> None:
        self.manager.interrupt_kernel()

    def restart(self) -> None:
        self.client.stop_channels()
        self.manager.restart_kernel(now=False)
        self._connect()

    def close(self, *, now: bool = False) -> None:
        self.client.stop_channels()
        if self.manager.has_kernel:
            self.manager.shutdown_kernel(now=now)
        self.manager.cleanup_resources()

    def _read(self, message: dict[str, Any]) -> None:
        kind, content = message["msg_type"], message["content"]
        cell = self.cells.get(message["parent_header"].get("msg_id", ""))
        if kind in {"display_data", "update_display_data"}:
            name = content["transient"].get("display_id")
            if name:
                self.displays.setdefault(name, {}).clear()
                self.displays[name].update(content["data"])
            if kind == "display_data" and cell is not None:
                cell.outputs.append(self.displays[name] if name else content["data"])
        elif kind == "stream" and cell is None:
            self.lost += content["text"]
        elif cell is None:
            return
        elif kind == "stream":
            cell.printed += content["text"]
        elif kind == "execute_result":
            cell.outputs.append(content["data"])
        elif kind == "error":
            cell.error = "\n".join(content["traceback"])
        elif kind == "status" and content["execution_state"] == "idle":
            cell.status = "error" if cell.error else "ok"


@pytest.fixture(scope="module")
def open_notebook(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Notebook]]:
    """Start kernels; all of a module share a home. Those still running are stopped at the end."""
    folder = tmp_path_factory.mktemp("notebooks")
    notebooks: list[Notebook] = []

    def start(name: str, home: Path | None = None, **env: str) -> Notebook:
        notebook = Notebook(folder / name, home or folder / "home", env)
        notebooks.append(notebook)
        return notebook

    yield start
    for notebook in notebooks:
        notebook.close(now=True)


@pytest.fixture
def shell(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[InteractiveShell]:
    """An IPython without a kernel, as in a terminal; its node is stopped at the end."""
    monkeypatch.setenv("IPYTHONDIR", str(tmp_path / "ipython"))
    config = Config({"HistoryManager": {"enabled": False}})
    shell = InteractiveShell.instance(config=config)
    yield shell
    unload_ipython_extension(shell)
    decorator.declared.clear()
    InteractiveShell.clear_instance()
    atexit.unregister(shell.atexit_operations)
    shell.atexit_operations()
