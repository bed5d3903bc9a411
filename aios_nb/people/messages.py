"""A conversation's log as lines of text."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from aios_nb.people.layout import Paint, moment, size, unpainted
from aios_nb.people.naming import NODE_SHOWN, Names
from aios_nb.people.values import data_lines, is_table, says_the_same
from aios_nb.richtext import one_line, plain

_INDENT = "  "
_ENDED_BADLY = {"failed": "red", "cancelled": "yellow", "interrupted": "yellow"}


class Messages:
    """Turns log rows into text. ``node_id`` tells our own people and agents from others."""

    def __init__(self, node_id: str, paint: Paint = unpainted) -> None:
        self._paint = paint
        self._node_id = node_id
        self._names = Names()

    def heading(self, whole: Mapping[str, Any]) -> list[str]:
        """Which conversation this is and who is in it."""
        agents = ", ".join(self.who({"id": agent}) for agent in whole.get("agents", []))
        which = f"{whole['conversation']} with {agents}" if agents else str(whole["conversation"])
        title = one_line(whole.get("title") or "")
        return [*([self._paint(title, "bold")] if title else []), self._paint(which, "dim")]

    def who(self, sender: Mapping[str, Any]) -> str:
        """A short name: ours without the node, others with the start of it."""
        name, _, node = str(sender["id"]).partition("@")
        if node == self._node_id:
            return "you" if name == "owner" else one_line(name)
        return one_line(f"{name}@{node[:NODE_SHOWN]}") if node else self._names.called(name)

    def lines(self, event: Mapping[str, Any]) -> Iterator[str]:
        """What one row looks like; nothing for rows that only move a status."""
        if event["kind"] == "message":
            yield ""
            yield self._by_line(event)
            yield from self._body(event)
        elif event["kind"] == "status":
            yield from self._status(event)
        elif event["kind"] in {"join", "leave"}:
            self._names.hear(event)
            what = "joined" if event["kind"] == "join" else "left"
            yield self._paint(f"{self.who({'id': event['ref']})} {what}", "dim")
        else:
            what = "edited" if event["kind"] == "edit" else "reacted"
            text = one_line(event["text"])
            yield self._paint(f"{self.who(event['sender'])} {what}: {text}".rstrip(": "), "dim")

    def _by_line(self, event: Mapping[str, Any]) -> str:
        sender = event["sender"]
        colour = "green" if sender["type"] == "human" else "cyan"
        parts = [self._paint(self.who(sender), "bold", colour)]
        parts.append(self._paint(moment(event["at"]), "dim"))
        status = event.get("status")
        if status not in (None, "done"):
            parts.append(self._paint(status, _ENDED_BADLY.get(status, "dim")))
        return _INDENT.join(parts)

    def _body(self, event: Mapping[str, Any]) -> Iterator[str]:
        text, data = event["text"], event["data"]
        repeats = data is not None and says_the_same(text, data)
        if text and not (repeats and is_table(data)):
            for line in plain(text).rstrip("\n").split("\n"):
                yield f"{_INDENT}{line}".rstrip()
        if data is not None and (is_table(data) or not repeats):
            for line in data_lines(data):
                yield f"{_INDENT}{line}"
        for file in event["files"]:
            yield self._paint(f"{_INDENT}[{one_line(file['name'])}, {size(file['size'])}]", "dim")

    def _status(self, event: Mapping[str, Any]) -> Iterator[str]:
        status, text = event["status"], one_line(event["text"])
        who = self.who(event["sender"])
        if status == "input_required":
            yield ""
            yield self._by_line({**event, "status": None}) + self._paint("  asks", "dim")
            yield f"{_INDENT}{text}"
        elif status in _ENDED_BADLY:
            # Some errors name the agent themselves.
            line = text if text.startswith(f"{who} {status}") else f"{who} {status}: {text}"
            yield self._paint(f"{_INDENT}{line}".rstrip(": "), _ENDED_BADLY[status])
