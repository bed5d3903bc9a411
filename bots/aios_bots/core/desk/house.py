"""The house itself: ``/start``, ``/help``, ``/status``, ``/id``, ``/invite``, ``/unpair``."""

from __future__ import annotations

from aios_bots.core import leaving
from aios_bots.core.buttons import Action
from aios_bots.core.commands import COMMANDS
from aios_bots.core.desk import names, places, rights
from aios_bots.core.desk.finding import chat_buttons
from aios_bots.core.desk.page import Page, bold, code
from aios_bots.core.desk.visit import Visit, cut
from aios_bots.core.pairing import CODE_S, Role
from aios_bots.core.policy import RANK
from aios_bots.core.store import Mode
from aios_nb.richtext import one_line

GROUPS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("Talk", ("chat", "new", "stop", "leave")),
    ("Find agents", ("agents", "search", "agent")),
    ("Conversations", ("chats", "join", "watch", "who", "history", "file")),
    ("This bot", ("mute", "status", "invite", "id", "unpair")),
)
EXAMPLES = {
    "chat": "/chat {agent} hello",
    "search": "/search weather",
    "agent": "/agent {agent}",
    "history": "/history 20",
    "mute": "/mute 1h",
}
NOTES_SHOWN = 5
_MINUTE_S = 60


async def start(visit: Visit, _: str = "") -> None:
    """``/start`` of somebody who is in: what to do next."""
    await welcome(visit, "Hello")


async def welcome(visit: Visit, hello: str = "You are in") -> None:
    """Three short lines."""
    called = cut(visit.incoming.sender.name, 40)
    page = Page(f"{hello}, {called}." if called else f"{hello}.")
    if not visit.may_write:
        page.line("You can read along: /chats shows the conversations you are in.")
        page.line("/agents shows who is here, /help the rest.")
        visit.say(page)
        return
    rows = await rights.agents(visit)
    agent = await rights.only_agent(visit)
    now = visit.office.store.binding(visit.place)
    if now is not None and now.mode is Mode.CHAT:
        page.line(f"Just write: {names.of_agent(visit, now.agent)} answers.")
    elif agent:
        page.line(f"Just write: {names.of_agent(visit, agent)} answers.")
    else:
        page.line("Choose whom to talk to below, then just write.")
    page.line("/agents shows who is here, /search WORDS finds others, /help the rest.")
    visit.say(page, chat_buttons(visit, rows) if len(rows) > 1 else ())


async def help_(visit: Visit, _: str) -> None:
    """What this person may do here, with examples."""
    rows = await rights.agents(visit)
    agent = next((row["name"] for row in rows), "NAME")
    page = Page()
    if visit.may_write:
        page.line("Write, and the agent answers. Reply, edit and react as in any chat; send files.")
    for title, commands in GROUPS:
        lines = [_help_line(name, agent) for name in commands if _may(visit, name)]
        if lines:
            page.line().line(bold(title))
            for line in lines:
                page.line(line)
    if visit.may_write:
        page.line().line("@name in a message asks that agent; //x sends /x to the agent.")
    visit.say(page)


def _may(visit: Visit, name: str) -> bool:
    command = COMMANDS[name]
    rebinds = name in {"chat", "new", "join", "watch", "leave"}
    return (
        RANK[visit.role] >= RANK[command.least]
        and (visit.private or not command.private)
        and (places.may_rebind(visit) or not rebinds)
    )


def _help_line(name: str, agent: str) -> str:
    command = COMMANDS[name]
    takes = f" {command.takes}" if command.takes else ""
    example = EXAMPLES.get(name, "").format(agent=agent)
    return f"/{name}{takes}: {command.about}" + (f" ({example})" if example else "")


