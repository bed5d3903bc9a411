"""Conversations: listed, joined, watched, read, left; who is in, what runs, which files."""

from __future__ import annotations

import re
from typing import Any

from aios_bots.core import leaving
from aios_bots.core.buttons import Action
from aios_bots.core.desk import entry, names, places, rights
from aios_bots.core.desk.page import Page, bold, code
from aios_bots.core.desk.refusals import REFUSALS
from aios_bots.core.desk.visit import Choice, Visit, cut
from aios_bots.core.model import Attachment
from aios_bots.core.policy import Reason
from aios_bots.core.store import Binding, Mode
from aios_nb.client import SiteClient
from aios_nb.errors import InvalidParams

LISTED = 8
HISTORY_MAX = 50
HISTORY_USUAL = 10
CONTEXT = 3
"""Messages that are shown to who joins."""
LINE_CHARS = 300
TITLE_CHARS = 40
FILES_LISTED = 8
MUTE_USUAL_S, MUTE_MAX_S = 3600.0, 7 * 86_400.0
NOWHERE = "No conversation is open here. /chats lists yours, /chat NAME begins one."
_UNDER_WAY = frozenset({"accepted", "running", "input_required"})
_TIME = re.compile(r"(\d{1,5})\s*([smhd]?)", re.IGNORECASE)
_UNITS = {"s": 1, "m": 60, "": 60, "h": 3600, "d": 86_400}
_OFF = frozenset({"off", "0", "no", "end"})


async def chats(visit: Visit, _: str) -> None:
    rows = await rights.conversations(visit)
    if not rows:
        visit.say("You are in no conversation yet. /agents shows whom you can talk to.")
        return
    now = visit.office.store.binding(visit.place)
    page = Page("Your conversations, the last used first:")
    buttons: list[Choice] = []
    for number, row in enumerate(rows[:LISTED], 1):
        here = now is not None and now.conversation == row["conversation"]
        page.line(f"{number}. ", bold(_title(row)), f" {_with(visit, row)}", "  ← here" * here)
        page.line("    ", code(row["conversation"]))
        do = "join" if visit.may_write else "watch"
        if not here:
            action = Action(do, conversation=row["conversation"])
            buttons.append((f"{number}. {_title(row, 20)}", action))
    if len(rows) > LISTED:
        page.line(f"… and {len(rows) - LISTED} more.")
    if buttons:
        page.line("Go on in one by its button.")
    visit.say(page, [[one] for one in buttons])


def _title(row: rights.Row, most: int = TITLE_CHARS) -> str:
    return cut(row["title"] or "", most) or "nothing said yet"


def _with(visit: Visit, row: rights.Row) -> str:
    agents = ", ".join(names.of_agent(visit, one) for one in row["agents"][:3])
    child = "between agents, " if row.get("parent") else ""
    return f"({child}{agents})" if agents else ""


async def join(visit: Visit, ref: str) -> None:
    """``/join CODE|ID``: a code from the notebook, or a conversation one is in."""
    typed = ref.strip()
    if not typed:
        await _listed(visit)
        return
    if not places.may_rebind(visit):
        visit.say("Only the owner says what this group shows.")
        return
    try:
        row = await rights.conversation(visit, typed)
    except InvalidParams:
        conversation = await entry.conversation_by_code(visit, typed)
        if conversation is None:
            raise
        if conversation:
            await enter(visit, conversation, invited=True)
        return
    await enter(visit, row["conversation"])


async def _listed(visit: Visit) -> None:
    """What can be chosen from; not for a group to read."""
    if visit.private:
        await chats(visit, "")
    else:
        visit.say(REFUSALS[Reason.PRIVATE_ONLY])


async def join_by_button(visit: Visit, action: Action) -> None:
    if places.may_rebind(visit):
        row = await rights.conversation(visit, action.conversation)
        await enter(visit, row["conversation"])
    visit.toast()


async def come_back(visit: Visit, action: Action) -> None:
    """Who left by mistake is let in again by the button that was given for it."""
    if not visit.is_owner and await _came_or_went(visit, action.conversation, action.number):
        visit.toast("That button is too old. Ask for a code.")
    elif places.may_rebind(visit):
        await enter(visit, action.conversation)
    visit.toast()


async def _came_or_went(visit: Visit, conversation: str, after: int) -> bool:
    """Whether the person was brought in or taken out since; then what they left is another time."""
    more = True
    while more:
        page = await visit.client.call("chat.history", conversation=conversation, after=after)
        rows, who = page["messages"], visit.incoming.person
        if any(row["kind"] in {"join", "leave"} and row["ref"] == who for row in rows):
            return True
        more = page["more"] and bool(rows)
        after = rows[-1]["seq"] if rows else after
    return False


