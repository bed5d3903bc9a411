"""Several people and places at one node: nobody gets what is another's, nothing goes astray."""

from __future__ import annotations

import asyncio

import pytest

from aios_bots.core.desk.visit import Visit
from aios_bots.core.pairing import Role
from aios_bots.core.steps import Steps
from aios_nb.agents.definition import describe
from aios_nb.errors import NoSuchAgent, Unreachable
from tests.bots.world import World
from tests.sites import TestSite


async def test_a_place_that_switches_while_it_catches_up_shows_the_new_one(world: World) -> None:
    ana = await world.comes_in()
    old = await world.talks(ana)
    await world.crash()
    said = await world.owner("chat.post", conversation=old, text="first")
    for _ in range(60):
        await world.owner(
            "chat.react", conversation=old, message_id=said["message_id"], reaction="x"
        )
    await world.start(waits=False)
    ana.says("/chat parrot")
    await world.until(lambda: "You talk to parrot now. Just write." in world.app.texts("5"))
    await world.quiet()
    bound = world.store.binding(world.app.place("5", ""))
    assert bound is not None
    assert bound.conversation != old
    assert bound.last_seq < 10
    ana.says("hello")
    await world.until(lambda: world.app.texts("5")[-1] == "parrot\nparrot: hello")


async def test_what_was_asked_before_a_kill_is_asked_after_it(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    ana = await world.comes_in()
    await world.talks(ana)
    ana.says("one")
    await world.until(lambda: world.app.texts("5")[-1] == "parrot\nparrot: one")
    first = world.app.messages("5")[-1]
    await world.talks(ana, "weigher")
    flush, flushed, stuck = Visit.flush, [], asyncio.Event()

    async def second_never(self: Visit) -> None:
        flushed.append(self)
        if len(flushed) == 2:
            stuck.set()
            await asyncio.get_running_loop().create_future()
        await flush(self)

    monkeypatch.setattr(Visit, "flush", second_never)
    ana.says("late words", reply_to=first.id, ago_s=2000)
    await stuck.wait()
    monkeypatch.setattr(Visit, "flush", flush)
    await world.again()
    await world.quiet()
    assert "Send it now?" in world.app.texts("5")[-1]


async def test_a_conversation_that_is_being_opened_is_nobody_elses(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    ana, ben = await world.comes_in("5"), await world.comes_in("6")
    keep, opened, go_on = Steps.keep, asyncio.Event(), asyncio.Event()

    async def slowly(self: Steps, key: str, result: str = "") -> None:
        if result and not go_on.is_set():
            opened.set()
            await go_on.wait()
        await keep(self, key, result)

    monkeypatch.setattr(Steps, "keep", slowly)
    update = ben.says("/chat parrot")
    await opened.wait()
    # Ana's was begun before a crash.
    await keep(world.store.steps, f"lo:77:{update.update_id + 1}:open")
    ana.says("/chat parrot")
    await world.until(lambda: world.bridge.intake.held == 2)
    for _ in range(20):  # it has had every chance to take the wrong one
        await asyncio.sleep(0.005)
    go_on.set()
    await world.quiet()
    talks = [world.store.binding(world.app.place(chat, "")) for chat in ("5", "6")]
    assert len({talk.conversation for talk in talks if talk is not None}) == 2


async def test_a_group_does_not_read_the_owners_conversations(world: World) -> None:
    owner = await world.comes_in("1", Role.OWNER)
    conversation = (await world.owner("chat.open", agents=["diary"]))["conversation"]
    await world.owner("chat.post", conversation=conversation, text="dear diary")
    group = await world.group(owner)
    for command in ("/chats", "/join", "/watch"):
        owner.says(f"{command}@{world.app.name}", group)
        await world.quiet()
        assert world.app.texts(group.chat)[-1] == "Please say that to me in a private chat."
    guest = await world.comes_in("5", Role.GUEST)
    guest.says(f"/mute@{world.app.name} 7d", group)
    await world.quiet()
    assert world.store.mutes.of(world.app.place(group.chat, "")) is None


async def test_a_members_button_does_not_change_what_a_group_shows(world: World) -> None:
    owner, ana = await world.comes_in("1", Role.OWNER), await world.comes_in("5")
    group = await world.group(owner)
    ana.says(f"@{world.app.name} old words", group, ago_s=2000)
    await world.quiet()
    held = world.app.messages(group.chat)[-1]
    owner.says(f"/chat@{world.app.name} weigher", group)
    await world.quiet()
    shown = world.store.binding(world.app.place(group.chat, ""))
    ana.presses("Send", held, group)
    await world.quiet()
    assert world.store.binding(world.app.place(group.chat, "")) == shown


async def test_a_name_of_a_person_is_not_looked_for_in_the_network(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    ana = await world.comes_in()
    await world.talks(ana)
    asked: list[str] = []
    call = world.voices.others.call

    async def noted(method: str, /, **params: object) -> object:
        asked.append(method)
        return await call(method, **params)

    monkeypatch.setattr(world.voices.others, "call", noted)
    ana.says("@bob can you look at this?")
    await world.until(lambda: world.app.texts("5")[-1].startswith("parrot\nparrot: @bob can"))
    assert "chat.post" in asked
    assert "chat.send" not in asked


async def test_a_stranger_gets_one_line_however_often_they_try(world: World) -> None:
    stranger = world.app.person("9", "S")
    for _ in range(30):
        stranger.says("/pair")
        stranger.says("/start")
    await world.quiet()
    assert len([one for one in world.app.messages("9") if one.sender == "77"]) == 1
    for number in range(30):
        stranger.says(f"/pair ABCD-EF{number:02}")
    await world.quiet()
    lines = [line for line in world.bridge.tried(100) if line.what == "code not heard"]
    assert len(lines) <= 1


async def test_who_has_certain_agents_does_not_reach_others_of_the_same_name(world: World) -> None:
    async def parrot(text: str) -> str:
        """Says the same, elsewhere."""
        return f"elsewhere: {text}"

    there = describe(parrot, access="network")
    home = world.folder / "home"
    other = await asyncio.to_thread(TestSite, home, [there], name="other")
    try:
        conversation = await opened(world, f"parrot@{other.node.node_id}")
        ana = await world.comes_in("5", agents=("parrot",), conversation=conversation)
        for text in ("hi", "@parrot hi"):
            ana.says(text)
            await world.quiet()
            assert "parrot" in world.app.texts("5")[-1]  # is refused
        assert await world.said(conversation) == []
    finally:
        await asyncio.to_thread(other.stop)


async def opened(world: World, agent: str) -> str:
    """A conversation with an agent of a node that has just come up."""
    while True:
        try:
            return str((await world.owner("chat.open", agents=[agent]))["conversation"])
        except (NoSuchAgent, Unreachable):
            await asyncio.sleep(0.02)
