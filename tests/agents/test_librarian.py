"""The librarian of a real node."""

from __future__ import annotations

import json
import os
import threading
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit

import pytest
from markdown_it import MarkdownIt

from aios_nb.agents.definition import describe
from aios_nb.agents.library import reading, shelf
from aios_nb.agents.library.librarian import Librarian
from aios_nb.cli import main
from aios_nb.envelope import Sender
from aios_nb.errors import Cancelled
from aios_nb.index import opening
from aios_nb.index.hybrid import HybridIndex
from aios_nb.index.plain import PlainWords
from tests.sites import TestSite, limits

CEILING_S = 60.0


def ask(site: TestSite, text: str, **more: Any) -> dict[str, Any]:
    return site.call("chat.send", agent="librarian", text=text, **more)


def rows(reply: dict[str, Any]) -> list[dict[str, Any]]:
    data = reply["data"]
    return [dict(zip(data["columns"], row, strict=True)) for row in data["rows"]]


def names(reply: dict[str, Any]) -> set[str]:
    return {Path(row["path"]).name for row in rows(reply)}


def links(text: str) -> list[str]:
    """What can be clicked; ``file:`` is for programs that choose to allow it."""
    parser = MarkdownIt("commonmark")
    parser.validateLink = lambda _: True  # type: ignore[method-assign]
    found = []
    for token in parser.parse(text):
        assert token.type != "html_block"
        for child in token.children or ():
            assert child.type not in ("html_inline", "image")
            if child.type == "link_open":
                found.append(str(child.attrs["href"]))
    return found


@pytest.fixture
def notes(tmp_path: Path) -> Path:
    folder = tmp_path / "my notes"
    (folder / "deep").mkdir(parents=True)
    (folder / "physics.md").write_text(
        "# Physics\n\nSome words.\n\n## Decay\n\nMuons decay after two microseconds.\n\nMore.\n"
    )
    (folder / "deep" / "kitchen.txt").write_text("Bake the bread at 230 degrees.\nLet it cool.\n")
    (folder / "prices.csv").write_text("fruit,price_in_euro\napple,3\n" + "pear,4\n" * 5000)
    cells = [
        {
            "cell_type": "markdown",
            "id": "first",
            "source": "# Lifetimes of particles",
            "metadata": {},
        },
        {
            "cell_type": "code",
            "id": "second-cell",
            "source": "import scipy\n\nfit = scipy.optimize.curve_fit(model, t, y)",
            "outputs": [{"output_type": "stream", "text": "half-life: 1.52 \u00b5s"}],
            "metadata": {},
        },
    ]
    book = {"cells": cells, "nbformat": 4, "nbformat_minor": 5, "metadata": {}}
    (folder / "fit.ipynb").write_text(json.dumps(book))
    return folder


def test_it_says_what_to_do_while_no_folder_is_named(make_site):
    site = make_site()
    for text in ("", "where is the bread?", "forget it"):
        reply = ask(site, text)
        assert "look in ~/notes" in reply["text"]
        assert reply["data"]["folder"] is None
        assert rows(reply) == []


def test_it_finds_passages_in_texts_cells_outputs_and_headers(make_site, notes):
    site = make_site()
    reply = ask(site, f"look in {notes}")
    assert str(notes) in reply["text"]
    assert "4 files, 1 of them notebooks" in reply["text"]

    best = rows(ask(site, "how long do muons live before they decay"))[0]
    assert (best["path"], best["line"], best["cell"]) == (str(notes / "physics.md"), 7, None)
    assert best["title"] == "Physics / Decay"
    assert "two microseconds" in best["text"]
    assert 0 < best["score"] <= 1

    assert rows(ask(site, "bake bread"))[0]["path"] == str(notes / "deep" / "kitchen.txt")
    best = rows(ask(site, "curve_fit"))[0]
    assert (best["path"], best["cell"], best["line"]) == (str(notes / "fit.ipynb"), 2, 3)
    assert best["title"] == "Lifetimes of particles"
    reply = ask(site, "half-life")
    assert "output of cell 2" in reply["text"]
    assert rows(reply)[0]["text"] == "half-life: 1.52 \u00b5s"
    best = rows(ask(site, "price in euro"))[0]
    assert Path(best["path"]).name == "prices.csv"
    assert len(best["text"]) < 100


