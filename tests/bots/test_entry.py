"""Nobody comes in without a code, and a code lets one in."""

from __future__ import annotations

import asyncio
import secrets

import pytest

from aios_bots.core.box import Box, Word
from aios_bots.core.desk import following
from aios_bots.core.desk.refusals import HELLO, USED_CODE, WRONG_CODE
from aios_bots.core.model import Kind, SenderKind
from aios_bots.core.pairing import (
    CODE_S,
    FAILURES_PER_BOT,
    FAILURES_PER_PERSON,
    Pairing,
    Role,
)
from tests.bots.world import World


def tried(world: World, what: str) -> list[str]:
    return [line.who for line in world.bridge.tried(500) if line.what == what]


@pytest.mark.parametrize("command", ["pair", "start"])
async def test_a_code_lets_in_who_says_it(world: World, command: str) -> None:
    ana = world.app.person("5", "Ana")
    code = await world.bridge.pair(Role.MEMBER)
    assert code.link == f"loopback:bridge?start={code.code}"
    ana.says(f"/{command} {code.code[:4].lower()}-{code.code[4:]}")
    await world.quiet()
    assert world.app.texts("5")[1].startswith("You are in, Ana.")
    [person] = world.bridge.people()
    assert (person.user_id, person.role, person.name) == ("5", Role.MEMBER, "Ana")
    assert tried(world, "paired") == ["lo:77:5"]
    assert not any(code.code in line.detail for line in world.bridge.tried())


async def test_a_code_is_used_once(world: World) -> None:
    code = (await world.bridge.pair()).code
    for user in ("5", "6"):
        world.app.person(user).says(f"/pair {code}")
        await world.quiet()
    assert [one.user_id for one in world.bridge.people()] == ["5"]
    assert world.app.texts("6")[1:] == [WRONG_CODE]
    assert tried(world, "wrong code") == ["lo:77:6"]


async def test_who_says_a_code_twice_is_told_that_they_are_in(world: World) -> None:
    ana, code = world.app.person("5"), (await world.bridge.pair()).code
    for _ in range(2 * FAILURES_PER_PERSON):
        ana.says(f"/pair {code}")
        await world.quiet()
    assert world.app.texts("5")[1].startswith("You are in, ")
    assert set(world.app.texts("5")[2:]) == {f"/pair {code}", USED_CODE}
    assert not tried(world, "wrong code")
    assert not tried(world, "code not heard")


@pytest.mark.parametrize("command", ["pair", "join"])
async def test_a_used_code_does_not_lead_back_to_where_one_was_taken_out(
    world: World, command: str
) -> None:
    owner = await world.comes_in("1", Role.OWNER)
    conversation = await world.talks(owner)
    ana = await world.comes_in("5")
    code = (await world.bridge.pair(conversation=conversation)).code
    ana.says(f"/{command} {code}")
    await world.quiet()
    await world.owner("chat.leave", conversation=conversation, who="lo:77:5")
    await world.until(lambda: not world.store.binding(world.app.place("5", "")))
    world.clock.now += 3 * 86_400
    ana.says(f"/{command} {code}")
    await world.quiet()
    assert world.app.texts("5")[-1] == USED_CODE
    assert (await world.log(conversation))[-1]["kind"] == "leave"
    assert not world.store.binding(world.app.place("5", ""))


