"""When things go wrong on Telegram's side: one clear line, and all goes on."""

from __future__ import annotations

import asyncio

import pytest

from aios_bots.adapters.telegram import Webhook
from aios_bots.core.pairing import Role
from aios_nb.errors import AiosError
from tests.telegram.adapting import listening, opened, run
from tests.telegram.botapi import BotApi
from tests.telegram.bridging import bridged


@pytest.fixture(params=["polling", "webhook"])
def webhook(request: pytest.FixtureRequest) -> Webhook | None:
    return Webhook() if request.param == "webhook" else None


def test_who_blocks_the_bot_misses_nothing_new(botapi: BotApi, make_site, tmp_path, webhook):
    ada = botapi.person("Ada")

    async def story() -> None:
        async with bridged(botapi, make_site, tmp_path, webhook) as world:
            await world.comes_in(ada, Role.OWNER)
            await world.asks(ada, "/chat parrot", "You talk to parrot")
            conversation = world.conversation(ada)
            count = len(world.sent(ada.chat()))
            ada.blocks()
            await world.until(lambda: "bot removed" in world.tried(ada))
            call = world.site.call
            call("chat.send", agent="parrot", text="are you there?", conversation=conversation)
            await world.quiet()
            assert len(world.sent(ada.chat())) == count
            ada.unblocks()
            await world.seen(ada.chat(), "parrot: are you there?")
            await world.asks(ada, "I am", "parrot: I am")

    run(story())


def test_a_group_that_grows_keeps_its_conversation(botapi: BotApi, make_site, tmp_path, webhook):
    ada = botapi.person("Ada")
    name = f"@{botapi.bot.username}"

    async def story() -> None:
        async with bridged(botapi, make_site, tmp_path, webhook) as world:
            await world.comes_in(ada, Role.OWNER)
            group = botapi.group(ada, botapi.bot)
            world.then(ada).says(f"/chat{name} parrot", group.chat)
            await world.seen(group.chat, "This group talks to parrot")
            conversation = world.conversation(group)
            new = group.migrate()
            world.then(ada).says(f"{name} still here?", new.chat)
            await world.seen(new.chat, "parrot: still here?")
            assert world.conversation(new) == conversation
            assert world.conversation(group) == ""

    run(story())


def test_a_group_is_followed_to_its_new_id_by_what_goes_out(botapi: BotApi, make_site, tmp_path):
    """The update that says so is lost: the refused call says it too."""
    ada = botapi.person("Ada")
    name = f"@{botapi.bot.username}"

    async def story() -> None:
        async with bridged(botapi, make_site, tmp_path) as world:
            await world.comes_in(ada, Role.OWNER)
            group = botapi.group(ada, botapi.bot)
            world.then(ada).says(f"/chat{name} parrot", group.chat)
            await world.seen(group.chat, "This group talks to parrot")
            conversation = world.conversation(group)
            with botapi.outage():
                new = group.migrate()
                botapi.run(botapi.bot.updates.forget_all)
            call = world.site.call
            call("chat.send", agent="parrot", text="hello group", conversation=conversation)
            await world.seen(new.chat, "parrot: hello group")
            assert world.conversation(new) == conversation

    run(story())


def test_a_flooded_chat_waits_and_others_do_not(botapi: BotApi, make_site, tmp_path, webhook):
    ada, bob = botapi.person("Ada"), botapi.person("Bob")

    async def story() -> None:
        async with bridged(botapi, make_site, tmp_path, webhook) as world:
            await world.comes_in(ada, Role.OWNER)
            await world.comes_in(bob)
            await world.asks(ada, "/chat parrot", "You talk to parrot")
            await world.asks(bob, "/chat parrot", "You talk to parrot")
            world.then(ada)
            botapi.flood.close(ada.id, seconds=3600)
            ada.says("slow")
            gates = await world.until(lambda: world.bridge.status().post.gates)
            assert list(gates) == [str(ada.id)]
            bob.says("quick")
            await world.until(lambda: "parrot\nparrot: quick" in bob.chat().texts())
            assert ada.chat().texts()[-1] == "slow"
            assert not botapi.flood.violations

    run(story())


