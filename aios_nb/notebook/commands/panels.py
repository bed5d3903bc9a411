"""``chat``, ``hub``, ``network``: the widgets, made when they are first used."""

from __future__ import annotations

from typing import Any

from aios_nb.errors import UsageError
from aios_nb.notebook.commands import Call
from aios_nb.notebook.show.live import has_page
from aios_nb.people.conversations import find
from aios_nb.richtext import one_line


def chat(call: Call) -> Any:
    from aios_nb.notebook.widgets.chat import AgentChat

    node = call.node()
    conversation = None
    if call["conversation"]:
        if call["new"]:
            raise UsageError("a new conversation is not that one", hint="leave one of them out")
        conversation = node.run(lambda: find(node.client, call["conversation"]))
    if not has_page(call.shell):
        print(_in_a_terminal(call["agent"] or "AGENT"))  # noqa: T201 - beside what it gives back
    return AgentChat(call.session, call["agent"], conversation=conversation, new=call["new"])


def _in_a_terminal(agent: str) -> str:
    """How to talk where there is no window to type into."""
    name = one_line(agent)
    return f"no chat window in a terminal; %aios ask {name} …, or in a shell: aios-nb chat {name}"


def hub(call: Call) -> Any:
    from aios_nb.notebook.widgets.hub import AgentHub

    call.node()
    return AgentHub(call.session, call["words"] or "")


def network(call: Call) -> Any:
    from aios_nb.notebook.widgets.network import NetworkView

    call.node()
    return NetworkView(call.session)
