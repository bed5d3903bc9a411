"""The table of methods: what each takes, who may call it, how it answers.

The guard, the dispatcher and their tests are driven by ``METHODS`` and nothing else. What a caller
may do *inside* a method (whose conversation, which agent) is the business of its room.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Any

import msgspec

from aios_nb import params as p
from aios_nb.access import Caller, Principal

Handler = Callable[[Principal, Any], Any]
"""Takes who calls and the params; gives the result, an awaitable of it, or ``Notices``."""


class Answers(StrEnum):
    """How a method answers."""

    CALL = "call"
    """With one result."""
    NOTICES = "notices"
    """With notifications around one result; needs SSE or a socket to show them."""
    SOCKET = "socket"
    """By the websocket itself; it makes no sense elsewhere."""


class Method(msgspec.Struct, frozen=True):
    """One row of the table. ``handler`` is given by rows outside it; others are found in a room."""

    name: str
    params: Any
    callers: frozenset[Caller]
    kind: Answers = Answers.CALL
    handler: Handler | None = None


_OWNER = frozenset({Caller.OWNER})
_TOKEN = _OWNER | {Caller.TOKEN}
_LINK = _OWNER | {Caller.KNOWN, Caller.NODE}
_TOKEN_OR_LINK = _TOKEN | _LINK

METHODS: tuple[Method, ...] = (
    Method("node.info", p.Nothing, _TOKEN_OR_LINK),
    Method("node.peers", p.Nothing, _OWNER),
    Method("node.callers", p.Nothing, _OWNER),
    Method("nodes.allow", p.NodeRef, _OWNER),
    Method("nodes.block", p.NodeRef, _OWNER),
    Method("tokens.create", p.NewToken, _OWNER),
    Method("tokens.list", p.Nothing, _OWNER),
    Method("tokens.revoke", p.TokenRef, _OWNER),
    Method("agents.list", p.Nothing, _TOKEN),
    Method("agents.search", p.Search, _TOKEN_OR_LINK),
    Method("agents.watch", p.Nothing, _OWNER, Answers.NOTICES),
    Method("agents.withdraw", p.AgentName, _OWNER),
    Method("agents.card", p.Agent, _TOKEN_OR_LINK),
    Method("hub.add", p.HubAdd, _OWNER),
    Method("hub.list", p.Nothing, _OWNER),
    Method("hub.remove", p.AgentName, _OWNER),
    Method("hub.approve", p.HubApprove, _OWNER),
    Method("hub.refresh", p.HubRefresh, _OWNER),
    Method("hub.import", p.HubImport, _OWNER),
    Method("chat.open", p.Open, _TOKEN),
    Method("chat.send", p.Send, _TOKEN),
    Method("chat.stream", p.Stream, _TOKEN_OR_LINK, Answers.NOTICES),
    Method("chat.post", p.Post, _TOKEN),
    Method("chat.answer", p.Answer, _TOKEN_OR_LINK),
    Method("chat.cancel", p.MessageRef, _TOKEN_OR_LINK),
    Method("chat.edit", p.Edit, _TOKEN),
    Method("chat.react", p.React, _TOKEN),
    Method("chat.join", p.Join, _TOKEN),
    Method("chat.leave", p.Member, _TOKEN),
    Method("chat.rename", p.Rename, _TOKEN),
    Method("chat.delete", p.Conversation, _TOKEN),
    Method("chat.export", p.Export, _TOKEN),
    Method("chat.list", p.List, _TOKEN),
    Method("chat.history", p.History, _TOKEN),
    Method("chat.watch", p.Watch, _TOKEN, Answers.NOTICES),
    Method("chat.unwatch", p.Unwatch, _TOKEN, Answers.SOCKET),
    Method("blobs.put", p.BlobPut, _TOKEN),
    Method("blobs.get", p.BlobGet, _TOKEN_OR_LINK),
    Method("aios.message", p.Message, _TOKEN_OR_LINK),
    Method("gossip.packet", p.Packet, _LINK),
    Method("gossip.sync", p.Sync, _LINK),
)

OPEN = frozenset(
    {"node.info", "agents.list", "agents.search", "agents.card"}
    | {"chat.send", "chat.stream", "chat.answer", "chat.cancel", "chat.history"}
)
"""What MCP, A2A and catalogs ask of the node for callers without a token. Such a caller knows a
conversation by its unguessable id alone, reaches public agents only, and lists nothing."""
