from __future__ import annotations

import subprocess
import sys
import unicodedata

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from aios_nb.richtext import HELD_MAX_CHARS, PlainStream, one_line, plain

HOSTILE = [
    ("\x1b[31mred\x1b[0m", "red"),
    ("\x1b]0;a new title\x07text", "text"),
    ("\x1b]52;c;cm0gLXJm\x1b\\text", "text"),
    ("\x1bP1;2qsixel\x1b\\text", "text"),
    ("\x9b2Jtext", "text"),
    ("\x9d0;title\x9ctext", "text"),
    ("\x1bc\x1b(0text", "text"),
    ("one\rtwo", "one\ntwo"),
    ("one\r\ntwo\x0bthree\u2028four", "one\ntwo\nthree\nfour"),
    ("back\x08\x08space\x00\x07", "backspace"),
    ("user\u202egnp.exe", "usergnp.exe"),
    ("a\u2066b\u2069c\u200fd\u061ce", "abcde"),
    ("pay\u200bpal pay\u200dpal pay\u200cpal \ufeffpay\u00adpal", "paypal paypal paypal paypal"),
    ("hi\U000e0068\U000e0069", "hi"),
    ("lone \ud83d surrogate", "lone \ufffd surrogate"),
    ("x\x1b[", "x"),
    ("\x1b", ""),
]


@pytest.mark.parametrize(("text", "left"), HOSTILE)
def test_what_a_terminal_obeys_or_a_reader_cannot_see_is_gone(text: str, left: str):
    assert plain(text) == left


@pytest.mark.parametrize(
    "text",
    [
        "plain words",
        "tab\tand\nline",
        "naïve 東京 🙂",
        "👨\u200d👩\u200d👧",
        "\u0645\u06cc\u200c\u062e\u0648",
        "क्\u200dष",
    ],
)
def test_what_people_write_stays(text: str):
    assert plain(text) == text


@settings(deadline=None)
@given(st.text())
def test_nothing_that_controls_a_terminal_is_ever_left(text: str):
    for char in plain(text):
        assert char in "\n\t" or unicodedata.category(char) not in {"Cc", "Cs"}
        assert not "\u202a" <= char <= "\u202e"


@settings(deadline=None)
@given(st.text())
def test_plain_text_is_plain_already(text: str):
    assert plain(plain(text)) == plain(text)


PIECES = [
    *(text for text, _ in HOSTILE),
    *("word", "\x1b", "[", "]", "31", "m", "\r", "\n", "\x07", "\\", "\x9b", "\x9d", "\x9c", " "),
    *("\u200d", "\u200c", "👩", "\u0645", "\u202e", "\ud83d", "é"),
]


@settings(deadline=None)
@given(st.lists(st.sampled_from(PIECES)))
@example(["\r", "\n"])
@example(["\r", "\x1b[0m", "\n"])
@example(["👩", "\u200d", "👩", "\u200d\u200d", "a"])
def test_a_text_in_pieces_shows_what_the_whole_one_does(pieces: list[str]):
    stream = PlainStream()
    shown = "".join(map(stream.feed, pieces)) + stream.end()
    assert shown == plain("".join(pieces))


@settings(deadline=None)
@given(st.sampled_from(HOSTILE), st.data())
def test_a_sequence_cut_in_two_is_removed_whole(case: tuple[str, str], data: st.DataObject):
    text = f"before {case[0]} after"
    cut = data.draw(st.integers(0, len(text)))
    stream = PlainStream()
    shown = stream.feed(text[:cut]) + stream.feed(text[cut:]) + stream.end()
    assert shown == plain(text)


@pytest.mark.parametrize("opener", ["\x1b]0;", "\x9d", "\x1b[", "\x9b", "\x1b", "\x1b\x1bP"])
@pytest.mark.parametrize("filler", ["0", "/", "x"])
@pytest.mark.parametrize("more", [-1, 0, 1])
def test_what_is_too_long_for_a_sequence_is_so_in_any_pieces(opener: str, filler: str, more: int):
    text = f"a{opener}{filler * (HELD_MAX_CHARS + more)}\x07b"
    whole, pieces = PlainStream(), PlainStream()
    shown = "".join(pieces.feed(text[at : at + 7]) for at in range(0, len(text), 7))
    assert shown + pieces.end() == whole.feed(text) + whole.end()


def test_a_sequence_that_never_ends_does_not_hold_back_the_answer_for_ever():
    stream = PlainStream()
    assert stream.feed("\x1b]0;") == ""
    shown = stream.feed("x" * (HELD_MAX_CHARS + 1))
    assert shown.endswith("xxx")
    assert "\x1b" not in shown


def test_one_line_is_one_line():
    assert one_line(" a\r\n\tb\x1b[2J\u2029c ") == "a b c"


def test_making_text_safe_loads_nothing_that_reads_markdown():
    program = "import sys, aios_nb.richtext\nprint(*sys.modules)"
    ran = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert not {"markdown_it", "pygments", "mdurl", "msgspec"} & set(ran.stdout.split())
