"""Files and data in a chat, and conversations of many messages."""

from __future__ import annotations

import hashlib

from aios_nb.notebook.widgets.chat import SAVED_BYTES
from aios_nb.notebook.widgets.contents import data_view
from aios_nb.notebook.widgets.following import PAGE
from aios_nb.notebook.widgets.titles import first_words
from aios_nb.parts import File
from tests.notebook.chat.windows import NASTY, PNG, Make, Open
from tests.sites import TestSite

# Files and data -------------------------------------------------------------------------------


def test_files_go_both_ways_in_pieces(open_chat: Open, make_site: Make) -> None:
    def giver(text: str) -> tuple[str, File, File, File]:
        drawing, liar = File(b"<svg onload=x>", name="x.svg"), File(b"<html>", name="liar.png")
        return "here", File(PNG, name="plot.png"), drawing, liar

    chat = open_chat("giver", site=make_site(giver, name="giving").node)
    content = bytes(range(256)) * 8192
    for offset in range(0, len(content), 1 << 20):
        last = offset + (1 << 20) >= len(content)
        piece = content[offset : offset + (1 << 20)]
        chat.say("upload", piece, id="f-1", name="data.bin", mime="", offset=offset, last=last)
    chat.attach("f-2", "a.png")
    chat.write("look", files=["f-1", "f-2"])
    reply = chat.answered("here")
    sent = chat.page.items["m-1"]["files"]
    assert [(file["name"], file["size"]) for file in sent] == [
        ("data.bin", 2 << 20),
        ("a.png", 108),
    ]

    picture, *others = reply["files"]
    chat.say("fetch", sha256=sent[0]["sha256"])
    first, second = chat.hears("file"), chat.hears("file")
    assert (first["offset"], second["offset"], first["size"]) == (0, 1 << 20, 2 << 20)
    assert hashlib.sha256(first["bytes"][0] + second["bytes"][0]).hexdigest() == sent[0]["sha256"]
    chat.say("fetch", sha256=picture["sha256"])
    assert chat.hears("file")["picture"] is True
    for other in others:
        chat.say("fetch", sha256=other["sha256"])
        assert chat.hears("file")["picture"] is False
    chat.say("fetch", sha256="0" * 64)
    missing = chat.hears("unfetchable")
    assert (missing["id"], "not in this conversation" in missing["text"]) == ("0" * 64, True)

    for nr in range(21):  # and more to come
        about = {"id": "f-3", "name": "big", "mime": "", "last": False}
        chat.say("upload", bytes(1 << 20), offset=nr << 20, **about)
    assert chat.hears("unloadable")["text"] == "a file may have 20 MB at most"
    chat.write("with it", files=["f-3"])
    assert chat.hears("refused")["text"] == "a file may have 20 MB at most"
    html = chat._repr_mimebundle_()[0]["text/html"]
    assert html.count("data:image/png;base64,") == 2  # one from each side
    assert "<svg" not in html


def test_data_is_shown_as_what_it_is() -> None:
    rows = [[f"city {nr}", nr / 3, None] for nr in range(120)]
    table = {"columns": ["name", "size", NASTY], "rows": rows}
    view, repeats = data_view("", table)
    assert view is not None
    assert (len(view["rows"]), view["of_rows"], view["numbers"]) == (50, 120, [1, 2])
    assert view["rows"][1] == ["city 1", "0.333333", ""]
    assert "\u202e" not in view["columns"][2]
    assert not repeats
    assert data_view("42", 42) == (None, False)
    assert data_view('{"a": 1}', {"a": 1}) == ({"json": '{\n  "a": 1\n}', "open": True}, True)
    assert data_view("text", {"a": 1}) == ({"json": '{\n  "a": 1\n}'}, False)
    assert data_view("text", None) == (None, False)


# Many messages --------------------------------------------------------------------------------


def test_a_long_conversation_is_read_from_its_end(open_chat: Open, site: TestSite) -> None:
    talk = site.call("chat.open", agents=["echo"], title="long")["conversation"]
    for nr in range(PAGE):
        site.call("chat.send", agent="echo", text=f"{nr} " + "x" * 5000, conversation=talk)
    chat = open_chat("echo")
    chat.until(lambda page: len(page.items) == PAGE and page.head["earlier"])
    assert chat.page.sorted()[0]["text"].startswith("50 ")
    assert chat.page.head["called"] == "long"
    chat.say("rename", title=first_words("0 " + "x" * 5000))
    chat.until(lambda page: page.head["called"] == "")  # though how it begins is not shown
    chat.until(lambda _: chat.saved.get("items"))
    kept = chat.saved["items"]
    assert kept == chat.page.sorted()[-len(kept) :]
    assert 0 < len(str(kept)) < 2 * SAVED_BYTES

    site.call("chat.post", text="@forever go", message_id="m-go", conversation=talk)
    running = chat.item(re="m-go", status="runs")
    chat.say("earlier")
    chat.until(lambda page: len(page.items) == 2 * PAGE + 2 and not page.head["earlier"])
    assert [item["text"].split()[0] for item in chat.page.sorted()[:4]] == ["0", "0", "1", "1"]
    assert chat.page.sorted()[-1]["id"] == running["id"]
    assert chat.item(id="m-go")["blocks"] == [["lines", {}, [["at", {}, ["@forever"]], " go"]]]
    chat.say("stop")
    chat.item(id=running["id"], status="cancelled")


def test_a_long_answer_is_parsed_beside_the_loop(open_chat: Open, make_site: Make) -> None:
    long = "\n\n".join(f"**{nr}** `code` and words" for nr in range(2000))

    def author(text: str) -> str:
        return long

    chat = open_chat("author", site=make_site(author, name="author").node)
    chat.write("go")
    reply = chat.answered(long)
    chat.until(lambda page: len(page.items[reply["id"]]["blocks"]) == 2000)
    assert chat.page.items[reply["id"]]["blocks"][7][2][0] == ["b", {}, ["7"]]
