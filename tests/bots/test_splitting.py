"""Long texts become messages that a chat app takes and a person can read."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aios_bots.core.model import Rich, Span, SpanKind
from aios_bots.core.spans import from_markdown, units
from aios_bots.core.splitting import (
    MORE,
    PARTS_MAX,
    SPANS_MAX,
    TEXT_UNITS,
    parts,
    parts_of,
    pieces,
    trimmed,
)

WORDS = st.sampled_from(
    ["a ", "word ", "**b** ", "*i* ", "`c` ", "~~s~~ ", "[l](https://a.example/) ", "end. ", "Ж ",
     "🙂", "👩‍👩‍👧", "e\u0301", "漢字。", "x" * 30, "\n", "\n\n",
     "\n\n```py\nx = 1\n\ny = 2\n```\n\n",
     "\n\n> said\n> so\n\n", "\n- one\n- **two**\n", "\n\n| a | b |\n|---|---|\n| 1 | 2 |\n\n"]
)  # fmt: skip
MARKDOWN = st.lists(WORDS, max_size=120).map("".join) | st.text(max_size=300)


def covered(rich: Rich, kind: SpanKind, at: int = 0) -> set[int]:
    return {
        at + unit
        for span in rich.spans
        if span.kind is kind
        for unit in range(span.offset, span.end)
    }


def well_formed(rich: Rich) -> bool:
    """Every span is within the text and on whole characters, and no two cross."""
    borders, at = {0}, 0
    for char in rich.text:
        at += units(char)
        borders.add(at)
    for span in rich.spans:
        if span.length < 1 or not {span.offset, span.end} <= borders:
            return False
    return not any(
        one.offset < two.offset < one.end < two.end for one in rich.spans for two in rich.spans
    )


@settings(max_examples=150)
@given(MARKDOWN, st.integers(4, 90), st.integers(1, 7))
def test_pieces_join_to_the_text_and_keep_the_limits(text: str, limit: int, most: int) -> None:
    whole = from_markdown(text)
    found = pieces(whole, limit, most)
    assert "".join(one.text for one in found) == whole.text
    for one in found:
        assert one.text
        assert units(one.text) <= limit
        assert len(one.spans) <= most
        assert well_formed(one)
        one.text.encode("utf-8")  # no half of a surrogate pair


@settings(max_examples=100)
@given(MARKDOWN, st.integers(4, 90))
def test_what_was_code_is_code_in_every_piece_and_nothing_else_is(text: str, limit: int) -> None:
    whole = from_markdown(text)
    for kind in SpanKind:
        at, found = 0, set()
        for one in pieces(whole, limit, SPANS_MAX):
            found |= covered(one, kind, at)
            at += units(one.text)
        assert found == covered(whole, kind)


@settings(max_examples=100)
@given(MARKDOWN, st.integers(30, 200), st.integers(3, 20))
def test_what_is_sent_has_room_for_its_number(text: str, limit: int, most: int) -> None:
    sent = parts(from_markdown(text), limit=limit, max_spans=most)
    assert len(sent.messages) <= PARTS_MAX
    for one in sent.messages:
        assert one.text.strip()
        assert units(one.text) <= limit
        assert len(one.spans) <= most
        assert well_formed(one)


def test_a_text_that_fits_is_one_message() -> None:
    text = "x" * TEXT_UNITS
    assert parts(Rich(text)).messages == (Rich(text),)
    assert len(parts(Rich(text + "y")).messages) == 2


def test_emoji_count_as_the_app_counts_them() -> None:
    assert len(parts(Rich("🙂" * (TEXT_UNITS // 2))).messages) == 1
    assert len(parts(Rich("🙂" * (TEXT_UNITS // 2) + ".")).messages) == 2


@pytest.mark.parametrize(
    ("text", "first"),
    [
        ("one. two\nthree\n\nfour five six", "one. two\nthree\n\n"),
        ("one two. three\nfour five. six", "one two. three\n"),
        ("one two three. four five six", "one two three. "),
        ("one two three four five six", "one two three four "),
        ("onetwothreefourfivesixseven", "onetwothreefourfivesi"),
        ("a\n\nonetwo threefour fivesix", "a\n\nonetwo threefour "),
        ("onetwothreefourfives👩‍👩‍👧👩‍👩‍👧", "onetwothreefourfives"),
    ],
)
def test_a_cut_is_where_a_reader_would_make_it(text: str, first: str) -> None:
    assert pieces(Rich(text), 21, SPANS_MAX)[0].text == first


def test_code_is_not_cut_at_its_empty_lines_while_a_paragraph_ends_nearby() -> None:
    whole = from_markdown("before it\n\n```\na\n\nb c d\n```")
    assert pieces(whole, 15, SPANS_MAX)[0].text == "before it\n\n"


def test_cut_code_keeps_its_language_on_both_sides() -> None:
    whole = from_markdown("```python\n" + "x = 1\n" * 20 + "```")
    found = pieces(whole, 50, SPANS_MAX)
    assert len(found) > 2
    assert all([(s.kind, s.arg) for s in one.spans] == [(SpanKind.PRE, "python")] for one in found)
    assert all(one.text.endswith("\n") for one in found[:-1])


def test_a_text_that_fits_is_one_message_however_many_spans_it_has() -> None:
    whole = from_markdown("**a** *b* `c` [d](https://a.example/) " * 90)
    sent = parts(whole)
    assert [one.text for one in sent.messages] == [whole.text.rstrip()]
    kinds = [span.kind for span in sent.messages[0].spans]
    assert kinds.count(SpanKind.LINK) == 90
    assert kinds.count(SpanKind.CODE) == SPANS_MAX - 90
    assert well_formed(sent.messages[0])


def test_of_a_huge_text_only_the_beginning_is_read_and_it_is_a_file() -> None:
    text = "[x](https://a.example/) " * 2000  # would be short, were it read to its end
    sent = parts_of(text, limit=1000)
    assert sent.file
    assert len(sent.messages) == 1
    assert sent.messages[0].text.endswith(MORE)


@pytest.mark.parametrize(
    ("count", "numbers"),
    [(3, ["", "", ""]), (4, ["1/4", "2/4", "3/4", "4/4"])],
)
def test_only_more_than_three_parts_are_numbered(count: int, numbers: list[str]) -> None:
    text = "\n\n".join("x" * 90 for _ in range(count))
    sent = parts(Rich(text), limit=110)
    assert [one.text.strip("x").strip() for one in sent.messages] == numbers
    assert not sent.file


def test_a_very_long_text_is_its_beginning_and_a_file() -> None:
    text = "\n\n".join(f"{n}" + "x" * 90 for n in range(PARTS_MAX + 1))
    sent = parts(Rich(text), limit=110)
    assert sent.file
    assert [one.text for one in sent.messages] == ["0" + "x" * 90 + MORE]


def test_what_a_person_has_seen_already_stays_beside_the_file() -> None:
    text = "\n\n".join(f"{n}" + "x" * 90 for n in range(9))
    sent = parts(Rich(text), limit=110, least=3)
    assert [one.text[0] for one in sent.messages] == ["0", "1", "2"]
    assert [one.text.endswith(MORE) for one in sent.messages] == [False, False, True]


def test_blank_text_is_no_message() -> None:
    assert parts(Rich(" \n" * 5000)).messages == ()


def test_trimming_moves_the_spans_along() -> None:
    found = trimmed(Rich("\n\n  bold \n", (Span(SpanKind.BOLD, 4, 6),)))
    assert found == Rich("  bold", (Span(SpanKind.BOLD, 2, 4),))


def test_a_split_takes_time_in_proportion_to_the_text() -> None:
    whole = Rich("a **b** 🙂 " * 20_000)
    found = pieces(whole, TEXT_UNITS, SPANS_MAX)
    assert all(units(one.text) <= TEXT_UNITS for one in found)
    assert not any(one.text[-1].isalnum() for one, _ in pairwise(found))
