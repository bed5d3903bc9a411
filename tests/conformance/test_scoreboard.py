"""The scoreboard counts what the suite checked; a scenario that checked nothing is not passed."""

from __future__ import annotations

import json

import pytest

from conformance.scoreboard import Scoreboard
from conformance.suite import _problem


@pytest.fixture
def write(tmp_path):
    def written(name, *statuses):
        folder = tmp_path / f"server-{name}-2026-07-28T10-00-00-000Z"
        folder.mkdir()
        checks = [
            {"id": f"{name}-{number}", "status": status, "description": "as it should be"}
            for number, status in enumerate(statuses)
        ]
        (folder / "checks.json").write_text(json.dumps(checks))

    return written


def test_a_scenario_passes_by_its_checks_alone(tmp_path, write):
    write("good", "INFO", "SUCCESS", "WARNING")
    write("bad", "SUCCESS", "FAILURE")
    write("skipped", "SKIPPED", "INFO")
    write("good-and-more", "FAILURE")
    assert _problem(tmp_path, "server-good") is None
    assert "bad-1: as it should be" in str(_problem(tmp_path, "server-bad"))
    assert _problem(tmp_path, "server-skipped") == "nothing was checked"
    assert _problem(tmp_path, "server-never-run") == "did not run"


def test_one_failure_or_an_empty_line_spoils_the_board(capsys):
    board = Scoreboard()
    assert not board.is_good
    row = board.row("first")
    assert not board.is_good
    row.add("a", None)
    assert board.is_good
    board.row("second").add("b", "broke")
    assert not board.is_good
    board.show()
    said = capsys.readouterr().out
    assert "1 of   1" in said
    assert "b: broke" in said
