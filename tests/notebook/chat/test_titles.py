"""What a conversation is called while nobody has given it a name."""

from __future__ import annotations

import pytest

from aios_nb.notebook.widgets.titles import TITLE_CHARS, begins, first_words


@pytest.mark.parametrize(
    ("text", "title"),
    [
        ("How far is the moon?", "How far is the moon?"),
        ("@calc, 2+2", "2+2"),
        ("@calc @clock: both\nof you", "both of you"),
        ("see **this** `code`", "see this `code`"),
        ("@calc", "@calc"),
        ("", ""),
        ("word " * 50, "word " * 11 + "word…"),
    ],
)
def test_a_title_is_what_is_said_first(text: str, title: str) -> None:
    assert first_words(text) == title
    assert len(title) <= TITLE_CHARS


def test_who_came_in_says_nothing_yet() -> None:
    rows = [{"kind": "join", "text": "came"}, {"kind": "message", "text": "@a @b hi"}]
    assert begins(rows) == "hi"
    assert begins(rows[:1]) == ""