async def enter(
    visit: Visit, conversation: str, mode: Mode = Mode.CHAT, *, invited: bool = False
) -> Binding:
    """This place shows that conversation from now on; who may only read, reads.

    ``invited``: by a code that leads there.
    """
    if not visit.may_write:
        mode = Mode.WATCH
    if visit.is_owner or invited:
        await rights.let_in(visit, conversation)
    client = await rights.seen_by(visit, conversation)
    page = await client.call("chat.history", conversation=conversation, limit=1)
    agent = page["agents"][0] if page["agents"] else ""
    now = visit.office.store.binding(visit.place)
    if now is not None and now.conversation == conversation:
        said: list[names.Event] = []  # what is missing comes by itself
        last = now.last_seq
    else:
        said = await names.page_before(visit, conversation, None, 50, client)
        last = int(said[-1]["seq"]) if said else 0
    binding = await places.bind(visit, conversation, agent, mode, last)
    title = cut(page["title"] or "", TITLE_CHARS)
    who = ", ".join(names.of_agent(visit, one) for one in page["agents"][:3])
    where = f"“{title}”" if title else "the conversation"
    watching = mode is Mode.WATCH
    text = Page(
        f"You {'read along in' if watching else 'are in'} {where}", f" with {who}." if who else "."
    )
    for line in _lines(visit, said, CONTEXT):
        text.line(*line)
    visit.say(text)
    return binding


async def enter_by_code(visit: Visit, conversation: str) -> None:
    """The same for who has just been let in for it."""
    try:
        await enter(visit, conversation, invited=True)
    except InvalidParams:
        visit.say("The conversation of that code cannot be reached from here. Ask for a new code.")


async def watch(visit: Visit, ref: str) -> None:
    if not ref.strip():
        await _listed(visit)
        return
    if not places.may_rebind(visit):
        visit.say("Only the owner says what this group shows.")
        return
    row = await rights.conversation(visit, ref)
    await enter(visit, row["conversation"], Mode.WATCH)


async def watch_by_button(visit: Visit, action: Action) -> None:
    if places.may_rebind(visit):
        row = await rights.conversation(visit, action.conversation)
        await enter(visit, row["conversation"], Mode.WATCH)
    visit.toast()


async def leave(visit: Visit, _: str) -> None:
    """``/leave``: out of it, and nothing of it is shown here any more."""
    if not places.may_rebind(visit):
        visit.say("Only the owner takes this group out of its conversation.")
        return
    now = visit.office.store.binding(visit.place)
    if now is None:
        visit.say(NOWHERE)
        return
    if visit.private:
        left = await leaving.leave(visit.client, now.conversation, visit.incoming.person)
        back = Action("come back", conversation=now.conversation, number=left)
        may = left or visit.is_owner  # who was taken out gets no way back
        visit.say(
            "You are out of that conversation. /chats lists the others.",
            [[("Back", back)]] if may else (),
        )
    else:
        visit.say("I am out of this group's conversation: /chat NAME begins another.")
    # Said first: without its place, a second time would say that there was none.
    await visit.flush()
    await visit.office.store.unbind(visit.place)


async def who(visit: Visit, _: str) -> None:
    now = await _here(visit)
    if now is None:
        return
    page = await visit.client.call("chat.history", conversation=now.conversation, limit=1)
    text = Page(bold("In this conversation"))
    text.line(f"id: {now.conversation}")
    for agent in page["agents"][:20]:
        text.line(f"• {names.of_agent(visit, agent)}, agent")
    for member in page["members"][:20]:
        text.line(f"• {names.of(visit, member)}")
    text.line("• the owner of the node")
    visit.say(text)


async def history(visit: Visit, rest: str) -> None:
    """``/history [N]``: what was said last."""
    now = await _here(visit)
    if now is None:
        return
    typed = re.fullmatch(r"[0-9]{1,6}", rest.strip())
    wanted = max(1, min(int(typed[0]) if typed else HISTORY_USUAL, HISTORY_MAX))
    rows = await names.page_before(visit, now.conversation, None)
    lines = _lines(visit, rows, wanted)
    if not lines:
        visit.say("Nothing was said here yet.")
        return
    text = Page(bold(f"The last {len(lines)} messages" if len(lines) > 1 else "The last message"))
    for line in lines:
        text.line(*line)
    visit.say(text)


def _lines(visit: Visit, rows: list[names.Event], most: int) -> list[list[Any]]:
    """Messages in short, as they are after edits."""
    edits = {row["ref"]: row["text"] for row in rows if row["kind"] == "edit"}
    said = [row for row in rows if row["kind"] == "message"][-most:]
    found = []
    for row in said:
        text = cut(str(edits.get(row["message_id"], row["text"])), LINE_CHARS)
        files = ", ".join(cut(one["name"], 40) for one in row["files"][:3])
        found.append([bold(names.of(visit, row["sender"]["id"])), f": {text or files or '…'}"])
    return found


