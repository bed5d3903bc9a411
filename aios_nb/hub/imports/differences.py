"""What is not as it was approved, in lines a person can judge.

Both sides are another program's words: they are quoted, cut and never more than data.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import msgspec

from aios_nb.envelope import Seen
from aios_nb.richtext import one_line

LINES_MAX = 20
WORDS_CHARS = 160


def differences(kind: str, before: Seen, after: Seen) -> list[str]:
    """A line for each thing that is new, gone or otherwise."""
    lines = list(_tools(before, after) if kind == "mcp" else _card(before, after))
    if len(lines) > LINES_MAX:
        lines[LINES_MAX:] = [f"and {len(lines) - LINES_MAX} more"]
    return lines or ["it is not what it was, in something that has no words"]


def _tools(before: Seen, after: Seen) -> Iterator[str]:
    was, now = _by_name(before.details.get("tools")), _by_name(after.details.get("tools"))
    for name in sorted(now.keys() - was.keys()):
        yield f"new tool {_cut(name)}: {_said(now[name].get('description'))}"
    for name in sorted(was.keys() - now.keys()):
        yield f"the tool {_cut(name)} is gone"
    for name in sorted(was.keys() & now.keys()):
        old, new = was[name], now[name]
        if old.get("description") != new.get("description"):
            yield f"the tool {_cut(name)} says now: {_said(new.get('description'))}"
        if old.get("input_schema") != new.get("input_schema"):
            yield f"the tool {_cut(name)} takes now: {_said(_arguments(new.get('input_schema')))}"
    yield from _other({**before.details, "tools": 0}, {**after.details, "tools": 0}, "")


def _card(before: Seen, after: Seen) -> Iterator[str]:
    for part in ("signature", "key"):
        was, now = before.details.get(part), after.details.get(part)
        if was != now:
            yield f"its {part} was {_said(was)}, is now {_said(now)}"
    was, now = _map(before.details.get("card")), _map(after.details.get("card"))
    yield from _other(was, now, "its ")


def _other(was: Mapping[str, Any], now: Mapping[str, Any], its: str) -> Iterator[str]:
    for key in sorted(was.keys() | now.keys()):
        old, new = was.get(key), now.get(key)
        if old == new:
            continue
        if _are_named(old) and _are_named(new):
            yield from _each(f"{its}{_cut(key)}", _by_name(old), _by_name(new))
        else:
            yield f"{its}{_cut(key)} was {_said(old)}, is now {_said(new)}"


def _each(what: str, was: Mapping[str, Any], now: Mapping[str, Any]) -> Iterator[str]:
    """Of a list of things that have names: which is new, gone or otherwise."""
    for name in sorted(now.keys() - was.keys()):
        yield f"{what}: new {_cut(name)}, {_said(now[name].get('description'))}"
    for name in sorted(was.keys() - now.keys()):
        yield f"{what}: {_cut(name)} is gone"
    for name in sorted(was.keys() & now.keys()):
        yield from _other(was[name], now[name], f"{what}, {_cut(name)}: ")


def _are_named(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(
        isinstance(item, Mapping) and isinstance(item.get("name"), str) for item in value
    )


def _by_name(tools: Any) -> dict[str, Mapping[str, Any]]:
    given = tools if isinstance(tools, list | tuple) else ()
    return {str(tool.get("name")): tool for tool in given if isinstance(tool, Mapping)}


def _arguments(schema: Any) -> Any:
    named = _map(schema).get("properties")
    return ", ".join(map(str, named)) if isinstance(named, Mapping) and named else schema


def _map(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _said(value: Any) -> str:
    """Its words in quotes; what has none as it would be written."""
    if value is None:
        return "nothing"
    if isinstance(value, list | tuple) and all(isinstance(item, str) for item in value):
        value = ", ".join(value)
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return f"“{_cut(text)}”"


def _cut(text: str) -> str:
    line = one_line(text[: 4 * WORDS_CHARS])
    return line if len(line) <= WORDS_CHARS else f"{line[: WORDS_CHARS - 1]}…"
