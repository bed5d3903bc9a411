"""From what was said to an MCP server to the call of one of its tools. No I/O.

::

    add a=1 b=2                  a tool and its arguments; a value may have spaces
    add {"a": 1, "b": 2}         the same as JSON
    search where is the moon     one required text takes the rest
    where is the moon            the same, if the server has no other tool

A program gives the tool as text and the arguments as data. What cannot be read as a call is
answered with what the server has and how it is called.
"""

from __future__ import annotations

import difflib
import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from aios_nb.errors import AgentFailed
from aios_nb.richtext import one_line
from aios_nb.wire.outside.values import described, from_text, kinds, properties, required

TOOLS_SHOWN = 30
ARGUMENTS_SHOWN = 8
ARGUMENTS_MAX = 100
LINE_CHARS = 160
_KEY = re.compile(r"([A-Za-z_][\w.-]*)=")
_NEXT = re.compile(r"(?<=\s)([A-Za-z_][\w.-]*)=")


class Tool(msgspec.Struct, frozen=True):
    """A tool as it was approved; cleaned."""

    name: str
    description: str = ""
    input_schema: dict[str, Any] = msgspec.field(default_factory=dict)

    @property
    def arguments(self) -> dict[str, Any]:
        """The schema of each, by name."""
        return properties(self.input_schema)

    @property
    def required(self) -> list[str]:
        return required(self.input_schema)

    @property
    def only_text(self) -> str | None:
        """The argument that takes a whole text: the one required, and it is a string."""
        needed = self.required or (list(self.arguments) if len(self.arguments) == 1 else [])
        if len(needed) != 1:
            return None
        wanted = kinds(self.arguments.get(needed[0], {}), self.input_schema)
        return needed[0] if "string" in wanted or not wanted else None

    def usage(self) -> str:
        """How it is called: ``add a=… b=… [c=…]``."""
        names = self.arguments
        order = sorted(names, key=lambda name: name not in self.required)
        parts = [
            f"{_shown(name)}=…" if name in self.required else f"[{_shown(name)}=…]"
            for name in order[:ARGUMENTS_SHOWN]
        ]
        more = [] if len(order) <= ARGUMENTS_SHOWN else ["…"]
        return " ".join([self.name, *parts, *more])

    def asks_for(self, name: str) -> str:
        """What an argument takes, in words for a person."""
        schema = self.arguments.get(name, {})
        about = schema.get("description") if isinstance(schema, Mapping) else None
        words = described(schema, self.input_schema)
        told = f": {one_line(about, LINE_CHARS)}" if isinstance(about, str) and about else ""
        return f"{one_line(name, 60)} ({words}){told}"


class ToolCall(msgspec.Struct, frozen=True):
    """What to call, with what is known of its arguments."""

    tool: Tool
    arguments: dict[str, Any]

    @property
    def missing(self) -> list[str]:
        return [name for name in self.tool.required if name not in self.arguments]


class Unclear(Exception):
    """What was said is no call; the text says what would be one."""


def read_call(tools: Sequence[Tool], text: str, data: Any) -> ToolCall:
    """The call that was meant. Raises ``Unclear``, or ``AgentFailed`` if a program asked."""
    given = data if isinstance(data, dict) else None
    if data is not None and given is None:
        raise AgentFailed("the arguments of a tool are given as an object", ran="no")
    try:
        tool, rest = _named(tools, text)
        arguments = _arguments(tool, rest, given is not None)
    except Unclear as unclear:
        if given is None:
            raise
        # The list is for people; a program gets one line.
        raise AgentFailed(str(unclear).partition("\n")[0], ran="no") from None
    return ToolCall(tool, {**arguments, **(given or {})})


def _named(tools: Sequence[Tool], text: str) -> tuple[Tool, str]:
    first, _, rest = text.strip().partition(" ")
    first, _, below = first.partition("\n")
    tool = _by_name(tools, first)
    if tool is not None:
        return tool, f"{below} {rest}".strip() if below else rest.strip()
    if len(tools) == 1 and text.strip() and text.strip().casefold() not in {"help", "?"}:
        only = tools[0]
        if only.only_text or text.lstrip().startswith("{") or _starts_with_key(only, text):
            return only, text.strip()
    raise Unclear(offer(tools, first))


