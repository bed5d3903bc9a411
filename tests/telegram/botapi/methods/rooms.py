"""Chats as bots ask about them: getChat, members, leaving."""

from __future__ import annotations

from typing import Any

from tests.telegram.botapi.accounts import User
from tests.telegram.botapi.chats import INSIDE
from tests.telegram.botapi.errors import bad, migrated
from tests.telegram.botapi.methods.table import Asked, method


@method("getChat")
def get_chat(asked: Asked) -> dict[str, Any]:
    chat = asked.chat(writing=False)
    if chat.migrated_to:
        raise migrated(chat.migrated_to.id)
    return chat.full()


@method("getChatMember")
def get_chat_member(asked: Asked) -> dict[str, Any]:
    chat = asked.chat()
    number = asked.args.integer("user_id")
    user: User | None = asked.world.users.get(number)
    if user is None:
        raise bad("user not found" if number else "invalid user_id specified")
    return chat.member(user)


@method("getChatAdministrators")
def get_chat_administrators(asked: Asked) -> list[dict[str, Any]]:
    chat = asked.chat()
    if chat.person:
        raise bad("there are no administrators in the private chat")
    people = [user for user, _ in chat.members.values()]
    return [chat.member(user) for user in people if chat.is_admin(user)]


@method("getChatMemberCount")
def get_chat_member_count(asked: Asked) -> int:
    return sum(status in INSIDE for _, status in asked.chat().members.values())


@method("leaveChat")
def leave_chat(asked: Asked) -> bool:
    chat = asked.chat()
    if chat.person:
        raise bad("chat member status can't be changed in private chats")
    asked.world.set_status(chat, asked.bot, "left", asked.bot)
    return True
