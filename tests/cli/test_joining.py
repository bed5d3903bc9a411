"""Two nodes of two people, joined as the welcome says."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import AGENTS, Cli

BOB = "bob"


@pytest.fixture(scope="module")
def bob(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cli]:
    """Somebody else's command line; a node of theirs hosts the agents for tests."""
    cli = Cli(tmp_path_factory.mktemp("bob") / "home")
    cli.start("--name", BOB, "--agents", str(AGENTS))
    yield cli
    cli.end()


def address(bob: Cli) -> str:
    state = bob.json("status")
    return f"{state['url']}#{state['node_id']}"


def test_an_agent_of_a_joined_node_is_asked_by_its_name(cli: Cli, bob: Cli) -> None:
    up = cli.start("--name", "alice", "--join", address(bob))
    try:
        assert cli("ask", "loud", "x").stdout == "done\n"
        shown = cli("card", "loud").stdout
        assert f"loud@{bob.json('status')['node_id']}" in shown
        assert "signed by its node" in shown
        [peer] = cli.json("peers")["peers"]
        assert (peer["name"], peer["state"]) == (BOB, "alive")
        assert f"{peer['url']}#{peer['node_id']}" == address(bob)
        table = cli("peers").stdout.splitlines()
        assert table[0].split() == ["NAME", "STATE", "LATENCY", "NODE", "ID", "ADDRESS"]
        assert table[1].split()[:2] == [BOB, "alive"]
        assert peer["node_id"] in table[1]
        assert table[1].endswith(peer["url"])
    finally:
        assert up.stop()[0] == 0


def test_who_is_not_the_node_that_was_meant_is_not_asked(cli: Cli, bob: Cli) -> None:
    url = address(bob).partition("#")[0]
    up = cli.start("--name", "alice", "--join", f"{url}#{'a' * 32}")
    try:
        done = cli("ask", "loud", "x")
        assert done.returncode == 1
        assert "no such agent" in done.stderr
        assert [row["state"] for row in cli.json("peers")["peers"]] in ([], ["suspect"])
    finally:
        up.stop()


def test_who_answers_first_at_a_bare_url_is_remembered(cli: Cli, tmp_path: Path) -> None:
    carol, mallory = Cli(tmp_path / "carol"), Cli(tmp_path / "mallory")
    try:
        first = carol.start("--name", "carol", "--agents", str(AGENTS))
        url = first.said["url"]
        alice = cli.start("--name", "alice", "--join", url)
        while not cli.json("peers")["peers"]:
            pass  # it links in the background
        assert cli("ask", "loud", "x").stdout == "done\n"
        alice.stop()
        first.stop()
        port = url.rpartition(":")[2]
        taken = mallory.start("--name", "mallory", "--port", port, "--agents", str(AGENTS))
        alice = cli.start("--name", "alice", "--join", url)
        assert cli("ask", "loud", "x", "--deadline", "1").returncode == 1
        errors = alice.stop()[2]
        assert "is now node" in errors
        assert f"join {url}#{taken.said['node_id']}" in errors
    finally:
        carol.end()
        mallory.end()
