"""Groups: the owner lets the bot in, and it hears only who means it."""

from __future__ import annotations

import pytest

from aios_bots.core.desk.refusals import REFUSALS
from aios_bots.core.model import Place
from aios_bots.core.pairing import Role
from aios_bots.core.policy import Reason
from tests.bots.world import World


async def test_a_group_is_silent_until_the_owner_lets_the_bot_in(world: World) -> None:
    owner = await world.comes_in("1", Role.OWNER)
    ana = await world.comes_in("5")
    group = world.app.group("-9")
    ana.says("@bridge hello", group)
    ana.says("/chat@bridge parrot", group)
    await world.quiet()
    assert len(world.app.messages("-9")) == 2
    owner.says("/chat@bridge parrot", group)
    await world.quiet()
    said = world.app.messages("-9")[-1]
    assert said.text.startswith("This group talks to parrot now.")
    assert said.reply_to == world.app.messages("-9")[-2].id
    assert "group enabled" in [line.what for line in world.bridge.tried()]


async def test_only_who_means_the_bot_is_heard(world: World) -> None:
    owner = await world.comes_in("1", Role.OWNER)
    ana = await world.comes_in("5")
    group = await world.group(owner)
    conversation = world.store.bindings()[0].conversation
    ana.says("just among us", group)
    ana.says("/who", group)
    told = ana.says("@bridge hello", group)
    await world.until(lambda: "parrot\nparrot: hello" in world.app.texts("-9"))
    answer = world.app.messages("-9")[-1]
    assert answer.reply_to == told.msg_id
    ana.says("more", group, reply_to=answer.id)
    await world.until(lambda: "parrot\nparrot: more" in world.app.texts("-9"))
    said = [text for who, text in await world.said(conversation) if who == "lo:77:5"]
    assert said == ["hello", "more"]


async def test_a_stranger_in_a_group_is_nobody(world: World) -> None:
    owner = await world.comes_in("1", Role.OWNER)
    group = await world.group(owner)
    conversation = world.store.bindings()[0].conversation
    eve = world.app.person("6")
    eve.says("@bridge let me", group)
    eve.says("/leave@bridge", group)
    await world.quiet()
    assert len(world.app.messages("-9")) == 2
    assert not await world.said(conversation)
    assert [one.what for one in world.bridge.tried() if one.who == "lo:77:6"] == ["stranger"] * 2


async def test_only_the_owner_says_what_a_group_shows(world: World) -> None:
    owner = await world.comes_in("1", Role.OWNER)
    ana = await world.comes_in("5")
    group = await world.group(owner)
    [before] = world.store.bindings()
    for command in ("/chat@bridge host", "/new@bridge", "/leave@bridge", "/join@bridge x"):
        ana.says(command, group)
        await world.quiet()
        assert world.app.texts("-9")[-1].startswith("Only the owner"), command
    assert [one.conversation for one in world.store.bindings()] == [before.conversation]
    ana.says("/unpair@bridge", group)
    await world.quiet()
    assert world.app.texts("-9")[-1] == REFUSALS[Reason.PRIVATE_ONLY]


async def test_topics_are_conversations_of_their_own(world: World) -> None:
    owner = await world.comes_in("1", Role.OWNER)
    group = await world.group(owner)
    owner.says("@bridge in one", group, topic="t1")
    owner.says("@bridge in two", group, topic="t2")
    await world.until(lambda: "parrot\nparrot: in one" in world.app.texts("-9", "t1"))
    await world.until(lambda: "parrot\nparrot: in two" in world.app.texts("-9", "t2"))
    found = {one.place: one.conversation for one in world.store.bindings()}
    assert len(set(found.values())) == 3
    assert [text for _, text in await world.said(found[Place("77", "-9", "t1")])] == [
        "in one",
        "parrot: in one",
    ]
    assert not any("in two" in text for text in world.app.texts("-9", "t1"))
    assert world.app.texts("-9", "") == []


