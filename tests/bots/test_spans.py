"""Rich text as text and spans: what a chat app is told to show."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aios_bots.core.model import Rich, SpanKind
from aios_bots.core.spans import from_markdown, units

MARKS = "*_`~[]()#>|-+.!\\\n 1a🙂é<&"


def said(rich: Rich) -> list[tuple[str, str, str]]:
    """Each span as its kind, the text that it covers, and its argument."""
    wide = rich.text.encode("utf-16-le")
    return [
        (span.kind.value, wide[2 * span.offset : 2 * span.end].decode("utf-16-le"), span.arg)
        for span in rich.spans
    ]


@pytest.mark.parametrize(
    ("markdown", "text", "spans"),
    [
        ("plain & <b>", "plain & <b>", []),
        ("🙂 **bold**", "🙂 bold", [("bold", "bold", "")]),
        ("*i **b** i*", "i b i", [("italic", "i b i", ""), ("bold", "b", "")]),
        ("~~no~~", "no", [("strike", "no", "")]),
        ("# Head **b**", "Head b", [("bold", "Head b", "")]),
        ("`x`", "x", [("code", "x", "")]),
        ("**a `x` b**", "a x b", [("bold", "a ", ""), ("code", "x", ""), ("bold", " b", "")]),
        ("[here](https://a.example/x)", "here", [("link", "here", "https://a.example/x")]),
        ("[`f`](https://a.example/)", "f", [("link", "f", "https://a.example/")]),
        ("[me](tg://user?id=1)", "me (tg://user?id=1)", []),
        ("```py\na\n\nb\n```", "a\n\nb", [("pre", "a\n\nb", "py")]),
        ("> a\n>\n> b", "a\n\nb", [("quote", "a\n\nb", "")]),
        ("> a\n> > b", "a\n\nb", [("quote", "a\n\nb", "")]),
        ("- a\n- b\n  - c", "• a\n• b\n  • c", []),
        ("3. a\n4. **b**", "3. a\n4. b", [("bold", "b", "")]),
        ("- a\n  ```\n  x\n  ```", "• a\nx", [("pre", "x", "")]),
        ("**a**\n\n**b**", "a\n\nb", [("bold", "a", ""), ("bold", "b", "")]),
        ("**a\nb**", "a\nb", [("bold", "a\nb", "")]),
        ("a\n\n---\n\nb", "a\n\n────────────\n\nb", []),
        ("", "", []),
    ],
)
def test_markdown_becomes_text_and_spans(
    markdown: str, text: str, spans: list[tuple[str, str, str]]
) -> None:
    rich = from_markdown(markdown)
    assert rich.text == text
    assert said(rich) == spans


def test_a_table_is_code_so_that_its_columns_stay() -> None:
    rich = from_markdown("| a | bb |\n|---|---:|\n| 1 | 2 |")
    assert said(rich) == [("pre", rich.text, "")]
    assert rich.text.split("\n") == ["a  bb", "─  ──", "1   2"]


def test_a_quote_with_code_and_a_list_is_one_quote() -> None:
    rich = from_markdown("> a\n> - b\n>\n> ```\n> c\n> ```")
    assert said(rich) == [("quote", "a\n\n• b\n\nc", ""), ("pre", "c", "")]


@settings(max_examples=300)
@given(st.text(MARKS, max_size=80))
def test_any_markdown_gives_spans_that_apps_take(markdown: str) -> None:
    rich = from_markdown(markdown)
    total = units(rich.text)
    alone = {SpanKind.CODE, SpanKind.PRE}
    before = (-1, 0)
    for span in rich.spans:
        assert span.offset >= 0
        assert span.length > 0
        assert span.end <= total
        assert (span.offset, -span.length) >= before
        before = (span.offset, -span.length)
        for other in rich.spans:
            if other is span or other.end <= span.offset or span.end <= other.offset:
                continue
            inside = span.offset <= other.offset and other.end <= span.end
            assert inside or (other.offset <= span.offset and span.end <= other.end)
            assert span.kind is not other.kind
            if span.kind in alone:
                assert other.kind is SpanKind.QUOTE
