"""What goes wrong with an MCP server, as one line of ours."""

from __future__ import annotations

import logging
from collections.abc import Iterator

import httpcore2
import httpx2
import mcp_types
from mcp import MCPError
from pydantic import ValidationError

from aios_nb.errors import AgentFailed, AiosError, RpcError, TooLarge, Unreachable
from aios_nb.richtext import one_line
from aios_nb.wire.outside.ways import Way

log = logging.getLogger("aios_nb.outside")

REASON_CHARS = 300
_BY_TRANSPORT = frozenset(
    {
        mcp_types.CONNECTION_CLOSED,
        mcp_types.INTERNAL_ERROR,
        mcp_types.INVALID_REQUEST,
        mcp_types.METHOD_NOT_FOUND,
    }
)
"""How the library spells an answer that was only an HTTP status, or none."""
_NOT_MET = (
    httpcore2.ConnectError,
    httpcore2.ConnectTimeout,
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpcore2.UnsupportedProtocol,
)
_BROKEN = (httpcore2.NetworkError, httpcore2.ProtocolError, httpcore2.TimeoutException)
_BROKEN_TOO = (httpx2.TransportError, OSError)
_ODD = (ValidationError, RuntimeError, ValueError, TypeError)


def explained(problem: BaseException, way: Way, *, ran: str) -> AiosError:
    """The error for whoever waits: ``Unreachable`` if nothing can have run, else ``AgentFailed``.

    ``ran`` is what is known if the connection broke.
    """
    leaf = _first(problem)
    trouble = way.trouble
    if isinstance(leaf, MCPError):
        return _said(leaf, trouble, ran)
    if isinstance(leaf, AiosError):
        return _as(leaf, ran) if isinstance(leaf, RpcError) else leaf
    return _as(trouble, ran) if trouble is not None else _unsaid(leaf, ran)


def _unsaid(leaf: BaseException, ran: str) -> RpcError:
    """For what neither the server nor we have put into words."""
    if isinstance(leaf, _NOT_MET):
        why = one_line(str(leaf), REASON_CHARS).lower() or "no answer"
        return Unreachable(
            f"the server could not be reached: {why}",
            hint="try again later",
            reason="no answer",
            ran="no",
        )
    if isinstance(leaf, (*_BROKEN, *_BROKEN_TOO)):
        return _broken(ran)
    if isinstance(leaf, _ODD):
        log.info("an MCP server answers oddly: %s", one_line(repr(leaf)[:REASON_CHARS]))
        return _odd(ran)
    log.error("an MCP session failed", exc_info=leaf)
    return AgentFailed(f"the session failed ({type(leaf).__name__})", ran=ran)


def _first(problem: BaseException) -> BaseException:
    """The one that began it: task groups wrap what failed in them."""
    found = list(_leaves(problem))
    ours = [leaf for leaf in found if isinstance(leaf, AiosError)]
    return (ours or found)[0]


def _leaves(problem: BaseException) -> Iterator[BaseException]:
    if isinstance(problem, BaseExceptionGroup):
        for below in problem.exceptions:
            yield from _leaves(below)
    else:
        yield problem


def _said(error: MCPError, trouble: RpcError | None, ran: str) -> RpcError:
    if trouble is not None and error.code in _BY_TRANSPORT:
        return _as(trouble, ran)
    if error.code in {mcp_types.CONNECTION_CLOSED, mcp_types.REQUEST_TIMEOUT}:
        return _broken(ran)
    if error.code == mcp_types.PARSE_ERROR:
        return _odd(ran)
    reason = one_line(error.message, REASON_CHARS) or "it does not say why"
    return AgentFailed(
        f"the server refuses: {reason}",
        hint="is it the right address?" if ran == "no" else "these are the server's own words",
        code=error.code,
        ran=ran,
    )


def _as(trouble: RpcError, ran: str) -> RpcError:
    """``Unreachable`` promises that nothing ran: only if so it may be said."""
    message, hint = trouble.message, trouble.hint
    if isinstance(trouble, TooLarge) or (isinstance(trouble, Unreachable) and ran != "no"):
        return AgentFailed(message, hint=hint, **{**trouble.data, "ran": ran})
    return type(trouble)(message, hint=hint, **{**trouble.data, "ran": ran})


def _odd(ran: str) -> AgentFailed:
    return AgentFailed(
        "the server answers with something that is not MCP",
        hint="is it the right address?",
        ran=ran,
    )


def _broken(ran: str) -> RpcError:
    if ran == "no":
        return Unreachable(
            "the connection to the server broke", hint="try again", reason="no answer", ran="no"
        )
    return AgentFailed(
        "the connection to the server broke before it answered",
        hint="it may have done part of its work",
        ran=ran,
    )
