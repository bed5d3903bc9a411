"""What a person at a terminal sees when agents live on another node, and when that goes away."""

from __future__ import annotations

import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.cli.conftest import AGENTS, Cli, Up
from tests.cli.screen import CTRL_C, Screen
from tests.cli.test_joining import address

NOWHERE = "http://127.0.0.1:1"
Open = Callable[..., Screen]


@pytest.fixture
def bob(tmp_path: Path) -> Iterator[Cli]:
    """Somebody else's command line; nothing runs there yet."""
    cli = Cli(tmp_path / "bob")
    yield cli
    cli.end()


@pytest.fixture
def there(bob: Cli) -> Up:
    return bob.start("--name", "bob", "--agents", str(AGENTS))


@pytest.fixture
def here(cli: Cli, bob: Cli, there: Up) -> Cli:
    """A node that has joined bob's."""
    cli.start("--name", "alice", "--join", address(bob))
    return cli


@pytest.fixture
def terminal(here: Cli) -> Iterator[Open]:
    opened: list[Screen] = []

    def open_screen(*args: str) -> Screen:
        opened.append(Screen(here.home, *args))
        return opened[-1]

    yield open_screen
    for one in opened:
        one.close()


def test_agents_of_two_nodes_talk_in_one_chat(here: Cli, terminal: Open) -> None:
    screen = terminal("chat", "echo")
    screen.until("echo>")
    screen.type("@spell one two\r")
    screen.until("one two", "echo>")
    screen.type("@asks hello\r")
    screen.until("What is your name?", "answer>")
    screen.type("Ada\r")
    screen.until("hello Ada", "echo>")
    said = [row["text"] for row in here.json("history", "last")["messages"] if row["text"]]
    assert said == ["one two", "one two ", "hello", "What is your name?", "Ada", "hello Ada"]


def test_a_question_that_is_not_answered_is_given_up(here: Cli, terminal: Open) -> None:
    screen = terminal("chat", "asks")
    screen.until("asks>")
    screen.type("hello\r")
    screen.until("What is your name?", "answer>")
    screen.type(CTRL_C)
    screen.until("stopped", "asks>")
    assert "in a terminal" not in screen.text
    [asked, *_] = here.json("history", "last")["messages"]
    assert asked["status"] == "cancelled"


def test_ctrl_c_stops_a_reply_of_another_node(here: Cli, bob: Cli, terminal: Open) -> None:
    screen = terminal("chat", "forever")
    screen.until("forever>")
    screen.type("go\r")
    screen.until("begun")
    screen.type(CTRL_C)
    screen.until("stopped", "forever>")
    assert here.json("history", "last")["messages"][0]["status"] == "cancelled"
    [theirs, *_] = bob.json("chats")["conversations"]  # it was not bob who asked
    while bob.json("history", theirs["conversation"])["messages"][0]["status"] != "cancelled":
        pass  # the other node hears of it in its own time


def test_a_node_that_dies_in_the_middle_of_a_reply_is_waited_for(
    bob: Cli, there: Up, terminal: Open
) -> None:
    port = there.said["url"].rpartition(":")[2]
    screen = terminal("chat", "forever")
    screen.until("forever>")
    screen.type("go\r")
    screen.until("begun")
    there.stop(signal.SIGKILL)
    screen.until("the node of forever@", "could not be reached; waiting for it (Ctrl-C stops)")
    bob.start("--name", "bob", "--agents", str(AGENTS), "--port", port)
    screen.until("the node stopped while the agent was at work", "ask again if that is safe")
    screen.until("forever>")
    screen.type("@echo still here\r")
    screen.until("still here")


def test_a_chat_with_an_agent_whose_node_is_away_says_so_and_goes_on(
    here: Cli, bob: Cli, there: Up, terminal: Open
) -> None:
    assert here("ask", "spell", "x").returncode == 0
    port = there.said["url"].rpartition(":")[2]
    there.stop()
    while here.json("peers")["peers"][0]["state"] != "left":
        pass
    asked = here("ask", "spell", "x")
    assert (asked.returncode, asked.stdout) == (1, "")
    node = there.said["node_id"]
    assert asked.stderr == (
        f"aios-nb: the node of spell@{node[:8]} could not be reached"
        " (it was stopped; ask again when it is up)\n"
    )
    screen = terminal("chat", "spell")
    screen.until("! the node of spell@", "could not be reached", "spell>")
    bob.start("--name", "bob", "--agents", str(AGENTS), "--port", port)
    while here.json("peers")["peers"][0]["state"] != "alive":
        pass
    screen.type("one two\r")
    screen.until("one two")


def test_who_is_shut_out_is_told_what_that_may_be(here: Cli, bob: Cli, there: Up) -> None:
    assert here("ask", "spell", "x").returncode == 0
    bob("block", here.json("status")["node_id"])
    done = here("ask", "spell", "x")
    assert done.returncode == 1
    assert done.stderr.endswith(
        "refuses the link (its owner may have blocked this node, or it is in another network)\n"
    )
    assert there.said["node_id"] not in done.stderr


def test_an_address_where_nobody_answers_is_named(cli: Cli) -> None:
    up = cli.start("--name", "alice", "--join", NOWHERE)
    while not (waiting := cli.json("peers")["waiting"])[0]["problem"]:
        pass  # it is dialled in the background
    assert [row["url"] for row in waiting] == [NOWHERE]
    line = f"no link to {NOWHERE} yet: connection refused; it is tried again"
    shown = cli("peers")
    assert (shown.stdout, shown.stderr) == ("", f"{line}\n")
    doctor = cli("doctor")
    assert doctor.returncode == 0
    assert f"alice has no link to {NOWHERE}: connection refused" in doctor.stdout
    code, _, errors = up.stop()
    assert code == 0
    assert errors.count(line) == 1


def test_a_list_of_conversations_says_who_opened_them(here: Cli, bob: Cli) -> None:
    here("ask", "spell", "x")
    node = here.json("status")["node_id"]
    assert here("chats").stdout.splitlines()[1].split()[3:5] == ["you", "spell"]
    assert f"node {node[:8]}" in bob("chats").stdout


def test_who_called_has_a_name(here: Cli, bob: Cli) -> None:
    here("ask", "spell", "x")
    node = here.json("status")["node_id"]
    assert f"alice · {node[:8]} " in bob("callers").stdout
    assert node not in bob("callers").stdout
    here("ask", "echo", "x")
    assert here("callers").stdout.splitlines()[1].startswith("you ")


def test_a_deadline_is_named_as_it_is_typed(here: Cli) -> None:
    here("ask", "spell", "warm")
    done = here("ask", "forever", "x", "--deadline", "3")
    assert done.returncode == 1
    assert done.stderr == "aios-nb: the deadline passed (give it more time: --deadline SECONDS)\n"


def test_a_search_says_that_an_agent_may_be_away(here: Cli, there: Up) -> None:
    words = "every word"
    shown = f"spell@{there.said['node_id'][:12]}"
    while shown not in (found := here("search", words).stdout):
        pass
    assert "may be away" not in found
    there.process.send_signal(signal.SIGSTOP)
    try:
        while "may be away" not in (found := here("search", words).stdout):
            pass
    finally:
        there.process.send_signal(signal.SIGCONT)
    lines = found.splitlines()
    [place] = [place for place, line in enumerate(lines) if line.startswith(shown)]
    assert lines[place + 1].startswith("  may be away; ")
    while "may be away" in here("search", words).stdout:
        pass
