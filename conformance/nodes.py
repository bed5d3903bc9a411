"""A real node for the suites: started as a person would, in a home that goes away with it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

STOP_S = 30


@dataclass(frozen=True)
class Running:
    """What a node says when it is ready."""

    mcp: str
    token: str
    home: Path


@contextmanager
def node(*options: str) -> Iterator[Running]:
    """``aios-nb up --json`` with these options."""
    with tempfile.TemporaryDirectory(prefix="aios-conformance-") as folder:
        home = Path(folder)
        kept = {name: value for name, value in os.environ.items() if not name.startswith("AIOS_")}
        command = [sys.executable, "-m", "aios_nb", "up", "--json", "--name", "suite", *options]
        with (
            (home / "said").open("w+") as aside,
            subprocess.Popen(
                [*command, "--home", folder],
                env=kept,
                stdout=subprocess.PIPE,
                stderr=aside,
                text=True,
            ) as process,
        ):
            assert process.stdout is not None
            try:
                line = process.stdout.readline()
                if not line:
                    raise RuntimeError(f"the node did not start: {(home / 'said').read_text()}")
                said = json.loads(line)
                yield Running(mcp=said["mcp"], token=said["token"], home=home)
            finally:
                process.send_signal(signal.SIGTERM)
                process.wait(STOP_S)
