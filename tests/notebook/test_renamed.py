"""A notebook whose file is renamed is told where its conversations are."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from aios_nb.home import NOTEBOOK_PATH, Home, default_name
from aios_nb.notebook.renamed import NotebookFile


@pytest.fixture
def home(tmp_path: Path) -> Home:
    made = Home(tmp_path / "home")
    made.prepare()
    return made


def written(notebook: Path, *cells: object) -> Path:
    """A notebook with cells of these ids."""
    notebook.write_text(json.dumps({"cells": [{"id": cell, "source": ""} for cell in cells]}))
    return notebook


def start(home: Home, notebook: Path, cell: str = "") -> str:
    """What the notebook's node is told when it starts."""
    environ = {NOTEBOOK_PATH: str(notebook)}
    file = NotebookFile(home, environ, cell)
    was = file.earlier_node()
    home.db_path(default_name(environ)[0]).touch()
    file.remember(was)
    return was.partition("-")[0]


def test_a_renamed_notebook_knows_its_earlier_node_at_every_start(home: Home, tmp_path: Path):
    draft = written(tmp_path / "draft.ipynb", "one", "two")
    assert start(home, draft) == ""
    assert start(home, draft) == ""
    final = draft.rename(tmp_path / "final.ipynb")
    assert start(home, final) == "draft"
    written(final, "two", "three")
    assert start(home, final) == "draft"
    written(tmp_path / "saved anew", "three").replace(final)
    assert start(home, final) == "draft"
    next(home.path.glob("draft-*.db")).unlink()
    assert start(home, final) == ""


def test_a_copy_and_another_notebook_are_new(home: Home, tmp_path: Path):
    draft, copy = (written(tmp_path / f"{name}.ipynb", "one") for name in ("draft", "copy"))
    assert start(home, draft) == ""
    assert start(home, copy) == ""
    link = tmp_path / "link.ipynb"
    link.hardlink_to(draft)
    assert start(home, link) == ""  # the first is there as before
    assert start(home, tmp_path / "nowhere.ipynb") == ""
    assert not list(home.path.glob("nowhere-*.notebook"))


def test_a_new_notebook_on_the_place_of_a_deleted_one_is_new(home: Home, tmp_path: Path):
    old = written(tmp_path / "old.ipynb", "one", "two")
    assert start(home, old) == ""
    new = old.rename(tmp_path / "new.ipynb")  # a disk gives a number again, but not when it is told
    assert start(home, written(new, "three")) == ""
    final = new.rename(tmp_path / "final.ipynb")
    assert start(home, final) == "new"
    written(tmp_path / "another", "four").replace(final)
    assert start(home, final) == ""


def test_a_notebook_that_was_not_saved_yet_is_known_by_the_cell_that_loads_us(
    home: Home, tmp_path: Path
):
    untitled = tmp_path / "untitled.ipynb"
    untitled.write_text("{}")
    assert start(home, untitled, "one") == ""
    final = written(untitled.rename(tmp_path / "final.ipynb"), "one")
    assert start(home, final) == "untitled"


@pytest.mark.parametrize(
    "saved", ["", "{}", "[1]", '{"cells": null}', '{"cells": [{"id": 7}, {"id": "a b"}, {}]}',
              '{"cells": ' * 100_000, "\udcff"],
)  # fmt: skip
def test_of_a_notebook_without_ids_nothing_is_claimed(home: Home, tmp_path: Path, saved: str):
    draft = tmp_path / "draft.ipynb"
    draft.write_text(saved, errors="surrogateescape")
    assert start(home, draft) == ""
    assert start(home, draft.rename(tmp_path / "final.ipynb")) == ""


@pytest.mark.parametrize("content", [b"\xff", b'{"path": "\xff", "file": "1:2"}', b"[" * 100_000])
def test_what_cannot_be_read_beside_a_node_is_passed_over(
    home: Home, tmp_path: Path, content: bytes
):
    (home.path / "aaa.notebook").write_bytes(content)
    draft = written(tmp_path / "draft.ipynb", "one")
    assert start(home, draft) == ""
    known = next(home.path.glob("draft-*.notebook"))
    known.replace(home.path / "No Node.notebook")
    final = draft.rename(tmp_path / "final.ipynb")
    assert start(home, final) == ""
    next(home.path.glob("final-*.notebook")).write_bytes(content)
    (home.path / "No Node.notebook").unlink()
    assert start(home, final) == ""


def test_where_the_old_path_cannot_be_looked_at_nothing_is_claimed(home: Home, tmp_path: Path):
    draft = written(tmp_path / "draft.ipynb", "one")
    assert start(home, draft) == ""
    known = next(home.path.glob("draft-*.notebook"))
    known.write_text(known.read_text().replace("draft.ipynb", f"{'long' * 100}.ipynb"))
    assert start(home, draft.rename(tmp_path / "final.ipynb")) == ""
