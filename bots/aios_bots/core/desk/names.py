"""How those who speak are called, and what they said."""

from __future__ import annotations

from typing import Any

from aios_bots.core.desk.visit import APPS, NAME_MAX_CHARS, Visit, cut
from aios_nb.client import SiteClient
from aios_nb.richtext import one_line

PAGE = 500
LISTED = 100
LOOKED_AT = 4
"""Pages that are read backwards to find something said."""

Event = dict[str, Any]


def of(visit: Visit, sender: str) -> str:
    """Somebody in a conversation, for people to read."""
    incoming = visit.incoming
    ours = f"{incoming.platform}:{incoming.place.account}:"
    if sender.startswith(ours):
        user = sender.removeprefix(ours)
        person = visit.office.store.people.get(user)
        app = APPS.get(incoming.platform, incoming.platform)
        return f"{(person.name if person else '') or user} ({app})"
    if sender == f"owner@{visit.office.voices.node_id}":
        return "the owner (notebook)"
    if sender.startswith("owner@"):
        return f"the owner of {cut(sender.removeprefix('owner@'), 12)}"
    return of_agent(visit, sender) if "@" in sender else one_line(sender, NAME_MAX_CHARS)


def of_agent(visit: Visit, agent: str) -> str:
    """An agent by its name; one of another node with the beginning of that."""
    name, _, node = agent.partition("@")
    if not node or node == visit.office.voices.node_id:
        return cut(name, 48)
    return f"{cut(name, 48)}@{node[:12]}"


async def page_before(
    visit: Visit,
    conversation: str,
    before: int | None,
    limit: int = PAGE,
    client: SiteClient | None = None,
) -> list[Event]:
    """So many events before that one, oldest first; before None: the last ones."""
    client = client or visit.client
    if before is None:
        before = await end(client, conversation) + 1
    if before <= 1:
        return []
    after = max(0, before - 1 - limit)
    answer = await client.call("chat.history", conversation=conversation, after=after, limit=limit)
    return [row for row in answer["messages"] if row["seq"] < before]


async def end(client: SiteClient, conversation: str) -> int:
    """The last ``seq``: found from the last message that the listing knows of."""
    after = 0
    rows = (await client.call("chat.list", limit=LISTED))["conversations"]
    for row in rows:
        if row["conversation"] == conversation:
            after = max(0, int(row["messages"]) - 1)
    more = True
    while more:
        answer = await client.call("chat.history", conversation=conversation, after=after)
        more = answer["more"] and bool(answer["messages"])
        after = answer["messages"][-1]["seq"] if answer["messages"] else after
    return after


async def event(visit: Visit, conversation: str, event_id: str) -> Event | None:
    """Something that was said, if it was not too long ago."""
    before: int | None = None
    for _ in range(LOOKED_AT):
        rows = await page_before(visit, conversation, before)
        for row in rows:
            if row["message_id"] == event_id:
                return row
        if not rows or rows[0]["seq"] <= 1:
            return None
        before = int(rows[0]["seq"])
    return None
