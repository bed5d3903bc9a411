"""Talking: whom a message is for, and what has to be asked before it is passed on."""

from __future__ import annotations

from aios_bots.core.buttons import Action
from aios_bots.core.commands import said
from aios_bots.core.desk import names, places, posting, quoting, rights
from aios_bots.core.desk.finding import chat_buttons
from aios_bots.core.desk.page import Page, bold
from aios_bots.core.desk.visit import Visit, cut
from aios_bots.core.model import Incoming
from aios_bots.core.store import Binding, Mode
from aios_nb.errors import InvalidParams, NoSuchAgent

OLD_S = 900.0
"""What is older was written to a bridge that was away: its writer may not want it any more."""
QUOTED_CHARS = 60
_MINUTE_S, _HOUR_S = 60, 3600


# Commands --------------------------------------------------------------------------------------


async def chat(visit: Visit, rest: str) -> None:
    """``/chat NAME [TEXT]``: a new conversation with that agent, and the first words in it."""
    name, text = quoting.named(rest)
    if not name:
        await suggest(visit, "Whom do you want to talk to? Choose one, or write /chat and a name.")
        return
    if not places.may_rebind(visit):
        visit.say("Only the owner says whom this group talks to.")
        return
    has_words = bool(text or visit.incoming.files)
    binding = await _begin(visit, rights.meant(visit, name), "" if has_words else " Just write.")
    if has_words:
        await visit.flush()  # before the answer
        await message(visit, visit.incoming, binding)


async def chat_by_button(visit: Visit, action: Action) -> None:
    if not places.may_rebind(visit):
        visit.toast("Only the owner says whom this group talks to.")
        return
    await _begin(visit, rights.meant(visit, action.agent))
    visit.toast()


async def new(visit: Visit, _: str) -> None:
    """``/new``: the same agent, nothing said yet."""
    if not places.may_rebind(visit):
        visit.say("Only the owner begins a new conversation in this group.")
        return
    now = visit.office.store.binding(visit.place)
    agent = now.agent if now is not None and rights.reaches(visit, now.agent) else ""
    agent = agent or await rights.only_agent(visit)
    if not agent:
        await suggest(visit, "With whom? Choose one, or /chat NAME.")
        return
    await _begin(visit, agent, " A new conversation: just write.")


async def _begin(visit: Visit, ref: str, next_: str = " Just write.") -> Binding:
    was_off = not visit.private and visit.office.store.binding(visit.place) is None
    binding = await places.open_with(visit, ref)
    if was_off:
        detail = f"group {visit.place.chat}, {binding.agent}"
        await visit.office.store.people.note(visit.incoming.person, "group enabled", detail)
    page = Page("You talk to ", bold(names.of_agent(visit, binding.agent)), " now.", next_)
    if not visit.private:
        called = visit.office.adapter.name
        page = Page("This group talks to ", bold(names.of_agent(visit, binding.agent)), " now. ")
        page.line(
            f"Mention me{f' (@{called})' if called else ''} or reply to me, and I pass it on."
        )
    visit.say(page)
    return binding


async def suggest(visit: Visit, line: str) -> None:
    """A hint, with buttons for whom there is."""
    rows = await rights.agents(visit)
    visit.say(
        line if rows else "No agent is here yet. /search WORDS looks further.",
        chat_buttons(visit, rows),
    )


# Messages --------------------------------------------------------------------------------------


async def said_here(visit: Visit, _: str = "") -> None:
    """A message in this place, whatever that means there."""
    incoming = visit.incoming
    binding = await _where(visit, incoming)
    if binding is None:
        binding = await _somewhere(visit)
    if binding is not None:
        await message(visit, incoming, binding)


async def message(visit: Visit, incoming: Incoming, binding: Binding) -> None:
    """Pass a message on; an old one, or one to a conversation that is only read, is asked about."""
    age = visit.office.clock() - incoming.at
    # What is known by now was said before a crash: it only has to be seen to its end.
    said_before = visit.office.store.event_of(visit.place.chat, incoming.msg_id) is not None
    if age > OLD_S and not said_before:
        page = Page(f"You wrote this {_ago(age)} ago, while I was away: ", f"“{_short(incoming)}”")
        page.line("Send it now?")
        _hold(visit, incoming, page, "send", "Send", binding)
        return
    if binding.mode is Mode.WATCH:
        page = Page(
            "You only read along here. Say this in the conversation, and take part from now on?"
        )
        _hold(visit, incoming, page, "step in", "Step in", binding)
        return
    await posting.post(visit, incoming, binding)


