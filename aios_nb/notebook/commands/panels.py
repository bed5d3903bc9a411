"""``chat``, ``hub``, ``network``: the widgets, made when they are first used."""

from __future__ import annotations

from typing import Any

from aios_nb.notebook.commands import Call


def chat(call: Call) -> Any:
    from aios_nb.notebook.widgets.chat import AgentChat

    node = call.node()
    if call["agent"]:
        node.card(call["agent"])  # a wrong name is said here, in one line
    return AgentChat(call.session, call["agent"], new=call["new"])


def hub(call: Call) -> Any:
    from aios_nb.notebook.widgets.hub import AgentHub

    call.node()
    return AgentHub(call.session, call["words"] or "")


def network(call: Call) -> Any:
    from aios_nb.notebook.widgets.network import NetworkView

    call.node()
    return NetworkView(call.session)
