"""Who was not let in, or pretends: nothing happens, and the owner can see that it was tried."""

from __future__ import annotations

import io
import json
from typing import Any

import aiohttp
import pytest

from aios_bots.adapters.telegram import Webhook
from aios_bots.core.pairing import Role
from tests.telegram.adapting import run
from tests.telegram.botapi import BotApi, Person
from tests.telegram.bridging import Bridged, bridged

HEADER = "X-Telegram-Bot-Api-Secret-Token"


@pytest.fixture(params=["polling", "webhook"])
def webhook(request: pytest.FixtureRequest) -> Webhook | None:
    return Webhook() if request.param == "webhook" else None


class Before:
    """What there is on the node, and what was said on phones, so that nothing more is there."""

    def __init__(self, world: Bridged, *said_to: Person) -> None:
        self._world, self._said_to = world, said_to
        self._state = self._now()

    def _now(self) -> Any:
        world = self._world
        talks = world.site.call("chat.list")["conversations"]
        rows = {one["conversation"]: world.rows(one["conversation"]) for one in talks}
        people = [(one.user_id, one.role) for one in world.bridge.people()]
        sent = {who.id: len(world.sent(who.chat())) for who in self._said_to}
        return rows, people, sent, world.bridge.store.bindings()

    async def holds(self) -> None:
        await self._world.quiet()
        assert self._now() == self._state


def test_strangers_get_one_line_and_nothing_else(botapi: BotApi, make_site, tmp_path, webhook):
    ada, eve = botapi.person("Ada", "ada_l"), botapi.person("Ada", "ada_1", last_name="")

    async def story() -> None:
        async with bridged(botapi, make_site, tmp_path, webhook) as world:
            await world.comes_in(ada, Role.OWNER)
            await world.asks(ada, "/chat parrot", "You talk to parrot")
            said = world.then(ada).says("hello")
            answer = await world.seen(ada.chat(), "parrot: hello")
            before = Before(world, ada)
            # Eve calls herself as Ada does.
            for text in ("hi", "/start", "/chat parrot hi", "/pair 0000-0000", "/invite owner"):
                world.then(eve).says(text)
            mine = eve.says("as if")
            world.then(eve).edits(mine, "/agents")
            world.then(eve).reacts(mine, "👍")
            query = world.then(eve).searches("parrot")
            await world.quiet()
            world.then(eve).forwards(said)
            world.then(eve).sends("photo", b"x", "for parrot")
            await before.holds()
            (hello, wrong) = [one.words for one in world.sent(eve.chat())]
            assert hello == "This bot is private. If you were given a code, send /pair CODE."
            assert "not good" in wrong
            assert query.answer is None
            tried = world.tried(eve)
            assert "wrong code" in tried
            assert tried.count("stranger") >= 7
            details = [one.detail for one in world.bridge.tried() if one.what == "stranger"]
            assert any("/invite" in one for one in details)
            assert answer.reactions == {}

    run(story())


def test_pretenders_in_a_group_are_nobody(botapi: BotApi, make_site, tmp_path, webhook):
    ada, eve = botapi.person("Ada"), botapi.person("Eve")
    name = f"@{botapi.bot.username}"

    async def story() -> None:
        async with bridged(botapi, make_site, tmp_path, webhook) as world:
            await world.comes_in(ada, Role.OWNER)
            group = botapi.group(ada, eve, botapi.bot, kind="supergroup")
            world.then(eve).says(f"/chat{name} parrot", group.chat)
            group.anonymous(f"/chat{name} parrot")
            group.channel(f"/chat{name} parrot")
            group.channel(f"/chat{name} parrot", linked=True)
            await world.quiet()
            assert world.conversation(group) == ""
            assert world.sent(group.chat) == []
            world.then(ada).says(f"/chat{name} parrot", group.chat)
            await world.seen(group.chat, "This group talks to parrot")
            said = world.then(ada).says(f"{name} hello", group.chat)
            answer = await world.seen(group.chat, "parrot: hello")
            before, count = Before(world), len(world.sent(group.chat))
            world.then(eve).says(f"{name} me too", group.chat)
            world.then(eve).says("a reply", group.chat, reply_to=answer)
            group.anonymous(f"{name} as the group")
            group.channel(f"{name} as a channel")
            world.then(eve).forwards(said, group.chat)
            await before.holds()
            assert len(world.sent(group.chat)) == count
            assert "stranger" in world.tried(eve)
            assert world.tried().count("not a person") >= 4

    run(story())


