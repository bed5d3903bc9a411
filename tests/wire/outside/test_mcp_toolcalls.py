"""What is said to an MCP server, read as the call of one of its tools."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aios_nb.errors import AgentFailed
from aios_nb.wire.outside.toolcalls import Tool, Unclear, offer, read_call


def tool(name: str, *required: str, **arguments: Any) -> Tool:
    schema = {"type": "object", "properties": arguments, "required": list(required)}
    return Tool(name, f"Does {name}", schema)


TEXT, INTEGER = {"type": "string"}, {"type": "integer"}
ADD = tool("add", "a", "b", a=INTEGER, b={"type": "number"})
SEARCH = tool("search", "query", query=TEXT, limit=INTEGER, exact={"type": "boolean"})
PICK = tool(
    "pick",
    "color",
    color={"$ref": "#/$defs/color"},
    tags={"type": "array", "items": TEXT},
    more={"type": "object"},
    size={"anyOf": [INTEGER, {"type": "null"}]},
)
PICK.input_schema["$defs"] = {"color": {"enum": ["Red", "green"]}}
NOW = tool("now")
ALL = [ADD, NOW, PICK, SEARCH]


@pytest.mark.parametrize(
    ("said", "name", "arguments"),
    [
        ("add a=1 b=2.5", "add", {"a": 1, "b": 2.5}),
        ('add {"a": 1, "b": 2}', "add", {"a": 1, "b": 2}),
        ("ADD a=1 b=1e3", "add", {"a": 1, "b": 1000.0}),
        ("now", "now", {}),
        ("search where is the moon", "search", {"query": "where is the moon"}),
        ("search what is a=b", "search", {"query": "what is a=b"}),
        ("search\nmany\nlines", "search", {"query": "many\nlines"}),
        (
            "search query=the full moon limit=3 exact=yes",
            "search",
            {"query": "the full moon", "limit": 3, "exact": True},
        ),
        ("search query='limit=3' limit=4", "search", {"query": "limit=3", "limit": 4}),
        ('search query="a \\"b\\"" limit=4', "search", {"query": 'a "b"', "limit": 4}),
        ("pick color=red", "pick", {"color": "Red"}),
        (
            "pick color=green tags=a, b size=3",
            "pick",
            {"color": "green", "tags": ["a", "b"], "size": 3},
        ),
        (
            'pick color=green tags=["a, b"] more={"x": [1]} size=null',
            "pick",
            {"color": "green", "tags": ["a, b"], "more": {"x": [1]}, "size": None},
        ),
        ("pick", "pick", {}),
    ],
)
def test_what_a_person_types_is_a_call(said: str, name: str, arguments: dict[str, Any]) -> None:
    call = read_call(ALL, said, None)
    assert (call.tool.name, call.arguments) == (name, arguments)


def test_a_program_gives_the_name_as_text_and_the_arguments_as_data() -> None:
    call = read_call(ALL, "add", {"a": 1})
    assert (call.arguments, call.missing) == ({"a": 1}, ["b"])
    assert read_call(ALL, "add b=2", {"a": 1}).arguments == {"a": 1, "b": 2}
    for text, data in (("ad", {"a": 1}), ("add please", {"a": 1}), ("add", [1]), ("add", 1)):
        with pytest.raises(AgentFailed) as refused:
            read_call(ALL, text, data)
        assert "\n" not in refused.value.message
        assert refused.value.data["ran"] == "no"


def test_the_only_tool_takes_the_whole_text() -> None:
    assert read_call([SEARCH], "where is add a=1", None).arguments == {"query": "where is add a=1"}
    assert read_call([SEARCH], "query=moon limit=2", None).arguments["limit"] == 2
    assert read_call([ADD], "a=1 b=2", None).arguments == {"a": 1, "b": 2}
    for said in ("help", "?", ""):
        with pytest.raises(Unclear, match="one tool"):
            read_call([SEARCH], said, None)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("ad a=1", "no tool 'ad'.*4 tools.*\n- `add a=… b=…`"),
        ("add 1 2", "called like this: add a=… b=…"),
        ("add a=one b=2", "a 'one' is not integer"),
        ("add a=1 c=2", "'1 c=2' is not integer"),
        ("add c=2", "no argument 'c'"),
        ("pick color=blue", "'blue' is not one of Red, green"),
        ("\x1b[31mevil", "no tool 'evil'"),
    ],
)
def test_what_is_no_call_is_answered_with_what_would_be_one(said: str, words: str) -> None:
    with pytest.raises(Unclear, match=words):
        read_call(ALL, said, None)


def test_a_long_list_is_cut() -> None:
    told = offer([tool(f"tool{number}") for number in range(500)], "tool499")
    assert told.splitlines()[1].startswith("- `tool499")
    assert told.endswith("and 470 more")


SCHEMAS = st.recursive(
    st.sampled_from([None, True, "x", 1, {"$ref": "#"}, {"$ref": "#/properties/a"}, {"type": 1}]),
    lambda below: st.dictionaries(
        st.sampled_from(["type", "enum", "anyOf", "items", "properties", "$ref", "required", "a"]),
        below | st.lists(below, max_size=3),
        max_size=4,
    ),
    max_leaves=12,
)


@settings(max_examples=60)
@given(st.text(max_size=60), st.dictionaries(st.sampled_from(["properties", "required"]), SCHEMAS))
def test_no_text_and_no_schema_breaks_the_reader(text: str, schema: dict[str, Any]) -> None:
    odd = Tool("odd", "", schema)
    for said in (text, f"odd {text}", f"odd a={text}"):
        try:
            call = read_call([odd, NOW], said, None)
        except Unclear:
            continue
        assert isinstance(call.missing, list)
    odd.usage()
