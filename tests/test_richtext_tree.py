"""Markdown as a tree, and the tree as HTML, as text, as a page."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Iterable
from html.parser import HTMLParser

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aios_nb.richtext import TAGS, Node, Tree, flat, gist, parse, plain, to_data, to_html, to_text
from aios_nb.richtext.growing import NODES_MAX
from aios_nb.richtext.highlight import highlight
from aios_nb.richtext.languages import LANGUAGES
from aios_nb.richtext.markdown import DEPTH_MAX, INLINE_MAX_CHARS, read
from tests.hostile.corpus import CORPUS, HTML, LARGE

WEB = "https://a.example/x"
BR = ["br", {}, []]


def link(*label: str, href: str = WEB) -> list[object]:
    return ["a", {"href": href}, list(label)]


READ = {
    "one\ntwo": [["p", {}, ["one", BR, "two"]]],
    "**b** *i* ~~s~~ `c`": [
        ["p", {}, [["b", {}, ["b"]], " ", ["i", {}, ["i"]], " ", ["s", {}, ["s"]], " ",
                   ["code", {}, ["c"]]]]
    ],
    "### h": [["h", {"level": 3}, ["h"]]],
    "> a\n> - b": [["quote", {}, [["p", {}, ["a"]], ["ul", {}, [["li", {}, ["b"]]]]]]],
    "4. a\n5. b": [["ol", {"start": 4}, [["li", {}, ["a"]], ["li", {}, ["b"]]]]],
    "- a\n\n- b": [["ul", {}, [["li", {}, [["p", {}, [one]]]] for one in "ab"]]],
    "- [ ] a\n- [X] b\n- [y] c": [
        ["ul", {}, [["li", {}, ["☐ a"]], ["li", {}, ["☑ b"]], ["li", {}, ["[y] c"]]]]
    ],
    "a\n\n---\n\nb": [["p", {}, ["a"]], ["hr", {}, []], ["p", {}, ["b"]]],
    "|a|b|c|\n|:-|-:|:-:|\n|1<br>2|`|`|": [
        ["table", {}, [
            ["tr", {}, [["th", {"align": one}, [name]]
                        for name, one in zip("abc", ["left", "right", "center"], strict=True)]],
            ["tr", {}, [["td", {"align": "left"}, ["1", BR, "2"]],
                        ["td", {"align": "right"}, ["`"]], ["td", {"align": "center"}, ["`"]]]],
        ]]
    ],
    "```\na\n\n b\n```": [["pre", {}, ["a\n\n b"]]],
    "```nobody-knows x y\na\n```": [["pre", {"lang": "nobody-knows"}, ["a"]]],
    "```py\nif a:\n```": [["pre", {"lang": "py"}, [["tok", {"c": "k"}, ["if "]], "a:"]]],
    "    a\n    b": [["pre", {}, ["a\nb"]]],
    f"[l]({WEB} 'title')": [["p", {}, [link("l")]]],
    f"see {WEB}.": [["p", {}, ["see ", link(WEB), "."]]],
    f"({WEB}_(y)_z)": [["p", {}, ["(", link(f"{WEB}_(y)_z", href=f"{WEB}_(y)_z"), ")"]]],
    f"**{WEB}**, <{WEB}>": [["p", {}, [["b", {}, [link(WEB)]], ", ", link(WEB)]]],
    f"`{WEB}`": [["p", {}, [["code", {}, [WEB]]]]],
    "<a@b.example>": [["p", {}, [link("a@b.example", href="mailto:a@b.example")]]],
    f"![alt]({WEB})": [["p", {}, [link("alt")]]],
    f"[![alt]({WEB}/i)]({WEB})": [["p", {}, [link("alt")]]],
    "![alt](i.png) [x](/y)": [["p", {}, ["alt x (/y)"]]],
    f"[]({WEB})": [["p", {}, [link(WEB)]]],
    f"[b.example]({WEB})": [["p", {}, [link("b.example"), " (a.example)"]]],
    "[x]\n\n[x]: /y": [["p", {}, ["[x]"]], ["p", {}, ["[x]: /y"]]],
    "<b>&lt;i&gt;</b>": [["p", {}, ["<b><i></b>"]]],
    " \n\n\t": [],
}  # fmt: skip


@pytest.mark.parametrize("text", READ)
def test_markdown_is_read(text: str):
    assert to_data(parse(text)) == READ[text]


def every(nodes: Iterable[Node | str]) -> Iterable[Node | str]:
    for node in nodes:
        yield node
        if isinstance(node, Node):
            yield from every(node.children)


def depth(nodes: Tree) -> int:
    return max((1 + depth(node.children) for node in nodes if isinstance(node, Node)), default=0)


class Outline(HTMLParser):
    """What a browser would find."""

    SAFE = {  # noqa: RUF012
        *("div", "p", "h3", "h4", "h5", "h6", "strong", "em", "del", "code", "pre", "blockquote"),
        *("ul", "ol", "li", "a", "br", "hr", "table", "tr", "th", "td", "span"),
    }

    def __init__(self, html: str) -> None:
        super().__init__(convert_charrefs=True)
        self.text = ""
        self.open: list[str] = []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in self.SAFE
        assert {name for name, _ in attrs} <= {
            "class",
            "style",
            "href",
            "target",
            "rel",
            "start",
            "tabindex",
        }
        for name, value in attrs:
            assert name != "href" or (value or "").startswith(("http://", "https://", "mailto:"))
            assert name != "style" or "url" not in (value or "")
        if tag not in {"br", "hr"}:
            self.open.append(tag)
        elif tag == "br":
            self.text += "\n"

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)

    handle_decl = handle_pi = unknown_decl = handle_comment


def check(tree: Tree) -> None:
    """It is what every face may rely on."""
    for node in every(tree):
        text = node if isinstance(node, str) else json.dumps(node.attrs, ensure_ascii=False)
        assert plain(text) == text
        if isinstance(node, Node):
            assert node.tag in TAGS
            if node.tag == "a":
                assert str(node.attrs["href"]).startswith(("http://", "https://", "mailto:"))
                assert not [one for one in every(node.children) if not isinstance(one, str)
                            and one.tag == "a"]  # fmt: skip
    assert depth(tree) <= 2 * DEPTH_MAX + 4
    assert Outline(to_html(tree)).text == flat(tree)
    assert plain(to_text(tree)) == to_text(tree)
    assert json.loads(json.dumps(to_data(tree))) == to_data(tree)


@pytest.mark.parametrize("name", CORPUS)
def test_what_means_harm_is_only_text(name: str):
    check(parse(CORPUS[name]))


@pytest.mark.parametrize("name", HTML)
def test_html_is_shown_as_it_was_written(name: str):
    code = "<" in HTML[name] and not {"&", "\\", "*", "_", "\0"} & set(HTML[name])
    if code and "://" not in HTML[name]:
        assert flat(parse(HTML[name])) == plain(HTML[name])


@pytest.mark.parametrize("name", LARGE)
def test_what_is_made_to_take_long_does_not(name: str):
    tree = parse(LARGE[name]())
    assert sum(isinstance(node, Node) for node in every(tree)) <= NODES_MAX + 100
    assert depth(tree) <= 2 * DEPTH_MAX + 4
    assert len(to_html(tree)) + len(to_text(tree)) >= 2 * len(flat(tree).strip())
    check(tree[:1] + tree[-1:])


@settings(deadline=None)
@given(st.text())
def test_any_text_gives_a_tree_that_every_face_can_show(text: str):
    check(parse(text))


def test_a_word_of_any_length_survives():
    word = "x" * (3 * INLINE_MAX_CHARS)
    assert parse(f"**{word}**") == [Node("p", {}, [f"**{word}**"])]
    assert parse(f"**{word[:9000]}**") == [Node("p", {}, [Node("b", {}, [word[:9000]])])]


def test_what_is_nested_too_deeply_is_shown_as_it_was_written():
    text = "> " * 30 + "deep inside"
    assert flat(parse(text)) == text


def test_a_table_is_not_filled_up_with_cells_that_nobody_wrote():
    head = "|a" * 100 + "|\n" + "|-" * 100 + "|\n"
    (whole,) = parse(head + ("|1" * 100 + "|\n") * 30)
    (short,) = parse(head + "1\n" * 300)
    assert isinstance(whole, Node)
    assert isinstance(short, Node)
    assert [whole.tag, short.tag] == ["table", "pre"]


# Cut and whole ---------------------------------------------------------------------------------

BLOCKS = st.sampled_from([
    "words **and** more", "two\nlines", "# head", "- a\n- b", "- a\n\n  more\n- b", "1. a\n2. b",
    "* a\n  - b\n    - c", "```py\nx = 1\n\ny = 2\n```", "~~~\n```\n~~~", "> quote\n> more",
    "> a\nlazy", "- a\n  ```\n  code\n\n  code\n  ```", "1. a\n\n   ```sh\n   ls\n   ```\n2. b",
    "|a|b|\n|-|-|\n|1|2|", "    code", "---", "text\n---", "text\n```\ncode\n```", "- a\n# head",
    "> a\n```\nb\n```", "  indented", "   - far\n   ```\n   x\n   ```", "***", "- \n- x",
    "1986. A year", "a\\\nb", "![i](https://a.example)", "- a\n\n\ttab", "+ a\n+ b", "2) b",
])  # fmt: skip


@settings(deadline=None)
@given(st.lists(st.tuples(BLOCKS, st.sampled_from(["\n\n", "\n\n\n", "\n\n"]))))
def test_a_text_that_is_cut_reads_like_the_whole_one(blocks: list[tuple[str, str]]):
    text = "".join(block + end for block, end in blocks)
    assert parse(text) == read(text)


# Code ------------------------------------------------------------------------------------------

SNIPPETS = ["'", '"', "`", "#", "//", "/*", "*/", "--", "\\", "\n", " ", "a", "1", "class ", "$"]
NAMES = sorted({name for names in LANGUAGES for name in names.split()} | {"diff", "", "?"})


@settings(deadline=None)
@given(
    st.lists(st.sampled_from(SNIPPETS) | st.text(max_size=5)).map("".join),
    st.sampled_from(NAMES),
)
def test_colours_change_no_code(code: str, lang: str):
    nodes = highlight(code, lang)
    assert flat(nodes) == code
    assert all(node.attrs["c"] in set("kscnf") for node in nodes if isinstance(node, Node))


@pytest.mark.parametrize(
    ("lang", "code", "colours"),
    [
        ("python", 'def f(x):  # c\n    return f"a" + 1.5e3', "kfcksn"),
        ("python", "@dec\nclass A: '''a\nb'''", "fkfs"),
        ("json", '{"a": "b", "c": [1, true]}', "fsfnk"),
        ("bash", 'echo "$x" $HOME # c', "ksfc"),
        ("sql", "SELECT a FROM b WHERE c = 'it''s' -- d", "kkksc"),
        ("js", "const f = `a${b}` // c", "ksc"),
        ("html", '<a href="b">it\'s</a><!-- c -->', "kfskc"),
        ("yaml", "a: b # c\n- d: true", "fcfk"),
        ("rust", "fn main() { let x: &'a str = \"b\"; println!('c') }", "kfkksfs"),
        ("diff", "-a\n+b\n c\n@@ d", "csk"),
        ("go", "func f() int { return 0x1F }", "kfkkn"),
        ("nobody-knows", "if 1: # c", ""),
    ],
)
def test_code_has_colours(lang: str, code: str, colours: str):
    found = [node.attrs["c"] for node in highlight(code, lang) if isinstance(node, Node)]
    assert "".join(map(str, found)) == colours


# Faces -----------------------------------------------------------------------------------------

SAMPLE = f"""# Title
Words with a [link]({WEB}) and `code`,
two lines.

