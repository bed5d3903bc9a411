"""IPython in a real terminal: there is no page, and no window to type into."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cli.screen import Screen

COLUMNS = 80
ERASED = re.compile(r"[^\n]*\r\x1b\[K")


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Screen]:
    folder = {"IPYTHONDIR": str(tmp_path / "ipython")}
    words = ("--simple-prompt", "--no-banner", "--no-confirm-exit")
    made = Screen(tmp_path / "home", *words, module="IPython", COLUMNS=str(COLUMNS), **folder)
    try:
        made.until("In [1]:")
        made.type("%load_ext aios_nb\r")
        made.until("In [2]:")
        yield made
    finally:
        made.close()


def test_an_answer_is_written_once_and_has_no_prompt_of_its_own(terminal: Screen):
    terminal.type("%aios ask calc 6*7\r")
    terminal.until("42", "In [3]:")
    left = ERASED.sub("", terminal.raw)
    assert "Out[" not in left
    assert "reply of" not in left
    terminal.type("x = %aios ask calc 6*8\r")
    terminal.until("48", "In [4]:")
    terminal.type("x.agent, str(x), str(_)\r")
    terminal.until("Out[4]: ('calc', '48', '42')")


def test_a_chat_says_how_to_talk_here(terminal: Screen):
    terminal.type("%aios chat calc\r")
    terminal.until("%aios ask calc …", "aios-nb chat calc", "In [3]:")


def test_lines_end_between_words_where_the_terminal_ends(terminal: Screen):
    terminal.type("%aios\r")
    shown = terminal.until("limits", "loop", "In [3]:").splitlines()
    limits = next(nr for nr, line in enumerate(shown) if line.startswith("  limits"))
    assert " ".join(shown[limits : limits + 2]).endswith(" kept for 7 days")
    assert shown[limits + 1].startswith(" " * 12)
    assert max(map(len, shown)) <= COLUMNS
    terminal.type("%aios doctor\r")
    for line in terminal.until("sqlite", "imports", "In [4]:").splitlines():
        longest = max(map(len, line.split()), default=0)
        assert len(line) <= COLUMNS or longest > COLUMNS - 20, "but for the path of a test's home"
