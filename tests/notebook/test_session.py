"""One node for the notebook, whoever asks: the extension, the magics, ``aios.up()``, a widget."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from IPython.core.interactiveshell import InteractiveShell

import aios_nb as aios
from aios_nb.agents.definition import describe
from aios_nb.config import Settings
from aios_nb.current import program
from aios_nb.errors import NotRunning, UsageError
from aios_nb.node import Node
from aios_nb.notebook.session import Session, session_of

CEILING_S = 60.0


@pytest.fixture
def session(shell: InteractiveShell) -> Session:
    return session_of(shell)


def until(condition: Callable[[], object]) -> None:
    deadline = time.monotonic() + CEILING_S
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_shell_keeps_its_session(shell: InteractiveShell):
    assert session_of() is session_of(shell)


def test_start_returns_at_once_and_everyone_waits_for_the_same_node(session: Session):
    states = [session.state]
    session.subscribe(lambda: states.append(session.state))
    session.start()
    session.start()

    assert session.state in {"starting", "up"}
    assert aios.node() is session.node() is session.site()
    until(lambda: states == ["down", "starting", "up"])


def test_what_is_declared_while_it_starts_is_offered(session: Session):
    session.start()

    @aios.agent
    async def greet(text: str) -> str:
        return f"hello {text}"

    assert session.node().ask("greet", "Ada") == "hello Ada"


def test_a_node_that_takes_long_is_not_waited_for_for_ever(session: Session):
    assert program.begin()
    with pytest.raises(NotRunning, match="still starting"):
        session.node(within_s=0.01)
    assert session.problem() == "starting"
    program.failed("no room")
    with pytest.raises(NotRunning, match=r"no room \(%aios up"):
        session.node()


def test_without_a_node_it_says_so_in_one_line(session: Session):
    assert (session.state, session.site(), session.problem()) == ("down", None, "stopped")
    with pytest.raises(NotRunning, match="%aios up"):
        session.node()


def test_stopping_and_starting_tells_who_listens(session: Session):
    told: list[Node | None] = []
    leave = session.subscribe(lambda: told.append(session.site()))
    first = aios.up()
    session.stop()
    second = aios.up()
    leave()
    aios.down()

    seen = [one for one, before in zip(told, [None, *told], strict=False) if one is not before]
    assert seen == [first, None, second]


def test_choices_replace_a_node_that_only_came_along(session: Session):
    session.start()
    first = session.node()
    second = aios.up(name="alice")

    assert not first.running
    assert session.node() is second
    with pytest.raises(UsageError, match="alice"):
        aios.up(name="bob")
    with pytest.raises(UsageError, match="without that port"):
        aios.up(port=1)


def test_choices_that_the_node_has_keep_it(session: Session):
    session.start(name="alice")
    node = session.node()

    assert aios.up(name="alice") is node
    with pytest.raises(UsageError, match="alice"):
        aios.up(name="bob")


def test_wrong_choices_are_refused_at_once(session: Session):
    with pytest.raises(UsageError, match="port must be a number"):
        session.start(port="x")
    assert session.state == "down"


def test_a_start_that_fails_can_be_tried_again(session: Session):
    session.start(host="203.0.113.1", allow_hosts=("x",))
    until(lambda: session.state == "failed")
    assert "\n" not in session.problem()
    with pytest.raises(NotRunning, match="could not start"):
        aios.node()

    assert aios.up() is session.node()


@pytest.mark.parametrize("home", ["~nobody-of-this-name/x", "/dev/null/x"])
def test_a_home_that_cannot_be_is_said_in_one_line_and_nothing_is_logged_into_cells(
    home: str, tmp_path: Path
):
    script = """
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.run_line_magic("load_ext", "aios_nb")
shell.run_cell("import aios_nb; aios_nb.node()")
shell.run_cell("%aios down").raise_error()
shell.run_cell("%reload_ext aios_nb").raise_error()
shell.run_cell("%aios").raise_error()
"""
    ran = subprocess.run(
        [sys.executable, "-c", script],
        env={**os.environ, "AIOS_HOME": home, "IPYTHONDIR": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=CEILING_S,
        check=True,
    )
    assert ran.stderr == ""
    assert ran.stdout.splitlines()[1].startswith("the node could not start: ")
    assert "no node is running" in ran.stdout
    assert "%aios up tries again; %aios doctor" in ran.stdout


def test_nodes_do_not_start_twice_at_once(session: Session):
    found: list[Node] = []
    threads = [threading.Thread(target=lambda: found.append(aios.up())) for _ in range(4)]
    session.start()
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert set(map(id, found)) == {id(session.node())}


# The roster ----------------------------------------------------------------------------------


def test_the_roster_follows_agents_and_nodes(session: Session):
    roster = session.roster
    assert (roster.rows(), roster.names(), roster.nodes()) == ([], [], [])
    node = aios.up(name="alice")
    aios.agent(name="mine")(lambda text: text)
    until(lambda: "mine" in roster.names())
    assert roster.rows()[0]["node_id"] == node.node_id
    assert f"mine@{node.node_id}" not in roster.names(), "its name is enough"
    there = [describe(lambda text: text, name=name) for name in ("theirs", "mine")]
    with Node(Settings(name="bob"), there) as bob:
        until(lambda: "theirs" in roster.names() and roster.node_name(bob.node_id) == "bob")
        assert roster.alive == 1
        assert roster.names().count("mine") == 1
        assert {f"mine@{bob.node_id}", f"theirs@{bob.node_id}"} < set(roster.names())
        assert roster.rows()[-1]["name"] == "theirs"
        bob.withdraw("theirs")
        until(lambda: "theirs" not in roster.names())
    until(lambda: roster.alive == 0)
    aios.down()

    assert (roster.rows(), roster.names(), roster.nodes()) == ([], [], [])
