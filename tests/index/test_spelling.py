from __future__ import annotations

import pytest

from aios_nb.index.spelling import meant, slips

KNOWN = ["currency", "weather", "translate", "train", "trains"]


@pytest.mark.parametrize(
    ("typed", "word"),
    [
        ("currancy", "currency"),
        ("wether", "weather"),
        ("weahter", "weather"),
        ("transalte", "translate"),
        ("curr", "currency"),
        ("trai", "train"),
        ("cat", None),
        ("submarine", None),
    ],
)
def test_the_word_that_was_meant(typed, word) -> None:
    assert meant(typed, KNOWN) == word


@pytest.mark.parametrize(
    ("one", "other", "wrong"),
    [("abcd", "abcd", 0), ("abcd", "abdc", 1), ("abcd", "abc", 1), ("abcd", "xbcy", 2)],
)
def test_slips_are_letters_left_out_added_changed_or_swapped(one, other, wrong) -> None:
    assert slips(one, other, 2) == slips(other, one, 2) == wrong
    assert slips(one, other, wrong - 1) is None
