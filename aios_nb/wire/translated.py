"""Our errors in the words of MCP and A2A. One table, so that every door says the same."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from aios_nb.errors import (
    AgentFailed,
    AiosError,
    Busy,
    Cancelled,
    DeadlinePassed,
    InternalError,
    InvalidParams,
    InvalidRequest,
    MethodNotFound,
    NoSuchAgent,
    NotAllowed,
    ParseError,
    RpcError,
    TooLarge,
    Unreachable,
    UsageError,
)
from aios_nb.richtext import one_line

TEXT_CHARS = 500
"""Of what went wrong, as another program is told it; an agent may have written it."""
OUR_DOMAIN = "aios-nb"
A2A_DOMAIN = "a2a-protocol.org"
_INFO = "type.googleapis.com/google.rpc.ErrorInfo"


class Words(msgspec.Struct, frozen=True, gc=False):
    """One error in both protocols."""

    reason: str
    """As A2A's ``ErrorInfo`` names it."""
    a2a: int
    mcp: int | None = None
    """The code of a protocol error; None: a tool's result that says what went wrong, which a
    model can read and act on."""


_INTERNAL = Words("INTERNAL_ERROR", -32603, -32603)
TABLE: Mapping[type[AiosError], Words] = {
    ParseError: Words("PARSE_ERROR", -32700, -32700),
    InvalidRequest: Words("INVALID_REQUEST", -32600, -32600),
    MethodNotFound: Words("METHOD_NOT_FOUND", -32601, -32601),
    InvalidParams: Words("INVALID_PARAMS", -32602),
    UsageError: Words("INVALID_PARAMS", -32602),
    InternalError: _INTERNAL,
    NoSuchAgent: Words("NO_SUCH_AGENT", -32602),
    # A2A has no words for these. In its tasks they are states; an error only before there is one.
    AgentFailed: Words("AGENT_FAILED", -32603),
    DeadlinePassed: Words("DEADLINE_PASSED", -32603),
    Cancelled: Words("CANCELLED", -32603),
    Busy: Words("BUSY", -32603),
    Unreachable: Words("UNREACHABLE", -32603),
    NotAllowed: Words("UNSUPPORTED_OPERATION", -32004),
    TooLarge: Words("TOO_LARGE", -32602),
}
_THEIRS = frozenset(
    {"INVALID_REQUEST", "METHOD_NOT_FOUND", "INVALID_PARAMS", "INTERNAL_ERROR"}
    | {"UNSUPPORTED_OPERATION"}
)
"""Reasons that A2A itself has."""


def for_mcp(error: Exception) -> tuple[int | None, str]:
    """The code of a protocol error, or None for a tool result with ``isError``; and the text."""
    if not isinstance(error, AiosError):
        return _INTERNAL.mcp, "internal error"
    return _words(error).mcp, told(error)


def for_a2a(error: Exception) -> tuple[int, str, list[dict[str, Any]]]:
    """Code, message and ``data`` of a JSON-RPC error as A2A has it."""
    if not isinstance(error, AiosError):
        return _INTERNAL.a2a, "internal error", [info(_INTERNAL.reason)]
    words = _words(error)
    data = error.data if isinstance(error, RpcError) else {}
    domain = A2A_DOMAIN if words.reason in _THEIRS else OUR_DOMAIN
    return words.a2a, told(error), [info(words.reason, data, domain=domain)]


def told(error: AiosError) -> str:
    """The error as one line of bounded length, with what to do."""
    hint = error.hint or (error.what_to_do if isinstance(error, RpcError) else None)
    said = f"{error.message} ({hint})" if hint else error.message
    line = one_line(said)
    return line if len(line) <= TEXT_CHARS else line[: TEXT_CHARS - 1] + "…"


def info(
    reason: str, data: Mapping[str, Any] | None = None, *, domain: str = A2A_DOMAIN
) -> dict[str, Any]:
    """A ``google.rpc.ErrorInfo``. Its metadata are texts: of ours, the scalars."""
    metadata = {
        name: one_line(str(value), TEXT_CHARS)
        for name, value in (data or {}).items()
        if isinstance(value, (str, int, float))
    }
    return {"@type": _INFO, "reason": reason, "domain": domain, "metadata": metadata}


def _words(error: AiosError) -> Words:
    return next((TABLE[kind] for kind in type(error).__mro__ if kind in TABLE), _INTERNAL)