def _hold(
    visit: Visit, incoming: Incoming, page: Page, do: str, label: str, binding: Binding
) -> None:
    talk = binding.conversation
    visit.say(
        page,
        [
            [
                (label, Action(do, conversation=talk, agent=binding.agent, held=incoming)),
                ("Drop it", Action("drop", held=incoming)),
            ]
        ],
        choice=True,
        reply_to=incoming.msg_id,
    )


async def send_held(visit: Visit, action: Action) -> None:
    """Yes, an old message is still meant."""
    held = action.held
    if held is None or _not_theirs(visit, action.conversation):
        return
    await posting.post(visit, held, await _there(visit, action.conversation, action.agent))
    visit.rewrite("Sent.")
    visit.toast("Sent.")


async def step_in(visit: Visit, action: Action) -> None:
    """Yes, who watched takes part now."""
    if action.held is None or _not_theirs(visit, action.conversation):
        return
    row = await rights.conversation(visit, action.conversation)
    binding = await places.bind(visit, row["conversation"], action.agent)
    await posting.post(visit, action.held, binding)
    visit.rewrite("You take part in this conversation now; /leave ends that.")
    visit.toast("Sent.")


def _not_theirs(visit: Visit, conversation: str) -> bool:
    """In a group a button of a member does not change what the group shows."""
    now = visit.office.store.binding(visit.place)
    same = now is not None and (now.conversation, now.mode) == (conversation, Mode.CHAT)
    if same or places.may_rebind(visit):
        return False
    visit.toast("Only the owner says what this group shows.")
    return True


async def drop_held(visit: Visit, _: Action) -> None:
    visit.rewrite("Dropped: nobody saw it.")
    visit.toast("Dropped.")


async def pass_on(visit: Visit, action: Action) -> None:
    """Yes, a command that is none of ours is for the agent."""
    if action.held is None:
        return
    binding = await _where(visit, action.held) or await _somewhere(visit)
    if binding is None:
        visit.toast()
        return
    if binding.mode is Mode.WATCH:
        visit.rewrite("You only read along here: /join it to take part.")
    else:
        await posting.post(visit, action.held, binding)
        visit.rewrite("Passed on.")
    visit.toast()


async def _where(visit: Visit, incoming: Incoming) -> Binding | None:
    """The conversation that is meant: that of the message replied to, else the one shown here."""
    store = visit.office.store
    now = store.binding(visit.place)
    replied = store.event_of(visit.place.chat, incoming.reply_to) if incoming.reply_to else None
    if replied is None or (now is not None and now.conversation == replied.conversation):
        return now
    if not visit.private:
        return now
    try:
        return await _there(visit, replied.conversation)
    except InvalidParams:
        return now


async def _there(visit: Visit, conversation: str, agent: str = "") -> Binding:
    """A conversation that was shown here: if another is now, the place goes back to it."""
    now = visit.office.store.binding(visit.place)
    if now is not None and now.conversation == conversation:
        return now
    back = await places.back_to(visit, conversation, agent)
    visit.say(
        Page("You are back in the conversation with ", bold(_name(visit, back)), "."),
        name="back",
    )
    await visit.flush()  # before the answer
    return back


def _name(visit: Visit, binding: Binding) -> str:
    return names.of_agent(visit, binding.agent) or "others"


async def _somewhere(visit: Visit) -> Binding | None:
    """Where no conversation is shown yet: with the one agent that can be meant, or none."""
    agent = "" if visit.private else await places.agent_of_chat(visit)
    agent = agent or await rights.only_agent(visit)
    if not agent:
        await suggest(visit, "Whom is that for? Choose one, then write again; or /chat NAME.")
        return None
    try:
        return await places.open_with(visit, agent)
    except NoSuchAgent:
        await suggest(
            visit, f"{cut(agent, 60)} is not there now. Choose another, or /search WORDS."
        )
        return None


async def unknown(visit: Visit, name: str) -> None:
    """A command that is not ours may be meant for the agent."""
    if not visit.incoming.addressed and not visit.private:
        return
    visit.say(
        f"I do not know /{cut(name, 32)}. Pass it on to the agent? (/help lists what I know)",
        [[("Pass it on", Action("pass on", held=visit.incoming)), ("No", Action("drop"))]],
        choice=True,
    )


def _short(incoming: Incoming) -> str:
    command = said(incoming.text)
    text = incoming.text if command is None else command.rest or incoming.text
    return cut(text, QUOTED_CHARS) or "a file"


def _ago(seconds: float) -> str:
    if seconds < 2 * _HOUR_S:
        return f"{int(seconds // _MINUTE_S)} minutes"
    return f"{int(seconds // _HOUR_S)} hours"
