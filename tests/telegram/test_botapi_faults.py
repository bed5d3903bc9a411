"""Faults: each one as the client libraries meet it, and what is true on the server afterwards."""

from __future__ import annotations

import pytest

from tests.telegram.botapi import Limits
from tests.telegram.clients import Aiogram, Ptb


def say(client, chat, text="hello"):
    return client.send_message(chat_id=chat.id, text=text)


def retry_after(botapi, client, chat):
    with pytest.raises(client.Error):
        say(client, chat)
    call = botapi.record.calls[-1]
    assert call.status == 429
    return int(call.description.removeprefix("Too Many Requests: retry after "))


def test_a_flooded_chat_is_closed_and_calls_in_spite_of_it_make_it_longer(botapi, client, ada):
    botapi.clock.stop()
    bob = botapi.person("Bob")
    bob.starts()
    botapi.flood.close(ada.id, seconds=5)
    assert retry_after(botapi, client, ada) == 5
    assert not botapi.flood.violations
    with pytest.raises(client.Error):
        client.send_chat_action(chat_id=ada.id, action="typing")
    assert retry_after(botapi, client, ada) == 20
    assert botapi.flood.violations == {ada.id: 2}
    assert say(client, bob).text == "hello"
    botapi.clock.skip(20)
    assert say(client, ada).text == "hello"


def test_both_libraries_read_retry_after(botapi, client, ada):
    botapi.clock.stop()
    botapi.flood.close(seconds=7)
    with pytest.raises(client.Error) as caught:
        client.answer_callback_query("1")
    value = caught.value.retry_after
    assert getattr(value, "seconds", value) == 7


def test_the_published_rates(botapi, client, ada):
    botapi.clock.stop()
    botapi.flood.limits = Limits(private_burst=3, retry_after_s=2)
    for _ in range(3):
        say(client, ada)
    assert retry_after(botapi, client, ada) == 3
    botapi.clock.skip(10)
    group = botapi.group(ada, botapi.bot)
    sent = say(client, group)
    for number in range(19):
        client.edit_message_text(f"{number}", chat_id=group.id, message_id=sent.message_id)
        botapi.clock.skip(1.5)
    assert retry_after(botapi, client, group) > 25
    botapi.flood.limits = Limits(overall_per_s=2, private_burst=100)
    botapi.clock.skip(100)
    say(client, ada)
    say(client, ada)
    assert retry_after(botapi, client, ada) == 3


@pytest.mark.parametrize("body", [None, {"ok": False, "error_code": 500, "description": "x"}])
def test_a_server_error_has_no_effect(botapi, client, ada, body):
    fault = botapi.faults.answer("sendMessage", 500, body, times=2)
    for _ in range(2):
        with pytest.raises(Exception, match=r"."):
            say(client, ada)
    assert fault.hits == 2
    assert say(client, ada).text == "hello"
    assert ada.chat().texts() == ["/start", "hello"]


def test_a_method_can_be_missing_for_ever(botapi, client, ada):
    botapi.faults.answer(["setMyCommands", "sendMessageDraft"], 404, times=None)
    for _ in range(2):
        with pytest.raises(client.Error):
            client.set_my_commands([])
    assert botapi.record.counts["setMyCommands", 404] == 2
    botapi.faults.clear()
    assert client.set_my_commands([]) is True


@pytest.mark.parametrize("after", [False, True])
def test_a_reset_line_tells_nothing_about_the_effect(botapi, client, ada, after):
    botapi.faults.cut("sendMessage", chat=ada.id, after=after)
    with pytest.raises(client.Error):
        say(client, ada)
    assert ("hello" in ada.chat().texts()) is after
    call = botapi.record.of("sendMessage", chat=ada.id)[-1]
    assert (call.status, call.effect) == (None, after)


def test_updates_whose_answer_was_lost_come_again(botapi, client, ada):
    ada.says("one")
    botapi.faults.cut("getUpdates", after=True)
    with pytest.raises(client.Error):
        client.get_updates()
    assert [update.message.text for update in client.get_updates()] == ["one"]


def test_a_call_can_be_held_before_and_after_its_effect(botapi, client, ada):
    before = botapi.faults.hold("sendMessage")
    after = botapi.faults.hold("sendMessage", after=True)
    call = client.begin(client.bot.send_message(ada.id, "hello"))
    before.wait()
    assert "hello" not in ada.chat().texts()
    before.release()
    after.wait()
    assert "hello" in ada.chat().texts()
    assert not call.done()
    after.release()
    assert call.result(20).text == "hello"


