"""What happens in a conversation, in the words of a chat app."""

from __future__ import annotations

import pytest

from aios_bots.core.model import Attachment, Rich, Span, SpanKind
from aios_bots.core.spans import from_markdown
from aios_bots.core.splitting import headed, parts_of
from aios_bots.core.wording import TABLE_ROWS, Said, Wording, content, joined, note, typed

NODE = "n" * 32
OTHER = "abcdefgh" + "x" * 24
NAMES = {"5": "Ann \u202e(notebook)\n", "6": ""}


@pytest.fixture
def wording() -> Wording:
    return Wording(NODE, "tg:77:", lambda user_id: NAMES.get(user_id, ""))


def row(text: str = "", sender: str = f"echo@{NODE}", kind: str = "message", **more) -> dict:
    by = "agent" if "@" in sender and not sender.startswith("owner@") else "human"
    return {
        "message_id": "m1",
        "seq": 1,
        "kind": kind,
        "sender": {"id": sender, "type": by},
        "text": text,
        "data": None,
        "files": [],
        "ref": None,
        "status": None,
        **more,
    }


@pytest.mark.parametrize(
    ("sender", "name"),
    [
        (f"echo@{NODE}", "echo"),
        (f"echo@{OTHER}", "echo@abcdefgh"),
        (f"owner@{NODE}", "owner (notebook)"),
        (f"owner@{OTHER}", "owner@abcdefgh (notebook)"),
        ("tg:77:5", "Ann notebook (Telegram)"),
        ("tg:77:6", "6 (Telegram)"),
        ("tg:88:5", "5 (Telegram)"),
        ("wa:1:9", "9 (wa)"),
        ("token:abc", "a program"),
    ],
)
def test_everybody_has_a_name_that_says_what_they_are(wording, sender: str, name: str) -> None:
    assert wording.whose(row(sender=sender)) == name


def test_a_person_of_another_node_is_no_person_of_ours(wording) -> None:
    assert wording.who(f"tg:77:5@{OTHER}", "human") == "5@abcdefgh (Telegram)"


def test_the_name_stands_above_the_words_in_bold(wording) -> None:
    looks = wording.said(row("**hi** `x`")).looks(4096)
    assert looks.text == "echo\nhi x"
    assert looks.spans == (
        Span(SpanKind.BOLD, 0, 4),
        Span(SpanKind.BOLD, 5, 2),
        Span(SpanKind.CODE, 8, 1),
    )


@pytest.mark.parametrize("text", ["---", "===", "> quote", "```\ncode\n```", "| a |\n|---|\n| 1 |"])
def test_no_words_can_undo_the_name_above_them(wording, text: str) -> None:
    looks = wording.said(row(text)).looks(4096)
    assert looks.text.startswith("echo\n")
    assert looks.spans[0] == Span(SpanKind.BOLD, 0, 4)
    assert looks.text.removeprefix("echo\n") == from_markdown(text).text
    assert parts_of(text, head="echo").messages == (looks,)


def test_what_a_person_types_gets_no_style_but_code(wording) -> None:
    said = wording.said(row("**echo**\n_x_ <b>\u200b", "tg:77:6"))
    assert said.looks(4096) == Rich(
        "6 (Telegram)\n**echo**\n_x_ <b>", (Span(SpanKind.BOLD, 0, 12),)
    )
    with_code = typed("**echo**\n```py\nprint(1)\n```")
    assert {span.kind for span in with_code.spans} == {SpanKind.PRE}


def test_links_of_agents_lead_to_the_web_only(wording) -> None:
    looks = wording.said(row("[you](tg://user?id=5) [ok](https://a.example)")).looks(4096)
    assert [span.arg for span in looks.spans if span.kind is SpanKind.LINK] == ["https://a.example"]


# Data --------------------------------------------------------------------------------------


def test_a_table_is_short_and_monospace(wording) -> None:
    data = {"columns": ["city", "people"], "rows": [["Bonn", 1]] * (TABLE_ROWS + 3)}
    text = "| city | people |\n| ---- | --- |\n| Bonn | 1 |\n\n… 13 more rows"
    looks = wording.said(row(text, data=data)).looks(4096)
    lines = looks.text.split("\n")
    assert lines[:4] == ["echo", "city  people", "────  ──────", "Bonn  1"]
    assert lines[-1] == "… 3 more rows"
    assert len(lines) == 1 + 2 + TABLE_ROWS + 1
    assert looks.spans[1].kind is SpanKind.PRE


def test_words_beside_a_table_stay(wording) -> None:
    data = {"columns": ["a"], "rows": [["```"], [None], [0.1 + 0.2], ["x" * 99]]}
    shown = content("Here it is:", data)
    assert shown.startswith("Here it is:\n\n")
    looks = from_markdown(shown)
    assert "0.3" in looks.text
    assert "x" * 23 + "…" in looks.text
    assert [span.kind for span in looks.spans] == [SpanKind.PRE]


@pytest.mark.parametrize(
    ("text", "data", "shown"),
    [
        ('{"a":1}', {"a": 1}, '```json\n{\n  "a": 1\n}\n```'),
        ("42", 42, "42"),
        ("words", {"a": 1}, "words"),
        ("words", {"columns": "odd", "rows": 3}, "words"),
        ("", {"columns": ["a"], "rows": []}, ""),
        ("", None, ""),
    ],
)
def test_data_is_shown_where_no_words_are(text: str, data, shown: str) -> None:
    assert content(text, data) == shown


def test_an_answer_of_nothing_is_seen(wording) -> None:
    assert wording.said(row("  ")).looks(4096).text == "echo\n…"


def test_a_file_has_a_name_and_no_path(wording) -> None:
    file = {"name": "../../x\u202e.png", "mime": "image/png", "size": 3, "sha256": "ab"}
    said = wording.said(row("", files=[file]))
    assert said.files == (Attachment("ab", ".._.._x.png", "image/png", 3),)
    assert said.brief().text == "echo\n📎 .._.._x.png"


# Statuses ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "error", "line"),
    [
        ("failed", {"code": -32002, "message": "echo failed: no\nluck"}, "⚠️ echo failed: no luck"),
        ("cancelled", {"code": -32004, "message": "cancelled"}, "⏹ echo was stopped."),
        (
            "interrupted",
            {"code": -32002, "message": "the node stopped"},
            "⚠️ echo was interrupted: the node stopped. Ask again if it is still wanted.",
        ),
        ("failed", None, "⚠️ echo failed: words"),
    ],
)
def test_a_bad_end_is_one_line(wording, status: str, error, line: str) -> None:
    data = {"reply_id": "r1", **({"error": error} if error else {})}
    assert wording.ended(row("words", kind="status", status=status, data=data)) == line


def test_who_comes_and_goes(wording) -> None:
    assert wording.member(row(kind="join", ref=f"calc@{NODE}")) == "calc joined"
    assert wording.member(row(kind="leave", ref="tg:77:6")) == "6 (Telegram) left"


def test_texts_are_joined_with_their_styles() -> None:
    one, two = headed("a", Rich("🙂")), note("left")
    assert joined([one, Rich(" "), two]) == Rich(
        "a\n🙂\n\nleft", (Span(SpanKind.BOLD, 0, 1), Span(SpanKind.ITALIC, 6, 4))
    )


def test_the_beginning_of_a_long_text_is_enough_beside_others() -> None:
    brief = Said("echo", "word " * 500).brief()
    assert brief.text.endswith(" …")
    assert len(brief.text) < 700
