"""Displays without widgets: what strangers write stays text, whatever it is shown in."""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Iterator
from typing import Any

import pandas as pd
import pytest

import aios_nb as aios
from aios_bots.core.bridge import Code
from aios_bots.core.pairing import Role
from aios_nb.envelope import AgentRow, Event, FileRef, Kind, Sender, Status
from aios_nb.errors import UsageError
from aios_nb.notebook import show
from aios_nb.notebook.show import FACES, made, page, progress
from aios_nb.notebook.show import results as shown
from aios_nb.people.checks import warn
from aios_nb.people.settings_for import Settings, Step
from aios_nb.site import (
    CallerRow,
    Callers,
    CardView,
    Catalog,
    ChatRow,
    Chats,
    History,
    Hit,
    Hits,
    Import,
    Imports,
    Info,
    Listed,
    Peer,
    Peers,
    Reply,
)
from tests.notebook.consoles import Console, Tags, console

EVIL = [
    "<script>window.PWNED=1</script>",
    '"><img src=x onerror=window.PWNED=1>',
    "' onmouseover='window.PWNED=1",
    "[x](javascript:window.PWNED=1) <a href='javascript:window.PWNED=1'>y</a>",
    "![x](http://evil.example/pixel.png)",
    "<svg onload=window.PWNED=1><math><mi xlink:href='javascript:1'>",
    "</style><style>*{display:none}</style></details></table></div>",
    "a\u202egnp.exe\u200b\u2066b\x1b]0;title\x07\x1b[2J",
    "x" * 5000,
]
HARMLESS = {
    "div", "span", "style", "table", "thead", "tbody", "tr", "th", "td", "b", "br", "p", "code",
    "pre", "a", "details", "summary", "i", "strong", "em", "ul", "ol", "li", "img", "blockquote",
}  # fmt: skip
UNSEEN = re.compile("[\u200b\u202a-\u202e\u2060-\u206f\x00-\x08\x1b]")


class Nowhere:
    """A node that is stopped."""

    chat_face = None

    @property
    def client(self) -> Any:
        raise UsageError("stopped")

    def run(self, *_: Any) -> Any:
        raise UsageError("stopped")


def reply(text: str, data: Any = None, name: str = "", status: str = "done") -> Reply:
    files = [{"name": name, "mime": "image/png", "size": 10, "sha256": "0" * 64}] if name else []
    result = {"text": text, "data": data, "files": files, "status": status}
    ids = {"conversation": "c1", "message_id": "m1", "reply_id": "r1"}
    return Reply.made({**result, **ids}, text[:40] or "agent", Nowhere())  # type: ignore[arg-type]


