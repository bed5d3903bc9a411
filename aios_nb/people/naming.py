"""Nodes and agents as people name them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from aios_nb.envelope import NODE_ID
from aios_nb.errors import UsageError
from aios_nb.richtext import one_line

NODE_SHOWN = 8
"""Characters of a node's id that tell it from others at a glance."""


def whole_node_id(text: str) -> str:
    """All of it, alone or behind an agent's name: a prefix may name another node tomorrow."""
    node = text.rpartition("@")[2]
    if not NODE_ID.fullmatch(node):
        raise UsageError(
            f"{text!r} is not a node id", hint="all 32 characters; `aios-nb peers` shows them"
        )
    return node


def short(agent: str, own_node: str = "") -> str:
    """An agent's id with the start of its node's; of our own node, just the name."""
    name, at, node = one_line(agent).partition("@")
    return name if not at or node == own_node else f"{name}@{node[:NODE_SHOWN]}"


def of_node(name: str, node_id: str) -> str:
    """Another node in a few words: a name can be anyone's, so the start of its id is there too."""
    return " · ".join(filter(None, (one_line(name), node_id[:NODE_SHOWN])))


def caller(caller_id: str, name: str) -> str:
    """Who called. ``name``: of its node; without one all of the id, which is all there is."""
    if caller_id.startswith("owner@"):
        return "you"
    return of_node(name, caller_id) if name else one_line(caller_id)


def came_along(name: str, access: str) -> bool:
    """Whether an agent of one's own node is one that every node comes with."""
    from aios_nb.agents.builtin import BUILTIN_NAMES

    return access == "private" and name in BUILTIN_NAMES


def is_built_in(row: Mapping[str, Any], own_id: str) -> bool:
    """Whether an agent is one that every node comes with, on that node."""
    ours = row.get("node_id") == own_id and not row.get("source")
    return ours and came_along(row["name"], row.get("access", ""))


_APPS = {"tg": "Telegram"}


def app_of(person: str) -> str:
    """The chat app that somebody is in, such as ``tg:1:2``; empty for everyone else."""
    return _APPS.get(person.partition(":")[0], "")


class Names:
    """The people of chat apps by the names they came in with; where from is always said."""

    def __init__(self) -> None:
        self._names: dict[str, str] = {}

    def hear(self, row: Mapping[str, Any]) -> None:
        """Somebody joined, and is called so."""
        if row["kind"] == "join" and row["text"]:
            self._names[row["ref"]] = one_line(row["text"])

    def called(self, sender_id: str) -> str:
        """That person in a few words; their number if no name was heard."""
        app = app_of(sender_id)
        if not app:
            return one_line(sender_id)
        name = self._names.get(sender_id) or one_line(sender_id.rpartition(":")[2])
        return f"{name} on {app}"
