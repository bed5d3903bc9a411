"""What can be typed: every command does its work, says what was wrong, and asks for its rights."""

from __future__ import annotations

import re
from typing import Any

import msgspec
import pytest

from aios_bots.core.commands import COMMANDS
from aios_bots.core.desk import names
from aios_bots.core.desk.desk import DOES
from aios_bots.core.desk.following import NOWHERE
from aios_bots.core.desk.refusals import HELLO, REFUSALS
from aios_bots.core.desk.rights import ID_PREFIX_MIN
from aios_bots.core.model import Hit
from aios_bots.core.pairing import Role
from aios_bots.core.policy import Reason
from aios_bots.core.store import Mode
from tests.bots.world import Person, World

READ_ONLY = REFUSALS[Reason.READ_ONLY]


async def asked(world: World, person: Person, text: str) -> str:
    """What is said to a command in a private chat, last."""
    person.says(text)
    await world.quiet()
    return world.app.texts(person.id)[-1]


def test_every_command_is_done_somewhere() -> None:
    assert set(DOES) | {"pair"} == set(COMMANDS)


async def test_start_and_help_tell_what_to_do_and_only_what_one_may(world: World) -> None:
    owner = await world.comes_in("1", Role.OWNER)
    ana, guest = await world.comes_in("5"), await world.comes_in("6", Role.GUEST)
    assert (await asked(world, ana, "/start")).startswith("Hello, Ana5.")
    helps = [await asked(world, one, "/help") for one in (owner, ana, guest)]
    for name, command in COMMANDS.items():
        if name in {"start", "help", "pair"}:
            continue
        shown = [bool(re.search(rf"/{name}\b", text)) for text in helps]
        assert shown == [True, command.least is not Role.OWNER, command.least is Role.GUEST], name
    assert (await asked(world, guest, "/start")).startswith("Hello, Ana6.\nYou can read along")


async def test_help_in_a_group_leaves_out_what_is_not_for_there(world: World) -> None:
    owner = await world.comes_in("1", Role.OWNER)
    ana = await world.comes_in("5")
    group = await world.group(owner)
    ana.says("/help@bridge", group)
    await world.quiet()
    said = world.app.texts("-9")[-1]
    assert "/who" in said
    assert "/unpair" not in said
    assert "/chat " not in said


async def test_id_says_ones_number(world: World) -> None:
    ana = await world.comes_in()
    said = await asked(world, ana, "/id")
    assert said == "Your number: 5, you are a member.\nThis chat: 5"


async def test_agents_lists_those_one_may_talk_to(world: World) -> None:
    owner = await world.comes_in("1", Role.OWNER)
    ana, bob = await world.comes_in("5"), await world.comes_in("6", agents=["parrot"])
    for person, there, not_there in (
        (owner, ["parrot", "diary", "writer"], []),
        (ana, ["parrot", "writer"], ["diary"]),
        (bob, ["parrot"], ["diary", "writer"]),
    ):
        said = await asked(world, person, "/agents")
        assert all(name in said for name in there)
        assert not any(name in said for name in not_there)


async def test_search_finds_agents_page_by_page(world: World) -> None:
    owner = await world.comes_in("1", Role.OWNER)
    assert await asked(world, owner, "/search") == (
        "Tell me what you look for, such as: /search weather"
    )
    said = await asked(world, owner, "/search says the same")
    assert "parrot: Says the same." in said
    assert (await asked(world, owner, "/search xyzzy")).startswith("Nobody for “xyzzy”")
    await asked(world, owner, "/search a")
    found = world.app.messages("1")[-1]
    if any(one.label == "More" for row in found.buttons for one in row):
        before = found.text
        owner.presses("More", found)
        await world.quiet()
        assert found.text != before


async def test_the_buttons_of_a_search_lead_on(world: World) -> None:
    ana = await world.comes_in()
    await asked(world, ana, "/search says the same")
    found = world.app.messages("5")[-1]
    ana.presses("Info parrot", found)
    await world.quiet()
    card = world.app.messages("5")[-1]
    assert "from: this node" in card.text
    ana.presses("Chat", card)
    await world.quiet()
    assert world.app.texts("5")[-1] == "You talk to parrot now. Just write."