async def test_two_topics_of_one_conversation_see_each_other(world: World) -> None:
    owner = await world.comes_in("1", Role.OWNER)
    group = await world.group(owner)
    [binding] = world.store.bindings()
    owner.says(f"/join@bridge {binding.conversation}", group, topic="t1")
    await world.quiet()
    world.app.wipe("-9")
    told = owner.says("@bridge hello", group, topic="t1")
    await world.until(lambda: "parrot\nparrot: hello" in world.app.texts("-9", "t1"))
    await world.until(lambda: "parrot\nparrot: hello" in world.app.texts("-9", ""))
    assert world.app.texts("-9", "t1") == ["@bridge hello", "parrot\nparrot: hello"]
    assert world.app.texts("-9", "") == ["Ana1 (lo)\nhello", "parrot\nparrot: hello"]
    assert world.app.messages("-9", "t1")[1].reply_to == told.msg_id


async def test_a_group_that_the_owner_leaves_is_silent_again(world: World) -> None:
    owner = await world.comes_in("1", Role.OWNER)
    ana = await world.comes_in("5")
    group = await world.group(owner)
    owner.says("/leave@bridge", group)
    await world.quiet()
    before = len(world.app.messages("-9"))
    ana.says("@bridge hello", group)
    await world.quiet()
    assert len(world.app.messages("-9")) == before + 1


async def test_a_bot_that_was_removed_waits_and_goes_on_when_it_is_back(world: World) -> None:
    owner = await world.comes_in("1", Role.OWNER)
    group = await world.group(owner)
    [binding] = world.store.bindings()
    owner.removes(group)
    await world.quiet()
    await world.owner(
        "chat.post", conversation=binding.conversation, text="missed", message_id="m1"
    )
    assert list(world.bridge.status().post.parked) == ["-9"]
    await world.again()
    assert world.app.texts("-9") == []
    owner.adds(group)
    await world.until(lambda: "owner (notebook)\nmissed" in world.app.texts("-9"))
    assert not world.bridge.status().post.parked


async def test_who_speaks_to_a_bot_that_was_blocked_has_let_it_in(world: World) -> None:
    ana = await world.comes_in()
    conversation = await world.talks(ana)
    world.app.close_chat("5")
    await world.owner("chat.post", conversation=conversation, text="one", message_id="m1")
    await world.until(lambda: bool(world.bridge.status().post.parked))
    world.app.close_chat("5", closed=False)
    ana.says("here again")
    await world.until(lambda: "parrot\nparrot: here again" in world.app.texts("5"))
    await world.until(lambda: "owner (notebook)\none" in world.app.texts("5"))
    assert len(world.app.texts("5")) == len(set(world.app.texts("5")))


async def test_a_group_that_gets_another_id_is_the_same_group(world: World) -> None:
    owner = await world.comes_in("1", Role.OWNER)
    group = await world.group(owner)
    [binding] = world.store.bindings()
    owner.says("@bridge before", group)
    await world.until(lambda: "parrot\nparrot: before" in world.app.texts("-9"))
    await world.quiet()
    world.app.move("-9", "-100")
    await world.owner("chat.post", conversation=binding.conversation, text="moved", message_id="m1")
    await world.until(lambda: "parrot\nparrot: moved" in world.app.texts("-100"))
    owner.says("@bridge after", group)
    await world.until(lambda: "parrot\nparrot: after" in world.app.texts("-100"))
    assert [one.place.chat for one in world.store.bindings()] == ["-100"]
    texts = world.app.texts("-100")
    assert len(texts) == len(set(texts))


@pytest.mark.parametrize("told", [False, True])
async def test_a_reply_that_is_being_written_when_its_group_moves_is_one_message(
    world: World, told: bool
) -> None:
    owner = await world.comes_in("1", Role.OWNER)
    group = await world.group(owner, agent="writer")
    owner.says("@bridge write", group)
    world.stage.write("The beginning of a text that goes on ")
    await world.until(lambda: any("beginning" in text for text in world.app.texts("-9")))
    await world.quiet()
    world.app.move("-9", "-100", tell=owner if told else None)
    await world.quiet()
    world.stage.write("and on.", None)
    whole = "writer\nThe beginning of a text that goes on and on."
    await world.until(lambda: whole in world.app.texts("-100"))
    await world.quiet()
    assert [text for text in world.app.texts("-100") if "beginning" in text] == [whole]


async def test_a_move_that_the_app_tells_by_itself_takes_everything_along(world: World) -> None:
    owner = await world.comes_in("1", Role.OWNER)
    group = await world.group(owner)
    world.app.move("-9", "-100", tell=owner)
    await world.quiet()
    owner.says("@bridge after", group)
    await world.until(lambda: "parrot\nparrot: after" in world.app.texts("-100"))
