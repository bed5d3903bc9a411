"""The whole story on phones: by polling and by pushes, and on servers that know little.

A server that refuses everything optional shows less, and nothing is lost for it.
"""

from __future__ import annotations

import pytest

from aios_bots.adapters.telegram import Webhook
from aios_bots.core import turn
from aios_bots.core.model import ChatKind
from aios_bots.core.pairing import Role
from tests.telegram.adapting import run
from tests.telegram.botapi import BotApi, Chat, Person
from tests.telegram.botapi.files import DOT
from tests.telegram.bridging import Bridged, bridged
from tests.telegram.test_adapter_servers import OPTIONAL


@pytest.fixture(params=["polling", "webhook"])
def webhook(request: pytest.FixtureRequest) -> Webhook | None:
    return Webhook() if request.param == "webhook" else None


@pytest.fixture(params=["whole", "404", "500"])
def whole(request: pytest.FixtureRequest, botapi: BotApi) -> bool:
    """Whether the server knows every call."""
    if request.param != "whole":
        botapi.faults.answer(OPTIONAL, int(request.param), times=None)
    return request.param == "whole"


@pytest.fixture
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    """A message that grows is edited as soon as it has grown."""
    monkeypatch.setattr(turn, "EDIT_S", dict.fromkeys(ChatKind, 0.0))
    monkeypatch.setattr(turn, "GROWN_CHARS", 1)


def marked(message) -> list[tuple[str, str]]:
    return [(one["type"], message.text.part(one)) for one in message.text.entities]


def test_the_story_of_ada_and_bob(
    botapi: BotApi, make_site, tmp_path, webhook, whole, quick: None
) -> None:
    ada, bob = botapi.person("Ada", "ada_l"), botapi.person("Bob")

    async def story() -> None:
        async with bridged(botapi, make_site, tmp_path, webhook) as world:
            await comes_in_by_link(world, ada)
            await finds_an_agent_and_reads_as_it_writes(world, ada, whole=whole)
            conversation = await joins_a_conversation_of_the_notebook(world, ada)
            await changes_go_both_ways(world, ada, conversation, whole=whole)
            await searches_from_any_chat(world, ada, whole=whole)
            await a_photo_in_and_a_figure_out(world, ada, whole=whole)
            if whole:
                await the_menu_follows(world, ada, bob)
            await world.comes_in(bob)
            await a_topic_of_a_group(world, ada, bob, whole=whole)
            status = world.bridge.status()
            assert (status.state, status.trouble) == ("running", "")
            assert (status.aside, status.post.repeated, status.post.uncertain) == (0, 0, 0)
            assert (status.post.dead > 0) is not whole
            missing = [note for note in status.notes if note.startswith("this server has no")]
            assert bool(missing) is not whole

    run(story())


async def comes_in_by_link(world: Bridged, ada: Person) -> None:
    code = await world.bridge.pair(Role.OWNER)
    assert code.link == f"https://t.me/{world.api.bot.username}?start={code.code}"
    world.then(ada).starts(code.code)
    hello = await world.seen(ada.chat(), "You are in, Ada")
    assert hello.buttons  # whom to talk to
    assert world.tried(ada) == ["paired"]
    assert [one.role for one in world.bridge.people()] == [Role.OWNER]


async def the_menu_follows(world: Bridged, ada: Person, bob: Person) -> None:
    """Ada is an owner and sees what owners can do; of two owners one leaves."""
    menus = world.api.bot.commands
    mine, theirs = (f"chat:{ada.id}", ""), (f"chat:{bob.id}", "")
    await world.until(lambda: mine in menus)
    assert "invite" in [row["command"] for row in menus[mine]]
    assert "invite" not in [row["command"] for row in menus["all_private_chats", ""]]
    await world.comes_in(bob, Role.OWNER)
    await world.until(lambda: theirs in menus)
    asked = await world.asks(bob, "/unpair", "Leave for good?")
    world.then(bob).presses(asked, "Leave")
    await world.until(lambda: theirs not in menus)
    assert mine in menus


