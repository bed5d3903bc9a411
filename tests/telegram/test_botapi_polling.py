"""Long polling as both client libraries see it."""

from __future__ import annotations

import pytest

from tests.telegram.botapi import BotApi
from tests.telegram.clients import LIBRARIES, connect


def ids(updates):
    return [update.update_id for update in updates]


def test_updates_come_again_until_they_are_confirmed(botapi, client, ada):
    for text in ("one", "two", "three"):
        ada.says(text)
    first = client.get_updates()
    assert [update.message.text for update in first] == ["one", "two", "three"]
    assert ids(client.get_updates()) == ids(first)
    assert ids(first) == list(range(first[0].update_id, first[0].update_id + 3))
    assert ids(client.get_updates(offset=first[1].update_id)) == ids(first)[1:]
    assert ids(client.get_updates(limit=1)) == ids(first)[1:2]
    assert list(client.get_updates(offset=first[2].update_id + 1)) == []
    assert botapi.bot.updates.confirmed == ids(first)


def test_a_negative_offset_counts_from_the_end_and_forgets_the_rest(botapi, client, ada):
    for text in ("one", "two", "three"):
        ada.says(text)
    assert [update.message.text for update in client.get_updates(offset=-2)] == ["two", "three"]
    assert [update.message.text for update in client.get_updates()] == ["two", "three"]


def test_a_poll_waits_for_an_update(botapi, client, ada):
    poll = client.begin(client.bot.get_updates(timeout=20))
    botapi.wait(lambda: botapi.record.of("getUpdates"))
    ada.says("here")
    assert [update.message.text for update in poll.result(20)] == ["here"]


def test_a_second_poller_ends_the_first_with_a_conflict(botapi, client, ada):
    first = client.begin(client.bot.get_updates(timeout=20))
    botapi.wait(lambda: botapi.record.of("getUpdates"))
    second = client.begin(client.bot.get_updates(timeout=20))
    with pytest.raises(client.Error, match="terminated by other getUpdates request"):
        first.result(20)
    ada.says("for the second")
    assert len(second.result(20)) == 1
    assert botapi.record.counts["getUpdates", 409] == 1


def test_a_poller_that_died_is_no_conflict(botapi, client, ada):
    first = client.begin(client.bot.get_updates(timeout=20))
    botapi.wait(lambda: botapi.record.of("getUpdates"))
    first.cancel()
    botapi.wait(lambda: not botapi.bot.updates._alive())
    second = client.begin(client.bot.get_updates(timeout=20))
    botapi.wait(lambda: len(botapi.record.of("getUpdates")) == 2)
    ada.says("hello")
    assert len(second.result(20)) == 1
    assert not botapi.bot.updates.conflicts


def test_only_the_kinds_that_were_asked_for(botapi, client, ada):
    group = botapi.group(ada, botapi.bot, kind="supergroup")
    group.add(botapi.bot, "administrator")
    message = ada.says("hello", group.chat)
    client.get_updates(offset=-1, allowed_updates=["message_reaction"])
    ada.says("not this")
    ada.reacts(message, "👍")
    (update,) = client.get_updates(offset=botapi.bot.updates.pending[0].id + 1)
    assert update.message_reaction.new_reaction[0].emoji == "👍"
    client.get_updates(offset=update.update_id + 1, allowed_updates=[])
    ada.reacts(message)
    ada.says("this again")
    assert [update.message.text for update in client.get_updates()] == ["this again"]


def test_after_a_day_an_update_is_gone(botapi, client, ada):
    ada.says("old")
    botapi.clock.skip(24 * 3600 + 1)
    ada.says("new")
    assert [update.message.text for update in client.get_updates()] == ["new"]


def test_bots_have_updates_of_their_own():
    with BotApi() as api:
        other = api.new_bot("Other")
        ada = api.person()
        ada.says("to the first")
        ada.says("to the other", bot=other)
        for library in LIBRARIES:
            client = connect(library, api, other.token)
            (update,) = client.get_updates()
            assert update.message.text == "to the other"
            client.close()


@pytest.mark.parametrize("library", LIBRARIES)
def test_a_bot_is_told_who_it_is(botapi, library):
    client = connect(library, botapi)
    me = client.get_me()
    client.close()
    assert (me.id, me.username, me.is_bot) == (botapi.bot.id, botapi.bot.username, True)
    assert me.can_read_all_group_messages is False
    assert me.supports_inline_queries is True
