"""Every notebook runs top to bottom, offline, in a fresh kernel."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import aios_nb

FOLDER = Path(__file__).parents[1] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
KERNEL = "aios-nb-tests"
CEILING_S = 300
"""For a kernel that hangs; a notebook takes a few seconds."""

by_name = pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)


@pytest.fixture
def jupyter(tmp_path: Path, aios_home: Path) -> dict[str, str]:
    """An environment where the one kernel is this very interpreter and nothing is the user's."""
    data = tmp_path / "jupyter"
    spec = data / "kernels" / KERNEL
    spec.mkdir(parents=True)
    argv = [sys.executable, "-m", "ipykernel_launcher", "-f", "{connection_file}"]
    (spec / "kernel.json").write_text(
        json.dumps({"argv": argv, "display_name": KERNEL, "language": "python"})
    )
    return {
        **os.environ,
        "AIOS_HOME": str(aios_home),
        "IPYTHONDIR": str(tmp_path / "ipython"),
        "JUPYTER_CONFIG_DIR": str(tmp_path / "config"),
        "JUPYTER_DATA_DIR": str(data),
        "JUPYTER_PATH": "",
        "JUPYTER_RUNTIME_DIR": str(tmp_path / "runtime"),
        "PYTHONPATH": str(Path(aios_nb.__path__[0]).parent),
    }


def run(notebook: Path, env: dict[str, str], folder: Path) -> subprocess.CompletedProcess[str]:
    """Papermill on one notebook, with everything it writes going to ``folder``."""
    done = folder / f"{notebook.stem}-done.ipynb"
    command = [sys.executable, "-m", "papermill", str(notebook), str(done)]
    options = ["--kernel", KERNEL, "--cwd", str(folder), "--no-progress-bar"]
    return subprocess.run(
        command + options, env=env, capture_output=True, text=True, timeout=CEILING_S, check=False
    )


def test_there_is_a_quickstart():
    assert FOLDER / "quickstart.ipynb" in NOTEBOOKS


@pytest.mark.timeout(CEILING_S + 30)
@by_name
def test_runs_top_to_bottom(notebook: Path, jupyter: dict[str, str], tmp_path: Path):
    ran = run(notebook, jupyter, tmp_path)

    assert ran.returncode == 0, ran.stderr


def shown(done: Path) -> str:
    """Everything the cells of a notebook that ran have put out, as text."""
    cells = json.loads(done.read_text("utf-8"))["cells"]
    outputs = [out for cell in cells if cell["cell_type"] == "code" for out in cell["outputs"]]
    texts = [out.get("text") or out.get("data", {}).get("text/plain", "") for out in outputs]
    return "\n".join("".join(text) for text in texts)


@pytest.mark.timeout(CEILING_S + 30)
def test_between_nodes_shows_two_nodes(jupyter: dict[str, str], tmp_path: Path):
    """It would run through as well if all agents were Alice's."""
    run(FOLDER / "between-nodes.ipynb", jupyter, tmp_path)

    said = shown(tmp_path / "between-nodes-done.ipynb")
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
