"""What a caller learns of an error: one line, and nothing of the machine."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aios_nb.agents.failure import LINE_LIMIT, explain, one_line


class Mute(Exception):
    def __str__(self) -> str:
        raise RuntimeError


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ValueError("boom"), "ValueError: boom"),
        (ValueError("boom\nsecond line"), "ValueError: boom"),
        (ValueError("\n\n  late\n"), "ValueError: late"),
        (KeyError("x"), "KeyError: 'x'"),
        (RuntimeError(), "RuntimeError"),
        (Mute(), "Mute"),
        (SystemExit(3), "SystemExit: 3"),
        (ValueError("a\x1b[31mred\x00\u202e"), "ValueError: a [31mred"),
        (
            FileNotFoundError(2, "No such file", "/home/ann/secret plans/data.csv"),
            "FileNotFoundError: [Errno 2] No such file: 'data.csv'",
        ),
        (ValueError("bad /home/ann/x.py, line 3"), "ValueError: bad x.py, line 3"),
        (ValueError("bad C:\\Users\\ann\\x.py"), "ValueError: bad x.py"),
        (ValueError("bad 'C:\\\\Users\\\\ann\\\\x y.py'"), "ValueError: bad 'x y.py'"),
        (ValueError("bad ~/notes/x.txt"), "ValueError: bad x.txt"),
        (
            ValueError("see https://example.org/a/b or 1/2"),
            "ValueError: see https://example.org/a/b or 1/2",
        ),
    ],
)
def test_an_error_becomes_its_type_and_first_line(error, line):
    assert explain(error) == line


@given(st.text(max_size=2000))
def test_a_line_is_always_short_and_printable(text):
    line = one_line(text)
    assert len(line) <= LINE_LIMIT
    assert line.isprintable()
    assert "\n" not in line
