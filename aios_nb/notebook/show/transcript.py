"""A conversation, as it was said: what a chat leaves in a saved notebook."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from aios_nb.notebook.show import page
from aios_nb.notebook.show.page import Bundle
from aios_nb.notebook.widgets import printed
from aios_nb.notebook.widgets.items import Who
from aios_nb.notebook.widgets.transcript import Transcript
from aios_nb.people.naming import NODE_SHOWN, short
from aios_nb.richtext import one_line
from aios_nb.site import History


class _OnPaper(Transcript):
    """Names the nodes of others, as ``%aios chats`` does: their owner is not who reads this."""

    def who(self, sender: Mapping[str, Any]) -> Who:
        found = super().who(sender)
        is_node = found.node and found.name == "owner" and not found.agent
        return msgspec.structs.replace(found, name=f"node {found.node}") if is_node else found


def transcript(history: History) -> Bundle:
    said = _OnPaper(f"owner@{history.node_id}", lambda node: node[:NODE_SHOWN])
    said.default = next(iter(history.agents), "")
    for event in history.messages:
        said.take(msgspec.to_builtins(event))
    agents = ", ".join(short(agent, history.node_id) for agent in history.agents)
    title = history.title or (f"With {agents}" if agents else "Conversation")
    head = one_line(f"{title} · {history.conversation}")
    items = said.sorted()
    return page.bundle(printed.as_html(head, items, {}), printed.as_text(head, items))
