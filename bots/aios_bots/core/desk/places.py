"""Which conversation a place shows: opened, joined, bound, each once for each update."""

from __future__ import annotations

from aios_bots.core import leaving
from aios_bots.core.desk import names, rights
from aios_bots.core.desk.visit import Visit
from aios_bots.core.store import Binding, Mode
from aios_nb.errors import InvalidParams

RECENT = 50
"""Conversations that are looked at for one that a crash left behind."""


async def open_with(visit: Visit, ref: str) -> Binding:
    """This place talks with that agent from now on, in a new conversation."""
    conversation = await _opened(visit, ref)
    page = await visit.client.call("chat.history", conversation=conversation, limit=1)
    agent = page["agents"][0] if page["agents"] else ref
    return await bind(visit, conversation, agent)


async def _opened(visit: Visit, ref: str) -> str:
    """A new conversation; the same one if this update opened it before."""
    steps, step = visit.office.store.steps, f"{visit.key}:open"
    result = steps.result(step)
    if result:
        return result
    async with visit.office.adopting:
        left = await _left_behind(visit, ref) if result is not None else ""
        if result is None:
            await steps.keep(step)
        if left:
            await steps.keep(step, left)
            return left
        # Still held: who looks for one that was left behind must not find this one.
        made = await visit.client.call("chat.open", agents=[ref])
        conversation = str(made["conversation"])
        await steps.keep(step, conversation)
    return conversation


async def _left_behind(visit: Visit, ref: str) -> str:
    """An empty conversation with that agent that we opened and then did not live to note."""
    store = visit.office.store
    rows = (await visit.client.call("chat.list", limit=RECENT))["conversations"]
    for row in rows:
        conversation = row["conversation"]
        empty = not row["messages"] and not row["members"] and not row["parent"]
        same = len(row["agents"]) == 1 and ref in (
            row["agents"][0],
            row["agents"][0].partition("@")[0],
        )
        ours = row["opener"].startswith("token:") and not store.steps.has(conversation)
        if empty and same and ours and not store.bindings(conversation):
            return str(conversation)
    return ""


async def bind(
    visit: Visit, conversation: str, agent: str, mode: Mode = Mode.CHAT, last_seq: int = 0
) -> Binding:
    """From now on this place shows that conversation; its person is brought into it.

    An owner who only reads is not, if it can be shown all the same. ``last_seq``: what happened up
    to there is known here. A place that showed it before, in whichever mode, goes on where it is.
    """
    store, place = visit.office.store, visit.place
    # Others are to be seen there when they read, and to be taken out: the owner sees all anyway.
    if mode is Mode.CHAT or not visit.is_owner or not await _owner_sees(visit, conversation):
        joined = await join(visit, conversation)
        if joined == last_seq + 1:  # else something happened meanwhile that is to be shown
            last_seq = joined
    found = store.binding(place)
    if found is not None and found.conversation == conversation:
        last_seq = found.last_seq
    if found is None or (found.conversation, found.mode) != (conversation, mode) or found.parked:
        found = Binding(place, conversation, agent, mode, last_seq)
        await store.bind(found)
    await visit.office.showing.bound(found)
    return found


async def _owner_sees(visit: Visit, conversation: str) -> bool:
    """Whether the connection sees it by which all places are shown what happens."""
    try:
        await visit.office.voices.owner.call("chat.history", conversation=conversation, limit=1)
    except InvalidParams:
        return False
    return True


async def join(visit: Visit, conversation: str) -> int:
    """Bring the person in; gives the place of that in the log, 0 if they were in already."""
    client = await rights.seen_by(visit, conversation)
    return await rights.brought_in(visit, client, conversation)


async def back_to(visit: Visit, conversation: str, agent: str = "") -> Binding:
    """This place shows a conversation again that it showed before; what is said next is new."""
    row = await rights.conversation(visit, conversation)
    agent = agent or (row["agents"][0] if row["agents"] else "")
    last = await names.end(visit.client, conversation)
    return await bind(visit, conversation, agent, last_seq=last)


async def is_in(visit: Visit, conversation: str) -> bool:
    """Whether this person is in it. The node does not ask: we see what anybody of ours is in.

    Whoever writes in a group is brought in, and the owner may be anywhere.
    """
    if visit.is_owner or not visit.private:
        return True
    return visit.incoming.person in await leaving.members(visit.client, conversation)


async def still_in(visit: Visit, conversation: str) -> None:
    """Raises ``InvalidParams``, as if it were not there, for who is not in it any more."""
    if await is_in(visit, conversation):
        return
    now = visit.office.store.binding(visit.place)
    if now is not None and now.conversation == conversation:
        await visit.office.store.unbind(visit.place)
    raise InvalidParams(f"no such conversation: {conversation[:80]}")


async def agent_of_chat(visit: Visit) -> str:
    """For a topic that shows nothing yet: the agent of another one of the same group."""
    chat = visit.place.chat
    for binding in visit.office.store.bindings():
        if binding.place.chat == chat and binding.agent and rights.reaches(visit, binding.agent):
            return binding.agent
    return ""


def may_rebind(visit: Visit) -> bool:
    """In a group only the owner says what it talks to; alone everybody for themselves."""
    return visit.private or visit.is_owner
