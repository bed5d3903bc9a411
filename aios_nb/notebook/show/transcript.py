"""A conversation, as it was said: what a chat leaves in a saved notebook."""

from __future__ import annotations

import msgspec

from aios_nb.notebook.show import page
from aios_nb.notebook.show.page import Bundle
from aios_nb.notebook.widgets import printed
from aios_nb.notebook.widgets.transcript import Transcript
from aios_nb.people.naming import NODE_SHOWN, short
from aios_nb.richtext import one_line
from aios_nb.site import History


def transcript(history: History) -> Bundle:
    said = Transcript(f"owner@{history.node_id}", lambda node: node[:NODE_SHOWN])
    said.default = next(iter(history.agents), "")
    for event in history.messages:
        said.take(msgspec.to_builtins(event))
    agents = ", ".join(short(agent, history.node_id) for agent in history.agents)
    title = history.title or (f"With {agents}" if agents else "Conversation")
    head = one_line(f"{title} · {history.conversation}")
    items = said.sorted()
    return page.bundle(printed.as_html(head, items, {}), printed.as_text(head, items))