def _by_name(tools: Sequence[Tool], name: str) -> Tool | None:
    for tool in tools:
        if tool.name == name:
            return tool
    plain = name.casefold().replace("-", "_")
    like = [tool for tool in tools if tool.name.casefold().replace("-", "_") == plain]
    return like[0] if len(like) == 1 else None


def _arguments(tool: Tool, rest: str, has_data: bool) -> dict[str, Any]:  # noqa: FBT001 - one caller
    if not rest:
        return {}
    if rest.startswith("{") and not has_data:
        try:
            found = json.loads(rest)
        except (ValueError, RecursionError):
            found = None
        if isinstance(found, dict):
            return found
    if _starts_with_key(tool, rest):
        return _pairs(tool, rest)
    if tool.only_text and not has_data:
        return {tool.only_text: rest}
    raise Unclear(f"{tool.name} is called like this: {tool.usage()}{_help(tool)}")


def _starts_with_key(tool: Tool, text: str) -> bool:
    found = _KEY.match(text.lstrip())
    if found is None:
        return False
    # What looks like a key is text where a text is all that is wanted.
    return found[1] in tool.arguments or not tool.only_text


def _pairs(tool: Tool, text: str) -> dict[str, Any]:
    found: dict[str, Any] = {}
    text = text.strip()
    while text:
        key = _KEY.match(text)
        if key is None or (key[1] not in tool.arguments and tool.arguments):
            what = one_line(text.partition("=")[0] if key else text, 60)
            raise Unclear(f"{tool.name} has no argument {what!r}{_help(tool)}")
        if key[1] in found or len(found) == ARGUMENTS_MAX:
            # Each takes a look at all that follows: of many the node would see nothing else.
            raise Unclear(f"{tool.name}: {key[1][:60]} is one argument too many{_help(tool)}")
        value, text = _value(tool, key[1], text[key.end() :])
        found[key[1]] = value
    return found


def _value(tool: Tool, name: str, text: str) -> tuple[Any, str]:
    """The value at the start of a text, and what follows it."""
    schema, root = tool.arguments.get(name, {}), tool.input_schema
    if text[:1] in {"[", "{", '"'}:
        try:
            value, end = json.JSONDecoder().raw_decode(text)
        except (ValueError, RecursionError):
            pass
        else:
            if end == len(text) or text[end].isspace():
                return value, text[end:].strip()
    if text[:1] == "'" and (end := text.find("'", 1)) > 0:
        raw, rest = text[1:end], text[end + 1 :]
    else:
        # A value may have spaces: it goes on until the next argument.
        known = tool.arguments
        ends = (at.start() for at in _NEXT.finditer(text) if at[1] in known or not known)
        cut = next(ends, len(text))
        raw, rest = text[:cut], text[cut:]
    try:
        return from_text(raw.strip(), schema, root), rest.strip()
    except ValueError as wrong:
        raise Unclear(f"{tool.name}: {one_line(name, 60)} {wrong}{_help(tool)}") from None


def _shown(name: str) -> str:
    return one_line(name.replace("`", "'"), 40)


def _help(tool: Tool) -> str:
    lines = [f"- {tool.asks_for(name)}" for name in list(tool.arguments)[:ARGUMENTS_SHOWN]]
    return "".join(f"\n{line}" for line in lines)


def offer(tools: Sequence[Tool], wrong: str = "") -> str:
    """What a server has and how it is called, the nearest first."""
    if not tools:
        return "This MCP server has no tools that can be called from here."
    near = difflib.get_close_matches(wrong, [tool.name for tool in tools], n=3, cutoff=0.5)
    rank = {name: place for place, name in enumerate(near)}
    order = sorted(tools, key=lambda tool: rank.get(tool.name, len(near)))
    said = f"There is no tool {one_line(wrong, 60)!r}. " if wrong and wrong != "help" else ""
    count = f"{len(tools)} tools" if len(tools) > 1 else "one tool"
    lines = [f"{said}This MCP server has {count}, called like this:"]
    for tool in order[:TOOLS_SHOWN]:
        about = one_line(tool.description, LINE_CHARS)
        lines.append(f"- `{tool.usage()}`" + (f": {about}" if about else ""))
    if len(order) > TOOLS_SHOWN:
        lines.append(f"- and {len(order) - TOOLS_SHOWN} more")
    return "\n".join(lines)
