"""The suite, the Inspector and a new enough Node, by name from npm, in a folder of their own."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

PACKAGES = {
    "node": "22",
    "@modelcontextprotocol/conformance": "0.2.0-alpha.12",  # `latest` knows only the older era
    "@modelcontextprotocol/inspector": "2.12.0",
}
INSTALL_S = 600
RUN_S = 300
"""For one command; the longest, a whole requirement set, takes some seconds."""


class Missing(Exception):
    """Something this machine needs first, in one line."""


@dataclass(frozen=True)
class Ended:
    """How a command ended."""

    code: int
    out: str
    err: str


class Tools:
    """What npm has put into a folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._modules = folder / "node_modules"

    def install(self) -> None:
        """Get what is not there yet."""
        wanted = [f"{name}@{version}" for name, version in PACKAGES.items()]
        if all(self._has(name, version) for name, version in PACKAGES.items()):
            return
        npm = shutil.which("npm")
        if npm is None:
            raise Missing("the suite comes by npm: install Node.js, any version")
        print(f"getting {', '.join(wanted)}", flush=True)
        self._folder.mkdir(parents=True, exist_ok=True)
        (self._folder / "package.json").write_text('{"private": true}\n')
        done = subprocess.run(
            [npm, "install", "--no-audit", "--no-fund", "--loglevel=error", *wanted],
            cwd=self._folder,
            timeout=INSTALL_S,
            check=False,
        )
        if done.returncode != 0:
            raise Missing("npm could not install the suite; what it said is above")

    def suite(self, *args: str) -> Ended:
        return self._run("@modelcontextprotocol/conformance/dist/index.js", args)

    def inspector(self, *args: str) -> Ended:
        script = "@modelcontextprotocol/inspector/clients/launcher/build/index.js"
        return self._run(script, ["--cli", *args])

    def _run(self, script: str, args: Sequence[str]) -> Ended:
        node = self._modules / "node/bin/node"
        ended = subprocess.run(
            [str(node), str(self._modules / script), *args],
            env=self._environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=RUN_S,
            check=False,
        )
        return Ended(ended.returncode, ended.stdout, ended.stderr)

    def _environment(self) -> Mapping[str, str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("AIOS_")}
        path = f"{self._modules / 'node/bin'}{os.pathsep}{kept.get('PATH', '')}"
        # The Inspector keeps a catalog in the home folder: not in yours.
        return {**kept, "PATH": path, "HOME": str(self._folder)}

    def _has(self, name: str, version: str) -> bool:
        about = self._modules / name / "package.json"
        if not about.exists():
            return False
        there = str(json.loads(about.read_text())["version"])
        return there == version or there.startswith(f"{version}.")
