"""``lab`` and ``bench``: programs that take their own options."""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import os
import shutil
import sys
from pathlib import Path

from aios_nb.cli.output import note
from aios_nb.errors import UsageError

QUICKSTART = "quickstart.ipynb"
DEFAULTS = Path(__file__).with_name("jupyter")
"""Of JupyterLab's settings; what people choose in its Settings comes before them.

Widgets are saved with their notebook: else a chat opened the next day is "model not found".
No question about news stands over the first notebook, and nothing is fetched from outside.
"""


def lab(args: argparse.Namespace) -> int:
    """JupyterLab in place of this program, on the quickstart."""
    if importlib.util.find_spec("jupyterlab") is None:
        raise UsageError("JupyterLab is not installed", hint="pip install 'aios-nb[lab]'")
    command = [sys.executable, "-m", "jupyterlab", *args.rest]
    if not any(not option.startswith("-") for option in args.rest):
        notebook = quickstart(Path.cwd())
        if notebook is not None:
            # Not as a file to open: the address that is printed would not lead to it.
            command += [
                f"--ServerApp.root_dir={notebook.parent}",
                f"--LabApp.default_url=/lab/tree/{notebook.name}",
            ]
    if os.geteuid() == 0 and "--allow-root" not in args.rest:
        note("running as root: adding --allow-root, which JupyterLab asks for")
        command.append("--allow-root")
    sys.stdout.flush()
    # In a folder of ours: neither the user's settings nor those of other programs are written to.
    folders = [*filter(None, [os.environ.get("JUPYTER_CONFIG_PATH")]), str(DEFAULTS)]
    environment = {**os.environ, "JUPYTER_CONFIG_PATH": os.pathsep.join(folders)}
    os.execve(command[0], command, environment)  # noqa: S606 (our own interpreter, no shell)


def quickstart(folder: Path) -> Path | None:
    """The quickstart of a checkout; else a copy in ``folder`` of the packaged one, if any.

    The chapters that follow it are copied beside it. What is there is never replaced.
    """
    package = Path(__file__).resolve().parent.parent
    checkout = package.parent / "notebooks" / QUICKSTART
    if checkout.is_file() and (package.parent / "pyproject.toml").is_file():
        return checkout
    packaged = package / "notebooks"
    if not (packaged / QUICKSTART).is_file():
        return None
    for notebook in sorted(packaged.glob("*.ipynb")):
        copy = folder / notebook.name
        if copy.exists():
            continue
        try:
            shutil.copyfile(notebook, copy)
        except OSError as error:
            raise UsageError(
                f"the notebooks cannot be copied to {folder}: {error.strerror}",
                hint="change to a folder you can write to",
            ) from error
    return folder / QUICKSTART


def bench(args: argparse.Namespace) -> int:
    """Whatever ``aios_nb.bench`` measures."""
    code = importlib.import_module("aios_nb.bench").main(args.rest)
    return int(code or 0)