async def status(visit: Visit, _: str) -> None:
    """How the bridge is doing; the owner is told more."""
    office = visit.office
    post, trouble = office.postman.status(), office.adapter.trouble
    info = await visit.client.call("node.info")
    page = Page(bold("The bridge is up."), f" Node: {cut(str(info.get('name') or ''), 48)}")
    if trouble is not None:
        page.line(f"Coming in: {cut(trouble.what, 200)}")
    now = office.store.binding(visit.place)
    if now is not None:
        mode = "read along in" if now.mode is Mode.WATCH else "talk to"
        page.line(f"Here you {mode} {names.of_agent(visit, now.agent) or 'a conversation'}.")
    mute = office.store.mutes.of(visit.place)
    if mute is not None:
        left = max(0.0, mute.until - office.clock())
        page.line(f"Muted for {int(left // _MINUTE_S) + 1} more minutes; /mute off ends it.")
    if post.waiting > 0:
        page.line(f"On its way out: {post.waiting}, the oldest for {post.lag_s:.0f} s.")
    here = post.gates.get(visit.place.chat)
    if here is not None:
        page.line(f"The app wants a pause in this chat: {here:.0f} s.")
    if visit.is_owner:
        others = {chat: left for chat, left in post.gates.items() if chat != visit.place.chat}
        if others:
            page.line(
                f"Paused by the app: {len(others)} chats, at most {max(others.values()):.0f} s."
            )
        odd = {
            "perhaps twice there": post.repeated,
            "perhaps not there": post.uncertain,
            "refused by the app": post.dead,
            "put aside": len(office.store.inbox.aside()),
        }
        told = "; ".join(f"{what}: {count}" for what, count in odd.items() if count)
        page.line(f"Odd so far: {told}." if told else "Everything has arrived.")
        if post.parked:
            page.line(f"Chats that do not want the bot: {len(post.parked)}.")
        people, shown = len(office.store.people.all()), len(office.store.bindings())
        page.line(f"People: {people}; places with a conversation: {shown}.")
        for note in list(office.adapter.notes)[:NOTES_SHOWN]:
            page.line(f"• {one_line(note, 200)}")
    visit.say(page)


async def id_(visit: Visit, _: str) -> None:
    what = "the owner" if visit.is_owner else f"a {visit.role.value}"
    page = Page("Your number: ", code(visit.incoming.sender.id), f", you are {what}.")
    page.line("This chat: ", code(visit.place.chat))
    if visit.place.topic:
        page.line("This topic: ", code(visit.place.topic))
    visit.say(page)


async def invite(visit: Visit, rest: str) -> None:
    """``/invite [ROLE] [here]``: a code for somebody else, to be passed on by the owner."""
    words = rest.lower().split()
    here = "here" in words
    role = next((word for word in words if word != "here"), Role.MEMBER.value)
    if role not in set(Role) or len(words) > 1 + here:
        visit.say("As what? Such as: /invite, /invite guest (reads only), /invite member here")
        return
    now = visit.office.store.binding(visit.place) if here else None
    if here and now is None:
        visit.say("No conversation is open here to invite to. /chat NAME begins one.")
        return
    store, account = visit.office.store, visit.place.account
    conversation = now.conversation if now is not None else ""
    made, offer = visit.office.pairing.offer(account, Role(role), conversation=conversation)
    await store.people.keep(offer)
    await store.people.note(visit.incoming.person, "invited", f"a {role} {conversation}")
    page = Page("A code for one ", role, ", good for ", f"{int(CODE_S // _MINUTE_S)} minutes: ")
    page.line(code(f"{made[:4]}-{made[4:]}"))
    link = visit.office.adapter.link(made)
    if link:
        page.line(f"or this link: {link}")
    page.line("They send it to me with /pair.")
    visit.say(page)


async def unpair(visit: Visit, _: str) -> None:
    """``/unpair``: asked first, because a new code is needed to come back."""
    page = Page("Leave for good? To come back you need a new code.")
    if visit.is_owner:
        page.line("You are an owner here: the notebook can always make you a new code.")
    yes, no = ("Leave", Action("unpair")), ("Stay", Action("stay"))
    visit.say(page, [[yes, no]], choice=True)


async def unpaired(visit: Visit, _: Action) -> None:
    store = visit.office.store
    await leaving.leave_all(visit.office.voices.owner, visit.incoming.person)
    visit.rewrite("You are out. A new code lets you in again.")
    visit.toast()
    await store.people.note(visit.incoming.person, "unpaired")
    # Last: from here on this person is a stranger, and a second time nothing is done at all.
    await visit.flush()
    await store.people.revoke(visit.incoming.sender.id)


async def stay(visit: Visit, _: Action) -> None:
    visit.rewrite("You stay.")
    visit.toast()
