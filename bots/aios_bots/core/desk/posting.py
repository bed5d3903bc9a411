"""Passing on: what a person says, changes or answers, as events of a conversation."""

from __future__ import annotations

import re
from typing import Any

from aios_bots.core.adapter import CallError, Flooded, NotTaken, Unsure
from aios_bots.core.desk import marks, names, places, quoting, rights
from aios_bots.core.desk.visit import Visit, cut
from aios_bots.core.flood import FILE_MAX_BYTES
from aios_bots.core.model import Attachment, Incoming
from aios_bots.core.store import Binding, Shown
from aios_nb.client import put_file
from aios_nb.errors import InvalidParams, NoSuchAgent
from aios_nb.richtext import one_line

TURN_S = 3600.0
"""How long an agent may take; people answer its questions from their pockets."""
FILES_MAX = 16
_SAID_BEFORE = "was used for another message"
_LEADING = re.compile(r"\s*@([a-z0-9][a-z0-9_-]{0,47}(?:@[a-z2-7]{12,32})?)\s+(\S.*)", re.DOTALL)


async def post(visit: Visit, incoming: Incoming, binding: Binding) -> None:
    """Say it in the conversation, once; or answer what an agent asked there."""
    text = quoting.spoken(visit, incoming)
    if not text.strip() and not incoming.files:
        visit.say("I can pass on words, photos and files; there were none.")
        return
    await places.still_in(visit, binding.conversation)
    if await _answered(visit, incoming, binding.conversation, text):
        return
    text = await _with_context(visit, incoming, binding, text)
    means = await _meanings(visit, binding)
    refusal = await _not_theirs(visit, means, text)
    if refusal:
        visit.say(refusal)
        return
    files = await _files(visit, incoming)
    if files is not None:
        await _said(visit, incoming, binding.conversation, _within(visit, text, means), files)


async def _said(
    visit: Visit, incoming: Incoming, talk: str, text: str, files: list[dict[str, Any]]
) -> None:
    store, place = visit.office.store, visit.place
    if not visit.private:
        await _brought_in(visit, talk)
    # Before it is said: whoever shows the conversation must know that this place has it.
    await store.show(place, incoming.msg_id, Shown(talk, incoming.key))
    params = {
        "conversation": talk,
        "sender": incoming.person,
        "message_id": incoming.key,
        "files": files,
        "deadline_s": TURN_S,
    }
    try:
        made = await _to_one(visit, text, params)
        if made is None:
            made = await visit.client.call("chat.post", text=text, **params)
    except InvalidParams as error:
        if _SAID_BEFORE in error.message:
            return  # in other words, when the agents were others: once is enough
        now = store.binding(place)
        here = now is not None and now.conversation == talk
        if error.message.startswith("no such conversation") and here and visit.private:
            await store.unbind(place)
        raise
    await visit.office.showing.reply_begun(
        place, visit.client, made["message_id"], made["replies"], talk
    )


async def _to_one(visit: Visit, text: str, params: dict[str, Any]) -> dict[str, Any] | None:
    """Words behind a single @name are for that agent alone, without the name; None: there is none.

    As in a notebook's chat. An @ that names nobody is just text.
    """
    found = _LEADING.fullmatch(text)
    if found is None or rights.mentions(found[2]):
        return None
    page = await visit.client.call("chat.history", conversation=params["conversation"], limit=1)
    known = [one for one in page["agents"] if found[1] in (one, one.partition("@")[0])]
    if not known:  # of this node; the network is not asked for what may be a person's name
        rows = (await visit.client.call("agents.list"))["agents"]
        known = [row["id"] for row in rows if found[1] in (row["id"], row["name"])]
    if not known:
        return None
    agent = known[0]
    try:
        made = await visit.client.call(
            "chat.send", agent=agent, text=found[2], wait=False, **params
        )
    except NoSuchAgent:
        return None
    replies = [{"agent": agent, "reply_id": made["reply_id"]}]
    return {"message_id": made["message_id"], "replies": replies}


async def _answered(visit: Visit, incoming: Incoming, talk: str, text: str) -> bool:
    """Whether it is the answer that an agent waits for; a question of others is none to us."""
    store, place = visit.office.store, visit.place
    question = store.questions.waiting(place, incoming.person, talk)
    if question is None or not text.strip() or incoming.files or incoming.forwarded:
        return False
    await store.show(place, incoming.msg_id, Shown(talk, incoming.key))
    try:
        await marks.answer(visit, question, text, incoming.key)
    except InvalidParams:
        await store.questions.over(talk, question=question.question)
        return False
    await store.questions.over(talk, question=question.question)
    replies = [{"agent": question.agent, "reply_id": question.reply}]
    await visit.office.showing.reply_begun(place, visit.client, question.request, replies, talk)
    return True