def test_a_reply_is_a_table_too(make_site, notes):
    site = make_site(library=notes)
    frame = site.node.ask("librarian", "muons").df()
    assert frame["path"][0] == str(notes / "physics.md")
    assert list(site.node.ask("librarian", "xyzzy qwrt").df().columns) == list(frame.columns)


def test_links_lead_to_the_files(make_site, notes):
    site = make_site(library=notes)
    reply = ask(site, "muons, bread and curve_fit")
    found = links(reply["text"])
    assert found == [row["link"] for row in rows(reply)]
    targets = {Path(unquote(urlsplit(link).path)) for link in found}
    assert {notes / "physics.md", notes / "deep" / "kitchen.txt", notes / "fit.ipynb"} <= targets
    assert all(link.startswith("file:///") for link in found)


def test_in_a_kernel_links_are_relative_and_name_the_place(make_site, notes, monkeypatch):
    beside = notes.parent / "work"
    beside.mkdir()
    monkeypatch.chdir(beside)
    monkeypatch.setenv("JPY_PARENT_PID", "1")
    site = make_site(library=notes)
    found = {
        link for text in ("muons", "curve_fit", "euro") for link in links(ask(site, text)["text"])
    }
    assert "../my%20notes/physics.md#line=6" in found
    assert "../my%20notes/fit.ipynb#cell-id=second-cell" in found
    assert "../my%20notes/prices.csv" in found


def test_the_folder_is_remembered_until_it_is_forgotten(make_site, notes, aios_home):
    first = make_site()
    ask(first, f'use the folder "{notes}"')
    first.stop()
    assert (aios_home / "test.library").stat().st_mode & 0o777 == 0o600
    second = make_site()
    assert names(ask(second, "muons")) == {"physics.md"}
    ask(second, "forget the folder")
    second.stop()
    assert "none is named yet" in ask(make_site(), "muons")["text"]


def test_a_damaged_memory_is_no_memory(make_site, aios_home, notes):
    site = make_site()
    ask(site, f"look in {notes}")
    site.stop()
    (aios_home / "test.library").write_bytes(b"{")
    assert "none is named yet" in ask(make_site(), "muons")["text"]


def test_a_folder_given_at_the_start_comes_before_the_remembered_one(make_site, notes, tmp_path):
    site = make_site()
    ask(site, f"look in {notes}")
    site.stop()
    other = tmp_path / "other"
    other.mkdir()
    (other / "a.md").write_text("Muons are elsewhere.")
    assert names(ask(make_site(library=other), "muons")) == {"a.md"}


def test_new_changed_and_deleted_files_are_noticed(make_site, notes):
    site = make_site(library=notes)
    assert names(ask(site, "muons")) == {"physics.md"}
    (notes / "new.md").write_text("Muons again.")
    assert names(ask(site, "muons")) == {"physics.md", "new.md"}
    (notes / "physics.md").write_text("Nothing of that kind.")
    assert names(ask(site, "muons")) == {"new.md"}
    (notes / "new.md").unlink()
    assert rows(ask(site, "muons")) == []


def test_only_text_inside_the_folder_is_read(make_site, notes, tmp_path):
    outside = tmp_path / "outside"
    (outside / "sub").mkdir(parents=True)
    (outside / "secret.md").write_text("secret muons")
    (outside / "sub" / "secret.txt").write_text("secret muons")
    for name in (".git", ".hidden", "node_modules", "venv", "__pycache__"):
        (notes / name / "in").mkdir(parents=True)
        (notes / name / "in" / "a.md").write_text("secret muons")
    (notes / "venv" / "pyvenv.cfg").touch()
    (notes / ".env.md").write_text("secret muons")
    (notes / "link.md").symlink_to(outside / "secret.md")
    (notes / "linked").symlink_to(outside)
    (notes / "ring").symlink_to(notes)
    (notes / "binary.txt").write_bytes(b"secret muons\0")
    (notes / "photo.png").write_bytes(b"secret muons")
    (notes / "broken.ipynb").write_text("secret muons")
    os.mkfifo(notes / "pipe.txt")
    site = make_site(library=notes)
    reply = ask(site, "secret muons")
    assert names(reply) == {"physics.md"}
    assert "2 could not be read" in reply["text"]


