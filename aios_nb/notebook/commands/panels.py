"""``chat``, ``hub``, ``network``: the widgets, made when they are first used."""

from __future__ import annotations

from typing import Any

from aios_nb.errors import UsageError
from aios_nb.notebook.commands import Call
from aios_nb.people.conversations import find


def chat(call: Call) -> Any:
    from aios_nb.notebook.widgets.chat import AgentChat

    node = call.node()
    if call["agent"]:
        node.card(call["agent"])  # a wrong name is said here, in one line
    conversation = None
    if call["conversation"]:
        if call["new"]:
            raise UsageError("a new conversation is not that one", hint="leave one of them out")
        conversation = node.run(lambda: find(node.client, call["conversation"]))
    return AgentChat(call.session, call["agent"], conversation=conversation, new=call["new"])


def hub(call: Call) -> Any:
    from aios_nb.notebook.widgets.hub import AgentHub

    call.node()
    return AgentHub(call.session, call["words"] or "")


def network(call: Call) -> Any:
    from aios_nb.notebook.widgets.network import NetworkView

    call.node()
    return NetworkView(call.session)
