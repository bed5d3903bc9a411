"""Tab behind ``%aios`` and ``%%agent``."""

from __future__ import annotations

import contextlib
import itertools
import pwd
import time
from collections.abc import Iterator
from typing import Any

import pytest
from IPython.core.completer import provisionalcompleter

import aios_nb as aios
from aios_nb.notebook import paths
from aios_nb.notebook.parser import COMMANDS, parse
from tests.notebook.consoles import CEILING_S, Console, console, held


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    with console(tmp_path_factory.mktemp("completion")) as made:
        yield made


def tab(page: Console, text: str) -> list[str]:
    """The whole line as it would be with each completion; nothing else may be among them."""
    with provisionalcompleter():
        found = list(page.shell.Completer.completions(text, len(text)))
    assert all(one.end == len(text) for one in found)
    return [text[: one.start] + one.text for one in found]


def eventually(page: Console, text: str, wanted: str) -> list[str]:
    """What is known behind the scenes is known soon."""
    deadline = time.monotonic() + CEILING_S
    while wanted not in (found := tab(page, text)):
        assert time.monotonic() < deadline, found
        time.sleep(0.02)
    return found


def test_commands_options_and_their_values(page: Console):
    assert tab(page, "%aios ") == [f"%aios {name}" for name in COMMANDS if " " not in name]
    assert tab(page, "%aios se") == ["%aios search"]
    assert tab(page, "x = %aios ca") == ["x = %aios card", "x = %aios callers"]
    assert tab(page, "first = 1\nx = %aios dow") == ["first = 1\nx = %aios down"]
    assert tab(page, "%aios up --jo") == ["%aios up --join"]
    assert tab(page, "%aios up --name a --n") == ["%aios up --name a --network"]
    assert tab(page, "%aios help exp") == ["%aios help export"]
    assert tab(page, "%%aios as") == ["%%aios ask"]
    assert tab(page, "%%agent adder --access p") == [
        "%%agent adder --access private",
        "%%agent adder --access public",
    ]
    assert "%%agent adder --about" in tab(page, "%%agent adder --")


def test_a_line_of_ours_offers_nothing_that_does_not_fit(page: Console):
    for line in ("%aios ask nobody", "%aios ask echo im", "%aios zzz", "%aios up --name im"):
        assert tab(page, line) in ([], [line])
    for line in ("%aios ask calc ", "%aios block ", "%aios callers ", "%%aios ask calc\n"):
        assert tab(page, line) == [line], "nothing is known"
    assert tab(page, "%aios withdraw ca") == ["%aios withdraw ca"]  # `calc` came along, and stays