@pytest.mark.parametrize("command", ["pair", "join"])
async def test_a_code_whose_update_was_cut_by_a_kill_leads_where_it_leads(
    world: World, command: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    conversation = await world.talks(await world.comes_in("1", Role.OWNER))
    ana = await world.comes_in("5")
    code = (await world.bridge.pair(conversation=conversation)).code
    reached = asyncio.Event()

    async def never(*_: object, **__: object) -> None:
        reached.set()
        await asyncio.get_running_loop().create_future()

    with monkeypatch.context() as cut:
        cut.setattr(following, "enter", never)
        ana.says(f"/{command} {code}")
        await reached.wait()
        await world.crash()
    await world.start()
    await world.quiet()
    assert "You are in the conversation with parrot." in world.app.texts("5")[-1]
    assert [one.place.chat for one in world.store.bindings(conversation)] == ["1", "5"]


async def test_a_code_is_good_for_ten_minutes(world: World) -> None:
    code = (await world.bridge.pair()).code
    world.clock.now += CODE_S
    world.app.person("5").says(f"/pair {code}")
    await world.quiet()
    assert world.app.texts("5")[1:] == [WRONG_CODE]
    assert not world.bridge.people()


async def test_pair_without_a_code_says_how(world: World) -> None:
    world.app.person("5").says("/pair")
    await world.quiet()
    assert world.app.texts("5")[1] == HELLO
    ana = await world.comes_in("6")
    ana.says("/pair")
    await world.quiet()
    assert "ABCD-EFGH" in world.app.texts("6")[-1]


async def test_who_guesses_is_not_listened_to_any_more_also_after_a_restart(world: World) -> None:
    eve = world.app.person("6")
    for _ in range(FAILURES_PER_PERSON):
        eve.says("/pair 00000000")
    await world.quiet()
    await world.again()
    code = (await world.bridge.pair()).code
    eve.says(f"/pair {code}")
    await world.quiet()
    assert world.app.texts("6").count(WRONG_CODE) == FAILURES_PER_PERSON
    assert world.app.texts("6")[-1] == f"/pair {code}"
    assert not world.bridge.people()
    assert tried(world, "code not heard") == ["lo:77:6"]
    # Somebody else is not stopped by it, and later neither is she.
    world.app.person("7").says(f"/pair {code}")
    await world.quiet()
    assert [one.user_id for one in world.bridge.people()] == ["7"]
    world.clock.now += 3600
    later = (await world.bridge.pair()).code
    eve.says(f"/pair {later}")
    await world.quiet()
    assert {one.user_id for one in world.bridge.people()} == {"6", "7"}


async def test_many_who_guess_silence_the_bot_for_all(world: World) -> None:
    for number in range(FAILURES_PER_BOT):
        world.app.person(str(100 + number)).says("/pair 00000000")
    await world.quiet()
    code = (await world.bridge.pair()).code
    world.app.person("5").says(f"/pair {code}")
    await world.quiet()
    assert world.app.texts("5") == [f"/pair {code}"]


async def test_a_code_in_a_group_is_not_heard(world: World) -> None:
    owner = await world.comes_in("1", Role.OWNER)
    group = await world.group(owner)
    code = (await world.bridge.pair()).code
    world.app.person("5").says(f"/pair@bridge {code}", group)
    owner.says(f"/pair@bridge {code}", group)
    await world.quiet()
    assert [one.user_id for one in world.bridge.people()] == ["1"]
    assert world.app.texts("-9")[2:] == ["Please say that to me in a private chat."]


async def test_a_code_that_leads_to_a_conversation_puts_one_there(world: World) -> None:
    conversation = (await world.owner("chat.open", agents=["parrot"]))["conversation"]
    await world.owner("chat.post", conversation=conversation, text="before", message_id="m1")
    ana = world.app.person("5", "Ana")
    code = await world.bridge.pair(conversation=conversation)
    ana.says(f"/start {code.code}")
    await world.quiet()
    welcome, there = world.app.texts("5")[1:]
    assert welcome.startswith("You are in, Ana.")
    assert there.startswith("You are in the conversation with parrot.")
    assert "the owner (notebook): before" in there
    ana.says("and I")
    await world.until(lambda: world.app.texts("5")[-1] == "parrot\nparrot: and I")
    assert ("lo:77:5", "and I") in await world.said(conversation)


async def test_without_the_owners_connection_a_code_leads_only_to_what_is_shared(
    world: World,
) -> None:
    conversation = (await world.owner("chat.open", agents=["parrot"]))["conversation"]
    await world.without_keeper()
    code = await world.bridge.pair(conversation=conversation)
    world.app.person("5").says(f"/pair {code.code}")
    await world.quiet()
    assert "cannot be reached" in world.app.texts("5")[-1]
    assert not (await world.log(conversation))


async def test_a_code_to_a_conversation_that_is_gone_lets_in_all_the_same(world: World) -> None:
    code = await world.bridge.pair(conversation="c-none")
    world.app.person("5").says(f"/pair {code.code}")
    await world.quiet()
    assert "cannot be reached" in world.app.texts("5")[-1]
    assert len(world.bridge.people()) == 1


async def test_an_owner_stays_owner_whatever_code_is_said(world: World) -> None:
    owner = await world.comes_in("1", Role.OWNER)
    owner.says(f"/pair {(await world.bridge.pair(Role.GUEST)).code}")
    await world.quiet()
    assert world.bridge.people()[0].role is Role.OWNER


async def test_a_stranger_gets_one_line_a_day_and_the_owner_sees_it(world: World) -> None:
    eve = world.app.person("6", "Eve")
    eve.says("hello?")
    eve.says("/search everything")
    await world.quiet()
    await world.again()
    eve.says("let me in")
    await world.quiet()
    assert [text for text in world.app.texts("6") if text == HELLO] == [HELLO]
    assert tried(world, "stranger") == ["lo:77:6"] * 3
    assert "hello?" in world.store.people.audit(what="stranger")[-1].detail
    world.clock.now += 86_400
    eve.says("today?")
    await world.quiet()
    assert world.app.texts("6").count(HELLO) == 2
    assert not await world.conversations()


async def test_a_stranger_does_nothing_by_any_kind_of_update(world: World) -> None:
    owner = await world.comes_in("1", Role.OWNER)
    await world.talks(owner)
    owner.says("hello")
    _, answer = await world.shows("1", "hello", "parrot\nparrot: hello")
    owner.says("/agents")
    await world.quiet()
    listed = world.app.messages("1")[-1]
    before = [len(await world.log(row["conversation"])) for row in await world.conversations()]
    eve = world.app.person("6")
    calls = len(world.app.calls)
    eve.searches("parrot")
    eve._tells(Kind.EDIT, "1", "", msg_id=answer.id, text="spoofed")
    eve._tells(Kind.REACTION, "1", "", msg_id=answer.id, data="x")
    eve._tells(Kind.STOP, "1", "", msg_id=answer.id)
    pressed = eve._tells(
        Kind.BUTTON, "1", "", msg_id=listed.id, data=listed.buttons[0][0].data, answer_to="?"
    )
    await world.quiet()
    made = world.app.calls[calls:]
    assert [one.out.target for one in made] == [pressed.answer_to]
    after = [len(await world.log(row["conversation"])) for row in await world.conversations()]
    assert after == before
    assert tried(world, "stranger") == ["lo:77:6"] * 5


async def test_channels_bots_and_anonymous_admins_are_nobody(world: World) -> None:
    ana = await world.comes_in()
    for kind in (SenderKind.BOT, SenderKind.CHAT, SenderKind.NOBODY):
        world.app.says_as(ana, "/status", kind)
    await world.quiet()
    assert not world.app.made("5")[1:]
    assert tried(world, "not a person") == ["lo:77:5"] * 3


async def test_a_forwarded_command_does_nothing(world: World) -> None:
    owner = await world.comes_in("1", Role.OWNER)
    owner.says("/invite owner", forwarded=True)
    await world.quiet()
    assert world.app.texts("1") == ["/invite owner"]
    assert tried(world, "forwarded command") == ["lo:77:1"]


async def test_who_was_put_out_is_a_stranger_at_the_next_word(world: World) -> None:
    ana = await world.comes_in()
    conversation = await world.talks(ana)
    assert await world.bridge.revoke("5")
    assert not await world.bridge.revoke("5")
    ana.says("still here?")
    await world.quiet()
    assert world.app.texts("5") == ["still here?", HELLO]
    assert await world.said(conversation) == []
    assert tried(world, "put out") == ["5"]


async def test_who_was_put_out_reads_nothing_more(world: World) -> None:
    ana = await world.comes_in()
    conversation = await world.talks(ana)
    await world.bridge.revoke("5")
    await world.owner("chat.post", conversation=conversation, text="secret", message_id="m1")
    owner = await world.comes_in("1", Role.OWNER)
    owner.says(f"/join {conversation}")
    await world.until(lambda: world.is_shown("1", "parrot: secret"))
    await world.again()
    await world.quiet()
    assert world.app.texts("5") == []
    assert [one.place.chat for one in world.store.bindings()] == ["1"]


async def test_words_left_in_the_box_are_done_before_the_next_update(world: World) -> None:
    ana = await world.comes_in()
    Box(world.folder / "box").put(Word(revoke="5"))
    ana.says("hello")
    await world.quiet()
    assert world.app.texts("5") == ["hello", HELLO]


async def test_a_word_whose_bridge_was_killed_over_it_is_done_once_more(world: World) -> None:
    code, offer = Pairing(world.clock, secrets.token_bytes).offer("77", Role.MEMBER)
    await world.store.people.keep(offer)
    Box(world.folder / "box").put(Word(offer=offer))
    await world.again()
    world.app.person("5").says(f"/pair {code}")
    await world.quiet()
    assert [one.user_id for one in world.bridge.people()] == ["5"]
    assert not world.store.inbox.aside()


async def test_an_update_that_comes_again_does_nothing_new(world: World) -> None:
    ana = await world.comes_in()
    conversation = await world.talks(ana)
    told = ana.says("once")
    await world.shows("5", "once", "parrot\nparrot: once")
    world.app.hand_over_again(told)
    await world.quiet()
    await world.again()
    world.app.hand_over_again(told)
    await world.quiet()
    assert world.app.texts("5") == ["once", "parrot\nparrot: once"]
    assert len(await world.said(conversation)) == 2
