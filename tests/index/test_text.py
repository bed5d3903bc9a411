from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aios_nb.index.text import (
    TEXT_MAX_CHARS,
    WORD_MAX_CHARS,
    clean,
    content,
    doings,
    joined,
    squeezed,
    words,
)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("Converts money", ["converts", "money"]),
        ("SummarizeAnything_pr", ["summarizeanything", "summarize", "anything", "pr"]),
        ("ChatOCR v2", ["chatocr", "chat", "ocr", "v2"]),
        ("PDF", ["pdf"]),
        ("today's air-quality", ["today", "air", "quality"]),
        ("Übersetzer für Café", ["ubersetzer", "fur", "cafe"]),
        ("курс рубля", ["курс", "рубля"]),
        ("हिन्दी अनुवाद", ["हिन्दी", "अनुवाद"]),
        ("", []),
    ],
)
def test_a_text_is_taken_apart_into_folded_words(text, found) -> None:
    assert words(clean(text)) == found


def test_scripts_without_spaces_become_pairs_of_characters() -> None:
    assert words("汇率换算", asked=True) == ["汇率", "率换", "换算"]
    assert words("汇", asked=True) == ["汇"]
    assert {"汇", "率", "汇率", "率换"} <= set(words("汇率换算"))
    assert words("GPT翻译", asked=True) == ["gpt", "翻译"]


def test_what_cannot_be_seen_does_not_split_or_hide_a_word() -> None:
    assert words(clean("cur\u200bren\u00adcy\u202e")) == ["currency"]
    assert words(clean("full\uff21\uff22")) == ["fullab", "full", "ab"]


def test_long_words_and_texts_are_cut() -> None:
    assert words(clean("x" * 900)) == ["x" * WORD_MAX_CHARS]
    assert len(clean("a b " * TEXT_MAX_CHARS)) <= TEXT_MAX_CHARS


@given(st.text(max_size=200))
def test_any_text_gives_words_that_an_engine_can_take(text) -> None:
    for word in words(clean(text)):
        assert word
        assert len(word) <= WORD_MAX_CHARS
        assert not word.isspace()
        word.encode()


def test_only_words_that_say_something_are_kept_if_there_are_any() -> None:
    assert content(["what", "is", "the", "tide", "tide"]) == ["tide"]
    assert content(["how", "to"]) == ["how", "to"]


def test_names_are_the_same_however_their_parts_are_separated() -> None:
    assert squeezed("PDF reader") == squeezed("pdf-reader") == squeezed("PDFReader")
    assert "airquality" in joined(["air", "quality", "today"])


@pytest.mark.parametrize(
    ("name", "does"), [("finder", "find"), ("planner", "plan"), ("maker", "make"), ("or", None)]
)
def test_a_name_is_found_by_what_its_bearer_does(name, does) -> None:
    assert does in doings(name) if does else doings(name) == ()