def everything(evil: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Every face, with that text in every place that a stranger fills."""
    row = AgentRow(evil, evil, evil, evil, evil, (evil,), why=evil, version=evil, node_name=evil,
                   score=0.5, talks=2, source=evil)  # fmt: skip
    hit = Hit(row, Nowhere())  # type: ignore[arg-type]
    found = Hits([hit])
    found.query = evil
    sender = Sender(evil, "agent")
    files = (FileRef(evil, evil, 3, "0" * 64),)
    events = [
        Event("m1", 1, Kind.MESSAGE, Sender("owner@n", "human"), evil, at=evil),
        Event("m2", 2, Kind.MESSAGE, sender, evil, {evil: evil}, files, "m1", Status.DONE, evil),
        Event("m3", 3, Kind.STATUS, sender, evil, ref="m1", status=Status.FAILED),
        Event("m4", 4, Kind.STATUS, sender, evil, ref="m1", status=Status.INPUT_REQUIRED),
        Event("m5", 5, Kind.JOIN, sender, evil, ref=evil),
    ]
    card = {"name": evil, "title": evil, "about": evil, "tags": [evil], "examples": [evil],
            "version": evil, evil: evil, "more": {evil: [evil]}}  # fmt: skip
    guest = Import(evil, evil, evil, [evil, evil], evil, evil, evil, evil, evil, [evil], "invalid",
                   evil, changed=True, differences=[evil], hidden=True, note=evil)  # fmt: skip
    values: dict[str, Any] = {
        "Hits": found,
        "Hit": hit,
        "Peers": Peers([Peer(evil, evil, evil, evil, 1.0)]),
        "Callers": Callers([CallerRow(evil, 1, 1.0, evil, name=evil)]),
        "Chats": Chats([ChatRow(evil, evil, [evil], None, evil, evil, 1, f"x {evil}", evil)]),
        "CardView": CardView(card, None, verified=False, outside=guest),
        "Imports": Imports([guest, Import(evil, evil, evil, evil, evil, signature="valid")]),
        "Import": guest,
        "Catalog": Catalog([Listed(evil, evil, evil, evil, evil)]),
        "History": History(evil, events, evil, [evil], "n"),
        "Info": Info(evil, evil, evil, evil, 1.0, 1),
        "Reply": reply(evil, {evil: evil}, evil),
        "Note": shown.Note(evil),
        "Status": shown.Status(evil, evil, "up", [(evil, evil)]),
        "Checkup": shown.Checkup([warn(evil, evil, evil)]),
        "Table": shown.Table(evil, evil, [evil], [[evil]]),
        "Code": Code(evil, f"https://{evil}"[:1000], 600.0, Role.OWNER, evil),
        "Settings": Settings(evil, evil, (Step(evil, evil, "json", evil),), evil,
                             (Step(evil, evil, "sh"),)),
    }  # fmt: skip
    kinds = {name: (module, name) for module, name in FACES}
    for name, value in values.items():
        yield name, made(kinds[name], value)
    table = {"columns": [evil, "n"], "rows": [[evil, 1], [None, 2.5]]}
    yield "table", made(kinds["Reply"], reply("", table))
    yield "question", made(kinds["Reply"], reply(evil, status="input_required"))
    yield "progress", progress.bundle(evil, "3 s", evil)


@pytest.mark.parametrize("evil", EVIL, ids=range(len(EVIL)))
def test_what_strangers_write_is_only_text(evil: str):
    for name, bundle in everything(evil):
        assert bundle, f"{name} could not be made"
        tags = Tags(bundle["text/html"])
        assert {tag for tag, _ in tags.found} <= HARMLESS, name
        for tag, attrs in tags.found:
            assert not any(attr.startswith("on") for attr in attrs), name
            assert "javascript:" not in str(attrs.get("href")), name
            assert not attrs.get("src") or str(attrs["src"]).startswith("data:image/"), (name, tag)
        assert bundle["text/html"].count("</style>") <= 1, name
        assert not UNSEEN.search(bundle["text/html"]), name
        assert not UNSEEN.search(bundle["text/plain"]), name


def test_every_face_is_tried_with_every_text():
    tried = {name for name, _ in everything("x")}
    assert {name for _, name in FACES} - tried == {"Rows", "Lines"}


def test_a_program_of_others_is_not_taken_for_what_comes_along():
    calc = {"name": "calc", "access": "private"}
    kind = next(face for face in FACES if face[1] == "CardView")
    guest = Import("calc", "calc", "mcp", ["calc"], "private")
    for outside, says in ((None, True), (guest, False)):
        view = CardView(calc, None, verified=False, mine=True, outside=outside)
        assert ("built in" in made(kind, view)["text/html"]) is says


def test_a_conversation_of_one_message_says_it_once():
    def page(title: str, last: str) -> str:
        chats = Chats([ChatRow("c1", title, ["a@n"], None, "", "", 1, last)])
        return str(show.made(("aios_nb.rows", "Chats"), chats)["text/html"])

    assert page("add one and two", "add one\nand two").count("add one") == 1
    assert page("a long beginn…", "a long beginning and more").count("a long") == 1
    assert "and the end" in page("the beginning", "and the end")
    assert "Apples" in page("A", "Apples").partition("<b>A</b>")[2]
    assert "no title" in page("", "no title")
    assert page("titled", "").count("<br>") == page("titled", "titled").count("<br>")


def test_a_face_that_fails_leaves_pythons_own(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("aios_nb.notebook.show.tables.hit", lambda _: 1 / 0)
    assert show.made(("aios_nb.rows", "Hit"), object()) == {}


# In a shell ------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def notebook(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Console]:
    with console(tmp_path_factory.mktemp("show")) as open_one:
        yield open_one


def png(width: int = 1, noise: bytes = b"") -> bytes:
    def chunk(kind: bytes, data: bytes) -> bytes:
        body = kind + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    head = struct.pack(">IIBBBBB", width, 1, 8, 0, 0, 0, 0)
    rows = zlib.compress(b"\0" + b"\0" * width)
    parts = [chunk(b"IHDR", head), chunk(b"tEXt", noise), chunk(b"IDAT", rows), chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def test_small_pictures_are_shown_and_all_else_is_named(notebook: Console):
    files = {
        "dot.png": png(),
        "big.png": png(noise=b"k\0" + b"x" * (1 << 20)),
        "fake.png": b"<svg onload=alert(1)>",
        "page.svg": b"<svg xmlns='http://www.w3.org/2000/svg'/>",
        "notes.txt": b"hello",
    }

    @aios.agent
    def sender(text: str) -> Any:
        return ("here", *(aios.File(content, name=name) for name, content in files.items()))

    for ran in (notebook.good("r = %aios ask sender x"), notebook.good("r")):
        tags = Tags(ran.html).found
        pictures = [attrs for tag, attrs in tags if tag == "img"]
        assert [attrs["alt"] for attrs in pictures] == ["dot.png"]
        assert str(pictures[0]["src"]).startswith("data:image/png;base64,")
        links = {attrs["download"]: str(attrs["href"]) for tag, attrs in tags if tag == "a"}
        assert set(links) == {"fake.png", "page.svg", "notes.txt"}
        assert all(href.startswith("data:application/octet-stream;") for href in links.values())
        assert "big.png" in ran.html
        assert "reply.files[1].save()" in ran.html
        assert "[dot.png, " in ran.text


def test_a_table_stands_for_the_text_that_repeats_it(notebook: Console, capsys):
    @aios.agent
    def weather(text: str) -> pd.DataFrame:
        return pd.DataFrame({"city": ["Oslo", "Rome"] * 40, "degrees": range(80)})

    ran = notebook.good("%aios ask weather x")
    assert ran.html.count("<table") == 1
    assert '<td class="num">1</td>' in ran.html
    assert "30 more rows: reply.df() has all" in ran.html
    assert ran.value.df().shape == (80, 2)
    assert "| city" not in ran.text
    said = notebook.terminal("%aios ask weather x", capsys)
    assert said.splitlines()[:2] == ["city  degrees", "Oslo  0"]


def test_a_reply_in_a_list_is_shown_as_python_shows_it(notebook: Console):
    notebook.good("import aios_nb as aios\nr = aios.node().ask('echo', 'hi')")
    assert notebook.good("r").text == "hi"
    assert notebook.good("[r]").text == "['hi']"
    assert notebook.good("aios.node().info()").text.startswith("node ")


def test_a_saved_page_needs_nothing_but_itself(notebook: Console):
    ran = notebook.good("%aios agents")
    assert "http" not in page.STYLE
    assert "url(" not in ran.html
    assert "--jp-" in ran.html


def test_a_caller_is_named_as_its_node_is():
    rows = [CallerRow("b" * 32, 3, 1.0, name="bob"), CallerRow(f"owner@{'a' * 32}", 1, 1.0)]
    said = made(("aios_nb.rows", "Callers"), Callers(rows))
    assert "bob · bbbbbbbb " in said["text/plain"]
    assert "<b>bob</b>" in said["text/html"]
    assert "you " in said["text/plain"]
    assert ">you<" in said["text/html"]
    for text in said.values():
        assert "b" * 9 not in text
        assert "owner" not in text


def test_the_owner_of_another_node_is_named_by_the_node():
    events = [
        Event(f"m{seq}", seq, Kind.MESSAGE, Sender(f"owner@{node * 32}", "human"), "hello")
        for seq, node in enumerate("ab", 1)
    ]
    said = made(("aios_nb.rows", "History"), History("c", events, node_id="a" * 32))
    text = said["text/plain"]
    assert "you · " in text
    assert f"node {'b' * 8} · " in text
    assert "owner" not in text + said["text/html"]
