"""Who calls, as the handlers of one MCP request find it."""

from __future__ import annotations

from typing import Any

from aios_nb.access import Principal

KEY = "aios_nb.caller"
"""In the scope of the request: each message of a session has its own, checked by the guard."""


def who(ctx: Any) -> Principal:
    """The caller of this very request."""
    caller = ctx.request.scope[KEY]
    if not isinstance(caller, Principal):
        raise TypeError("an MCP request came in without its caller")
    return caller