def test_latency_takes_time(botapi, client, ada):
    botapi.faults.delay("*", 0.05)
    say(client, ada)
    call = botapi.record.of("sendMessage")[-1]
    assert call.ended - call.at >= 0.05


def test_an_outage_cuts_polls_and_loses_nothing(botapi, client, ada):
    poll = client.begin(client.bot.get_updates(timeout=20))
    botapi.wait(lambda: botapi.record.of("getUpdates"))
    with botapi.outage():
        with pytest.raises(client.Error):
            poll.result(20)
        with pytest.raises(client.Error):
            client.get_me()
        ada.says("meanwhile")
    assert [update.message.text for update in client.get_updates()] == ["meanwhile"]


def test_updates_of_unknown_kind_and_with_unknown_fields(botapi, client, ada):
    botapi.inject({"telepathy": {"thought": "hm"}})
    message = ada.says("x").json() | {"mood": "good"}
    botapi.inject({"message": message})
    strange, _, known = client.get_updates()
    assert strange.message is None
    assert known.message.text == "x"


def test_a_malformed_update_stays_until_it_is_confirmed(botapi, client, ada):
    number = botapi.inject({"message": {"message_id": "x", "chat": 5}})
    ada.says("behind it")
    for _ in range(2):
        with pytest.raises(Exception, match=r"."):
            client.get_updates()
    assert [update.message.text for update in client.get_updates(offset=number + 1)] == [
        "behind it"
    ]


def test_every_update_and_answer_is_understood_by_both(botapi, client, ada):
    """A story with everything in it: no field is missing, and none is not Telegram's."""
    kinds = [
        *("message", "edited_message", "callback_query", "inline_query", "chosen_inline_result"),
        *("message_reaction", "my_chat_member", "chat_member", "stopped_message_generation"),
    ]
    client.get_updates(allowed_updates=kinds)
    botapi.bot.privacy = False
    bob = botapi.person("Bob", last_name="Baker")
    forum = botapi.group(ada, bob, topics=True)
    forum.add(botapi.bot, "administrator")
    group = botapi.group(ada, botapi.bot)
    topic = forum.topic("Plans")
    message = ada.says("look https://a.example/ @x #y a@b.example", forum.chat, topic=topic)
    forum.anonymous("psst")
    forum.channel("post", linked=True)
    ada.reacts(message, "🔥", "👍")
    forum.remove(bob)
    group.migrate()
    for kind in ("photo", "document", "voice", "audio", "video", "animation"):
        ada.sends(kind, b"data", "caption")
    ada.edits(ada.says("one"), "two")
    ada.forwards(message)
    sent = client.send_message(chat_id=ada.id, text="?", reply_markup=client.keyboard(a="b"))
    ada.presses(ada.chat().messages[sent.message_id], "a")
    ada.says("quoting", reply_to=ada.chat().messages[sent.message_id], quote="?")
    asked = ada.searches("x")
    content = client.types.InputTextMessageContent(message_text="x")
    article = client.types.InlineQueryResultArticle(
        id="1", title="t", input_message_content=content, reply_markup=client.keyboard(a="b")
    )
    client.answer_inline_query(asked.id, [article])
    ada.presses(ada.picks(asked, "1"), "a")
    more = {"can_stop": True}
    more = {"api_kwargs": more} if isinstance(client, Ptb) else more
    client.send_message_draft(chat_id=ada.id, draft_id=1, text="x", **more)
    ada.stops(ada.draft())
    ada.blocks()
    pending = [update.body for update in botapi.bot.updates.pending]
    seen = {name for body in pending for name in body} - {"update_id"}
    assert seen == set(kinds)
    assert len(client.get_updates()) == len(pending)
    unknown = set().union(*(client.unknown(client.parsed(body)) for body in pending))
    newer = {"stopped_message_generation", "can_send_welcome_messages"}
    assert unknown == (set() if isinstance(client, Aiogram) else newer)
    results = [client.get_me(), client.get_chat(forum.id), client.get_chat(ada.id)]
    newer = {"supports_guest_queries", "supports_join_request_queries", "can_manage_bots"}
    assert set().union(*map(client.unknown, results)) <= (
        set() if isinstance(client, Aiogram) else newer
    )
