"""Who is in a conversation; and going out: of one, or of all that somebody is in."""

from __future__ import annotations

import logging

from aios_bots.core.secret import described
from aios_nb.client import SiteClient
from aios_nb.errors import Busy, InvalidParams, RpcError

log = logging.getLogger("aios_bots")

LISTED = 500
_OUT_ALREADY = ("is not in this conversation", "no such conversation")


async def members(client: SiteClient, conversation: str) -> list[str]:
    """Who is in it now; nobody, if that connection does not see it."""
    try:
        page = await client.call("chat.history", conversation=conversation, limit=1)
    except InvalidParams:
        return []
    return list(page["members"])


async def leave(client: SiteClient, conversation: str, who: str) -> int:
    """Take somebody out; gives the place of that in the log, 0 if they were not in."""
    try:
        made = await client.call("chat.leave", conversation=conversation, who=who)
    except InvalidParams as error:
        if not any(word in error.message for word in _OUT_ALREADY):
            raise
        return 0
    return int(made["seq"])


async def leave_all(client: SiteClient, who: str) -> None:
    """Take somebody out of every conversation: who comes in again later finds none of them.

    Any connection of the bridge sees those that one of its people is in.
    """
    before: dict[str, str] = {}
    while rows := (await client.call("chat.list", limit=LISTED, **before))["conversations"]:
        for row in rows:
            if who in row["members"]:
                await _leave_anyway(client, row["conversation"], who)
        before = {"before": rows[-1]["cursor"]}


async def _leave_anyway(client: SiteClient, conversation: str, who: str) -> None:
    try:
        await leave(client, conversation, who)
    except Busy:
        raise
    except RpcError as error:
        log.warning("somebody who is put out stays in a conversation: %s", described(error))
