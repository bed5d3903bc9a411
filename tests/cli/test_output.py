from __future__ import annotations

import io
from contextlib import redirect_stdout

import pytest

from aios_nb.cli import output
from aios_nb.people.layout import fit, seconds
from aios_nb.richtext import cells_wide


class Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


@pytest.fixture
def terminal(monkeypatch: pytest.MonkeyPatch) -> Terminal:
    screen = Terminal()
    monkeypatch.setenv("COLUMNS", "40")
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    return screen


def test_a_table_never_leaves_the_terminal(terminal: Terminal, monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    with redirect_stdout(terminal):
        output.table(("NAME", "ABOUT"), [("a", "long " * 30), ("東京" * 3, "x")])
    lines = terminal.getvalue().splitlines()
    assert all(cells_wide(line) <= 40 for line in lines)
    assert lines[1].endswith("…")
    assert [line.index(word) for line, word in zip(lines, ("ABOUT", "long"), strict=False)] == [
        14
    ] * 2


def test_a_line_below_a_row_stays_within_the_terminal_and_may_be_left_out(
    terminal: Terminal, monkeypatch
):
    monkeypatch.setenv("NO_COLOR", "1")
    with redirect_stdout(terminal):
        output.table(("NAME",), [("a",), ("b",), ("c",)], below=["why\nso", "", "long " * 30])
    lines = terminal.getvalue().splitlines()
    assert lines[:4] == ["NAME", "a", "  why so", "b"]
    assert lines[5].startswith("  long long")
    assert lines[5].endswith("…")
    assert cells_wide(lines[5]) == 40


def test_a_pipe_gets_whole_cells(capsys):
    output.table(("NAME",), [("x" * 300,)], below=["y" * 300])
    shown = capsys.readouterr().out
    assert "x" * 300 in shown
    assert "y" * 300 in shown


def test_colours_are_for_terminals_that_want_them(terminal: Terminal, monkeypatch):
    assert output.Paint(terminal)("x", "bold") == "\x1b[1mx\x1b[0m"
    assert output.Paint(io.StringIO())("x", "bold") == "x"
    monkeypatch.setenv("TERM", "dumb")
    assert output.Paint(terminal)("x", "bold") == "x"
    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setenv("NO_COLOR", "1")
    assert output.Paint(terminal)("x", "bold") == "x"


@pytest.mark.parametrize(
    ("text", "width"), [("abc", 5), ("abcdef", 4), ("東京都", 4), ("東京都", 5)]
)
def test_fit_is_exact(text, width):
    assert cells_wide(fit(text, width)) == width


def test_durations_read_well():
    assert [seconds(value) for value in (5, 65, 3700, 90_000)] == [
        "5 s",
        "1 min 5 s",
        "1 h 1 min",
        "1 d 1 h",
    ]