async def test_agent_shows_a_card(world: World) -> None:
    ana = await world.comes_in()
    assert await asked(world, ana, "/agent") == "Which one? Such as: /agent calc"
    said = await asked(world, ana, "/agent parrot")
    assert said.startswith("Parrot\nSays the same.")
    assert f"id: parrot@{world.voices.node_id}" in said
    missed = await asked(world, ana, "/agent parot")
    assert missed.startswith("No agent is called parot. Did you mean parrot")
    hidden = await asked(world, ana, "/agent diary")
    assert hidden.startswith("No agent is called diary.")


async def test_chat_begins_a_conversation_with_or_without_words(world: World) -> None:
    ana = await world.comes_in()
    assert (await asked(world, ana, "/chat")).startswith("Whom do you want to talk to?")
    assert (await asked(world, ana, "/chat nobody")).startswith("No agent is called nobody.")
    assert (await asked(world, ana, "/chat diary")).startswith("No agent is called diary.")
    ana.says("/chat parrot hello there")
    await world.until(lambda: "parrot\nparrot: hello there" in world.app.texts("5"))
    assert "You talk to parrot now." in world.app.texts("5")
    assert (await asked(world, ana, f"/chat {'x' * 300}")).startswith("No agent is called xxx")
    assert len(await world.conversations()) == 1


async def test_who_was_given_one_agent_reaches_no_other(world: World) -> None:
    bob = await world.comes_in("6", agents=["parrot"])
    assert (await asked(world, bob, "/chat writer")).startswith("No agent is called writer.")
    conversation = await world.talks(bob)
    await world.owner("chat.join", conversation=conversation, who="writer")
    await world.quiet()
    assert "writer is not one of your agents" in await asked(world, bob, "@writer hello")
    assert await world.said(conversation) == []


async def test_new_begins_again_with_the_same_agent(world: World) -> None:
    ana = await world.comes_in()
    assert (await asked(world, ana, "/new")).startswith("With whom?")
    first = await world.talks(ana)
    begun = "You talk to parrot now. A new conversation: just write."
    assert await asked(world, ana, "/new") == begun
    found = world.store.binding(world.app.place("5", ""))
    assert found is not None
    assert found.conversation != first


async def test_chats_lists_ones_conversations_and_only_those(world: World) -> None:
    ana, bob = await world.comes_in("5"), await world.comes_in("6")
    assert (await asked(world, ana, "/chats")).startswith("You are in no conversation yet.")
    first = await world.talks(ana)
    ana.says("remember me")
    await world.until(lambda: len(world.app.messages("5")) == 2)
    second = await world.talks(ana)
    said = await asked(world, ana, "/chats")
    assert first in said
    assert f"nothing said yet (parrot)  ← here\n    {second}" in said
    ana.presses("2. remember me", world.app.messages("5")[-1])
    await world.quiet()
    assert world.store.bindings(first)
    assert first not in await asked(world, bob, "/chats")


async def test_join_takes_an_id_its_beginning_or_a_code(world: World) -> None:
    owner = await world.comes_in("1", Role.OWNER)
    ana = await world.comes_in("5")
    first = await world.talks(owner)
    assert "no such conversation" not in await asked(world, ana, "/join")
    for ref in (first, first[:10], "c-none"):
        said = await asked(world, ana, f"/join {ref}")
        assert said.startswith("That conversation is not there any more."), ref
    code = (await world.bridge.pair(conversation=first)).code
    assert (await asked(world, ana, f"/join {code}")).startswith("You are in")
    assert world.store.people.get("5").role is Role.MEMBER  # rights stay as they are
    assert (await asked(world, ana, f"/join {code}")).startswith("You are in")
    await world.talks(ana)
    assert (await asked(world, ana, f"/join {first[:-4]}")).startswith("You are in")
    several = [row["conversation"] for row in await world.conversations()]
    shared = first[:ID_PREFIX_MIN]  # when they were opened; the hour in which it changes is rare
    if all(one.startswith(shared) for one in several):
        assert "several of your conversations" in await asked(world, ana, f"/join {shared}")


