"""``~`` in a path: somebody's home, or an error that says so."""

from __future__ import annotations

from pathlib import Path

import pytest

import aios_nb as aios
from aios_nb.agents.load import load_agents
from aios_nb.errors import UsageError
from aios_nb.home import Home
from aios_nb.tilde import expanded

NOBODY = "~nobody-of-this-name"


def test_a_path_is_written_out(monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert expanded("~/notes") == tmp_path / "notes"
    assert expanded("notes/~") == Path("notes/~")
    monkeypatch.delenv("AIOS_HOME")
    assert Home().path == tmp_path / ".aios_nb"


def test_the_home_of_nobody_is_an_error_in_one_line(monkeypatch: pytest.MonkeyPatch):
    def refused(*_: object) -> None:
        raise RuntimeError

    with pytest.raises(UsageError, match=f"no home folder for {NOBODY} "):
        aios.File(f"{NOBODY}/a.txt")
    with pytest.raises(UsageError, match=f"no home folder for {NOBODY} "):
        aios.up(home=f"{NOBODY}/aios")
    with pytest.raises(UsageError, match=f"no home folder for {NOBODY} "):
        load_agents(f"{NOBODY}/agents.py")
    monkeypatch.setenv("AIOS_HOME", f"{NOBODY}/aios")
    with pytest.raises(UsageError, match=f"no home folder for {NOBODY} "):
        Home()
    monkeypatch.delenv("AIOS_HOME")
    monkeypatch.setattr(Path, "expanduser", refused)  # of a user that the system does not know
    with pytest.raises(UsageError, match="this user has no home folder"):
        Home()
