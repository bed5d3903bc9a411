"""Every notebook runs top to bottom, offline, in a fresh kernel; and again in the home it left."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import aios_nb

FOLDER = Path(__file__).parents[1] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
KERNEL = "aios-nb-tests"
TIMES = 2
CEILING_S = 300
"""For a kernel that hangs; a notebook takes a few seconds."""
TOKEN = re.compile(r"(?<![\w+/=-])[A-Za-z0-9_-]{43}(?![\w+/=-])")
"""What a node's token looks like: 32 bytes in base64."""

BOT_TOKEN = re.compile(r"\d{5,}:[A-Za-z0-9_-]{30,}")

by_name = pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)


class Ran:
    """A notebook that papermill has run, a few times in one home."""

    def __init__(self, notebook: Path, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.done = [folder / f"{notebook.stem}-{turn}.ipynb" for turn in range(TIMES)]
        self.problem = ""
        env = self._environment()
        for done in self.done:
            command = [sys.executable, "-m", "papermill", str(notebook), str(done)]
            options = ["--kernel", KERNEL, "--cwd", str(folder), "--no-progress-bar"]
            ran = subprocess.run(
                command + options,
                env=env,
                capture_output=True,
                text=True,
                timeout=CEILING_S,
                check=False,
            )
            if ran.returncode:
                self.problem = ran.stderr
                return

    def _environment(self) -> dict[str, str]:
        """Where the one kernel is this very interpreter and nothing is the user's."""
        spec = self.folder / "jupyter" / "kernels" / KERNEL
        spec.mkdir(parents=True)
        argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
        (spec / "kernel.json").write_text(
            json.dumps({"argv": argv, "display_name": KERNEL, "language": "python"})
        )
        return {
            **os.environ,
            "AIOS_HOME": str(self.home),
            "IPYTHONDIR": str(self.folder / "ipython"),
            "JUPYTER_CONFIG_DIR": str(self.folder / "config"),
            "JUPYTER_DATA_DIR": str(self.folder / "jupyter"),
            "JUPYTER_PATH": "",
            "JUPYTER_RUNTIME_DIR": str(self.folder / "runtime"),
            "PYTHONPATH": str(Path(aios_nb.__path__[0]).parent),
        }

    @property
    def cells(self) -> list[dict[str, Any]]:
        """The code cells of the last run."""
        cells = json.loads(self.done[-1].read_text("utf-8"))["cells"]
        return [cell for cell in cells if cell["cell_type"] == "code"]

    def shown(self) -> str:
        """Everything the cells have put out, as text."""
        outputs = [out for cell in self.cells for out in cell["outputs"]]
        texts = [out.get("text") or out.get("data", {}).get("text/plain", "") for out in outputs]
        return "\n".join("".join(text) for text in texts)

    def page(self) -> str:
        """The HTML that nbconvert makes of it."""
        from nbconvert import HTMLExporter

        page, _ = HTMLExporter().from_filename(str(self.done[-1]))
        return str(page)


_ran: dict[Path, Ran] = {}


@pytest.fixture
def ran(notebook: Path, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """The notebook, run once for all tests that look at it."""
    if notebook not in _ran:
        _ran[notebook] = Ran(notebook, tmp_path_factory.mktemp(notebook.stem))
    return _ran[notebook]


def only(*names: str) -> pytest.MarkDecorator:
    return pytest.mark.parametrize(
        "notebook", [FOLDER / f"{name}.ipynb" for name in names], ids=names
    )


def test_there_is_a_quickstart():
    assert FOLDER / "quickstart.ipynb" in NOTEBOOKS


@pytest.mark.timeout(TIMES * CEILING_S + 30)
@by_name
def test_runs_top_to_bottom_and_again_in_the_same_home(ran: Ran):
    assert not ran.problem, ran.problem
    assert not [out for cell in ran.cells for out in cell["outputs"] if "ename" in out]


@pytest.mark.timeout(TIMES * CEILING_S + 30)
@by_name
def test_no_secret_is_in_what_is_saved(ran: Ran):
    keys = [key.read_text("ascii") for key in (ran.home / "keys").glob("*.key")]
    secrets = [line for key in keys for line in key.splitlines() if not line.startswith("-----")]
    for done in ran.done:
        saved = done.read_text("utf-8")
        assert not TOKEN.findall(saved)
        assert not BOT_TOKEN.findall(saved)
        assert not [secret for secret in secrets if secret in saved]


@pytest.mark.timeout(TIMES * CEILING_S + 30)
@only("quickstart", "talking")
def test_the_transcript_of_a_chat_is_in_the_page(ran: Ran, notebook: Path):
    said = {"quickstart": "lift-off!", "talking": "good morning"}[notebook.stem]
    chats = [
        out["data"]
        for cell in ran.cells
        for out in cell["outputs"]
        if "application/vnd.jupyter.widget-view+json" in out.get("data", {})
    ]

    assert chats
    assert any(said in "".join(chat["text/plain"]) for chat in chats)
    assert any(said in "".join(chat["text/html"]) for chat in chats)
    assert ran.page().count(said) > 1


@pytest.mark.timeout(TIMES * CEILING_S + 30)
@only("between-nodes")
def test_between_nodes_shows_two_nodes(ran: Ran):
    """It would run through as well if all agents were Alice's."""
    said = ran.shown()

    assert "shout    of bob    GOOD MORNING EVERYONE!" in said
    assert "counter  of alice  3 words" in said
    assert "One chocolate cake for Alice" in said
    assert said.index("✗ no such agent: recipe") < said.index("Cake: flour")
    assert said.index("✗ the") < said.index("FRIENDS AGAIN!")
    assert said.index("could not be reached") < said.index("CALL ME BACK!")


@by_name
def test_is_committed_without_outputs(notebook: Path):
    cells = json.loads(notebook.read_text("utf-8"))["cells"]
    code = [cell for cell in cells if cell["cell_type"] == "code"]

    assert code
    assert not any(cell["outputs"] or cell["execution_count"] for cell in code)
