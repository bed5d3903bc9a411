"""A notebook whose file is renamed is told where its conversations are."""

from __future__ import annotations

from pathlib import Path

import pytest

from aios_nb.home import NOTEBOOK_PATH, Home, default_name
from aios_nb.notebook.renamed import NotebookFile


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path / "home")
    made.prepare()
    return made


def start(home: Home, notebook: Path) -> str:
    """What the notebook's node is told when it starts."""
    environ = {NOTEBOOK_PATH: str(notebook)}
    file = NotebookFile(home, environ)
    was = file.earlier_node()
    home.db_path(default_name(environ)[0]).touch()
    file.remember(was)
    return was.partition("-")[0]


def test_a_renamed_notebook_knows_its_earlier_node_at_every_start(home: Home, tmp_path: Path):
    draft = tmp_path / "draft.ipynb"
    draft.write_text("{}")
    assert start(home, draft) == ""
    assert start(home, draft) == ""
    final = draft.rename(tmp_path / "final.ipynb")
    assert start(home, final) == "draft"
    assert start(home, final) == "draft"
    next(home.path.glob("draft-*.db")).unlink()
    assert start(home, final) == ""


def test_a_copy_and_another_notebook_are_new(home: Home, tmp_path: Path):
    draft, copy = tmp_path / "draft.ipynb", tmp_path / "copy.ipynb"
    for one in (draft, copy):
        one.write_text("{}")
    assert start(home, draft) == ""
    assert start(home, copy) == ""
    link = tmp_path / "link.ipynb"
    link.hardlink_to(draft)
    assert start(home, link) == ""  # the first is there as before
    assert start(home, tmp_path / "nowhere.ipynb") == ""
    assert not list(home.path.glob("nowhere-*.notebook"))
