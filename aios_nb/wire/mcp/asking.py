"""Asking the person behind an MCP client, in the way of its era.

Older clients are asked at once, in the middle of their request. Newer ones are told what to ask,
and call again with the answers. Clients that can do neither are not asked.
"""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

from mcp.shared.exceptions import MCPError
from mcp_types import ElicitResult
from mcp_types.version import MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

WAIT_S = 1800.0
"""How long a person may think."""
ANSWER, CONFIRM = "answer", "confirm"
"""What a newer client is asked for, by name."""
_ANSWER_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"answer": {"type": "string", "title": "Your answer"}},
    "required": ["answer"],
}
_CONFIRM_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"ok": {"type": "boolean", "title": "Send it", "default": False}},
    "required": ["ok"],
}


def wants_progress(ctx: Any) -> bool:
    meta = (ctx.params or {}).get("_meta")
    return isinstance(meta, dict) and meta.get("progressToken") is not None


def can_ask_now(ctx: Any) -> bool:
    return _takes_forms(ctx) and bool(ctx.session.can_send_request)


def can_ask_later(ctx: Any) -> bool:
    return _takes_forms(ctx) and ctx.protocol_version in MODERN_PROTOCOL_VERSIONS


def _takes_forms(ctx: Any) -> bool:
    """The client says that it can show a form; one that only opens addresses cannot."""
    capabilities = ctx.session.client_capabilities
    asked = None if capabilities is None else capabilities.elicitation
    return asked is not None and (asked.form is not None or asked.url is None)


async def ask_now(ctx: Any, question: str) -> str | None:
    """The person's answer; None when they do not want to give one, or are not there."""
    return Given({ANSWER: await _form(ctx, question, _ANSWER_SCHEMA)}).answer()


async def confirm_now(ctx: Any, question: str) -> bool:
    return Given({CONFIRM: await _form(ctx, question, _CONFIRM_SCHEMA)}).confirmed()


async def _form(ctx: Any, question: str, schema: dict[str, Any]) -> ElicitResult | None:
    with contextlib.suppress(TimeoutError, MCPError, ValidationError):  # or an answer that is none
        async with asyncio.timeout(WAIT_S):
            return await ctx.session.elicit_form(question, schema, ctx.request_id)  # type: ignore[no-any-return]
    return None


def ask_later(question: str, state: str) -> dict[str, Any]:
    """The result that makes a newer client ask, and call again."""
    return _input_required(ANSWER, question, _ANSWER_SCHEMA, state)


def confirm_later(question: str, state: str) -> dict[str, Any]:
    return _input_required(CONFIRM, question, _CONFIRM_SCHEMA, state)


def _input_required(name: str, question: str, schema: dict[str, Any], state: str) -> dict[str, Any]:
    params = {"mode": "form", "message": question, "requestedSchema": schema}
    return {
        "resultType": "input_required",
        "inputRequests": {name: {"method": "elicitation/create", "params": params}},
        "requestState": state,
    }


class Given:
    """What the person said, as far as it is what was asked for."""

    def __init__(self, responses: dict[str, Any] | None) -> None:
        self._responses = responses or {}

    def answer(self) -> str | None:
        said = self._content(ANSWER).get("answer")
        return said if isinstance(said, str) else None

    def confirmed(self) -> bool:
        return self._content(CONFIRM).get("ok") is True

    def refused(self) -> bool:
        """They were asked, and do not want to answer."""
        said = self._responses.get(ANSWER)
        return isinstance(said, ElicitResult) and said.action != "accept"

    def _content(self, name: str) -> dict[str, Any]:
        said = self._responses.get(name)
        if not isinstance(said, ElicitResult) or said.action != "accept":
            return {}
        return dict(said.content or {})


def given(responses: dict[str, Any] | None) -> Given:
    return Given(responses)
