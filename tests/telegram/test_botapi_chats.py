"""Groups, topics, privacy, migration and who may be where, through both client libraries."""

from __future__ import annotations

import pytest


def heard(client):
    return [update.message.text for update in client.get_updates() if update.message]


def test_privacy_mode_hides_what_is_not_meant_for_the_bot(botapi, client, ada):
    group = botapi.group(ada, botapi.bot)
    other = botapi.new_bot("Other")
    group.add(other)
    botapi.run(botapi.bot.updates.forget_all)
    sent = client.send_message(chat_id=group.id, text="from me")
    name = botapi.bot.username
    ada.says("between us", group.chat)
    ada.says("/go", group.chat)
    ada.says(f"/go@{name}", group.chat)
    ada.says("/go@another_bot", group.chat)
    ada.says(f"what do you think, @{name}?", group.chat)
    ada.says("yes", group.chat, reply_to=group.chat.messages[sent.message_id])
    assert heard(client) == ["/go", f"/go@{name}", f"what do you think, @{name}?", "yes"]
    group.add(botapi.bot, "administrator")
    ada.says("for admins too", group.chat)
    assert heard(client)[-1] == "for admins too"
    assert not any("from me" in str(update.body) for update in other.updates.pending)


def test_without_privacy_mode_a_bot_hears_all(botapi, client, ada):
    botapi.bot.privacy = False
    group = botapi.group(ada, botapi.bot)
    ada.says("between us", group.chat)
    assert heard(client)[-1] == "between us"
    assert client.get_me().can_read_all_group_messages is True


def test_a_topic_is_named_in_everything_that_belongs_to_it(botapi, client, ada):
    group = botapi.group(ada, botapi.bot, topics=True)
    group.add(botapi.bot, "administrator")
    made = client.create_forum_topic(chat_id=group.id, name="Plans")
    place = made.message_thread_id
    sent = client.send_message(chat_id=group.id, text="in it", message_thread_id=place)
    assert (sent.message_thread_id, sent.is_topic_message) == (place, True)
    ada.says("me too", group.chat, topic=group.chat.topics[place])
    message = client.get_updates()[-1].message
    assert (message.message_thread_id, message.is_topic_message) == (place, True)
    assert message.reply_to_message.forum_topic_created.name == "Plans"
    reply = client.types.ReplyParameters(message_id=message.message_id)
    replied = client.send_message(chat_id=group.id, text="back", reply_parameters=reply)
    assert replied.message_thread_id == place
    assert client.send_chat_action(group.id, "typing", message_thread_id=1) is True
    for missing in (1, 99999):
        with pytest.raises(client.Error, match=r"(?i)message thread not found"):
            client.send_message(chat_id=group.id, text="lost", message_thread_id=missing)
    assert client.edit_forum_topic(group.id, place, name="Other plans") is True
    assert client.close_forum_topic(group.id, place) is True
    assert client.reopen_forum_topic(group.id, place) is True
    assert client.delete_forum_topic(group.id, place) is True
    assert place not in group.chat.topics


def test_a_reply_outside_topics_names_a_place_that_is_none(botapi, client, ada):
    botapi.bot.privacy = False
    group = botapi.group(ada, botapi.bot, kind="supergroup")
    first = ada.says("first", group.chat)
    ada.says("reply", group.chat, reply_to=first)
    message = client.get_updates()[-1].message
    assert message.message_thread_id == first.id
    assert not message.is_topic_message
    with pytest.raises(client.Error, match=r"(?i)message thread not found"):
        client.send_message(chat_id=group.id, text="x", message_thread_id=first.id)


def test_private_chats_can_have_topics(botapi, client, ada):
    botapi.bot.topics = True
    assert client.get_me().has_topics_enabled is True
    made = client.create_forum_topic(chat_id=ada.id, name="One")
    sent = client.send_message(ada.id, "here", message_thread_id=made.message_thread_id)
    assert sent.message_thread_id == made.message_thread_id


