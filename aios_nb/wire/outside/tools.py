"""The tool list of an MCP server: read to its end, pinned, and cleaned for keeping.

The pin is a hash over what the server sent, word for word; what is kept and shown is cleaned. So a
change that nobody can see is still a change.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from aios_nb.config import KB, MB
from aios_nb.errors import AgentFailed
from aios_nb.richtext import plain
from aios_nb.wire.outside.toolcalls import Tool

if TYPE_CHECKING:
    import mcp_types
    from mcp.client import ClientSession

TOOLS_MAX = 512
PAGES_MAX = 64
LIST_LIMIT_BYTES = 2 * MB
SCHEMA_LIMIT_BYTES = 64 * KB
"""A tool that needs more to be described is not offered."""
DESCRIPTION_CHARS = 2000
DEPTH_MAX = 24
NAME = re.compile(r"[A-Za-z0-9_.:/-]{1,128}")
"""Names that can be typed. A tool with another one is pinned, but not offered."""


async def read_tools(session: ClientSession) -> list[mcp_types.Tool]:
    """All tools, page by page. Raises ``AgentFailed`` for a list without measure."""
    import mcp_types

    found: list[mcp_types.Tool] = []
    cursor: str | None = None
    seen: set[str | None] = set()
    while cursor not in seen and len(seen) < PAGES_MAX:
        seen.add(cursor)
        params = mcp_types.PaginatedRequestParams(cursor=cursor)
        page = await session.list_tools(params=params)
        found.extend(page.tools)
        if len(found) > TOOLS_MAX:
            raise AgentFailed(
                f"the server lists more than {TOOLS_MAX} tools", hint="it is not used", ran="no"
            )
        cursor = page.next_cursor
        if not cursor:
            return found
    raise AgentFailed("the server's list of tools has no end", hint="it is not used", ran="no")


def pin_of(tools: Sequence[mcp_types.Tool]) -> str:
    """The hash of what was listed, in whatever order. Raises ``AgentFailed`` if it is too much."""
    rows = sorted(
        _canonical(
            {
                "name": tool.name,
                "title": tool.title,
                "description": tool.description,
                "input": tool.input_schema,
                "output": tool.output_schema,
                "annotations": tool.annotations
                and tool.annotations.model_dump(mode="json", exclude_none=True),
            }
        )
        for tool in tools
    )
    if sum(map(len, rows)) > LIST_LIMIT_BYTES:
        raise AgentFailed(
            f"the server's list of tools has more than {LIST_LIMIT_BYTES // MB} MB",
            hint="it is not used",
            ran="no",
        )
    # Each row is one JSON text on one line: no two lists have the same lines.
    return hashlib.sha256(b"\n".join(rows)).hexdigest()


def _canonical(value: Any) -> bytes:
    """Not by RFC 8785, which has no form for the integers of 64 bits that schemas are full of."""
    try:
        return json.dumps(value, sort_keys=True, separators=(",", ":")).encode()
    except (RecursionError, TypeError, ValueError):
        raise AgentFailed("the server describes a tool in no sensible way", ran="no") from None


def cleaned(tools: Sequence[mcp_types.Tool]) -> list[Tool]:
    """What can be called, as it may be kept and shown; by name, and each name once."""
    found: dict[str, Tool] = {}
    for tool in tools:
        if not NAME.fullmatch(tool.name) or tool.name in found:
            continue
        if len(_canonical(tool.input_schema)) > SCHEMA_LIMIT_BYTES:
            continue
        schema = _clean(tool.input_schema)
        about = plain((tool.description or "")[:DESCRIPTION_CHARS]).strip()
        found[tool.name] = Tool(tool.name, about, schema if isinstance(schema, dict) else {})
    return sorted(found.values(), key=lambda tool: tool.name)


def _clean(value: Any, depth: int = 0) -> Any:
    """A schema without anything unseen in its words; names with such are left out."""
    if depth > DEPTH_MAX:
        return {} if isinstance(value, dict) else None
    if isinstance(value, str):
        return plain(value[:DESCRIPTION_CHARS])
    if isinstance(value, dict):
        return {key: _clean(below, depth + 1) for key, below in value.items() if plain(key) == key}
    if isinstance(value, list):
        return [_clean(below, depth + 1) for below in value]
    return value
