"""The log of a conversation, page by page."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

from aios_nb.client.interface import SiteClient

PAGE_ROWS = 1000


async def pages(
    client: SiteClient, conversation: str, after: int = 0, upto: int | None = None
) -> AsyncIterator[dict[str, Any]]:
    """What ``chat.history`` tells of the rows beyond ``after``, up to one or to the end.

    How many rows came does not tell whether there are more: a page ends early where texts are long.
    """
    while True:
        limit = PAGE_ROWS if upto is None else min(PAGE_ROWS, max(1, upto - after))
        page = await client.call(
            "chat.history", conversation=conversation, after=after, limit=limit
        )
        rows = page["messages"]
        if upto is not None:
            page["messages"] = [row for row in rows if row["seq"] <= upto]
        yield page
        after = rows[-1]["seq"] if rows else after
        if not rows or not page["more"] or (upto is not None and after >= upto):
            return