def test_a_forwarded_command_is_no_command(botapi: BotApi, make_site, tmp_path, webhook):
    ada, eve = botapi.person("Ada"), botapi.person("Eve")

    async def story() -> None:
        async with bridged(botapi, make_site, tmp_path, webhook) as world:
            await world.comes_in(ada, Role.OWNER)
            group = botapi.group(ada, eve)
            trap = eve.says("/invite owner", group.chat)
            before = Before(world, ada)
            world.then(ada).forwards(trap)
            await world.quiet()
            await before.holds()
            assert world.tried(ada)[0] == "forwarded command"

    run(story())


def test_a_button_is_for_who_asked(botapi: BotApi, make_site, tmp_path, webhook):
    ada, bob, eve = (botapi.person(name) for name in ("Ada", "Bob", "Eve"))
    name = f"@{botapi.bot.username}"

    async def story() -> None:
        async with bridged(botapi, make_site, tmp_path, webhook) as world:
            await world.comes_in(ada, Role.OWNER)
            await world.comes_in(bob)
            group = botapi.group(ada, bob, eve, botapi.bot)
            world.then(ada).says(f"/chat{name} parrot", group.chat)
            await world.seen(group.chat, "This group talks to parrot")
            world.then(ada).says(f"/search{name} long stories", group.chat)
            found = await world.seen(group.chat, "writer")
            before = Before(world)
            pressed = world.then(bob).presses(found, "Chat writer")
            answer = await world.until(lambda: pressed.answer)
            assert answer["text"] == "That button is for somebody else."
            strange = world.then(eve).presses(found, "Chat writer")
            answer = await world.until(lambda: strange.answer)
            assert answer["text"] == "That button is not for you."
            await before.holds()
            assert world.tried(bob)[0] == "button of somebody else"
            assert world.tried(eve)[0] == "stranger"
            # And it still works for Ada, once.
            world.then(ada).presses(found, "Chat writer")
            await world.seen(group.chat, "This group talks to writer")

    run(story())


def test_an_update_that_comes_again_does_nothing_new(botapi: BotApi, make_site, tmp_path, webhook):
    ada = botapi.person("Ada")

    async def story() -> None:
        async with bridged(botapi, make_site, tmp_path, webhook) as world:
            await world.comes_in(ada, Role.OWNER)
            await world.asks(ada, "/chat parrot", "You talk to parrot")
            first = botapi.bot.updates.next_id
            await world.asks(ada, "hello", "parrot: hello")
            message = ada.chat().messages
            said = next(one for one in message.values() if one.words == "hello")
            before = Before(world, ada)
            for _ in range(3):
                botapi.inject({"update_id": first, "message": said.json()})
            forged = {**said.json(), "text": "/unpair"}
            botapi.inject({"update_id": first, "message": forged})
            await before.holds()
            # What comes behind them is new.
            await world.asks(ada, "again", "parrot: again")

    run(story())


def test_a_push_without_the_secret_is_refused_and_counted(botapi: BotApi, make_site, tmp_path):
    ada = botapi.person("Ada")

    async def push(url: str, body: dict, **headers: str) -> int:
        data = io.BytesIO(json.dumps(body).encode())
        async with (
            aiohttp.ClientSession() as session,
            session.post(url, data=data, headers=headers) as response,
        ):
            return response.status

    async def story() -> None:
        async with bridged(botapi, make_site, tmp_path, Webhook()) as world:
            await world.comes_in(ada, Role.OWNER)
            await world.asks(ada, "/chat parrot", "You talk to parrot")
            before = Before(world, ada)
            forged = ada.chat().messages[max(ada.chat().messages)].json()
            forged = {**forged, "from": ada.user.json(), "text": "as if I were Ada"}
            url = world.bridge.adapter.webhook_url
            for number, headers in enumerate(({}, {HEADER: ""}, {HEADER: "guess"})):
                update = {"update_id": 77 + number, "message": forged}
                assert await push(url, update, **headers) == 403
            await before.holds()
            notes = world.bridge.status().notes
            assert "3 pushes without the webhook's secret were refused" in notes
            told = await world.asks(ada, "/status", "The bridge is up")
            assert "3 pushes" in told.words

    run(story())
