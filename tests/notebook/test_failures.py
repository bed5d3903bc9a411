"""Errors in cells: one line, no traceback, and the cell fails."""

from __future__ import annotations

import threading
from collections.abc import Iterator

import pytest

import aios_nb as aios
from aios_nb.errors import AiosError, NoSuchAgent
from aios_nb.notebook import parser
from aios_nb.notebook.commands import finding
from tests.notebook.consoles import CEILING_S, Console, console


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    with console(tmp_path_factory.mktemp("failures")) as made:
        made.good("import aios_nb as aios")
        yield made


@pytest.mark.parametrize(
    ("cell", "said"),
    [
        ("%aios serch x", "there is no %aios serch (did you mean search?)"),
        ("%aios ask ecko hi", "no such agent: ecko (did you mean echo?)"),
        ("%aios ask qqq hi", "no such agent: qqq (`%aios search` looks for one)"),
        ("%aios ask echo", "nothing to ask (%aios ask AGENT TEXT, or %%aios ask AGENT)"),
        ("x = 1\naios.node().ask('ecko', 'x')\nx = 2", "no such agent: ecko (did you mean echo?)"),
        ("await aios.node().ask_async('ecko', 'x')", "no such agent: ecko (did you mean echo?)"),
        (
            "aios.node().ask(print, 'x')",
            "print is not an agent of this program (name it as a text)",
        ),
        ("%aios history nothing", "no such conversation: nothing"),
        ("%aios ask echo --conversation <c> hi", "no such conversation: <c>"),
        ("%aios delete", "%aios delete needs C, a conversation: its id, its title, or `last`"),
    ],
)
def test_an_error_is_one_line_that_says_what_to_do(page: Console, cell: str, said: str):
    assert page.error(cell).startswith(said)


def test_a_variable_without_a_text_is_told_in_one_line(page: Console):
    page.good("class Mute:\n    def __str__(self): raise ValueError('no\\nwords')\ne = Mute()")
    said = "{e} has no text: ValueError: no words"
    assert page.error("%aios ask echo {e}") == said
    assert page.error("%%aios ask echo\n{e}") == said


def test_a_mistake_of_ours_in_reading_a_line_is_one_line_too(page: Console, monkeypatch):
    def read(*_: object) -> None:
        raise RuntimeError("lost")

    monkeypatch.setattr(parser, "parse", read)
    assert page.error("%aios agents") == "RuntimeError: lost (%aios debug shows where)"


def test_where_ask_was_forgotten_the_line_says_so(page: Console):
    patience = threading.Event()
    for _ in range(CEILING_S * 20):  # it hears who is there from the node
        if "echo" in page.session.roster.names():
            break
        patience.wait(0.05)
    said = "there is no %aios echo (did you mean %aios ask echo …?)"
    assert page.error("%aios echo hi") == said


def test_an_agents_failure_and_a_deadline_say_what_to_type(page: Console):
    @aios.agent
    def failing(text: str) -> str:
        raise ValueError("a \x1b[31mred\x1b[0m <b>word</b>")

    @aios.agent
    async def late(text: str) -> str:
        import asyncio

        await asyncio.Event().wait()
        return text

    line = page.error("%aios ask failing x")
    assert line.startswith("failing failed: ValueError: a ")
    assert "\x1b" not in line
    assert "--deadline SECONDS" in page.error("%aios ask --deadline 0.2 late x")

    @aios.agent(timeout_s=0.2)
    async def limited(text: str) -> str:
        return await late(text)

    assert page.error("%aios ask limited x").endswith("(its author sets it with timeout_s)")


def test_the_error_itself_travels_on_and_can_be_caught(page: Console):
    ran = page.good(
        "from aios_nb.errors import NoSuchAgent\n"
        "try:\n    %aios ask ecko x\n"
        "except NoSuchAgent as error:\n    caught = error.data['near']\ncaught"
    )
    assert ran.value == ["echo"]


def test_debug_has_the_traceback(page: Console):
    page.error("def deep():\n    aios.node().ask('ecko', 'x')\ndeep()")
    shown = page.good("%aios debug").text
    assert "in deep" in shown
    assert "NoSuchAgent" in shown
    assert shown.count("Traceback (most recent call last)") == 1


def test_debug_has_the_line_of_an_agent_of_yours_that_failed(page: Console):
    page.good("%%agent wonky\ndef wonky(text):\n    return 1 / 0  # here")
    assert "ZeroDivisionError" in page.error("%aios ask wonky hello")
    shown = page.good("%aios debug").text
    assert "line 3, in wonky" in shown
    assert "return 1 / 0  # here" in shown
    assert "aios_nb/" not in shown, "none of our own lines"


def test_a_mistake_of_our_own_is_one_line_too_and_debug_shows_where(
    page: Console, monkeypatch: pytest.MonkeyPatch
):
    def broken(_: object) -> None:
        raise LookupError("gone\nwrong")

    monkeypatch.setattr(finding, "agents", broken)
    assert page.error("%aios agents") == "LookupError: gone wrong (%aios debug shows where)"
    assert "broken(_)" in page.good("%aios debug").text


def test_other_errors_are_shown_as_ever(page: Console):
    ran = page.run("def deep():\n    {}['x']\ndeep()")
    assert "in deep" in ran.printed
    assert "KeyError" in ran.printed


def test_unloading_gives_tracebacks_back(page: Console):
    page.good("%unload_ext aios_nb")
    ran = page.run("from aios_nb.errors import NoSuchAgent\nraise NoSuchAgent('x')")
    assert "Traceback" in ran.printed
    assert not hasattr(AiosError, "_render_traceback_")
    page.shell.run_line_magic("load_ext", "aios_nb")
    assert page.error("raise NoSuchAgent('x')") == "x"
    assert issubclass(NoSuchAgent, AiosError)
