"""A bridge as a whole: how it starts, waits, gives up, and ends."""

from __future__ import annotations

import asyncio

import pytest

from aios_bots.adapters.loopback import Loopback
from aios_bots.core import intake, showing
from aios_bots.core.adapter import Flooded, Take, Trouble
from aios_bots.core.box import Box
from aios_bots.core.bridge import Bridge
from aios_bots.core.desk import talking
from aios_bots.core.inbox import TRIES_MAX
from aios_bots.core.model import Op
from aios_bots.core.pairing import Role
from aios_bots.core.store import BotStore
from aios_nb.errors import Busy, UsageError
from tests.bots.world import World


@pytest.fixture(autouse=True)
def _short_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(intake, "PAUSE_S", (0.005, 0.05))
    monkeypatch.setattr(showing, "PAUSE_S", (0.005, 0.05))


class Broken(Loopback):
    """An app that is broken in one place."""

    def __init__(self, *, opening: Exception | None = None, taking: Exception | None = None):
        super().__init__("88")
        self._opening, self._taking = opening, taking

    async def open(self) -> None:
        if self._opening is not None:
            raise self._opening

    async def intake(self, take: Take) -> None:
        if self._taking is not None:
            raise self._taking
        await super().intake(take)


@pytest.mark.parametrize("where", ["opening", "taking"])
async def test_what_will_not_pass_ends_it_with_one_line(world: World, where: str) -> None:
    app = Broken(**{where: UsageError("that token is not known")})
    store = BotStore.open(world.folder / "other.db", "88")
    bridge = Bridge(app, store, world.voices, Box(world.folder / "other"))
    with pytest.raises(UsageError, match="that token is not known"):
        await bridge.run()
    assert bridge.status().state.startswith("that token is not known")
    await store.close()


async def test_a_bug_of_ours_is_not_hidden(world: World) -> None:
    app = Broken(taking=KeyError("a bug"))
    store = BotStore.open(world.folder / "other.db", "88")
    bridge = Bridge(app, store, world.voices, Box(world.folder / "other"))
    with pytest.raises(ExceptionGroup):
        await bridge.run()
    assert "a bug" in bridge.status().state
    await store.close()


async def test_its_status_says_how_it_is_doing(world: World) -> None:
    assert world.bridge.status().state == "running"
    ana = await world.comes_in()
    await world.talks(ana)
    status = world.bridge.status()
    assert (status.people, status.places, status.waiting_in) == (1, 1, 0)
    assert status.trouble == ""
    world.app.trouble = Trouble("no network", world.clock())
    assert world.bridge.status().trouble == "no network"
    world.end()
    await world.until(lambda: world.ended)
    assert world.bridge.status().state == "stopped"


async def test_a_stop_lets_go_out_what_is_on_its_way(world: World) -> None:
    ana = await world.comes_in()
    await world.talks(ana)
    with world.app.held(chat="5", op=Op.SEND) as held:
        ana.says("/id")
        await held.reached.wait()
        stopping = asyncio.create_task(world.bridge.stop())
    await stopping
    await world.crash()
    assert world.app.texts("5")[-1].startswith("Your number: 5")
    await world.start()
    await world.quiet()
    assert len(world.app.texts("5")) == 2


async def test_while_the_node_is_away_everything_waits_and_then_goes_on(world: World) -> None:
    ana = await world.comes_in()
    conversation = await world.talks(ana)
    await world.node_ends()
    ana.says("are you there?")
    await world.until(lambda: bool(world.bridge.intake.away))
    assert world.bridge.status().trouble
    assert world.app.texts("5") == ["are you there?"]
    await world.node_begins()
    await world.until(lambda: "parrot\nparrot: are you there?" in world.app.texts("5"))
    await world.quiet()
    assert len(await world.said(conversation)) == 2
    assert len(world.app.texts("5")) == 2
    assert world.bridge.status().trouble == ""


async def test_a_reply_that_the_end_of_the_node_cut_off_is_said_to_be(world: World) -> None:
    ana = await world.comes_in()
    await world.talks(ana, "writer")
    ana.says("write")
    world.stage.write("The first words of a text that nobody will end ")
    await world.until(lambda: world.is_shown("5", "first words"))
    await world.node_ends()
    await world.node_begins()
    await world.until(lambda: world.is_shown("5", "⚠️ writer was interrupted"))
    ana.says("again")
    world.stage.write("Here it is.", None)
    await world.until(lambda: "writer\nHere it is." in world.app.texts("5"))


async def test_a_bridge_that_starts_before_its_node_waits_for_it(world: World) -> None:
    ana = await world.comes_in()
    await world.talks(ana)
    await world.node_ends()
    await world.crash()
    ana.says("early")
    await world.start(waits=False)
    await world.until(lambda: bool(world.bridge.intake.away))
    await world.node_begins()
    await world.until(lambda: "parrot\nparrot: early" in world.app.texts("5"))