async def finds_an_agent_and_reads_as_it_writes(
    world: Bridged, ada: Person, *, whole: bool
) -> None:
    found = await world.asks(ada, "/search long stories", "writer")
    assert ("bold", "writer") in marked(found)
    pressed = world.then(ada).presses(found, "Chat writer")
    await world.seen(ada.chat(), "You talk to writer now")
    assert (await world.until(lambda: pressed.answer))["text"] == ""
    before = len(world.sent(ada.chat()))
    world.then(ada).says("tell me one")
    if whole:
        await world.until(lambda: world.api.record.of("sendChatAction", chat=ada.id))
    begun, more, end = "Once upon a time there was a 🎉, ", "and **more**, ", "and an end."
    write = lambda *pieces: world.site.on_loop(lambda: world.stage.put(*pieces))  # noqa: E731
    write(begun)
    await world.until(lambda: len(world.sent(ada.chat())) > before)
    (reply,) = world.sent(ada.chat())[before:]
    write(more)
    await world.until(lambda: "more" in reply.words)
    write(end, None)
    await world.until(lambda: reply.words.endswith("and an end."))
    await world.until(lambda: marked(reply))  # as it stays; what grows has no styles
    await world.quiet()
    assert [one.id for one in world.sent(ada.chat())[before:]] == [reply.id]
    assert len(reply.versions) >= 3
    assert reply.words == "writer\nOnce upon a time there was a 🎉, and more, and an end."
    assert marked(reply) == [("bold", "writer"), ("bold", "more")]
    assert world.said(world.conversation(ada))[-1] == ("writer", begun + more + end)


async def joins_a_conversation_of_the_notebook(world: Bridged, ada: Person) -> str:
    site = world.site
    conversation = site.call("chat.open", agents=["parrot"], title="Plans")["conversation"]
    site.call("chat.send", agent="parrot", text="from before", conversation=conversation)
    site.call("chat.join", conversation=conversation, who=world.person_id(ada))
    shown = await world.asks(ada, f"/join {conversation}", "Plans")
    assert "parrot: from before" in shown.words
    site.call("chat.send", agent="parrot", text="to the phone", conversation=conversation)
    answer = await world.seen(ada.chat(), "parrot: to the phone")
    question = await world.seen(ada.chat(), "owner (notebook)\nto the phone")
    assert question.id < answer.id
    answer = await world.asks(ada, "from the phone", "parrot: from the phone")
    assert answer.words == "parrot\nparrot: from the phone"
    assert world.said(conversation)[-2:] == [
        (world.person_id(ada), "from the phone"),
        ("parrot", "parrot: from the phone"),
    ]
    assert [one.words for one in world.sent(ada.chat())].count(answer.words) == 1
    return conversation


async def changes_go_both_ways(
    world: Bridged, ada: Person, conversation: str, *, whole: bool
) -> None:
    said = world.then(ada).says("a tpyo")
    answer = await world.seen(ada.chat(), "parrot: a tpyo")
    world.then(ada).edits(said, "a typo")
    (edit,) = await world.until(lambda: world.rows(conversation, "edit"))
    mine = next(row for row in world.rows(conversation, "message") if row["text"] == "a tpyo")
    assert (edit["text"], edit["ref"]) == ("a typo", mine["message_id"])
    world.then(ada).reacts(answer, "👍")
    (reaction,) = await world.until(lambda: world.rows(conversation, "reaction"))
    theirs = next(
        row for row in world.rows(conversation, "message") if row["text"] == "parrot: a tpyo"
    )
    assert (reaction["text"], reaction["ref"]) == ("👍", theirs["message_id"])
    assert reaction["sender"]["id"] == world.person_id(ada)

    call = world.site.call
    call("chat.react", conversation=conversation, message_id=mine["message_id"], reaction="🎉")
    if whole:
        await world.until(lambda: said.reactions.get(world.api.bot.id))
        assert said.reactions[world.api.bot.id] == [{"type": "emoji", "emoji": "🎉"}]
    else:
        await world.seen(ada.chat(), "owner (notebook)\n🎉")
    made = call("chat.post", conversation=conversation, text="wrong", message_id="m-1")
    shown = await world.seen(ada.chat(), "owner (notebook)\nwrong")
    call("chat.edit", conversation=conversation, message_id=made["message_id"], text="right")
    await world.until(lambda: shown.words == "owner (notebook)\nright")
    await world.quiet()


