"""A tree of a text that comes in pieces."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from aios_nb.richtext import Growing, Node, flat, growing, markdown, parse, passages, to_data
from tests.hostile.corpus import CORPUS, LARGE

ATOMS = [
    *(
        "word",
        "b c",
        "\n",
        "\n\n",
        "\n\n\n",
        " ",
        " " * 25,
        "\t",
        "- ",
        "* ",
        "1. ",
        "> ",
        "# ",
        "---",
    ),
    *("```", "```py\n", "~~~", "`", "**", "_", "~~", "[", "](https://a.example/)", "![", "==="),
    *("|a|b|\n", "|-|-|\n", "|", "<b>", "&amp;", "&#8238;", "\\", "https://a.example/x", "x" * 50),
    *("\x1b[0m", "\x1b]0;", "\x07", "\r", "\u200d", "👨", "\u202e", "\0", "\ud83d", "  ```\n"),
]
TEXTS = st.lists(st.sampled_from(ATOMS), max_size=60).map("".join) | st.sampled_from(
    [text for text in CORPUS.values() if len(text) < 1000]
)


class Page:
    """Does with what it is given what a page does, and watches that it may."""

    def __init__(self) -> None:
        self.blocks: list[Node] = []
        self.kept: list[Node] = []

    def take(self, given: tuple[int, list[Node]]) -> None:
        keep, blocks = given
        assert len(self.kept) <= keep <= len(self.blocks)
        assert self.blocks[: len(self.kept)] == self.kept
        self.kept = self.blocks[:keep]
        self.blocks = self.kept + blocks


def pieces(text: str, cuts: list[int]) -> list[str]:
    places = [0, *sorted(cut % (len(text) + 1) for cut in cuts), len(text)]
    return [text[start:end] for start, end in pairwise(places)]


def shown(parts: list[str]) -> list[Node]:
    tree, page = Growing(), Page()
    for index, piece in enumerate(parts):
        if index % 3:
            page.take(tree.feed(piece))
        else:
            tree.add(piece)
    page.take(tree.end())
    return page.blocks


CUTS = st.lists(st.integers(0, 10_000), max_size=30)


@settings(deadline=None)
@given(TEXTS, CUTS)
def test_a_text_in_any_pieces_ends_as_the_whole_one(text: str, cuts: list[int]):
    assert shown(pieces(text, cuts)) == parse(text)


@settings(deadline=None)
@given(TEXTS, CUTS)
@example(" " * 25 + "word", [25])
@example("a\n" + " " * 25 + "b\nword", [27])
@example("w" + "[" * 18 + ("\nw" + "[" * 18) * 2, [])
def test_also_where_the_limits_are(text: str, cuts: list[int]):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passages, "EFFORT_MAX", 600)
        patch.setattr(passages, "LINE_MAX_CHARS", 20)
        patch.setattr(passages, "PLAIN_CHARS", 15)
        patch.setattr(markdown, "INLINE_MAX_CHARS", 60)
        patch.setattr(growing, "NODES_MAX", 15)
        patch.setattr(growing, "READ_AT_ONCE_EFFORT", 40)
        patch.setattr(growing, "SHOWN_MAX_CHARS", 90)
        patch.setattr(growing, "SHOWN_END_CHARS", 20)
        assert shown(pieces(text, cuts)) == parse(text)


@pytest.mark.parametrize(
    "name", ["stars", "long-table", "fences", "code", "paragraphs", "one-line"]
)
def test_large_texts_too(name: str):
    text = LARGE[name]()
    assert shown([text[at : at + 9_999] for at in range(0, len(text), 9_999)]) == parse(text)


def test_a_finished_block_is_given_once():
    tree = Growing()
    assert tree.feed("one\n\ntwo") == (0, parse("one\n\ntwo"))
    assert tree.feed(" more") == (1, parse("two more"))
    assert tree.feed("\n\n```py\nif") == (1, parse("two more\n\n```py\nif"))
    assert tree.feed(" x\n```\nend") == (2, parse("```py\nif x\n```\nend"))
    assert tree.end() == (3, parse("end"))


@pytest.mark.parametrize("end", ["-", "--", "---", "=", "|", "|-", "**", "```", ">"])
def test_a_line_that_may_become_anything_waits(end: str):
    tree = Growing()
    tree.feed("words\n")
    assert tree.feed(end) == (0, parse("words"))
    assert tree.end() == (0, parse(f"words\n{end}"))


LONG = {
    "lines": "a line of a log 123\n" * 3_000,
    "words": "some words and *more* of them " * 2_000,
    "code": "```python\n" + "x = f('a', 12)  # note\n" * 2_500,
    "table": "|a|b|\n|-|-|\n" + "| 12 | some text |\n" * 3_000,
    "list": "- an item with `code`\n" * 2_500,
    "prose": ("Plain words, and a **bold** one. " * 20 + "\n\n") * 90,
    "brackets": "[" * 60_000,
}


@pytest.mark.parametrize("name", LONG)
def test_a_long_answer_costs_what_it_is_long(name: str, monkeypatch: pytest.MonkeyPatch):
    text, costs = LONG[name], [0]

    def counted(passage: str) -> list[Node]:
        costs[0] += len(passage)
        return markdown.read(passage)

    monkeypatch.setattr(growing, "read", counted)
    tree, page, sent = Growing(), Page(), 0
    looks = range(0, len(text), 100)  # one every 50 ms, at 400 tokens a second
    for at in looks:
        for start in range(at, at + 100, 5):
            tree.add(text[start : start + 5])
        now = tree.look()
        page.take(now)
        sent += len(flat(now[1]))
    page.take(tree.end())

    assert page.blocks == parse(text)
    assert costs[0] <= 12 * len(text)
    assert sent <= len(text) + len(looks) * growing.SHOWN_MAX_CHARS / 2


def test_what_was_read_of_one_passage_is_not_shown_in_the_next():
    tree, page = Growing(), Page()
    for letter in "abc":
        for _ in range(30):
            page.take(tree.feed(f"{letter} *{letter}*\n" * 80))
            assert set(flat(page.blocks[-1:])) <= set(f"{letter}* \n")
        page.take(tree.feed("\n"))
    page.take(tree.end())
    assert [block.tag for block in page.blocks] == ["p", "p", "p"]


def test_a_huge_block_shows_its_end_until_it_is_complete():
    tree = Growing()
    tree.feed("```\n" + "x\n" * growing.SHOWN_MAX_CHARS)
    (block,) = tree.feed("the newest line")[1]
    assert block.tag == "pre"
    assert flat([block]).startswith("…")
    assert flat([block]).endswith("the newest line")
    assert len(flat([block])) < 2 * growing.SHOWN_END_CHARS
    (block,) = tree.end()[1]
    assert len(flat([block])) > 2 * growing.SHOWN_MAX_CHARS


def test_what_a_page_gets_is_data():
    keep, blocks = Growing().feed("**a**")
    assert (keep, to_data(blocks)) == (0, [["p", {}, [["b", {}, ["a"]]]]])