async def show(visit: Visit, action: Action) -> None:
    """What a summary stood for."""
    row = await rights.conversation(visit, action.conversation)
    upto = int(action.words) if action.words.isdecimal() else 0
    rows = await names.page_before(visit, row["conversation"], upto + 1)
    lines = _lines(visit, [one for one in rows if one["seq"] > action.number], HISTORY_MAX)
    text = Page()
    for line in lines:
        text.line(*line)
    visit.say(text if lines else "Nothing was said there.")
    visit.toast()


async def stop(visit: Visit, _: str = "") -> None:
    """``/stop``: what runs here for this person; for the owner, whatever the bridge began."""
    now = await _here(visit)
    if now is None:
        return
    rows = await names.page_before(visit, now.conversation, None)
    stopped = 0
    for row in rows:
        mine = row["sender"]["id"] == visit.incoming.person
        human = row["sender"]["type"] == "human" and row["kind"] == "message"
        if human and row["status"] in _UNDER_WAY and (mine or visit.is_owner):
            stopped += await _cancelled(visit, row["message_id"])
    if visit.incoming.kind != "stop":
        visit.say("Stopped." if stopped else "Nothing of yours is running here.")


async def _cancelled(visit: Visit, message_id: str) -> bool:
    """Stop it, through the connection that began it."""
    voices = visit.office.voices
    clients: list[SiteClient] = [visit.client]
    if visit.is_owner:
        clients = [voices.owner, voices.others]
    for client in clients:
        try:
            await client.call("chat.cancel", message_id=message_id)
        except InvalidParams:
            continue
        return True
    return False


async def mute(visit: Visit, rest: str) -> None:
    """``/mute 1h``: only what is asked for, for a while; ``/mute off`` ends it."""
    mutes = visit.office.store.mutes
    if not visit.private and not visit.may_write:
        visit.say(REFUSALS[Reason.READ_ONLY])
        return
    if rest.strip().lower() in _OFF:
        await mutes.end(visit.place)
        visit.say("Not muted any more.")
        return
    found = _TIME.fullmatch(rest.strip()) if rest.strip() else None
    if rest.strip() and (found is None or not int(found[1])):
        visit.say("For how long? Such as: /mute 30m, /mute 1h, /mute off")
        return
    seconds = float(int(found[1]) * _UNITS[found[2].lower()]) if found else MUTE_USUAL_S
    seconds = min(seconds, MUTE_MAX_S)
    await mutes.mute(visit.place, seconds)
    visit.say(f"Quiet here for {_spell(seconds)}; answers to you still come. /mute off ends it.")


def _spell(seconds: float) -> str:
    for unit, name in ((86_400, "days"), (3600, "hours"), (60, "minutes")):
        if seconds >= unit and not seconds % unit:
            count = int(seconds // unit)
            return f"{count} {name if count > 1 else name[:-1]}"
    return f"{int(seconds)} seconds"


async def file(visit: Visit, rest: str) -> None:
    """``/file [NAME]``: a file of this conversation."""
    now = await _here(visit)
    if now is None:
        return
    found = await _files(visit, now.conversation)
    wanted = rest.strip().casefold()
    if not found:
        visit.say("There is no file in this conversation.")
    elif not wanted and len(found) > 1:
        page = Page("Which one?")
        rows = [
            [(one["name"], Action("file", conversation=now.conversation, words=one["sha256"]))]
            for one in found[:FILES_LISTED]
        ]
        visit.say(page, rows)
    else:
        fits = [one for one in found if wanted in one["name"].casefold()]
        if fits:
            _send(visit, fits[0])
        else:
            visit.say(f"No file here is called {cut(rest, 40)}. /file lists them.")


async def file_by_button(visit: Visit, action: Action) -> None:
    row = await rights.conversation(visit, action.conversation)
    found = await _files(visit, row["conversation"])
    for one in found:
        if one["sha256"] == action.words:
            _send(visit, one)
            break
    visit.toast()


def _send(visit: Visit, one: dict[str, Any]) -> None:
    name = cut(one["name"], 100)
    if one["size"] > visit.office.adapter.caps.file_bytes:
        visit.say(f"{name} is too large to be sent here.")
        return
    visit.say("", files=[Attachment(one["sha256"], name, one["mime"], one["size"])])


async def _files(visit: Visit, conversation: str) -> list[dict[str, Any]]:
    """The files of a conversation, the newest first."""
    rows = await names.page_before(visit, conversation, None)
    files = [one for row in reversed(rows) for one in row["files"]]
    return list({one["sha256"]: one for one in reversed(files)}.values())[::-1]


async def _here(visit: Visit) -> Binding | None:
    now = visit.office.store.binding(visit.place)
    if now is None:
        visit.say(NOWHERE)
    else:
        await places.still_in(visit, now.conversation)
    return now
