"""Tab behind ``%aios`` and ``%%agent``."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest
from IPython.core.completer import provisionalcompleter

import aios_nb as aios
from aios_nb.notebook.parser import COMMANDS
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
