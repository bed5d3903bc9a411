"""What an MCP server asks of a person in the middle of a call, as questions in the conversation.

The words are the server's: they are cleaned, cut, and said to be its own. A person answers in
text, ``/no`` declines; what is answered goes to the server as its form wants it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from aios_nb.richtext import one_line
from aios_nb.wire.outside.values import described, from_text, properties, required

if TYPE_CHECKING:
    import mcp_types

FIELDS_MAX = 20
TRIES = 3
MESSAGE_CHARS = 600
DECLINE = "/no"
SKIP = "-"
_YES = frozenset({"yes", "y", "ok", "true", "1"})

Ask = Callable[[str], Awaitable[str]]
"""Asks whoever opened the conversation."""


class Declined(Exception):
    """The person does not want to answer."""


async def answered(
    ask: Ask, who: str, params: mcp_types.ElicitRequestParams
) -> mcp_types.ElicitResult:
    """The ``ElicitResult`` that a person's answers make."""
    import mcp_types

    said = one_line(params.message, MESSAGE_CHARS)
    try:
        if isinstance(params, mcp_types.ElicitRequestURLParams):
            await _visited(ask, who, said, params.url)
            return mcp_types.ElicitResult(action="accept")
        content = await _filled(ask, f"{who} asks: {said}", dict(params.requested_schema))
    except Declined:
        return mcp_types.ElicitResult(action="decline")
    return mcp_types.ElicitResult(action="accept", content=content)


async def _visited(ask: Ask, who: str, said: str, url: str) -> None:
    place = urlsplit(url)
    if place.scheme != "https" or not place.hostname or "@" in place.netloc or len(url) > 2000:  # noqa: PLR2004
        raise Declined
    reply = await ask(
        f"{who} asks: {said} It wants you to open this page of {one_line(place.hostname)}: "
        f"{one_line(url)} — have you done it? (yes, or {DECLINE})"
    )
    if reply.strip().casefold() not in _YES:
        raise Declined


async def _filled(ask: Ask, opening: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    fields = properties(schema)
    if len(fields) > FIELDS_MAX:
        raise Declined
    if not fields:
        reply = await ask(f"{opening} (yes, or {DECLINE})")
        if reply.strip().casefold() not in _YES:
            raise Declined
        return {}
    content: dict[str, Any] = {}
    needed = required(schema)
    for name, field in fields.items():
        question = f"{opening} {_question(name, field, schema, needed=name in needed)}".strip()
        value = await one_value(ask, question, field, schema, optional=name not in needed)
        if value is not None:
            content[name] = value
        opening = ""
    return content


def _question(name: str, field: Any, schema: Mapping[str, Any], *, needed: bool) -> str:
    field = field if isinstance(field, Mapping) else {}
    title = field.get("title") or field.get("description") or name
    words = described(field, schema)
    default = field.get("default")
    left_out = f"; {SKIP} for {default!r}" if default is not None else f"; {SKIP} to leave it out"
    skip = "" if needed and default is None else left_out
    return f"— {one_line(str(title), 200)} ({words}{one_line(skip, 80)}; {DECLINE} to decline)"


async def one_value(
    ask: Ask, question: str, field: Any, schema: Mapping[str, Any], *, optional: bool = False
) -> Any:
    """What is answered, as the field wants it; asked again if it is not. Raises ``Declined``."""
    default = field.get("default") if isinstance(field, Mapping) else None
    for _ in range(TRIES):
        reply = await ask(question)
        if reply.strip() == DECLINE:
            raise Declined
        if reply.strip() == SKIP and (optional or default is not None):
            return default
        try:
            return from_text(reply.strip(), field, schema)
        except ValueError as wrong:
            question = f"{wrong}. Once more? ({DECLINE} to decline)"
    raise Declined
