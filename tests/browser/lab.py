"""A real JupyterLab for tests: a server with folders of its own, on loopback."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
import urllib.request
from pathlib import Path
from typing import Any

import aios_nb

ROOT = Path(__file__).parents[2]
"""Kernels may import ``tests`` too."""
START_S = 90.0
"""A ceiling: a cold machine reads a lot of Python before the first answer."""
TOKEN = "for-tests-on-loopback"
OVERRIDES = {
    # Every cell is in the page, seen or not.
    "@jupyterlab/notebook-extension:tracker": {"windowingMode": "none"},
    # Nothing is fetched from outside, and nothing pops up over the notebook.
    "@jupyterlab/apputils-extension:notification": {
        "checkForUpdates": False,
        "doNotDisturbMode": True,
        "fetchNews": "false",
    },
    "@jupyterlab/apputils-extension:themes": {"theme": "JupyterLab Light", "adaptive-theme": False},
    # As `aios-nb lab` has it.
    "@jupyter-widgets/jupyterlab-manager:plugin": {"saveState": True},
    # A test saves when it means to.
    "@jupyterlab/docmanager-extension:plugin": {"autosave": False},
}


class Lab:
    """A JupyterLab server. ``kernel`` names a kernel whose nodes live in a given home."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.notebooks = folder / "notebooks"
        self.log = folder / "server.log"
        self.url = ""
        for name in ("config/labconfig", "data/kernels", "ipython", "notebooks", "runtime"):
            (folder / name).mkdir(parents=True)
        overrides = folder / "config" / "labconfig" / "default_setting_overrides.json"
        overrides.write_text(json.dumps(OVERRIDES))
        options = {
            "IdentityProvider.token": TOKEN,
            "JupyterNotebookApp.expose_app_in_browser": True,
            "LabApp.expose_app_in_browser": True,
            "LabApp.news_url": None,
            "ServerApp.allow_root": True,
            "ServerApp.ip": "127.0.0.1",
            "ServerApp.open_browser": False,
            "ServerApp.port": 0,
            "ServerApp.root_dir": self.notebooks,
            "ServerApp.shutdown_no_activity_timeout": 900,  # if nobody is left to stop it
            "ServerApp.terminals_enabled": False,
        }
        said = [f"--{name}={value}" for name, value in options.items()]
        with self.log.open("wb") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "jupyterlab", *said],
                cwd=self.notebooks,
                env=self._environment(),
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def _environment(self) -> dict[str, str]:
        """Nothing in it is the user's; the package is the one under test."""
        return {
            **os.environ,
            "IPYTHONDIR": str(self.folder / "ipython"),
            "JUPYTER_CONFIG_DIR": str(self.folder / "config"),
            "JUPYTER_DATA_DIR": str(self.folder / "data"),
            "JUPYTER_PATH": "",
            "JUPYTER_RUNTIME_DIR": str(self.folder / "runtime"),
            "PYTHONPATH": os.pathsep.join(  # `make matrix` has another ipykernel in it
                [str(Path(aios_nb.__path__[0]).parent), *filter(None, [os.getenv("PYTHONPATH")])]
            ),
        }

    def wait(self) -> Lab:
        """Until it answers. Raises with the end of its log if it does not."""
        told = self.folder / "runtime" / f"jpserver-{self.process.pid}.json"
        until = time.monotonic() + START_S
        while time.monotonic() < until and self.process.poll() is None:
            if told.is_file():
                try:
                    self.url = json.loads(told.read_text("utf-8"))["url"].rstrip("/")
                    self.call("GET", "/api/status")
                except (OSError, ValueError):  # half written, or not listening yet
                    pass
                else:
                    return self
            time.sleep(0.1)
        raise RuntimeError(f"JupyterLab did not start:\n{self.log.read_text('utf-8')[-3000:]}")

    def call(self, method: str, path: str, body: Any = None) -> Any:
        """One request to the server's REST API."""
        return post(self.url + path, body, f"token {TOKEN}", method)

    def kernel(self, home: Path) -> str:
        """The name of a kernel: this interpreter, with ``home`` as ``$AIOS_HOME``."""
        kernels = self.folder / "data" / "kernels"
        name = f"home-{len(list(kernels.iterdir()))}"
        spec = {
            "argv": [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"],
            "display_name": "Python (aios_nb)",
            "language": "python",
            "env": {"AIOS_HOME": str(home)},
        }
        (kernels / name).mkdir()
        (kernels / name / "kernel.json").write_text(json.dumps(spec))
        return name

    def stop(self) -> None:
        """End the server, and with it what kernels are left."""
        self.process.terminate()
        try:
            self.process.wait(8)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()


def post(url: str, body: Any, credential: str, method: str = "POST") -> Any:
    """The JSON that a server answers to JSON."""
    request = urllib.request.Request(
        url,
        None if body is None else json.dumps(body).encode(),
        {"Authorization": credential, "Content-Type": "application/json"},
        method=method,
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        content = answer.read()
    return json.loads(content) if content else None
