"""Text set for people."""

from __future__ import annotations

from aios_nb.people.layout import hanging


def test_further_lines_hang_below_the_first_and_no_word_is_broken():
    assert hanging("one two three four", 4, room=12) == "one two\n    three\n    four"
    assert hanging("一二 三四", 2, room=10) == "一二\n  三四", "wide letters take two cells"
    assert hanging("x" * 30, 4, room=12) == "x" * 30, "a word without end is the terminal's"
    assert hanging("", 4, room=12) == ""


def test_without_a_terminal_a_line_is_a_line():
    assert hanging("word " * 100, 4) == "word " * 100
