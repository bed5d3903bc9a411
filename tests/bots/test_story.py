"""The whole story: somebody writes and is answered, and a notebook sees the same."""

from __future__ import annotations

import pytest

from aios_bots.core import collapsing, delivery
from aios_bots.core.adapter import Flooded
from aios_bots.core.model import Op, Span, SpanKind
from aios_bots.core.pairing import Role
from aios_nb.client import get_file
from tests.bots.world import World

# Messages ------------------------------------------------------------------------------------


async def test_what_somebody_writes_is_in_the_conversation_and_the_answer_in_the_chat(
    world: World,
) -> None:
    ana = await world.comes_in()
    conversation = await world.talks(ana)
    ana.says("hello")
    _, answer = await world.shows("5", "hello", "parrot\nparrot: hello")
    assert answer.spans == (Span(SpanKind.BOLD, 0, 6),)
    assert await world.said(conversation) == [("lo:77:5", "hello"), ("parrot", "parrot: hello")]


async def test_messages_keep_their_order(world: World) -> None:
    ana = await world.comes_in()
    conversation = await world.talks(ana)
    said = [f"number {number}" for number in range(20)]
    for text in said:
        ana.says(text)
    await world.quiet()
    answers = [f"parrot: {text}" for text in said]
    await world.until(lambda: len(world.app.messages("5")) == 40)
    rows = await world.said(conversation)
    assert [text for who, text in rows if who == "lo:77:5"] == said
    assert [text for who, text in rows if who == "parrot"] == answers
    shown = [one.text for one in world.app.messages("5") if one.sender == "77"]
    assert shown == [f"parrot\n{text}" for text in answers]


async def test_a_message_without_a_conversation_begins_one_with_the_only_agent(
    world: World,
) -> None:
    ana = await world.comes_in(agents=["parrot"])
    ana.says("hello")
    await world.shows("5", "hello", "parrot\nparrot: hello")
    assert len(await world.conversations()) == 1


async def test_a_message_for_nobody_in_particular_asks_for_whom(world: World) -> None:
    ana = await world.comes_in()
    ana.says("hello")
    await world.quiet()
    hint = world.app.messages("5")[1]
    assert hint.text.startswith("Whom is that for?")
    ana.presses("parrot", hint)
    await world.quiet()
    assert world.app.texts("5")[-1] == "You talk to parrot now. Just write."


async def test_a_reply_that_grows_is_one_message_and_never_a_second_one(
    world: World, quick_edits: None
) -> None:
    ana = await world.comes_in()
    await world.talks(ana, "writer")
    ana.says("go on")
    await world.until(lambda: bool(world.app.made("5", Op.TYPING)))
    world.stage.write("The first words of a longer text, ")
    await world.until(lambda: len(world.app.messages("5")) == 2)
    world.stage.write("then **more**, ")
    await world.until(lambda: "more" in world.app.texts("5")[1])
    world.stage.write("then the end.", None)
    whole = "writer\nThe first words of a longer text, then more, then the end."
    _, answer = await world.shows("5", "go on", whole)
    await world.until(lambda: bool(answer.spans))  # as it stays; what grows has no styles
    await world.quiet()
    bold = [whole[span.offset : span.end] for span in answer.spans]
    assert bold == ["writer", "more"]
    assert answer.edits >= 2
    assert len(world.app.made("5", Op.SEND)) == 3  # welcome, "you talk to", and this


async def test_a_long_reply_is_several_messages(world: World, quick_edits: None) -> None:
    ana = await world.comes_in()
    conversation = await world.talks(ana, "writer")
    ana.says("much")
    paragraphs = [f"{number:04} {'word ' * 60}".strip() for number in range(40)]
    for part in range(4):
        world.stage.write("\n\n".join(paragraphs[part * 10 : part * 10 + 10]) + "\n\n")
        await world.until(lambda part=part: f"{part * 10:04}" in "".join(world.app.texts("5")))
    world.stage.write(None)
    await world.until(lambda: f"{39:04}" in "".join(world.app.texts("5")))
    await world.quiet()
    texts = world.app.texts("5")[1:]
    assert len(texts) >= 3
    assert all(len(text) <= 4096 for text in texts)
    assert [one for one in paragraphs if one not in "\n".join(texts)] == []
    assert len(await world.said(conversation)) == 2