1. one
   - inner
2. two

|name|n|
|-|-:|
|東京|7|
|a|1000|

> said
```sh
ls -l
```
"""


def test_as_text_it_is_made_for_reading():
    assert to_text(parse(SAMPLE)).splitlines() == [
        "Title",
        "",
        f"Words with a link ({WEB}) and `code`,",
        "two lines.",
        "",
        "1. one",
        "   • inner",
        "2. two",
        "",
        "name     n",
        "────  ────",
        "東京     7",
        "a     1000",
        "",
        "> said",
        "",
        "    ls -l",
    ]


def test_in_a_list_it_is_one_line_of_words():
    said = gist(
        "# Rain\n\n**Wet** in `Oslo`:\n\n| a | b |\n|--|--:|\n| x | 1 |\n\n```py\nprint(1)\n```"
    )
    assert said == "Rain Wet in `Oslo`: a b x 1 print(1)"
    assert gist("  <b>2 * 3</b>\n\x1b[31m ") == "<b>2 * 3</b>"


def test_as_html_it_needs_no_style_sheet():
    html = to_html(parse(SAMPLE))
    assert "<h3" in html
    assert 'class="aios-code"' in html
    assert 'class="aios-table"' in html
    assert "text-align:right" in html
    assert f'<a href="{WEB}" target="_blank" rel="noopener noreferrer">link</a>' in html
    assert "mathjax_ignore" in html  # "$5 or $6" is no formula


def test_a_tree_from_elsewhere_is_not_believed():
    tree = [Node("script", {}, ["x"]), Node("a", {"href": "javascript:x"}, ["y"])]
    assert Outline(to_html([*tree, Node("tok", {"c": '"><b'}, ["z"])])).text == "xyz"


def test_no_text_has_a_control_character():
    tree = parse("a&#0;b&#27;c&#x85;d")
    assert not [char for char in flat(tree) if unicodedata.category(char) == "Cc"]