def test_where_a_file_is_wanted_only_files_are_offered(page: Console, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for name in ("zebra.md", "in a zoo.md", ".hidden"):
        (tmp_path / name).touch()
    (tmp_path / "ark").mkdir()
    (tmp_path / "ark" / "bear.md").touch()
    here = "%aios export last "
    assert tab(page, here) == [f"{here}ark/", f"{here}'in a zoo.md'", f"{here}zebra.md"]
    assert tab(page, f"{here}ark/") == [f"{here}ark/bear.md"]
    assert tab(page, f"{here}.h") == [f"{here}.hidden"]
    assert tab(page, "%aios ask echo --file zeb") == ["%aios ask echo --file zebra.md"]
    assert tab(page, f"{here}nowhere/x") == [f"{here}nowhere/x"]


@pytest.mark.parametrize("typed", ["export last ", "ask echo so it is --file "])
def test_a_file_that_is_offered_is_the_one_that_is_meant(
    page: Console, tmp_path, monkeypatch, typed: str
):
    monkeypatch.chdir(tmp_path)
    names = ["a'b c.md", "it's.md", 'say "so".md', "both ' and \".md", "-dash.md", "'whole'.md",
             "back\\slash d.md", "two  spaces.md", "a\xa0b.md", "plain.md"]  # fmt: skip
    for name in [*names, "not in a\nline.md"]:
        (tmp_path / name).touch()
    lines = tab(page, f"%aios {typed}")
    meant = [parse(line.removeprefix("%aios ")).values["file"] for line in lines]
    assert sorted(one[0] if isinstance(one, list) else one for one in meant) == sorted(names)


def test_a_path_in_quotes_goes_on_over_spaces(page: Console, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "my notes").mkdir()
    for name in ("ant.md", "in a zoo.md", "it's.md", "my notes/a day.md"):
        (tmp_path / name).touch()
    here = "%aios export last "
    for begun, offered in (
        ("'in a", "'in a zoo.md'"),
        ('"in a', '"in a zoo.md"'),
        ("'it", '"it\'s.md"'),
        ("'my", "'my notes/'"),
        ("'my notes/'", "'my notes/a day.md'"),
        ("'my notes/a d", "'my notes/a day.md'"),
    ):
        assert tab(page, f"{here}{begun}") == [f"{here}{offered}"]
    asked = "%aios ask echo 'tis so --file "
    assert tab(page, f"{asked}an") == [f"{asked}ant.md"], "a question may begin with a quote"


def test_a_folder_without_an_end_is_looked_at_for_a_moment(page: Console, monkeypatch):
    looked: list[int] = []

    class Entry:
        def __init__(self, number: int) -> None:
            self.name = f"{number}.md"
            self.number = number

        def is_dir(self) -> bool:
            looked.append(self.number)
            return False

    monkeypatch.setattr(
        paths.os, "scandir", lambda _: contextlib.nullcontext(map(Entry, itertools.count()))
    )
    assert len(tab(page, "%aios export last ")) == len(looked) == paths.PATHS


def test_the_own_home_is_known_and_of_nobody_else_is_asked(page: Console, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "zebra.md").touch()
    asked: list[str] = []

    def ask(name: str) -> Any:
        asked.append(name)
        raise KeyError(name)

    monkeypatch.setattr(pwd, "getpwnam", ask)
    assert tab(page, "%aios export last ~/ze") == ["%aios export last ~/zebra.md"]
    assert tab(page, "%aios export last ~else/ze") == ["%aios export last ~else/ze"]
    assert not asked


def test_quotes_and_signs_that_are_understood_are_completed(page: Console, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "data one.csv").touch()
    (tmp_path / "data").mkdir()
    eventually(page, "%aios ask ec", "%aios ask echo")
    for begun, offered in (
        ('ask "ec', ['ask "echo"']),
        ("ask 'ec", ["ask 'echo'"]),
        ("ask @ec", ["ask @echo"]),
        ("ask --file=da", ["ask --file=data/", "ask --file='data one.csv'"]),
        ('ask echo what --file="data o', ['ask echo what --file="data one.csv"']),
        ('ask --file "da', ['ask --file "data/"', 'ask --file "data one.csv"']),
        ("ask --file='data one.csv' ec", ["ask --file='data one.csv' echo"]),
        ("ask --conversation=l", ["ask --conversation=last"]),
        ('ask --conversation "l', ['ask --conversation "last"']),
        ("hub add --kind=", ["hub add --kind=mcp", "hub add --kind=a2a"]),
    ):
        assert sorted(tab(page, f"%aios {begun}")) == sorted(f"%aios {one}" for one in offered)
    for question in ("ask echo 'tis", 'ask echo "a b'):
        assert tab(page, f"%aios {question}") == [f"%aios {question}"]
    agent = "%%agent adder --about it's \"so --acc"
    assert tab(page, agent) == [f"{agent}ess"]


def test_agents_come_from_what_is_known(page: Console):
    @aios.agent
    def zebra(text: str) -> str:
        return text

    found = eventually(page, "%aios ask ze", "%aios ask zebra")
    assert found == ["%aios ask zebra"]
    assert tab(page, "%aios card zeb")[0] == "%aios card zebra"
    assert tab(page, "%%aios ask zebr")[0] == "%%aios ask zebra"
    assert tab(page, "%aios withdraw ze") == ["%aios withdraw zebra"]
    aios.node().withdraw("zebra")
    deadline = time.monotonic() + CEILING_S
    while tab(page, "%aios withdraw zebr") == ["%aios withdraw zebra"]:
        assert time.monotonic() < deadline


def test_conversations_and_variables(page: Console):
    reply = page.good("%aios ask echo remember").value
    page.good("weather = 'sunny'")
    ask = "%aios ask --conversation "
    for line in ("%aios history ", "%aios export ", "%aios rename ", ask):
        found = eventually(page, line, f"{line}{reply.conversation}")
        assert f"{line}last" in found
    assert tab(page, "%aios ask echo it is {wea") == ["%aios ask echo it is {weather}"]
    assert tab(page, "%%aios ask echo\nit is {wea") == ["%%aios ask echo\nit is {weather}"]


def test_other_lines_are_left_alone(page: Console):
    page.good("aios_value = 1")
    assert tab(page, "aios_val") == ["aios_value"]
    assert "%aios" in tab(page, "%aio")
    assert tab(page, "%nothing ask ec") != ["%nothing ask echo"]


def test_a_node_that_hangs_does_not_hold_up_the_tab(page: Console):
    with held(aios.node()):
        assert "%aios ask echo" in tab(page, "%aios ask ec")
        assert "%aios history last" in tab(page, "%aios history ")
