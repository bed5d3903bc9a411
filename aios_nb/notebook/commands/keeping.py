"""``chats``, ``history``, ``rename``, ``delete``, ``export``: conversations as they are kept."""

from __future__ import annotations

from typing import Any

from aios_nb.notebook.commands import Call
from aios_nb.notebook.show.results import Note
from aios_nb.people.conversations import find, form_of, renamed, write
from aios_nb.richtext import one_line
from aios_nb.site import Chats, History
from aios_nb.tilde import expanded

_LIMIT = 20
_LATEST = "last"


def chats(call: Call) -> Chats:
    return call.node().chats(call["limit"] or _LIMIT)


def history(call: Call) -> History:
    node = call.node()
    wanted = _LATEST if call["c"] is None else call["c"]
    conversation = node.run(lambda: find(node.client, wanted))
    return node.history(conversation)


def rename(call: Call) -> Note:
    title = one_line(call["title"])
    conversation = _change(call, "chat.rename", title=title)["conversation"]
    return Note(renamed(conversation, title))


def delete(call: Call) -> Note:
    return Note(f"{_change(call, 'chat.delete')['conversation']} is deleted")


def export(call: Call) -> Note:
    path = expanded(call["file"])
    form = form_of(path, replace=call["force"])
    made = _change(call, "chat.export", format=form)
    write(path, str(made["text"]).encode())
    return Note(f"written to {path}")


def _change(call: Call, method: str, **more: Any) -> dict[str, Any]:
    node = call.node()

    async def change() -> dict[str, Any]:
        conversation = await find(node.client, call["c"])
        result: dict[str, Any] = await node.client.call(method, conversation=conversation, **more)
        return result

    return node.run(change)
