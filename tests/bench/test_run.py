from __future__ import annotations

import json

import pytest

from aios_nb.bench import main, run
from aios_nb.bench.report import table
from aios_nb.bench.results import Bench, Result, Row, Scenario
from aios_nb.bench.spec import Broken, Missing

MISSED = Result(
    rows=[
        Row(line="unit", figures={"req/s": "100"}),
        Row(line="ours", figures={"req/s": "10", "x raw": "0.10"}, target="≥ 0.85", met=False),
        Row(line="other", figures={"x raw": "0.90"}, target="≥ 0.85", met=True),
    ],
    raw={"ours": [1, 2, 3]},
    notes=["A note."],
)


def breaks(bench: Bench) -> Result:
    del bench
    raise Broken("3 of 200 replies were wrong")


def scenario(name: str, work) -> Scenario:
    return Scenario(name=name, title=name.title(), target="≥ 1", why="Because.", run=work)


@pytest.fixture(autouse=True)
def _two_scenarios(monkeypatch, tmp_path) -> None:
    monkeypatch.setattr(
        run, "SCENARIOS", (scenario("slow", lambda _: MISSED), scenario("bad", breaks))
    )
    monkeypatch.chdir(tmp_path)


def test_a_missed_target_is_marked_and_is_no_failure(capsys, tmp_path) -> None:
    assert main(["--only", "slow"]) == 0
    shown = capsys.readouterr().out
    assert "| ours | 10 | 0.10 | ≥ 0.85 | **missed** |" in shown
    assert "1 of 2 targets met. missed: ours." in shown
    assert "`aios-nb bench --only slow`" in shown
    saved = json.loads((tmp_path / "bench_results/bench.json").read_text())
    assert saved["scenarios"][0]["result"]["raw"] == {"ours": [1, 2, 3]}
    assert saved["command"] == "aios-nb bench --only slow"
    assert saved["machine"]["versions"]["aiohttp"]
    assert "A note." in (tmp_path / "bench_results/bench.md").read_text()


def test_a_wrong_reply_fails_the_run_but_not_the_other_scenarios(capsys, tmp_path) -> None:
    assert main(["--json", str(tmp_path / "here.json")]) == 1
    shown = capsys.readouterr().out
    assert "**Broken**: 3 of 200 replies were wrong" in shown
    assert "| unit | 100 |" in shown
    assert "broken: bad" in shown
    assert (tmp_path / "here.md").exists()


def test_a_scenario_that_has_nothing_to_compare_with_is_left_out(capsys, monkeypatch) -> None:
    def cannot(bench: Bench) -> Result:
        raise Missing("fastmcp is not installed: pip install it")

    monkeypatch.setattr(run, "SCENARIOS", (scenario("other", cannot), *run.SCENARIOS))
    assert main(["--only", "other", "slow"]) == 0
    shown = capsys.readouterr().out
    assert "Skipped: fastmcp is not installed: pip install it" in shown
    assert "skipped: other." in shown
    assert "| ours | 10 |" in shown


def test_the_list_shows_names_and_targets_and_measures_nothing(capsys, tmp_path) -> None:
    assert main(["--list"]) == 0
    assert "slow" in capsys.readouterr().out
    assert not (tmp_path / "bench_results").exists()


@pytest.mark.parametrize("argv", [["--only", "nothing"], ["--rounds", "0"]])
def test_options_that_make_no_sense_are_refused(argv) -> None:
    with pytest.raises(SystemExit) as refused:
        main(argv)
    assert refused.value.code == 2


def test_a_table_has_a_cell_for_every_column_in_every_row() -> None:
    lines = table(MISSED).splitlines()
    assert {line.count("|") for line in lines} == {6}
    assert (
        table(Result(rows=[Row(line="a", figures={"x": "1"})]))
        == "|  | x |\n| --- | ---: |\n| a | 1 |"
    )
