"""What the librarian is made of: messages, passages, quotes, and the shelf."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from aios_nb.agents.library import passages
from aios_nb.agents.library.asking import Asked, Wish, asked
from aios_nb.agents.library.notebooks import notebook
from aios_nb.agents.library.quoting import block, excerpt, needles, span
from aios_nb.agents.library.reading import NotText, read, text_of
from aios_nb.agents.library.shelf import Shelf
from aios_nb.index.hybrid import HybridIndex
from aios_nb.index.plain import PlainWords

THERE = {"~/notes", "/data/my notes", "notes", "/data", "C for beginners"}


@pytest.mark.parametrize(
    ("message", "folder", "question"),
    [
        ("look in ~/notes", "~/notes", ""),
        ("Look in ~/notes.", "~/notes", ""),
        ("~/notes", "~/notes", ""),
        ("look in notes", "notes", ""),
        ("please search in the folder /data/my notes", "/data/my notes", ""),
        ('read the folder "/data/my notes"', "/data/my notes", ""),
        ("use folder elsewhere", "elsewhere", ""),
        ("read folder elsewhere for the sun", "elsewhere", "the sun"),
        ("/nowhere", "/nowhere", ""),
        ("look in /no where", "/no where", ""),
        ("look in /nowhere", "/nowhere", ""),
        ("look in /nowhere for the sun", "/nowhere", "the sun"),
        ("look in ~/notes for gradient descent", "~/notes", "gradient descent"),
        ("look in C for beginners for loops", "C for beginners", "loops"),
        ("look in '/data/my notes' for loops", "/data/my notes", "loops"),
        ("find gradient descent in ~/notes", "~/notes", "find gradient descent"),
    ],
)
def test_a_message_may_name_a_folder(message, folder, question):
    assert asked(message, THERE.__contains__) == Asked(Wish.LOOK, question, folder)


@pytest.mark.parametrize(
    "message",
    [
        "gradient descent",
        "read about pandas",
        "notes",
        "'notes'",
        "/nowhere explained",
        "look in general",
        "find the notes",
        "read notes",
        "look for the folder structure",
        "search folder structure",
        "find the sun in /nowhere",
        "use of pandas in teaching",
        "and/or logic",
        "it's in 'quotes'",
    ],
)
def test_other_messages_are_questions(message):
    assert asked(message, THERE.__contains__) == Asked(Wish.ASK, message)


@pytest.mark.parametrize(
    ("message", "wish"),
    [
        ("", Wish.TELL),
        ("help", Wish.TELL),
        ("which folder do you use?", Wish.TELL),
        ("forget the folder", Wish.FORGET),
        ("Forget it!", Wish.FORGET),
    ],
)
def test_small_talk(message, wish):
    assert asked(message, THERE.__contains__).wish is wish


@given(st.text(max_size=80))
def test_any_message_means_something(message):
    assert asked(message, lambda _: False).wish in Wish


LINES = st.lists(
    st.one_of(
        st.sampled_from(
            ["", "# One", "## Two", "===", "---", "```", "def f():", "  x", "a" * 2500]
        ),
        st.text(st.characters(exclude_characters="\r\n"), max_size=300),
    ),
    max_size=40,
)


@given(LINES, st.sampled_from(["prose", "markdown", "structured", "python"]))
def test_every_passage_stands_where_it_says_and_no_word_is_lost(lines, kind):
    found = list(getattr(passages, kind)(lines))
    for passage in found:
        assert 0 < len(passage.text) <= passages.PASSAGE_CHARS
        at = lines[passage.line - 1 : passage.line + passage.text.count("\n")]
        assert passage.text.split("\n")[0].rstrip() in at[0]
        assert len(at) == 1 + passage.text.count("\n")
    if kind in ("prose", "python"):
        kept = "".join("".join(passage.text.split()) for passage in found)
        assert kept == "".join("".join(line.split()) for line in lines)


def test_markdown_passages_know_their_headings():
    text = "Intro\n\n# A\n\n## B\n\none\n\n```\n# no heading\n```\n\nC\n-\n\nD\n---\n\ntwo\n"
    found = list(passages.markdown(text.split("\n")))
    assert [(one.line, one.title) for one in found] == [(1, ""), (5, "A / B"), (16, "A / D")]
    assert "# no heading" in found[1].text


def test_headings_alone_are_kept_when_there_is_nothing_else():
    assert [one.text for one in passages.markdown(["# One", "", "# Two"])] == ["# One", "# Two"]


def test_structured_text_and_code_are_parted_too():
    text = ["Top", "===", "", "one", "", "Below", "~~~~~", "", "two"]
    assert [one.title for one in passages.structured(text)] == ["Top", "Top / Below"]
    code = ["import x", "", "def f():", "    pass", "", "class G:", "    def h(self): ..."]
    assert [(one.line, one.title) for one in passages.python(code)] == [(1, ""), (3, "f"), (6, "G")]


def test_a_notebook_gives_cells_and_the_words_of_their_outputs():
    cells = [
        {"cell_type": "markdown", "id": "m1", "source": ["# Fit\n", "\n", "The decay."]},
        {
            "cell_type": "code",
            "source": "plot(x)",
            "outputs": [
                {"output_type": "stream", "text": ["half-life\n", "\x1b[31m3.2\x1b[0m s"]},
                {"data": {"image/png": "AAAA", "text/html": "<b>", "text/plain": ["<Figure>"]}},
                {"ename": "ValueError", "evalue": "no peak", "traceback": ["long"]},
            ],
        },
        {"cell_type": "code", "source": "", "outputs": []},
    ]
    found = list(notebook(json.dumps({"cells": cells, "nbformat": 4}).encode()))
    assert [(one.cell, one.cell_id, one.is_output, one.title) for one in found] == [
        (1, "m1", False, "Fit"),
        (2, "", False, "Fit"),
        (2, "", True, "Fit"),
    ]
    assert found[2].text == "half-life\n3.2 s\n<Figure>\nValueError: no peak"


@pytest.mark.parametrize(
    "content", [b"", b"[]", b"{", b'{"worksheets": []}', b'{"cells": 1}', b"[" * 100_000]
)
def test_what_is_no_notebook_is_no_text(tmp_path, content):
    (tmp_path / "a.ipynb").write_bytes(content)
    with pytest.raises(NotText):
        read(tmp_path / "a.ipynb")


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("größe".encode(), "größe"),
        ("größe".encode("utf-8-sig"), "größe"),
        ("größe".encode("utf-16"), "größe"),
        ("größe".encode("cp1252"), "größe"),
        ("grö".encode()[:-1], "gr"),
    ],
)
def test_text_is_read_in_the_usual_encodings(content, text):
    assert text_of(content) == text


def test_lines_are_counted_as_editors_do(tmp_path):
    (tmp_path / "a.txt").write_bytes(b"one\r\ntwo\x0c\x1c\nthree" + b"\n" * 3 + b"x" * 1100 + b"\n")
    assert [one.line for one in read(tmp_path / "a.txt")] == [1, 6, 6]


def test_an_excerpt_shows_the_line_that_fits_between_its_neighbours():
    text = "\n".join(
        ["zero", "one", f"{'x' * 300} the residuals were plotted {'y' * 300}", "three"]
    )
    line, shown = excerpt(passages.Passage(text, 10), needles("where did I plot the residuals?"))
    assert line == 12
    assert [row[:20] for row in shown.split("\n")][::2] == ["one", "three"]
    assert "residuals were plotted" in shown
    assert len(shown) < 300
    assert excerpt(passages.Passage("数据库的索引", 1), needles("索引"))[1] == "数据库的索引"


@given(st.lists(st.sampled_from(["", "`", "```", "````text", "    x", "> <b>", "[a](b)"])))
def test_a_block_is_one_block(lines):
    from markdown_it import MarkdownIt

    text = "\n".join(lines)
    (token,) = MarkdownIt("commonmark").parse(block(text))
    assert (token.type, token.content) == ("fence", f"{text}\n")


@given(st.text(max_size=200))
def test_what_is_quoted_in_a_line_stays_quoted(text):
    from markdown_it import MarkdownIt

    parse = MarkdownIt("commonmark").parse
    line = " ".join(text.split())
    tokens = parse(f"before {span(line)} after") if span(line).strip("` ") else []
    for token in tokens:
        for child in token.children or ():
            assert child.type in ("text", "code_inline")


# The shelf -----------------------------------------------------------------------------


def shelf(folder, files_max=100, passages_max=100):
    return Shelf(
        folder,
        files_max=files_max,
        passages_max=passages_max,
        open_index=lambda: HybridIndex(PlainWords),
    )


def heard(_done, _total):
    pass


def test_what_there_is_no_time_for_is_read_the_next_time(tmp_path):
    for name in "abc":
        (tmp_path / f"{name}.txt").write_text(f"{name * 3} word")
    books, answers = shelf(tmp_path), iter([False, True])
    stock = books.update(heard, lambda: next(answers))
    assert (stock.files, stock.waiting) == (1, 2)
    assert [one.path for one in books.search("word", 5)] == ["a.txt"]
    stock = books.update(heard, lambda: False)
    assert (stock.files, stock.waiting) == (3, 0)
    assert len(books.search("word", 5)) == 3


def test_only_what_changed_is_read_again(tmp_path):
    told = []
    for name in "abc":
        (tmp_path / f"{name}.txt").write_text(f"{name * 3} word")
    books = shelf(tmp_path)
    books.update(lambda done, total: told.append((done, total)), lambda: False)
    (tmp_path / "b.txt").write_text("another")
    (tmp_path / "c.txt").unlink()
    books.update(lambda done, total: told.append((done, total)), lambda: False)
    assert told == [(0, 3), (1, 3), (2, 3), (0, 1)]
    assert [one.path for one in books.search("word", 5)] == ["a.txt"]
    assert [one.path for one in books.search("another", 5)] == ["b.txt"]


def test_a_shelf_holds_so_much_and_says_so(tmp_path):
    for name in "abc":
        (tmp_path / f"{name}.txt").write_text(f"{name} word")
    stock = shelf(tmp_path, files_max=2).update(heard, lambda: False)
    assert (stock.files, stock.complete, stock.waiting) == (2, False, 0)
    books = shelf(tmp_path, passages_max=2)
    stock = books.update(heard, lambda: False)
    assert (stock.passages, stock.complete, stock.waiting) == (2, False, 0)
    (tmp_path / "a.txt").unlink()
    stock = books.update(heard, lambda: False)
    assert (stock.passages, stock.complete) == (2, True)