def test_the_nodes_own_folder_is_not_read(make_site, notes, aios_home, tmp_path):
    site = make_site()
    (aios_home / "a.md").write_text("secret muons")
    ask(site, f"look in {tmp_path}")
    assert names(ask(site, "secret muons")) == {"physics.md"}
    for own in (aios_home, aios_home / "keys"):
        assert "holds the keys" in ask(site, f"look in {own}")["text"]
    assert ask(site, "muons")["data"]["folder"] == str(tmp_path)


def test_a_folder_that_cannot_be_meant_is_explained(make_site, notes, tmp_path):
    site = make_site(library=notes)
    reply = ask(site, f"look in {tmp_path}/my_notes")
    assert f"Did you mean `{notes}`?" in reply["text"]
    assert f"still look in `{notes}`" in reply["text"]
    assert "is a file" in ask(site, f"look in {notes}/physics.md")["text"]
    assert "There is no folder" in ask(site, "look in ~nobody-of-that-name/x")["text"]
    assert "There is no folder" in ask(site, "look in /a\0b")["text"]
    empty = tmp_path / "empty"
    empty.mkdir()
    for text in (f"look in {empty}", f"look in {empty} for bread"):
        assert "nothing to find" in ask(site, text)["text"]
    empty.rmdir()
    assert "not there any more" in ask(site, "bread")["text"]


def test_what_fits_nothing_is_said(make_site, notes):
    site = make_site(library=notes)
    reply = ask(site, "xyzzy qwrt")
    assert "fits. Try other words" in reply["text"]
    assert rows(reply) == []


def test_what_only_means_the_same_is_called_so(make_site, notes):
    reply = ask(make_site(library=notes), "how hot must the oven be")
    assert "has these words. The nearest in meaning:" in reply["text"]
    assert rows(reply)[0]["text"].startswith("Bake the bread")


def test_a_folder_with_more_than_fits_is_said(make_site, notes):
    site = make_site(library=notes, limits=limits(library_files=2))
    assert "more than I can hold" in ask(site, "muons")["text"]


def test_what_stands_in_files_is_shown_and_nothing_else(make_site, tmp_path):
    folder = tmp_path / "`<b>x](http:evil) ![i](y)"
    folder.mkdir()
    nasty = (
        "<script>alert(1)</script> ![muons](http://evil/x.png) [muons](javascript:x) ```\n````\n"
    )
    (folder / "a`](http:evil) <i>.md").write_text(
        f"# <img src=x> ``[t](http:evil)``\n\nmuons \x1b]0;title\x07\x1b[31m\n{nasty}\n\u202emuons"
    )
    site = make_site(library=folder)
    reply = ask(site, "muons")
    assert "<script>" in reply["text"]
    assert not {"\x1b", "\x07", "\u202e"} & set(reply["text"])
    found = links(reply["text"])
    assert found
    assert all(link.startswith("file:///") for link in found)
    assert Path(unquote(urlsplit(found[0]).path)).exists()


def test_a_file_name_that_is_no_unicode_is_no_trouble(make_site, notes):
    try:
        (notes / os.fsdecode(b"caf\xe9.md")).write_text("Coffee with muons.")
    except OSError:
        pytest.skip("this disk wants Unicode names")
    reply = ask(make_site(library=notes), "coffee")
    assert "caf\ufffd.md" in reply["text"]
    assert rows(reply)[0]["link"].endswith("caf%E9.md")


def test_it_tells_how_far_the_first_reading_is(make_site, notes, monkeypatch):
    site, heard = make_site(library=notes), threading.Event()

    def patient(path: Path) -> Any:
        assert heard.wait(CEILING_S), "nothing was told"
        return reading.read(path)

    monkeypatch.setattr(shelf, "read", patient)

    async def listen() -> list[str]:
        notes_heard = []
        async for delta in site.flow("chat.stream", agent="librarian", text="muons"):
            if delta.get("progress"):
                notes_heard.append(delta["progress"])
                heard.set()
        return notes_heard

    assert site.node.run(listen)[0] == "reading 4 files (0%)"