def test_after_the_pause_everything_goes_once(botapi: BotApi, make_site, tmp_path, webhook):
    ada = botapi.person("Ada")

    async def story() -> None:
        async with bridged(botapi, make_site, tmp_path, webhook) as world:
            await world.comes_in(ada, Role.OWNER)
            await world.asks(ada, "/chat parrot", "You talk to parrot")
            world.then(ada)
            botapi.flood.close(ada.id, seconds=1)
            for number in range(4):
                ada.says(f"{number}")
            await world.seen(ada.chat(), "parrot: 3")
            answers = [one.words for one in world.sent(ada.chat())][-4:]
            assert answers == [f"parrot\nparrot: {number}" for number in range(4)]
            assert botapi.record.counts["sendMessage", 429] <= 1
            assert not botapi.flood.violations

    run(story())


def test_resets_double_nothing_that_can_be_known(botapi: BotApi, make_site, tmp_path, webhook):
    ada = botapi.person("Ada")

    async def story() -> None:
        async with bridged(botapi, make_site, tmp_path, webhook) as world:
            await world.comes_in(ada, Role.OWNER)
            await world.asks(ada, "/chat parrot", "You talk to parrot")
            botapi.faults.cut("sendMessage")
            await world.asks(ada, "one", "parrot: one")
            assert [one.words for one in world.sent(ada.chat())].count("parrot\nparrot: one") == 1
            botapi.faults.cut("sendMessage", after=True)
            await world.asks(ada, "two", "parrot: two")
            assert [one.words for one in world.sent(ada.chat())].count("parrot\nparrot: two") == 2
            assert world.bridge.status().post.repeated == 2  # both may have been there twice

    run(story())


def test_an_outage_loses_nothing_either_way(botapi: BotApi, make_site, tmp_path, webhook):
    ada = botapi.person("Ada")

    async def story() -> None:
        async with bridged(botapi, make_site, tmp_path, webhook) as world:
            await world.comes_in(ada, Role.OWNER)
            await world.asks(ada, "/chat parrot", "You talk to parrot")
            conversation = world.conversation(ada)
            await asyncio.to_thread(botapi.go_down)
            call = world.site.call
            for text in ("one", "two"):
                call("chat.send", agent="parrot", text=text, conversation=conversation)
            if webhook is None:
                await world.until(lambda: "no connection" in world.bridge.status().trouble)
            await asyncio.to_thread(botapi.come_back)
            await world.seen(ada.chat(), "parrot: two")
            words = [one.words for one in world.sent(ada.chat())]
            answers = [one for one in words if one.startswith("parrot\n")]
            assert answers == ["parrot\nparrot: one", "parrot\nparrot: two"]
            await world.asks(ada, "three", "parrot: three")
            await world.until(lambda: world.bridge.status().trouble == "")

    run(story())


def test_a_token_that_is_revoked_ends_the_bridge_with_one_line(
    botapi: BotApi, make_site, tmp_path, webhook
):
    async def story() -> None:
        async with bridged(botapi, make_site, tmp_path, webhook) as world:
            await asyncio.to_thread(botapi.revoke)
            if webhook is not None:
                world.bridge.adapter._pushes.look.set()
            await asyncio.wait([world.running])
            error = world.running.exception()
            assert isinstance(error, AiosError)
            assert str(error).startswith("Telegram does not know this bot token")
            assert world.bridge.status().state == str(error)
            assert botapi.bot.token not in str(error)

    run(story())


def test_a_second_poller_is_said_and_outlived(botapi: BotApi, make_site, tmp_path):
    ada = botapi.person("Ada")

    async def story() -> None:
        async with bridged(botapi, make_site, tmp_path) as world:
            await world.comes_in(ada, Role.OWNER)
            async with opened(botapi) as other, listening(other):
                await world.until(lambda: "another program" in world.bridge.status().trouble)
            await world.asks(ada, "/chat parrot", "You talk to parrot")
            await world.until(lambda: world.bridge.status().trouble == "")

    run(story())