async def test_what_the_notebook_said_while_the_bridge_was_down_is_shown(world: World) -> None:
    ana = await world.comes_in()
    conversation = await world.talks(ana)
    await world.crash()
    for number in range(3):
        await world.owner(
            "chat.post", conversation=conversation, text=f"n{number}", message_id=f"m{number}"
        )
    await world.start()
    await world.until(lambda: len(world.app.messages("5")) == 6)
    shown = [text for text in world.app.texts("5") if text.startswith("owner")]
    assert shown == [f"owner (notebook)\nn{number}" for number in range(3)]


async def test_an_update_that_cannot_be_read_is_put_aside_at_once(world: World) -> None:
    ana = await world.comes_in()
    await world.talks(ana)
    world.app.hands_over(9999, "{nonsense")
    ana.says("hello")
    await world.until(lambda: "parrot\nparrot: hello" in world.app.texts("5"))
    assert [one.update_id for one in world.store.inbox.aside()] == [9999]
    assert "put aside" in [line.what for line in world.bridge.tried()]
    assert world.bridge.status().aside == 1


async def test_an_update_that_always_fails_is_tried_three_times_and_blocks_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    ana, bob = await world.comes_in("5"), await world.comes_in("6")
    await world.talks(ana)
    await world.talks(bob)
    tries = []
    said_here = talking.said_here

    async def fails(visit, rest: str = "") -> None:
        if visit.incoming.text == "poison":
            tries.append(visit.key)
            raise KeyError("poison")
        await said_here(visit, rest)

    monkeypatch.setattr(talking, "said_here", fails)
    ana.says("poison")
    ana.says("after it")
    bob.says("beside it")
    await world.until(lambda: "parrot\nparrot: after it" in world.app.texts("5"))
    await world.until(lambda: "parrot\nparrot: beside it" in world.app.texts("6"))
    assert len(tries) == TRIES_MAX
    assert len(world.store.inbox.aside()) == 1
    await world.again()
    await world.quiet()
    assert len(tries) == TRIES_MAX


async def test_a_disk_that_is_full_for_a_while_loses_nothing(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    ana = await world.comes_in()
    conversation = await world.talks(ana)
    full = iter([True] * 6)
    done = world.store.inbox.done

    async def refused(update_id: int) -> None:
        if next(full, False):
            raise Busy("the disk is full", retry_after_s=0.0)
        await done(update_id)

    monkeypatch.setattr(world.store.inbox, "done", refused)
    for number in range(3):
        ana.says(f"n{number}")
    await world.until(lambda: "parrot\nparrot: n2" in world.app.texts("5"))
    await world.quiet()
    said = [text for who, text in await world.said(conversation) if who != "parrot"]
    assert said == ["n0", "n1", "n2"]
    assert len(world.app.messages("5")) == 6


async def test_with_too_much_to_do_the_app_is_not_asked_for_more(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(intake, "HELD_MAX", 4)
    ana = await world.comes_in()
    conversation = await world.talks(ana)
    await world.node_ends()
    for number in range(4):
        ana.says(f"n{number}")
    await world.until(lambda: world.bridge.intake.held == 4)
    ana.says("n4")
    for _ in range(100):  # it would be taken by then
        await asyncio.sleep(0)
    assert (world.app.waiting, world.bridge.intake.held) == (1, 4)
    await world.node_begins()
    await world.until(lambda: "parrot\nparrot: n4" in world.app.texts("5"))
    said = [text for who, text in await world.said(conversation) if who != "parrot"]
    assert said == [f"n{number}" for number in range(5)]


async def test_updates_of_many_chats_do_not_wait_for_one(world: World) -> None:
    owner = await world.comes_in("1", Role.OWNER)
    ana, bob = await world.comes_in("5"), await world.comes_in("6")
    await world.talks(ana)
    await world.talks(bob)
    world.app.fail(Flooded(1000), chat="5")
    ana.says("slow")
    await world.until(lambda: bool(world.bridge.status().post.gates))
    bob.says("quick")
    await world.until(lambda: "parrot\nparrot: quick" in world.app.texts("6"))
    owner.says("/status")
    await world.until(lambda: world.is_shown("1", "Paused by the app: 1 chats"))


async def test_an_update_that_comes_again_does_nothing_and_is_counted(world: World) -> None:
    ana = await world.comes_in()
    conversation = await world.talks(ana)
    once = ana.says("once")
    await world.until(lambda: world.app.texts("5")[-1] == "parrot\nparrot: once")
    await world.quiet()
    before, said = world.app.texts("5"), await world.said(conversation)
    world.app.hand_over_again(once)
    await world.until(lambda: world.bridge.status().again == 1)
    await world.quiet()
    assert world.app.texts("5") == before
    assert await world.said(conversation) == said