async def test_what_happens_while_one_joins_is_not_left_out(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversation = await world.talks(await world.comes_in("6"))
    ana = await world.comes_in("5", Role.OWNER)
    read = names.page_before

    async def then_somebody_speaks(*args: Any, **more: Any) -> Any:
        found = await read(*args, **more)
        await world.owner("chat.post", conversation=conversation, text="quick", message_id="quick")
        return found

    monkeypatch.setattr(names, "page_before", then_somebody_speaks)
    ana.says(f"/join {conversation}")
    await world.until(lambda: "parrot\nparrot: quick" in world.app.texts("5"))
    assert world.app.texts("5").count("owner (notebook)\nquick") == 1


async def test_join_says_when_a_code_leads_nowhere(world: World) -> None:
    ana = await world.comes_in()
    code = (await world.bridge.pair()).code
    assert (await asked(world, ana, f"/join {code}")).startswith("That code leads to no")
    assert (await asked(world, ana, "/join 0000-0000")).startswith("That code is not good")


async def test_join_and_watch_take_the_number_in_the_list(world: World) -> None:
    ana = await world.comes_in()
    first = await world.talks(ana)
    second = await world.talks(ana, "writer")
    listed = await asked(world, ana, "/chats")
    number = listed[: listed.index(first)].count("\n") // 2
    assert (await asked(world, ana, f"/join {number}")).startswith("You are in")
    assert world.store.bindings(first)
    assert not world.store.bindings(second)
    assert (await asked(world, ana, "/join 9")).startswith("That conversation is not there")


async def test_who_history_and_file_are_about_this_conversation(world: World) -> None:
    ana = await world.comes_in()
    for command in ("/who", "/history", "/file", "/leave", "/stop"):
        assert await asked(world, ana, command) == NOWHERE
    conversation = await world.talks(ana, "painter")
    assert await asked(world, ana, "/history") == "Nothing was said here yet."
    assert await asked(world, ana, "/file") == "There is no file in this conversation."
    for picture in ("a cat", "a dog"):
        ana.says(picture)
        await world.until(lambda: bool(world.app.messages("5")[-1].files))
    who = await asked(world, ana, "/who")
    assert who.splitlines() == [
        "In this conversation",
        f"id: {conversation}",
        "• painter, agent",
        "• Ana5 (lo)",
        "• the owner of the node",
    ]
    assert await asked(world, ana, "/history 1") == "The last message\npainter: picture.txt"
    assert (await asked(world, ana, "/history 3")).startswith("The last 3 messages\npainter:")
    assert "Ana5 (lo): a cat" in await asked(world, ana, "/history")
    ana.says("/file pic")
    await world.quiet()
    assert world.app.messages("5")[-1].files == (b"a picture of a dog",)
    await asked(world, ana, "/file")
    which = world.app.messages("5")[-1]
    assert [row[0].label for row in which.buttons] == ["picture.txt", "picture.txt"]
    ana.presses(which.buttons[1][0], which)
    await world.quiet()
    assert world.app.messages("5")[-1].files == (b"a picture of a cat",)
    assert (await asked(world, ana, "/file xyz")).startswith("No file here is called xyz.")
    world.app.caps = msgspec.structs.replace(world.app.caps, file_bytes=5)
    assert await asked(world, ana, "/file pic") == "picture.txt is too large to be sent here."


async def test_leave_ends_it_and_back_undoes_that(world: World) -> None:
    ana = await world.comes_in()
    conversation = await world.talks(ana)
    assert (await asked(world, ana, "/leave")).startswith("You are out of that conversation.")
    assert not world.store.bindings()
    left = world.app.messages("5")[-1]
    # Nobody of the bridge is in it now, so only its opener, the bridge itself, sees it.
    ana.presses("Back", left)
    await world.quiet()
    assert world.app.texts("5")[-1].startswith("You are in")
    assert world.store.bindings(conversation)


async def test_mute_keeps_quiet_but_for_what_one_asks(world: World) -> None:
    ana = await world.comes_in()
    conversation = await world.talks(ana)
    assert (await asked(world, ana, "/mute soon")).startswith("For how long?")
    assert (await asked(world, ana, "/mute 0h")).startswith("For how long?")
    assert (await asked(world, ana, "/mute 1h")).startswith("Quiet here for 1 hour;")
    world.app.wipe("5")
    await world.owner("chat.post", conversation=conversation, text="noise", message_id="m1")
    ana.says("mine")
    await world.until(lambda: "parrot\nparrot: mine" in world.app.texts("5"))
    assert world.app.texts("5") == ["mine", "parrot\nparrot: mine"]
    assert "Muted for 60 more minutes" in await asked(world, ana, "/status")
    world.clock.now += 3600
    await world.bridge.showing.end_mutes()
    await world.quiet()
    assert world.app.texts("5")[-1] == (
        "🔔 2 messages while it was quiet here. /history shows them."
    )
    await world.owner("chat.post", conversation=conversation, text="loud", message_id="m2")
    await world.until(lambda: "owner (notebook)\nloud" in world.app.texts("5"))
    await asked(world, ana, "/mute 2d")
    assert await asked(world, ana, "/mute off") == "Not muted any more."


async def test_status_tells_the_owner_more(world: World) -> None:
    owner = await world.comes_in("1", Role.OWNER)
    ana = await world.comes_in("5")
    await world.talks(ana)
    said = await asked(world, ana, "/status")
    assert said.startswith("The bridge is up. Node: test\nHere you talk to parrot.")
    assert "People:" not in said
    assert "People: 2; places with a conversation: 1." in await asked(world, owner, "/status")


async def test_invite_makes_a_code_for_somebody_else(world: World) -> None:
    owner = await world.comes_in("1", Role.OWNER)
    ana = await world.comes_in("5")
    assert await asked(world, ana, "/invite") == REFUSALS[Reason.OWNER_ONLY]
    assert (await asked(world, owner, "/invite king")).startswith("As what?")
    assert (await asked(world, owner, "/invite here")).startswith("No conversation is open here")
    conversation = await world.talks(owner)
    said = await asked(world, owner, "/invite guest here")
    code = said.splitlines()[1]
    bob = world.app.person("6", "Bob")
    bob.says(f"/pair {code}")
    await world.quiet()
    assert world.store.people.get("6").role is Role.GUEST
    [binding] = [one for one in world.store.bindings(conversation) if one.place.chat == "6"]
    assert binding.mode is Mode.WATCH


async def test_unpair_asks_first_and_then_one_is_a_stranger(world: World) -> None:
    ana = await world.comes_in()
    conversation = await world.talks(ana)
    await asked(world, ana, "/unpair")
    first = world.app.messages("5")[-1]
    ana.presses("Stay", first)
    await world.quiet()
    assert first.text == "You stay."
    await asked(world, ana, "/unpair")
    second = world.app.messages("5")[-1]
    ana.presses("Leave", second)
    await world.quiet()
    assert second.text == "You are out. A new code lets you in again."
    assert not world.bridge.people()
    assert not world.store.bindings()
    assert [row["kind"] for row in await world.log(conversation)][-1] == "leave"
    assert await asked(world, ana, "hello?") == HELLO


# Guests --------------------------------------------------------------------------------------


@pytest.mark.parametrize("text", ["hello", "/chat parrot", "/new", "/join x", "/stop", "/file"])
async def test_a_guest_only_reads(world: World, text: str) -> None:
    guest = await world.comes_in("6", Role.GUEST)
    assert await asked(world, guest, text) == READ_ONLY
    assert not await world.conversations()


async def test_a_guest_reads_along_where_the_code_leads(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    owner = await world.comes_in("1", Role.OWNER)
    conversation = await world.talks(owner)
    guest = await world.comes_in("6", Role.GUEST, conversation=conversation)
    owner.says("hello")
    await world.until(lambda: "hello" in "\n".join(world.app.texts("6")))
    assert await asked(world, guest, "me too") == READ_ONLY
    assert (await asked(world, guest, "/history")).startswith("The last")
    assert [who for who, _ in await world.said(conversation)] == ["lo:77:1", "parrot"]


# Buttons -------------------------------------------------------------------------------------


async def test_a_button_is_used_once_and_by_its_person(world: World) -> None:
    owner = await world.comes_in("1", Role.OWNER)
    ana = await world.comes_in("5")
    group = await world.group(owner)
    ana.says("/agents@bridge", group)
    await world.quiet()
    listed = world.app.messages("-9")[-1]
    foreign = owner.presses("parrot", listed, group)
    await world.quiet()
    assert world.app.answers[foreign.answer_to].text == "That button is for somebody else."
    assert [one.who for one in world.bridge.tried() if "button" in one.what] == ["lo:77:1"]
    await asked(world, ana, "/agents")
    mine = world.app.messages("5")[-1]
    first, second = ana.presses("parrot", mine), ana.presses("parrot", mine)
    await world.quiet()
    assert world.app.answers[first.answer_to].text == ""
    assert world.app.answers[second.answer_to].text == "That button was used already."
    assert len([row for row in await world.conversations() if "lo:77:5" in row["members"]]) == 1


async def test_a_button_of_who_may_only_read_now_does_nothing(world: World) -> None:
    ana = await world.comes_in()
    await asked(world, ana, "/agents")
    listed = world.app.messages("5")[-1]
    ana.says(f"/pair {(await world.bridge.pair(Role.GUEST)).code}")
    await world.quiet()
    pressed = ana.presses("parrot", listed)
    await world.quiet()
    assert world.app.answers[pressed.answer_to].text == READ_ONLY
    assert not await world.conversations()


async def test_a_button_that_nobody_knows_says_so(world: World) -> None:
    ana = await world.comes_in()
    await asked(world, ana, "/agents")
    listed = world.app.messages("5")[-1]
    world.clock.now += 8 * 86_400
    await asked(world, ana, "/agents")
    pressed = ana.presses("parrot", listed)
    await world.quiet()
    assert world.app.answers[pressed.answer_to].text == (
        "That button is too old. Please ask again."
    )


# Inline --------------------------------------------------------------------------------------


async def test_words_behind_the_bots_name_find_public_agents_only(world: World) -> None:
    owner = await world.comes_in("1", Role.OWNER)
    found = {}
    for words in ("parrot", "diary", "writer", ""):
        update = owner.searches(words)
        await world.quiet()
        answer = world.app.answers[update.answer_to]
        found[words] = [one.title for one in msgspec.json.decode(answer.data, type=list[Hit])]
    assert found == {"parrot": ["parrot"], "diary": [], "writer": [], "": []}


# Too much ------------------------------------------------------------------------------------


async def test_who_writes_too_fast_is_told_once(world: World, monkeypatch) -> None:
    ana = await world.comes_in()
    conversation = await world.talks(ana)
    monkeypatch.setattr("tests.bots.world.BETWEEN_S", 0.0)
    world.clock.now += 60
    for number in range(9):
        ana.says(f"n{number}")
    await world.quiet()
    slow = [text for text in world.app.texts("5") if text.startswith("Slow down")]
    assert len(slow) == 1
    said = [text for who, text in await world.said(conversation) if who == "lo:77:5"]
    assert said == ["n0", "n1", "n2", "n3", "n4"]


async def test_a_text_that_is_too_long_is_refused(world: World) -> None:
    ana = await world.comes_in()
    conversation = await world.talks(ana)
    ana.says("x" * 9000)
    await world.quiet()
    assert world.app.texts("5")[-1] == REFUSALS[Reason.TOO_LONG]
    assert not await world.said(conversation)


async def test_a_busy_agent_is_said_to_be_busy_in_the_end(world: World) -> None:
    ana = await world.comes_in()
    await world.talks(ana, "forever")
    for number in range(7):
        ana.says(f"n{number}")
    await world.until(lambda: world.bridge.intake.held == 1)
    world.clock.now += 60
    await world.until(lambda: any("still busy" in text for text in world.app.texts("5")))
    ana.says("/stop")
    await world.quiet()
