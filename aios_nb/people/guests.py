"""Programs of others in the words of who brought them in."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from aios_nb.envelope import AgentRow
from aios_nb.errors import UsageError
from aios_nb.richtext import one_line
from aios_nb.rows import Import, Listed

TOOLS_SHOWN = 12


def marks(row: AgentRow, command: str = "%aios ") -> list[str]:
    """What to know of an agent before asking it: where it is from, what changed, who is away."""
    said = []
    if row.source:
        said.append(f"{row.source}, not verified")
    if row.changed and row.source:
        said.append(f"changed since you approved it: {command}hub approve {row.name}")
    if not row.live:
        said.append("may be away")
    return [one_line(word) for word in said]


def command_of(line: str) -> list[str]:
    """The words of a command as a shell would cut them."""
    try:
        words = shlex.split(line)
    except ValueError as error:
        raise UsageError(f"the command cannot be read: {error}") from None
    if not words:
        raise UsageError("there is no command behind --")
    return words


def added(row: Import) -> str:
    """One line about what was brought in."""
    what = "an MCP server" if row.kind == "mcp" else "an A2A agent"
    return one_line(f"{row.name} is here: {row.title}, {what}; not verified, {_who(row)}")


def approved(row: Import) -> str:
    return one_line(f"{row.name} is taken as it is now")


def _who(row: Import) -> str:
    return "for you alone" if row.access == "private" else f"for {row.access}"


def remarks(row: Import, command: str = "aios-nb ") -> Iterator[str]:
    """What there is to know about one: what changed and what to do, why it is silent, its tools."""
    yield from map(one_line, _remarks(row, command))


def _remarks(row: Import, command: str) -> Iterator[str]:
    if row.changed:
        yield "changed since you approved it; it is not asked anything until you approve:"
        yield from row.differences
        yield f"→ {command}hub approve {row.name}"
    if not row.live and row.note:
        yield row.note
    if row.hidden:
        yield f"an agent of yours is called {row.name} too; withdraw that one to reach it"
    if row.signature == "invalid":
        yield "the signature of its card is wrong"
    if row.tools:
        yield f"tools: {_tools(row)}"


def _tools(row: Import) -> str:
    """Their names, the first of many."""
    more = len(row.tools) - TOOLS_SHOWN
    names = ", ".join(row.tools[:TOOLS_SHOWN])
    return one_line(names) + (f" and {more} more" if more > 0 else "")


def how_to_add(row: Listed, command: str = "aios-nb ") -> str:
    """What to type to bring a line of a catalog in."""
    if row.added:
        return "here already"
    return one_line(f"{command}hub add {row.url}") if row.kind and row.url else "not for us"