def test_an_agent_may_ask_but_not_choose_the_folder(make_site, notes, tmp_path):
    async def helper(text, ctx):
        return await ctx.call("librarian", text)

    site = make_site(helper, library=notes)
    reply = site.call("chat.send", agent="helper", text="muons")
    assert names(reply) == {"physics.md"}
    for text in (f"look in {tmp_path}", str(tmp_path), "forget it"):
        reply = site.call("chat.send", agent="helper", text=text)
        assert ask(site, "")["data"]["folder"] == str(notes)


class SlowIndex:
    """The real index, whose opening waits for the test."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.begun, self.go_on = threading.Event(), threading.Event()
        self._open = opening.open_index
        monkeypatch.setattr(opening, "open_index", self)

    def __call__(self) -> Any:
        self.begun.set()
        while not self.go_on.wait(0.01):
            pass  # steps of Python, at which a thread can be stopped
        return self._open()


def test_the_node_answers_while_it_reads(make_site, notes, monkeypatch):
    site = make_site(library=notes)
    slow = SlowIndex(monkeypatch)
    reading = site.start("chat.send", agent="librarian", text="muons")
    assert slow.begun.wait(CEILING_S)
    assert site.call("chat.send", agent="echo", text="hello")["text"] == "hello"
    assert not reading.done()
    slow.go_on.set()
    assert names(reading.result(CEILING_S)) == {"physics.md"}


def test_a_stopped_run_leaves_nothing_half_done(make_site, notes, monkeypatch):
    site, begun, go_on = make_site(library=notes), threading.Event(), threading.Event()
    assert names(ask(site, "muons")) == {"physics.md"}
    for name in ("new", "newer"):
        (notes / f"{name}.md").write_text("Muons again.")

    def stuck(path: Path) -> Any:
        if path.name == "newer.md":
            begun.set()
            while not go_on.wait(0.01):
                pass
        return reading.read(path)

    monkeypatch.setattr(shelf, "read", stuck)
    run = site.start("chat.send", agent="librarian", text="muons", message_id="m")
    assert begun.wait(CEILING_S)
    site.call("chat.cancel", message_id="m")
    with pytest.raises(Cancelled):
        run.result(CEILING_S)
    go_on.set()
    (notes / "new.md").unlink()
    assert names(ask(site, "muons")) == {"physics.md", "newer.md"}


def test_a_run_stopped_in_the_index_leaves_no_passage_of_a_file_that_is_gone(notes):
    class Tripping(HybridIndex):
        def put(self, key, document):
            super().put(key, document)
            if document.name == "new.md":
                raise KeyboardInterrupt

    librarian = Librarian(notes, open_index=lambda: Tripping(PlainWords))
    librarian.answer("muons", Owner())
    (notes / "new.md").write_text("Muons again.")
    with pytest.raises(KeyboardInterrupt):
        librarian.answer("muons", Owner())
    (notes / "new.md").unlink()
    assert "Found" in librarian.answer("muons", Owner())[0]


class Owner:
    """A ``ctx`` of the owner, who has time."""

    sender = Sender("owner", "human")
    deadline = 60.0

    def progress(self, note: str, fraction: float) -> None:
        pass


class ShortOfTime(Owner):
    """Waits for ten seconds, of which each look at the clock takes one."""

    left = 10.0

    @property
    def deadline(self) -> float:
        self.left -= 1
        return self.left


def test_a_run_that_gets_late_answers_with_what_it_has(notes):
    for number in range(20):
        (notes / f"{number}.md").write_text(f"Muons, part {number}.")
    librarian = Librarian(notes)
    text, _ = librarian.answer("muons", ShortOfTime())
    assert "18 files not read yet: ask again" in text
    text, _ = librarian.answer("muons", ShortOfTime())
    assert "12 files not read yet" in text


def test_an_owners_librarian_hides_the_built_in_one(make_site, notes):
    site = make_site(describe(lambda text: "mine", name="librarian"), library=notes)
    assert ask(site, "muons")["text"] == "mine"
    site.node.withdraw("librarian")
    assert names(ask(site, "muons")) == {"physics.md"}


def test_the_command_line_refuses_a_folder_that_is_not_there(tmp_path, capsys):
    assert main(["up", "--library", str(tmp_path / "nowhere")]) == 2
    assert "there is no folder" in capsys.readouterr().err
