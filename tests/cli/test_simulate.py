from __future__ import annotations

import json
import subprocess
import sys

import pytest


def test_a_rumour_is_a_row_for_each_size(cli):
    done = cli("simulate", "gossip", "--nodes", "100", "1000", "--loss", "0.25")

    head, *rows = done.stdout.splitlines()
    assert done.returncode == 0
    assert head.startswith("NODES  INTERVALS TO 99 %  PER LOG2 N  TO ALL")
    assert [row.split()[0] for row in rows] == ["100", "1,000"]
    assert float(rows[0].split()[1]) < float(rows[1].split()[1])


def test_one_size_shows_how_it_went(cli):
    shown = cli("simulate", "gossip", "--nodes", "100").stdout

    assert "100 %  " + "█" * 40 in shown


def test_programs_get_the_same_numbers_twice(cli):
    asked = ("simulate", "gossip", "--nodes", "200", "--dead", "0.1", "--seed", "3")
    first, second = cli.json(*asked), cli.json(*asked)

    assert first == second
    assert first != cli.json(*asked[:-1], "4")
    assert first["model"] == "gossip"
    assert first["rows"][0]["coverage"][0] == pytest.approx(1 / 180)


def test_lookups_compare_two_ways_to_ask(cli):
    answer = cli.json("simulate", "lookups", "--nodes", "1000", "--dead", "0.3")

    hub, batches = answer["rows"]
    assert hub["how"] == "as the hub does"
    assert hub["found"] == 1
    assert hub["p50_s"] < batches["p50_s"]
    assert "as the hub does" in cli("simulate", "lookups", "--nodes", "100").stdout


def test_a_network_lives_and_loses_nodes(cli):
    asked = ("simulate", "network", "--nodes", "8", "--kill", "2", "--accusers", "2")
    rows = {row["what"]: row["value"] for row in cli.json(*asked)["rows"]}
    shown = cli(*asked).stdout

    assert rows["times a running node was held for dead"] == 0
    assert rows["2 killed: gone everywhere after"] > 0
    assert f"{rows['2 killed: gone everywhere after']:.2f} s" in shown


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ((), "say what to simulate"),
        (("gossip", "--nodes", "3"), "not a number of nodes"),
        (("gossip", "--loss", "25"), "not a share"),
        (("lookups", "--nodes", "10"), "21 to 1000000 nodes"),
        (("network", "--nodes", "500"), "2 to 400 nodes"),
        (("network", "--nodes", "8", "--kill", "7"), "at most 6 can be killed"),
        (("weather",), "invalid choice"),
    ],
)
def test_what_cannot_be_meant_is_one_line(cli, wrong, said):
    done = cli("simulate", *wrong)

    assert done.returncode == 2
    assert said in done.stderr
    assert done.stderr.count("\n") == 1


def test_the_command_line_itself_stays_light():
    """Simulations need numpy; whoever does not simulate does not wait for it."""
    code = "import sys, json; from aios_nb.cli.parser import build; build(); "
    code += "print(json.dumps([name for name in ('numpy', 'kademlia') if name in sys.modules]))"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True
    )

    assert json.loads(done.stdout) == []