def test_a_group_becomes_a_supergroup_with_another_id(botapi, client, ada):
    group = botapi.group(ada, botapi.bot)
    new = group.migrate()
    updates = [update.message for update in client.get_updates() if update.message]
    assert updates[-2].migrate_to_chat_id == new.id
    assert updates[-1].migrate_from_chat_id == group.id
    with pytest.raises(client.Error):
        client.send_message(chat_id=group.id, text="to the old one")
    call = botapi.record.calls[-1]
    assert call.status == 400
    assert "upgraded to a supergroup chat" in call.description
    assert client.send_message(chat_id=new.id, text="to the new one").chat.id == new.id


def test_a_bot_that_was_blocked_hears_of_it_and_cannot_write(botapi, client, ada):
    ada.blocks()
    event = client.get_updates()[-1].my_chat_member
    assert (event.old_chat_member.status, event.new_chat_member.status) == ("member", "kicked")
    with pytest.raises(client.Error, match=r"(?i)bot was blocked by the user"):
        client.send_message(chat_id=ada.id, text="hello?")
    assert botapi.record.calls[-1].status == 403
    ada.unblocks()
    assert client.send_message(chat_id=ada.id, text="hello").text == "hello"


def test_whom_a_bot_may_not_write_to(botapi, client, ada):
    bob = botapi.person("Bob")
    group = botapi.group(ada, bob, botapi.bot, kind="supergroup")
    other = botapi.new_bot("Other")
    unknown = botapi.person("Carol")
    expected = {
        bob.id: (403, "Forbidden: bot can't initiate conversation with a user"),
        unknown.id: (400, "Bad Request: chat not found"),
        -100999: (400, "Bad Request: chat not found"),
        other.id: (403, "Forbidden: bots can't send messages to bots"),
    }
    group.remove(botapi.bot)
    expected[group.id] = (403, "Forbidden: bot was kicked from the supergroup chat")
    for chat_id, (code, why) in list(expected.items())[1:]:
        with pytest.raises(client.Error):
            client.send_message(chat_id=chat_id, text="hello")
        call = botapi.record.calls[-1]
        assert (call.status, call.description) == (code, why)
    group.add(botapi.bot)
    with pytest.raises(client.Error, match=r"(?i)can't initiate conversation"):
        client.send_message(chat_id=bob.id, text="hello")


def test_who_speaks_in_the_name_of_a_chat_is_nobody(botapi, client, ada):
    botapi.bot.privacy = False
    group = botapi.group(ada, botapi.bot, kind="supergroup")
    group.anonymous("from an admin")
    group.channel("from a channel")
    group.channel("from the linked one", linked=True)
    admin, channel, linked = [update.message for update in client.get_updates()][-3:]
    assert (admin.from_user.id, admin.sender_chat.id) == (1087968824, group.id)
    assert (channel.from_user.id, channel.sender_chat.type) == (136817688, "channel")
    assert (linked.from_user.id, linked.is_automatic_forward) == (777000, True)


def test_chats_and_members_can_be_asked_about(botapi, client, ada):
    group = botapi.group(ada, botapi.bot, topics=True, title="Plans")
    full = client.get_chat(group.id)
    assert (full.title, full.is_forum, full.type) == ("Plans", True, "supergroup")
    assert client.get_chat(ada.id).username == "ada_l"
    assert client.get_chat_member(group.id, ada.id).status == "creator"
    assert client.get_chat_member(group.id, botapi.bot.id).status == "member"
    group.add(botapi.bot, "administrator")
    people = {member.user.id for member in client.get_chat_administrators(group.id)}
    assert people == {ada.id, botapi.bot.id}
    assert client.get_chat_member_count(group.id) == 2
    with pytest.raises(client.Error, match=r"(?i)user not found"):
        client.get_chat_member(group.id, 4242)
    assert client.leave_chat(group.id) is True
    with pytest.raises(client.Error, match=r"(?i)not a member"):
        client.send_message(group.id, "still here?")
