"""What is kept of a program that was brought in, and what is told about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit, urlunsplit

import msgspec

from aios_nb.access import Access
from aios_nb.envelope import Seen
from aios_nb.hub.imports.differences import differences
from aios_nb.richtext import one_line

Address = str | tuple[str, ...]
"""A URL, or a command with its arguments."""
SHOWN_TOOLS = 200


class Options(msgspec.Struct, frozen=True):
    """How its owner wants to reach it, and who else may."""

    local: bool = False
    access: Access = Access.PRIVATE
    token_env: str | None = None
    """The variable with its token: what is kept is the name, never what is in it."""


class Entry(msgspec.Struct, frozen=True):
    """One row of the table ``imports``."""

    name: str
    kind: str
    address: Address
    options: Options
    approved: Seen
    """What it said of itself when its owner said yes."""
    seen: Seen
    """The same when it was last looked at."""
    at: int
    """When it was brought in, unix seconds."""

    @property
    def changed(self) -> bool:
        return self.seen.pin != self.approved.pin

    @property
    def differences(self) -> list[str]:
        """What is not as it was approved, a line for each."""
        return differences(self.kind, self.approved, self.seen) if self.changed else []


class ImportRow(msgspec.Struct, frozen=True, kw_only=True):
    """One line of ``hub.list``."""

    agent: str
    name: str
    kind: str
    address: Address
    access: str
    title: str
    about: str
    version: str
    pin: str
    """Of what was last seen: what ``hub.approve`` may be asked to approve, and nothing newer."""
    tools: Sequence[str] = ()
    signature: str = ""
    """Of an A2A card: ``valid``, ``none`` or ``invalid``."""
    key: str = ""
    """Who signed it."""
    live: bool = False
    changed: bool = False
    differences: Sequence[str] = ()
    hidden: bool = False
    """An own agent has its name; it comes back when that is withdrawn."""
    note: str = ""
    """Why it is not live."""
    local: bool = False
    token_env: str | None = None
    added_at: str = ""
    looked_at: str | None = None


def shown_address(address: Address) -> Address:
    """The address without what may be a secret: a query, or a user in front of the host."""
    if not isinstance(address, str):
        return tuple(map(one_line, address))
    try:
        parts = urlsplit(address)
    except ValueError:
        return one_line(address)
    host = parts.netloc.rpartition("@")[2]
    return one_line(urlunsplit((parts.scheme, host, parts.path, "…" if parts.query else "", "")))


def tool_names(details: dict[str, Any]) -> list[str]:
    """The tools an MCP server was seen with."""
    tools = details.get("tools")
    if not isinstance(tools, list | tuple):
        return []
    names = [str(tool.get("name", "")) for tool in tools if isinstance(tool, dict)]
    return [one_line(name) for name in names[:SHOWN_TOOLS]]