async def test_a_chat_that_is_closed_while_a_reply_grows_gets_the_end_of_it(
    world: World, quick_edits: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(delivery, "SHUT_MIN_S", 0.01)
    ana = await world.comes_in()
    await world.talks(ana, "writer")
    ana.says("go on")
    world.stage.write("The first words of a longer text, ")
    await world.until(lambda: world.is_shown("5", "first words"))
    world.app.fail(Flooded(0.05), chat="5", times=3)
    world.stage.write("more of it, ")
    await world.until(lambda: bool(world.bridge.status().post.gates))
    world.stage.write("and the end.", None)
    whole = "writer\nThe first words of a longer text, more of it, and the end."
    await world.shows("5", "go on", whole)
    await world.quiet()
    assert world.app.texts("5") == ["go on", whole]


async def test_an_app_that_can_do_little_still_gets_every_answer(
    world: World, quick_edits: None
) -> None:
    world.app.lacks(Op.EDIT, Op.TYPING, Op.REACT, Op.DELETE)
    world.app.lacks_files()
    ana = await world.comes_in()
    conversation = await world.talks(ana, "writer")
    for number in range(2):
        ana.says(f"write {number}")
        world.stage.write(f"{number}: words that are enough to begin a message, ")
        if world.app.caps.edits:
            await world.until(lambda: world.is_shown("5", "0: words"))
        world.stage.write("and more, ", "and the end.", None)
        whole = f"{number}: words that are enough to begin a message, and more, and the end."
        await world.until(lambda whole=whole: world.is_shown("5", whole))
    await world.quiet()
    assert not world.app.caps.edits
    assert len(world.app.messages("5")) <= 5  # the first was begun before that was known
    told = world.app.messages("5")[0]
    row = (await world.log(conversation, "message"))[0]
    await world.owner(
        "chat.react", conversation=conversation, message_id=row["message_id"], reaction="🎉"
    )
    await world.until(lambda: world.is_shown("5", "🎉"))
    await world.talks(ana, "painter")
    ana.says("a cat")
    await world.until(lambda: world.is_shown("5", "picture.txt"))
    assert told.text == "write 0"


async def test_a_very_long_reply_is_a_file_too(world: World) -> None:
    ana = await world.comes_in()
    await world.talks(ana, "writer")
    ana.says("a book")
    book = "\n\n".join(f"Page {number}. {'Words. ' * 50}" for number in range(200))
    world.stage.write(book, None)
    await world.until(lambda: any(one.files for one in world.app.messages("5")))
    await world.quiet()
    [file] = [one for one in world.app.messages("5") if one.files]
    assert file.files[0].decode().strip() == book.strip()
    assert len(world.app.messages("5")) <= 4


async def test_a_reply_that_fails_says_why(world: World) -> None:
    ana = await world.comes_in()
    await world.talks(ana, "breaks")
    ana.says("try")
    await world.until(lambda: len(world.app.messages("5")) == 2)
    assert world.app.texts("5")[1].startswith("⚠️ breaks failed: ")
    assert "the spring is broken" in world.app.texts("5")[1]


async def test_stop_ends_what_is_being_written(world: World) -> None:
    ana = await world.comes_in()
    conversation = await world.talks(ana, "forever")
    ana.says("begin")
    await world.until(lambda: "forever\nbegun" in world.app.texts("5"))
    ana.says("/stop")
    await world.quiet()
    await world.until(lambda: "⏹ forever was stopped." in world.app.texts("5"))
    assert "Stopped." in world.app.texts("5")
    [request] = [row for row in await world.log(conversation, "message") if row["text"] == "begin"]
    assert request["status"] == "cancelled"
    ana.says("/stop")
    await world.quiet()
    assert world.app.texts("5")[-1] == "Nothing of yours is running here."


async def test_the_stop_of_the_app_itself_says_nothing_more(world: World) -> None:
    ana = await world.comes_in()
    await world.talks(ana, "forever")
    ana.says("begin")
    await world.until(lambda: "forever\nbegun" in world.app.texts("5"))
    ana.stops()
    await world.shows("5", "begin", "forever\nbegun", "⏹ forever was stopped.")


async def test_one_person_does_not_stop_what_another_began(world: World) -> None:
    owner = await world.comes_in("1", Role.OWNER)
    ana, bob = await world.comes_in("5"), await world.comes_in("6")
    group = await world.group(owner, agent="forever")
    ana.says("@bridge begin", group)
    await world.until(lambda: "forever\nbegun" in world.app.texts("-9"))
    bob.says("/stop@bridge", group)
    await world.quiet()
    assert world.app.texts("-9")[-1] == "Nothing of yours is running here."
    owner.says("/stop@bridge", group)
    await world.until(lambda: "⏹ forever was stopped." in world.app.texts("-9"))


# Questions -----------------------------------------------------------------------------------


async def test_what_an_agent_asks_is_answered_by_the_next_message(world: World) -> None:
    ana = await world.comes_in()
    conversation = await world.talks(ana, "asker")
    ana.says("hi")
    await world.shows("5", "hi", "asker asks\nWhat is your name?")
    await world.quiet()
    ana.says("Ana")
    await world.shows("5", "hi", "asker asks\nWhat is your name?", "Ana", "asker\nHello Ana")
    requests = [row for row in await world.log(conversation, "message") if row["status"] == "done"]
    assert requests[0]["text"] == "hi"
    ana.says("again")
    await world.until(lambda: len(world.app.messages("5")) == 6)
    assert world.app.texts("5")[-1] == "asker asks\nWhat is your name?"


async def test_a_question_to_one_is_not_answered_by_another(world: World) -> None:
    owner = await world.comes_in("1", Role.OWNER)
    ana, bob = await world.comes_in("5"), await world.comes_in("6")
    group = await world.group(owner, agent="asker")
    ana.says("@bridge hi", group)
    await world.until(lambda: "asker asks\nWhat is your name?" in world.app.texts("-9"))
    await world.quiet()
    bob.says("@bridge I am Bob", group)
    await world.quiet()
    assert "asker\nHello I am Bob" not in world.app.texts("-9")
    ana.says("@bridge Ana", group)
    await world.until(lambda: "asker\nHello Ana" in world.app.texts("-9"))


# Files ---------------------------------------------------------------------------------------


async def test_a_file_of_an_agent_comes_to_the_chat(world: World) -> None:
    ana = await world.comes_in()
    await world.talks(ana, "painter")
    ana.says("a cat")
    await world.until(lambda: len(world.app.messages("5")) == 2)
    answer = world.app.messages("5")[1]
    assert answer.files == (b"a picture of a cat",)
    assert answer.text == "painter\n📎 picture.txt"


async def test_a_file_of_a_person_comes_to_the_agent(world: World) -> None:
    ana = await world.comes_in()
    conversation = await world.talks(ana, "weigher")
    ana.sends(b"12345", "../of/ana.txt", "text/plain", "how heavy?")
    await world.until(lambda: "weigher\nana.txt: 5" in world.app.texts("5"))
    [row] = [row for row in await world.log(conversation, "message") if row["files"]]
    assert row["text"] == "how heavy?"
    content = await get_file(world.voices.owner, row["files"][0])
    assert content == b"12345"


async def test_a_file_that_is_gone_is_said_so(world: World) -> None:
    ana = await world.comes_in()
    await world.talks(ana, "weigher")
    world.app.lose_files()
    ana.sends(b"12345", "a.txt")
    await world.quiet()
    assert world.app.texts("5")[1:] == ["I could not get that file. Please send it again."]


# Changes -------------------------------------------------------------------------------------


async def test_an_edit_and_a_reaction_of_a_person_are_in_the_conversation(world: World) -> None:
    ana = await world.comes_in()
    conversation = await world.talks(ana)
    told = ana.says("helo")
    await world.until(lambda: len(world.app.messages("5")) == 2)
    answer = world.app.messages("5")[1]
    ana.edits(told.msg_id, "hello")
    ana.reacts(answer.id, "👍")
    await world.quiet()
    [edit] = await world.log(conversation, "edit")
    assert (edit["ref"], edit["text"]) == (told.key, "hello")
    [reaction] = await world.log(conversation, "reaction")
    assert reaction["text"] == "👍"
    assert reaction["sender"]["id"] == "lo:77:5"
    assert world.app.texts("5") == ["hello", "parrot\nparrot: helo"]
    assert not answer.reactions.get("77")


async def test_edits_and_reactions_of_the_notebook_are_in_the_chat(world: World) -> None:
    ana = await world.comes_in()
    conversation = await world.talks(ana)
    told = ana.says("hello")
    await world.until(lambda: len(world.app.messages("5")) == 2)
    await world.owner("chat.post", conversation=conversation, text="I too", message_id="m1")
    await world.until(lambda: len(world.app.messages("5")) == 4)
    mine = world.app.messages("5")[2]
    assert mine.text == "owner (notebook)\nI too"
    await world.owner("chat.edit", conversation=conversation, message_id="m1", text="I as well")
    await world.until(lambda: mine.text == "owner (notebook)\nI as well")
    await world.owner("chat.react", conversation=conversation, message_id=told.key, reaction="🎉")
    hers = world.app.messages("5")[0]
    await world.until(lambda: hers.reactions.get("77") == "🎉")


async def test_a_reply_to_a_person_says_to_what_and_one_to_an_agent_calls_it(
    world: World,
) -> None:
    owner = await world.comes_in("1", Role.OWNER)
    ana = await world.comes_in("5")
    group = await world.group(owner)
    conversation = world.store.bindings()[0].conversation
    await world.owner("chat.join", conversation=conversation, who="host")
    told = ana.says("@bridge the sky is blue", group)
    await world.until(lambda: world.app.texts("-9")[-1].startswith("parrot\n"))
    owner.says("@bridge @host why?", group, reply_to=told.msg_id)
    await world.quiet()
    await world.until(lambda: any("host heard" in text for text in world.app.texts("-9")))
    said = [text for _, text in await world.said(conversation)]
    assert "> Ana5 (lo): the sky is blue\n\n@host why?" in said
    answer = next(one for one in world.app.messages("-9") if "host heard" in one.text)
    ana.says("and now?", group, reply_to=answer.id)
    await world.quiet()
    await world.until(lambda: world.app.texts("-9")[-1].endswith("host heard: parrot: and now?"))


async def test_a_message_to_one_agent_comes_to_it_without_its_name(world: World) -> None:
    ana = await world.comes_in()
    conversation = await world.talks(ana, "writer")
    ana.says("@parrot 3 and 4")
    await world.until(lambda: world.app.texts("5")[-1] == "parrot\nparrot: 3 and 4")
    assert await world.said(conversation) == [("lo:77:5", "3 and 4"), ("parrot", "parrot: 3 and 4")]
    world.stage.write("heard", None)
    ana.says("@nobody is just text")
    await world.until(lambda: world.app.texts("5")[-1] == "writer\nheard")
    assert ("lo:77:5", "@nobody is just text") in await world.said(conversation)


# Both sides ----------------------------------------------------------------------------------


async def test_a_notebook_and_a_phone_in_one_conversation_see_each_other(world: World) -> None:
    ana = await world.comes_in("5", Role.OWNER)
    conversation = (await world.owner("chat.open", agents=["parrot"]))["conversation"]
    await world.owner("chat.post", conversation=conversation, text="before", message_id="m1")
    ana.says("/chats")
    await world.quiet()
    assert conversation in world.app.texts("5")[-1]
    ana.says(f"/join {conversation}")
    await world.quiet()
    joined = world.app.texts("5")[-1]
    assert joined.startswith("You are in the conversation with parrot.")
    assert "before" in joined
    await world.owner("chat.post", conversation=conversation, text="from here", message_id="m2")
    await world.until(lambda: "parrot\nparrot: from here" in world.app.texts("5"))
    assert "owner (notebook)\nfrom here" in world.app.texts("5")
    ana.says("from there")
    await world.until(lambda: "parrot\nparrot: from there" in world.app.texts("5"))
    assert ("lo:77:5", "from there") in await world.said(conversation)
    assert len(world.app.texts("5")) == len(set(world.app.texts("5")))


async def test_only_the_owner_joins_what_nobody_was_brought_into(world: World) -> None:
    conversation = (await world.owner("chat.open", agents=["parrot"]))["conversation"]
    await world.owner("chat.post", conversation=conversation, text="mine", message_id="m1")
    ana = await world.comes_in("5")
    for command in ("/chats", f"/join {conversation}", f"/watch {conversation}"):
        ana.says(command)
        await world.quiet()
        assert "mine" not in world.app.texts("5")[-1]
    assert not world.store.bindings()
    assert [row["kind"] for row in await world.log(conversation) if row["kind"] == "join"] == []


async def test_two_phones_in_one_conversation_see_each_other(world: World) -> None:
    owner = await world.comes_in("1", Role.OWNER)
    conversation = await world.talks(owner)
    code = await world.bridge.pair(conversation=conversation)
    ana = world.app.person("5", "Ana")
    ana.says(f"/pair {code.code}")
    await world.quiet()
    world.app.wipe("5")
    ana.says("hello")
    await world.shows("5", "hello", "parrot\nparrot: hello")
    await world.shows("1", "Ana (lo) joined", "Ana (lo)\nhello", "parrot\nparrot: hello")


async def test_what_runs_between_agents_can_be_watched_and_stepped_into(
    world: World, quick_watch: None
) -> None:
    owner = await world.comes_in("1", Role.OWNER)
    parent = await world.talks(owner, "host")
    owner.says("a secret")
    await world.until(lambda: "host\nhost heard: parrot: a secret" in world.app.texts("1"))
    [child] = [row for row in await world.conversations() if row["parent"] == parent]
    owner.says("/chats")
    await world.quiet()
    assert "between agents" in world.app.texts("1")[-1]
    owner.says(f"/watch {child['conversation']}")
    await world.quiet()
    assert world.app.texts("1")[-1].startswith("You read along in")
    owner.says("stop that")
    await world.quiet()
    asked = world.app.messages("1")[-1]
    assert asked.text.startswith("You only read along here.")
    assert len(await world.said(child["conversation"])) == 2
    owner.presses("Step in", asked)
    await world.until(lambda: "parrot\nparrot: stop that" in world.app.texts("1"))
    assert ("lo:77:1", "stop that") in await world.said(child["conversation"])
    assert "parrot: a secret" not in "\n".join(world.app.texts("1")[-3:])


async def test_who_watches_is_told_what_happens(world: World, quick_watch: None) -> None:
    owner = await world.comes_in("1", Role.OWNER)
    ana = await world.comes_in("5")
    conversation = await world.talks(ana)
    owner.says(f"/watch {conversation}")
    await world.quiet()
    world.app.wipe("1")
    ana.says("hello")
    await world.until(lambda: "parrot: hello" in "\n".join(world.app.texts("1")))
    assert "Ana5 (lo)\nhello" in "\n".join(world.app.texts("1"))


async def test_what_a_watcher_was_not_told_yet_is_told_by_the_next_bridge(world: World) -> None:
    owner = await world.comes_in("1", Role.OWNER)
    ana = await world.comes_in("5")
    conversation = await world.talks(ana)
    owner.says(f"/watch {conversation}")
    await world.quiet()
    ana.says("one")
    await world.until(lambda: world.is_shown("1", "one"))
    ana.says("two")  # within five seconds: it is gathered
    await world.until(lambda: world.is_shown("5", "parrot: two"))
    await world.again()
    await world.until(lambda: world.is_shown("1", "parrot: two"))
    shown = "\n".join(world.app.texts("1"))
    assert shown.count("Ana5 (lo)\none") == shown.count("Ana5 (lo)\ntwo") == 1


async def test_many_messages_are_a_summary_with_a_button(
    world: World, monkeypatch: pytest.MonkeyPatch, quick_watch: None
) -> None:
    monkeypatch.setattr(collapsing, "CROWD_PER_MIN", 2)
    owner = await world.comes_in("1", Role.OWNER)
    ana = await world.comes_in("5")
    conversation = await world.talks(ana)
    owner.says(f"/watch {conversation}")
    await world.quiet()
    for number in range(6):
        ana.says(f"number {number}")
    await world.until(lambda: any(one.buttons for one in world.app.messages("1")))
    await world.quiet()
    summary = next(one for one in world.app.messages("1") if one.buttons)
    assert summary.text.startswith("👁 ")
    world.app.wipe("1")
    pressed = owner.presses("Show", summary)
    await world.quiet()
    assert world.app.answers[pressed.answer_to].text == ""
    # A summary of what was said last may still come before it, or after.
    await world.until(lambda: world.is_shown("1", "number"))


async def test_stepping_into_what_one_is_in_already_repeats_nothing(
    world: World, quick_watch: None
) -> None:
    ana = await world.comes_in()
    conversation = await world.talks(ana)
    ana.says("hello")
    await world.until(lambda: len(world.app.messages("5")) == 2)
    ana.says(f"/watch {conversation}")
    await world.quiet()
    ana.says("more")
    await world.quiet()
    ana.presses("Step in", world.app.messages("5")[-1])
    await world.until(lambda: world.app.texts("5")[-1] == "parrot\nparrot: more")
    await world.quiet()
    assert world.app.texts("5").count("parrot\nparrot: hello") == 1
    assert "Ana5 (lo)\nhello" not in world.app.texts("5")


async def test_a_reply_to_what_another_conversation_showed_goes_on_there(world: World) -> None:
    ana = await world.comes_in()
    first = await world.talks(ana)
    ana.says("one")
    _, answer = await world.shows("5", "one", "parrot\nparrot: one")
    second = await world.talks(ana)
    ana.says("two", reply_to=answer.id)
    await world.until(lambda: "parrot\nparrot: two" in world.app.texts("5"))
    assert [text for _, text in await world.said(first)][2:] == ["two", "parrot: two"]
    assert not await world.said(second)


async def test_a_message_from_a_quarter_of_an_hour_ago_is_asked_about_first(
    world: World,
) -> None:
    ana = await world.comes_in()
    conversation = await world.talks(ana)
    ana.says("old", ago_s=1000)
    await world.quiet()
    asked = world.app.messages("5")[1]
    assert asked.text == "You wrote this 16 minutes ago, while I was away: “old”\nSend it now?"
    assert not await world.said(conversation)
    ana.presses("Send", asked)
    await world.until(lambda: "parrot\nparrot: old" in world.app.texts("5"))
    assert asked.text == "Sent."
    assert not asked.buttons
    ana.says("older", ago_s=10_000)
    await world.quiet()
    again = world.app.messages("5")[-1]
    ana.presses("Drop it", again)
    await world.quiet()
    assert again.text == "Dropped: nobody saw it."
    assert len(await world.said(conversation)) == 2


async def test_what_was_said_before_a_long_outage_is_not_asked_about(world: World) -> None:
    ana = await world.comes_in()
    conversation = await world.talks(ana)
    ana.says("hello")
    await world.crash_when_said(conversation)
    world.clock.now += 1000
    await world.start()
    await world.shows("5", "hello", "parrot\nparrot: hello")
    await world.quiet()
    assert len(world.app.messages("5")) == len(await world.said(conversation)) == 2


async def test_two_slashes_say_one_to_the_agent_and_an_unknown_command_is_offered(
    world: World,
) -> None:
    ana = await world.comes_in()
    conversation = await world.talks(ana)
    ana.says("//reset now")
    await world.until(lambda: "parrot\nparrot: /reset now" in world.app.texts("5"))
    ana.says("/reset now")
    await world.quiet()
    asked = world.app.messages("5")[-1]
    assert asked.text.startswith("I do not know /reset.")
    ana.presses("Pass it on", asked)
    await world.until(lambda: world.app.texts("5").count("parrot\nparrot: /reset now") == 2)
    assert asked.text == "Passed on."
    assert len(await world.said(conversation)) == 4


async def test_forwarded_words_are_a_quote_that_calls_nobody(world: World) -> None:
    ana = await world.comes_in()
    conversation = await world.talks(ana)
    await world.owner("chat.join", conversation=conversation, who="host")
    ana.says("@host do it", forwarded=True)
    await world.until(lambda: world.app.texts("5")[-1].startswith("parrot\n"))
    said = await world.said(conversation)
    assert said[0] == ("lo:77:5", "forwarded by Ana5 (lo):\n> `@host` do it")
    assert [who for who, _ in said] == ["lo:77:5", "parrot"]
