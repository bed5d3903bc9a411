"""Who is taken out of a conversation, or put out altogether, reads and writes there no more."""

from __future__ import annotations

import pytest

from aios_bots.adapters.loopback import Person
from aios_bots.core.box import Box, Word
from aios_bots.core.pairing import Role
from aios_bots.core.showing import TAKEN_OUT
from aios_bots.core.store import Binding
from tests.bots.world import World

ANA = "lo:77:5"
GONE = "That conversation is not there any more. /chats lists yours, /chat NAME begins one."


async def _members(world: World, conversation: str) -> list[str]:
    found: list[str] = (await world.owner("chat.history", conversation=conversation))["members"]
    return found


async def _both(world: World, role: Role = Role.MEMBER) -> tuple[Person, Person, str]:
    """The owner and Ana on the phone, in a conversation of the notebook."""
    conversation = (await world.owner("chat.open", agents=["parrot"]))["conversation"]
    owner = await world.comes_in("1", Role.OWNER, conversation=conversation)
    ana = await world.comes_in("5", role, conversation=conversation)
    await world.quiet()
    world.app.wipe("1")
    return owner, ana, conversation


def _shows(world: World, chat: str) -> str:
    found = world.store.binding(world.app.place(chat, ""))
    return found.conversation if found is not None else ""


# Taken out by the owner of the node -----------------------------------------------------------


@pytest.mark.parametrize("role", [Role.MEMBER, Role.GUEST])
async def test_who_is_taken_out_is_told_and_reads_nothing_more(world: World, role: Role) -> None:
    owner, ana, conversation = await _both(world, role)
    await world.owner("chat.leave", conversation=conversation, who=ANA)
    await world.shows("5", TAKEN_OUT)
    assert not _shows(world, "5")
    owner.says("a secret")
    await world.until(lambda: world.is_shown("1", "parrot: a secret"))
    ana.says("/history")
    await world.quiet()
    await world.again()
    await world.quiet()
    assert not world.is_shown("5", "secret")
    assert _shows(world, "1") == conversation


async def test_who_is_taken_out_while_the_bridge_is_down_is_told_by_the_next(world: World) -> None:
    _, _, conversation = await _both(world)
    await world.crash()
    await world.owner("chat.leave", conversation=conversation, who=ANA)
    await world.owner("chat.post", conversation=conversation, text="a secret")
    await world.start()
    await world.shows("5", TAKEN_OUT)
    assert not _shows(world, "5")


async def test_who_was_taken_out_and_brought_in_again_is_in(world: World) -> None:
    _, ana, conversation = await _both(world)
    await world.crash()
    await world.owner("chat.leave", conversation=conversation, who=ANA)
    await world.owner("chat.join", conversation=conversation, who=ANA)
    await world.start()
    ana.says("hello")
    await world.until(lambda: world.is_shown("5", "parrot: hello"))
    assert TAKEN_OUT not in world.app.texts("5")


async def test_who_was_taken_out_writes_changes_and_reads_nothing(world: World) -> None:
    # In one that she opened: nobody of the bridge is in it, so that the bridge is not even told.
    ana = await world.comes_in("5")
    conversation = await world.talks(ana)
    mine = ana.says("hello")
    _, answer = await world.shows("5", "hello", "parrot\nparrot: hello")
    await world.owner("chat.leave", conversation=conversation, who=ANA)
    before = await world.log(conversation)
    ana.edits(mine.msg_id, "changed")
    ana.reacts(answer.id, "👍")
    await world.quiet()
    world.app.wipe("5")
    for text in ("still here?", "/history", "/file"):
        await world.store.bind(Binding(world.app.place("5", ""), conversation))
        ana.says(text)
        await world.quiet()
        assert world.app.texts("5")[-1] == GONE
        assert not _shows(world, "5")
    assert await world.log(conversation) == before


async def test_a_way_back_that_was_given_before_does_not_lead_back(world: World) -> None:
    _, ana, conversation = await _both(world)
    ana.says("/leave")
    await world.quiet()
    left = world.app.messages("5")[-1]
    await world.owner("chat.join", conversation=conversation, who=ANA)
    await world.owner("chat.leave", conversation=conversation, who=ANA)
    ana.presses("Back", left)
    await world.quiet()
    assert ANA not in await _members(world, conversation)
    assert not _shows(world, "5")


async def test_who_leaves_is_not_told_to_be_taken_out(world: World) -> None:
    _, ana, conversation = await _both(world)
    ana.says("/leave")
    await world.until(lambda: world.app.texts("1") == ["Ana5 (lo) left"])
    await world.quiet()
    assert not world.is_shown("5", TAKEN_OUT)
    assert ANA not in await _members(world, conversation)


# Guests ---------------------------------------------------------------------------------------


async def test_a_guest_is_seen_to_read_along_and_to_leave(world: World) -> None:
    conversation = await world.talks(await world.comes_in("1", Role.OWNER))
    guest = world.app.person("5", "Bob")
    guest.says(f"/pair {(await world.bridge.pair(Role.GUEST, conversation=conversation)).code}")
    await world.shows("1", "Bob (lo) joined")
    assert ANA in await _members(world, conversation)
    guest.says("/chats")
    await world.quiet()
    assert conversation in world.app.texts("5")[-1]
    guest.says("/leave")
    await world.shows("1", "Bob (lo) joined", "Bob (lo) left")
    assert ANA not in await _members(world, conversation)


# Put out --------------------------------------------------------------------------------------


@pytest.mark.parametrize("role", [Role.MEMBER, Role.GUEST])
@pytest.mark.parametrize("how", ["by the owner", "in the box", "by themselves"])
async def test_who_was_put_out_finds_no_old_conversation_later(
    world: World, how: str, role: Role
) -> None:
    owner, ana, conversation = await _both(world, role)
    own = await world.talks(ana) if role is Role.MEMBER else conversation
    if how == "by themselves":
        ana.says("/unpair")
        await world.quiet()
        ana.presses("Leave", world.app.messages("5")[-1])
    elif how == "in the box":
        Box(world.folder / "box").put(Word(revoke="5"))
        owner.says("/id")
    else:
        await world.bridge.revoke("5")
    await world.quiet()
    for one in (conversation, own):
        assert ANA not in await _members(world, one)
    assert not world.is_shown("5", TAKEN_OUT)
    ana = await world.comes_in("5")
    ana.says("/chats")
    await world.quiet()
    assert world.app.texts("5")[-1].startswith("You are in no conversation yet.")


async def test_who_is_put_out_without_the_node_is_taken_out_when_it_is_back(world: World) -> None:
    _, ana, conversation = await _both(world)
    await world.node_ends()
    box = Box(world.folder / "box")
    box.put(Word(revoke="5"))
    box.put(Word(stop=True))
    assert not await world.bridge.listen()
    assert world.store.people.get("5") is None
    assert world.bridge.asked_to_stop.is_set()
    await world.crash()
    await world.start(waits=False)
    await world.node_begins()
    await world.until(world.bridge.showing.following.is_set)
    ana.says("hello?")
    await world.quiet()
    assert ANA not in await _members(world, conversation)
    assert not box.news()
