"""The project itself: one version, light imports, nothing of one machine in the repository."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import aios_nb
from aios_nb import config

ROOT = Path(__file__).parents[1]
HEAVY = {
    "aiohttp",
    "cryptography",
    "IPython",
    "ipywidgets",
    "kademlia",
    "mcp",
    "tantivy",
    "wordllama",
}
"""Libraries that load in the node's thread or on first use, never by importing the package."""
MACHINE_PATHS = re.compile(r"(?<![\w.~-])/(work|tmp|home/\w+|root)/")


def loaded_by(statement: str) -> set[str]:
    """The modules that one statement imports in a fresh interpreter."""
    program = f"import sys\n{statement}\nprint(*sys.modules)"
    where = Path(aios_nb.__path__[0]).parent
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=where, capture_output=True, text=True, check=True
    )
    return set(ran.stdout.split())


def repository_files() -> list[Path]:
    """What git has or would take, without what is ignored."""
    listed = ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"]
    ran = subprocess.run(listed, cwd=ROOT, capture_output=True, text=True, check=False)
    if ran.returncode:
        pytest.skip("not a git checkout")
    files = [ROOT / name for name in ran.stdout.split("\0") if name]
    return [file for file in files if file.is_file()]


def test_the_version_is_written_once():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    source = ROOT / project["tool"]["hatch"]["version"]["path"]
    literal = f'"{aios_nb.__version__}"'
    python = [*(ROOT / "aios_nb").rglob("*.py"), ROOT / "pyproject.toml"]

    assert [file for file in python if literal in file.read_text("utf-8")] == [source]
    assert project["project"]["dynamic"] == ["version"]


def test_importing_the_package_is_light():
    assert not HEAVY & loaded_by("import aios_nb")


def test_a_node_starts_without_what_only_a_search_needs(tmp_path):
    modules = loaded_by(
        "from pathlib import Path\n"
        "from aios_nb.config import Settings\n"
        "from aios_nb.node import Node\n"
        f"Node(Settings(home=Path({str(tmp_path)!r}), gossip=False, dht=False)).start().stop()"
    )

    assert "aios_nb.agents.builtin" in modules
    assert not {"numpy", "pandas", "matplotlib", "tantivy", "wordllama"} & modules
    assert not [name for name in modules if name.startswith("aios_nb.agents.library")]


def test_the_command_line_loads_benchmarks_only_when_asked():
    modules = loaded_by("import aios_nb.cli")

    assert "aios_nb.cli" in modules
    assert not {"aios_nb.bench", "aiohttp", "kademlia", "mcp"} & modules


def test_no_file_names_a_place_on_one_machine():
    named = []
    for file in repository_files():
        if ROOT / "tests" in file.parents:
            continue
        text = file.read_bytes().decode("utf-8", "ignore")
        named += [f"{file.relative_to(ROOT)}: {hit[0]}" for hit in MACHINE_PATHS.finditer(text)]

    assert not named


def test_tests_never_use_the_real_home(aios_home: Path):
    assert config.home_dir() == aios_home
    assert aios_home != Path.home() / ".aios_nb"
