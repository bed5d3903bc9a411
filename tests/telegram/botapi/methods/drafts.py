"""Drafts: what a person sees while an answer is being written."""

from __future__ import annotations

from tests.telegram.botapi.errors import bad
from tests.telegram.botapi.methods.table import Asked, method
from tests.telegram.botapi.settings import TEXT_UNITS


@method("sendMessageDraft")
def send_message_draft(asked: Asked) -> bool:
    chat = asked.chat()
    if not chat.person:
        raise bad("message drafts can be sent only to private chats")
    draft_id = asked.args.integer("draft_id")
    if not draft_id:
        raise bad("draft identifier must be non-zero")
    said = asked.formatted("text", "entities", TEXT_UNITS, "message is too long")
    if asked.args.text("text") and not said.text:
        raise bad("text must be non-empty")
    place = asked.args.integer("message_thread_id")
    chat.topic(place, asked.bot)
    asked.world.draft(chat, draft_id, said.text, place, asked.args.flag("can_stop"))
    return True