async def _with_context(visit: Visit, incoming: Incoming, binding: Binding, text: str) -> str:
    """An answer to an agent is for that agent, one to a person says to what."""
    shown = None
    if incoming.reply_to and not incoming.forwarded:
        shown = visit.office.store.event_of(visit.place.chat, incoming.reply_to)
    if shown is None or shown.conversation != binding.conversation:
        return text
    event = await names.event(visit, shown.conversation, shown.event_id)
    who = str(event["sender"]["id"]) if event is not None else incoming.person
    if event is None or who == incoming.person:
        return text
    if event["sender"]["type"] == "human":
        return quoting.reply(names.of(visit, who), str(event["text"]), text)
    called = rights.mentions(text) or who == binding.agent
    return text if called or not rights.reaches(visit, who) else f"@{who} {text}"


async def _meanings(visit: Visit, binding: Binding) -> dict[str, str] | None:
    """Whom a name means in this conversation, and "" who answers without one.

    None for who may talk to all. A conversation's own agents come first, as at the node.
    """
    if visit.is_owner or visit.person is None or not visit.person.agents:
        return None
    page = await visit.client.call("chat.history", conversation=binding.conversation, limit=1)
    agents = page["agents"]
    own = {one.partition("@")[0]: one for one in reversed(agents)}
    return {**own, "": agents[0] if agents else binding.agent}


def _within(visit: Visit, text: str, means: dict[str, str] | None) -> str:
    """The text, calling nobody whom this person may not talk to."""
    if means is None:
        return text
    called = rights.mentions(text)
    allowed = [name for name in called if rights.reaches(visit, means.get(name, name))]
    return rights.silenced(text, allowed)


async def _not_theirs(visit: Visit, means: dict[str, str] | None, text: str) -> str:
    """Why a person with certain agents only may not say this here; '' if they may."""
    person = visit.person
    if person is None or means is None:
        return ""
    called = rights.mentions(text)
    if any(rights.reaches(visit, means.get(name, name)) for name in called):
        return ""
    yours = ", ".join(cut(name.partition("@")[0], 24) for name in person.agents[:5])
    listed = {row["name"] for row in (await visit.client.call("agents.list"))["agents"]}
    for name in called:
        if name.partition("@")[0] in {*listed, *means}:
            return f"{cut(name, 60)} is not one of your agents: {yours}."
    if not rights.reaches(visit, means[""]):
        return f"You can talk to {yours}; here another agent answers. /chat NAME begins your own."
    return ""


async def _brought_in(visit: Visit, conversation: str) -> None:
    """In a group everybody who writes is somebody in the conversation."""
    seat = conversation, visit.incoming.person
    if seat not in visit.office.seated:
        await places.join(visit, conversation)
        visit.office.seated.add(seat)


# Files -----------------------------------------------------------------------------------------


async def _files(visit: Visit, incoming: Incoming) -> list[dict[str, Any]] | None:
    """What came with it, at the node; None if it cannot be had, and the person was told."""
    brought = []
    for number, file in enumerate(incoming.files[:FILES_MAX], 1):
        try:
            content = await visit.office.adapter.fetch(file)
        except (NotTaken, Flooded, Unsure) as error:
            raise NotTaken(str(error)) from error  # to look at a file twice does no harm
        except CallError:
            visit.say("I could not get that file. Please send it again.")
            return None
        if len(content) > FILE_MAX_BYTES:
            visit.say("That file is too large: 20 MB is the most.")
            return None
        mime = one_line(file.mime, 100) or "application/octet-stream"
        brought.append(await put_file(visit.client, content, _name(file, number), mime))
    return brought


def _name(file: Attachment, number: int) -> str:
    """A file's name without any folder; a stranger chose it."""
    name = one_line(file.name.replace("\\", "/").rpartition("/")[2], 100).lstrip(".")
    return name or f"file-{number}"


# Changes ---------------------------------------------------------------------------------------


async def edited(visit: Visit) -> None:
    shown = visit.office.store.event_of(visit.place.chat, visit.incoming.msg_id)
    if shown is None:
        return
    text = quoting.spoken(visit, visit.incoming)
    if text.strip() and await places.is_in(visit, shown.conversation):
        await marks.edit(visit, shown, text)


async def reacted(visit: Visit) -> None:
    shown = visit.office.store.event_of(visit.place.chat, visit.incoming.msg_id)
    if shown is not None and await places.is_in(visit, shown.conversation):
        await marks.react(visit, shown, one_line(visit.incoming.data, 64))
