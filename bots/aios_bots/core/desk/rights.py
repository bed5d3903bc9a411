"""Which agents and conversations are there for a person, before the node is even asked.

The node says what each of our two connections reaches. Within that, the owner may have given
somebody certain agents only; and a conversation is for who was brought into it.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Sequence
from typing import Any

from aios_bots.core.desk.visit import Visit
from aios_bots.core.people import NAME_MAX_CHARS
from aios_nb.client import SiteClient
from aios_nb.errors import InvalidParams, NoSuchAgent
from aios_nb.richtext import one_line

Row = dict[str, Any]

LISTED_MAX = 200
PARENTS_MAX = 4
CONCIERGE = "concierge"
ID_PREFIX_MIN = 6
_MENTION = re.compile(r"(?<![^\s(\[{,;:!?\"'])@([a-z0-9][a-z0-9_-]{0,47}(?:@[a-z2-7]{12,32})?)")
"""As a node reads it."""

_NUMBER = re.compile(r"[1-9][0-9]?")
_REF = re.compile(r"[a-z0-9][a-z0-9_-]{0,47}(?:@[a-z2-7]{1,32})?")

# Agents ----------------------------------------------------------------------------------------


def reaches(visit: Visit, agent: str) -> bool:
    """Whether this person may talk to that agent: its id, or a name as the node reads it."""
    person = visit.person
    if person is None:
        return False
    if visit.is_owner or not person.agents:
        return True
    name, _, node = agent.partition("@")
    ours = not node or visit.office.voices.node_id.startswith(node)
    for given in person.agents:
        given_name, _, given_node = given.partition("@")
        if given_name == name and (given_node == node or (not given_node and ours)):
            return True
        if given_name == name and given_node and node and given_node.startswith(node):
            return True
    return False


def meant(visit: Visit, ref: str) -> str:
    """How the node knows the agent that somebody typed. Raises ``NoSuchAgent``."""
    typed = ref.strip().removeprefix("@").lower()
    person = visit.person
    if person is None or not _REF.fullmatch(typed):
        raise NoSuchAgent(f"no such agent: {ref}", near=[])
    if visit.is_owner or not person.agents:
        return typed
    for given in person.agents:
        if typed in (given, given.partition("@")[0]):
            return given
    if reaches(visit, typed):
        return typed
    near = difflib.get_close_matches(typed, person.agents, 3, 0.5) or list(person.agents)
    raise NoSuchAgent(f"no such agent: {ref}", near=near)


async def agents(visit: Visit) -> list[Row]:
    """The agents of this node that the person may talk to, by name."""
    rows = (await visit.client.call("agents.list"))["agents"]
    return [row for row in rows if reaches(visit, row["id"])]


async def only_agent(visit: Visit) -> str:
    """The one agent that somebody has, or the node's concierge; '' if there is a choice."""
    person = visit.person
    if person is not None and len(person.agents) == 1 and not visit.is_owner:
        return person.agents[0]
    rows = await agents(visit)
    others = [row for row in rows if row["name"] != CONCIERGE]
    if len(others) == 1:
        return str(others[0]["id"])
    return next((str(row["id"]) for row in rows if row["name"] == CONCIERGE), "")


def mentions(text: str) -> list[str]:
    """The agents that a text calls by @name."""
    return list(dict.fromkeys(_MENTION.findall(text)))


def silenced(text: str, keep: Sequence[str] = ()) -> str:
    """The text with its @names as mere words: they call nobody, but for those in ``keep``."""
    return _MENTION.sub(lambda m: m[0] if m[1] in keep else f"`{m[0]}`", text)


# Conversations ---------------------------------------------------------------------------------


async def conversations(visit: Visit, limit: int = LISTED_MAX) -> list[Row]:
    """Those that the person may see, last used first."""
    voices = visit.office.voices
    by_id: dict[str, Row] = {}
    theirs = (voices.owner, voices.others, voices.keeper) if visit.is_owner else (visit.client,)
    for client in filter(None, theirs):
        rows = (await client.call("chat.list", limit=limit))["conversations"]
        by_id |= {row["conversation"]: row for row in rows}
    found = [row for row in by_id.values() if _sees(visit, row, by_id)]
    return sorted(found, key=lambda row: str(row["updated_at"]), reverse=True)


async def seen_by(visit: Visit, conversation: str) -> SiteClient:
    """A connection of this person that sees it; for the owner, either. Raises if none does."""
    voices = visit.office.voices
    if visit.is_owner:
        try:
            await voices.owner.call("chat.history", conversation=conversation, limit=1)
        except InvalidParams:
            return voices.others
    return visit.client


async def let_in(visit: Visit, conversation: str) -> None:
    """Have the node's owner bring this person in, where no connection of theirs sees it yet.

    Only for the owner, and for who has a code that the owner made for that conversation.
    """
    keeper = visit.office.voices.keeper
    if keeper is None:
        return
    client = await seen_by(visit, conversation)
    try:
        await client.call("chat.history", conversation=conversation, limit=1)
    except InvalidParams:
        await brought_in(visit, keeper, conversation)


async def brought_in(visit: Visit, client: SiteClient, conversation: str) -> int:
    """Bring the person in; gives the place of that in the log, 0 if they were in already."""
    name = one_line(visit.incoming.sender.name, NAME_MAX_CHARS)
    who = visit.incoming.person
    try:
        made = await client.call("chat.join", conversation=conversation, who=who, name=name)
    except InvalidParams as error:
        if "already" not in error.message:
            raise
        return 0
    return int(made["seq"])


def _sees(visit: Visit, row: Row, by_id: dict[str, Row]) -> bool:
    """The owner all that the bridge sees; others where they are in, and what came of that."""
    if visit.is_owner:
        return True
    for _ in range(PARENTS_MAX):
        if visit.incoming.person in row["members"]:
            return True
        parent = by_id.get(row["parent"] or "")
        if parent is None:
            return False
        row = parent
    return False


async def conversation(visit: Visit, ref: str) -> Row:
    """The one with that id, or whose id begins so, or which has that number in the list.

    Raises ``InvalidParams`` if there is none.
    """
    typed = ref.strip()
    rows = await conversations(visit)
    if _NUMBER.fullmatch(typed) and int(typed) <= len(rows):
        return rows[int(typed) - 1]
    found = [
        row
        for row in rows
        if row["conversation"] == typed
        or (len(typed) >= ID_PREFIX_MIN and row["conversation"].startswith(typed))
    ]
    if len(found) == 1:
        return found[0]
    if found:
        raise InvalidParams(f"several of your conversations begin with {typed[:80]}")
    if not found and typed:
        # It may be an old one, far down in the list.
        keeper = visit.office.voices.keeper if visit.is_owner else None
        client = keeper or await seen_by(visit, typed)
        page = await client.call("chat.history", conversation=typed, limit=1)
        if visit.is_owner or visit.incoming.person in page["members"]:
            return page  # type: ignore[no-any-return]
    raise InvalidParams(f"no such conversation: {typed[:80]}")