async def searches_from_any_chat(world: Bridged, ada: Person, *, whole: bool) -> None:
    query = world.then(ada).searches("repeats what it hears")
    await world.quiet()
    if not whole:
        assert query.answer is None
        return
    await world.until(lambda: query.answer)
    assert "parrot" in [one["title"] for one in query.results]
    assert "weigher" not in [one["title"] for one in query.results]  # it is not public


async def a_photo_in_and_a_figure_out(world: Bridged, ada: Person, *, whole: bool) -> None:
    await world.asks(ada, "/chat weigher", "You talk to weigher now")
    world.then(ada).sends("photo", DOT * 3, "how heavy?")
    await world.seen(ada.chat(), f"photo.jpg: {3 * len(DOT)}" if whole else "could not get that")
    before = len(world.sent(ada.chat()))
    await world.asks(ada, "/chat painter", "You talk to painter now")
    world.then(ada).says("a figure, please")
    await world.until(lambda: len(world.sent(ada.chat())) > before + 1)
    await world.quiet()
    (picture,) = world.sent(ada.chat())[before + 1 :]
    assert "plot.png" in picture.words
    if whole:
        stored = world.api.world.files.find(picture.media["photo"][-1]["file_id"])
        assert stored.data == DOT


async def a_topic_of_a_group(world: Bridged, ada: Person, bob: Person, *, whole: bool) -> None:
    api = world.api
    group = api.group(ada, bob, api.bot, topics=True)
    plans, other = group.topic("plans"), group.topic("other")
    chat: Chat = group.chat
    name = f"@{api.bot.username}"
    world.then(ada).says(f"/chat{name} parrot", chat, topic=plans)
    await world.seen(chat, "This group talks to parrot now")
    world.then(bob).says("not for the bot", chat, topic=plans)
    asked = world.then(bob).says(f"{name} what now?", chat, topic=plans)
    answer = await world.seen(chat, "parrot: what now?")
    assert answer.topic is plans
    assert answer.reply_to is asked
    conversation = world.conversation(group, plans.id)
    assert (world.person_id(bob), "what now?") in world.said(conversation)
    assert not any("not for the bot" in text for _, text in world.said(conversation))
    # Another topic is another conversation, and what is written is seen to be written there.
    world.then(bob).says(f"{name} and here?", chat, topic=other)
    elsewhere = await world.seen(chat, "parrot: and here?")
    assert elsewhere.topic is other
    world.then(ada).says(f"/chat{name} writer", chat, topic=other)
    await world.seen(chat, "This group talks to writer now")
    world.then(bob).says(f"{name} a story", chat, topic=other)
    if whole:
        await world.until(lambda: world.api.record.of("sendChatAction", chat=chat.id))
    world.site.on_loop(lambda: world.stage.put("There was a topic, and in it was a story.", None))
    written = await world.seen(chat, "in it was a story")
    assert written.topic is other
    for call in world.api.record.of("sendChatAction", chat=chat.id):
        assert call.params["message_thread_id"] in {str(plans.id), str(other.id)}
    assert world.conversation(group, other.id) not in {"", conversation}
    # A reply to the bot is for the bot.
    world.then(bob).says("really?", chat, reply_to=answer)
    again = await world.seen(chat, "parrot: really?")
    assert again.topic is plans
    assert all(one.topic in {plans, other} for one in world.sent(chat))
    # The owner of the node sees it all, and steps in.
    world.site.call("chat.post", conversation=conversation, text="I am here", message_id="m-2")
    mine = await world.seen(chat, "owner (notebook)\nI am here")
    assert mine.topic is plans
