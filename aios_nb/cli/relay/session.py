"""A session of the earlier era: what was agreed at its start, and how to agree on it again.

A node that restarts has forgotten its sessions. The client need not hear of that: the start is said
to the new node once more, with what the client has subscribed to since.
"""

from __future__ import annotations

from typing import Any

import msgspec

from aios_nb.cli.relay.messages import Message
from aios_nb.cli.relay.whereabouts import Place

_LISTS = ("tools", "prompts", "resources")


class Session:
    """What one client agreed on with the node."""

    def __init__(self, start: Message) -> None:
        self._start = start
        self.place: Place | None = None
        """The node that knows it, if one does."""
        self.is_known = False
        """A node has agreed to it once: then another one will."""
        self.begun: bytes | None = None
        """``notifications/initialized`` as the client said it."""
        self._id: str | None = None
        self._version = ""
        self._capabilities: dict[str, Any] = {}
        self._wanted: dict[tuple[str, str], Message] = {}
        """Requests whose effect lasts: subscriptions, the level of the log."""
        self._repeats = 0

    def agreed(self, place: Place, session_id: str | None, result: Any) -> None:
        """The node has answered the start."""
        self.place, self._id, self.is_known = place, session_id, True
        found = result if isinstance(result, dict) else {}
        self._version = str(found.get("protocolVersion", ""))
        capabilities = found.get("capabilities")
        self._capabilities = capabilities if isinstance(capabilities, dict) else {}

    @property
    def headers(self) -> dict[str, str]:
        headers = {"MCP-Protocol-Version": self._version} if self._version else {}
        return {**headers, "Mcp-Session-Id": self._id} if self._id else headers

    def done(self, request: Message) -> None:
        """A request was answered well; remember it if its effect lasts."""
        if request.method == "resources/subscribe":
            self._wanted["resources/subscribe", str(request.params.get("uri"))] = request
        elif request.method == "resources/unsubscribe":
            self._wanted.pop(("resources/subscribe", str(request.params.get("uri"))), None)
        elif request.method == "logging/setLevel":
            self._wanted["logging/setLevel", ""] = request

    def starts_again(self) -> bytes:
        """The start, under an id that the client never sees."""
        return self._again(self._start)

    def wants_again(self) -> list[bytes]:
        return [self._again(request) for request in self._wanted.values()]

    def _again(self, request: Message) -> bytes:
        self._repeats += 1
        said = msgspec.json.decode(request.body)
        return msgspec.json.encode({**said, "id": f"aios-again-{self._repeats}"})

    def may_have_changed(self) -> list[bytes]:
        """What the client is told after a restart: ask for the lists again."""
        found = []
        for name in _LISTS:
            ability = self._capabilities.get(name)
            if isinstance(ability, dict) and ability.get("listChanged"):
                notice = {"jsonrpc": "2.0", "method": f"notifications/{name}/list_changed"}
                found.append(msgspec.json.encode(notice))
        return found
