"""The eight tools: what an MCP client can do here.

Arguments are checked against the same structs from which the schemas are made. A tool that fails
says so in its result, in one line with what to do, so that a model can read it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Annotated, Any

import msgspec
from mcp.shared.exceptions import MCPError
from msgspec import UNSET, Meta, UnsetType

from aios_nb.access import Principal
from aios_nb.errors import InvalidParams, RpcError
from aios_nb.wire.dispatch import Dispatcher
from aios_nb.wire.mcp import words
from aios_nb.wire.mcp.callers import who
from aios_nb.wire.mcp.sending import Sending
from aios_nb.wire.translated import for_mcp

PAGE = 50
"""Agents in one answer of ``agents_list``."""

AgentRef = Annotated[
    str, Meta(min_length=1, max_length=96, description="Name, or full id NAME@NODEID")
]
ConversationId = Annotated[str, Meta(max_length=128, description="As given by agent_send")]


class _Args(msgspec.Struct, forbid_unknown_fields=True, frozen=True):
    pass


class Search(_Args, frozen=True):
    query: Annotated[str, Meta(max_length=4000, description="The job, in plain words")]
    limit: Annotated[int, Meta(ge=1, le=50)] = 10


class Page(_Args, frozen=True):
    cursor: Annotated[str, Meta(pattern="^[0-9]{1,6}$", description="next_cursor of the last")] | UnsetType = UNSET  # fmt: skip # noqa: E501


class Agent(_Args, frozen=True):
    agent: AgentRef


class Send(_Args, frozen=True):
    agent: AgentRef
    text: Annotated[str, Meta(description="What to ask it")]
    conversation: Annotated[str, Meta(max_length=128, description="Go on in this one")] | UnsetType = UNSET  # fmt: skip # noqa: E501


class History(_Args, frozen=True):
    conversation: ConversationId
    after: Annotated[int, Meta(ge=0, description="Only what is beyond this seq")] = 0


class Nothing(_Args, frozen=True):
    pass


class Url(_Args, frozen=True):
    url: Annotated[
        str, Meta(min_length=1, max_length=2000, description="An MCP server or an A2A agent")
    ]


Handler = Callable[[Principal, Any], Awaitable[dict[str, Any]]]


class Tool(msgspec.Struct, frozen=True):
    """One tool as it is listed, and who may use it."""

    name: str
    title: str
    about: str
    args: type[_Args]
    gives: dict[str, Any]
    """The properties of its structured result."""
    needs: tuple[str, ...] = ()
    """Those that are always there."""
    looks_out: bool = False
    """It may reach beyond this node."""
    changes: bool = False
    """It does more than look something up."""
    owner_only: bool = False

    def schema(self) -> dict[str, Any]:
        _, parts = msgspec.json.schema_components((self.args,))
        schema = dict(parts[self.args.__name__])
        schema.pop("title", None)
        schema.pop("required", None) if not schema.get("required") else None
        return schema

    def listed(self) -> dict[str, Any]:
        return {
            "name": self.name,
            "title": self.title,
            "description": self.about,
            "inputSchema": self.schema(),
            "outputSchema": {
                "type": "object",
                "properties": self.gives,
                "required": list(self.needs),
            },
            "annotations": {
                "title": self.title,
                "readOnlyHint": not self.changes,
                "openWorldHint": self.looks_out,
                **({"destructiveHint": False} if self.changes else {}),
            },
        }


_STR: dict[str, Any] = {"type": "string"}
_INT: dict[str, Any] = {"type": "integer"}
_ANY: dict[str, Any] = {"type": ["object", "array", "string", "number", "boolean"]}
_ROWS: dict[str, Any] = {"type": "array", "items": {"type": "object"}}

TOOLS: tuple[Tool, ...] = (
    Tool(
        "agents_search", "Find agents", "Find agents by describing the job; best first.",
        Search, {"agents": _ROWS, "total": _INT}, ("agents",), looks_out=True,
    ),
    Tool(
        "agents_list", "List agents", "The agents of this node.",
        Page, {"agents": _ROWS, "next_cursor": _STR}, ("agents",),
    ),
    Tool(
        "agent_card", "Read a card", "What one agent says about itself: examples, version, access.",
        Agent, {"agent": _STR, "about": _STR}, ("agent",), looks_out=True,
    ),
    Tool(
        "agent_send", "Ask an agent",
        "Ask an agent and wait for its answer. Pass the conversation to go on in it.",
        Send,
        {
            "conversation": _STR, "message_id": _STR, "status": _STR, "text": _STR,
            "data": _ANY, "files": _ROWS, "note": _STR,
        },
        ("conversation", "message_id", "status", "text"),
        looks_out=True, changes=True,
    ),
    Tool(
        "conversation_history", "Read a conversation", "The messages of one of your conversations.",
        History, {"conversation": _STR, "messages": _ROWS, "more": {"type": "boolean"}},
        ("conversation", "messages"),
    ),
    Tool(
        "node_status", "Node status", "Name, address and uptime of this node.",
        Nothing, {"node_id": _STR, "name": _STR, "version": _STR, "agents": _INT}, ("node_id",),
    ),
    Tool(
        "peers_list", "List peers", "Other nodes, and whether they are alive.",
        Nothing, {"peers": _ROWS}, ("peers",), owner_only=True,
    ),
    Tool(
        "hub_add", "Add to the hub", "Bring an MCP server or an A2A agent into this node's hub.",
        Url, {"agent": _STR, "kind": _STR}, ("agent",),
        looks_out=True, changes=True, owner_only=True,
    ),
)  # fmt: skip


class Tools:
    """The tools of one node, for whoever may use them."""

    def __init__(self, calls: Dispatcher, sending: Sending) -> None:
        self._calls = calls
        self._sending = sending
        self._by_name = {tool.name: tool for tool in TOOLS}
        self._schemas = {tool.name: tool.schema() for tool in TOOLS}
        self._for_owner = [tool.listed() for tool in TOOLS]
        self._for_others = [tool.listed() for tool in TOOLS if not tool.owner_only]
        self._handlers: dict[str, Handler] = {
            "agents_search": self._search,
            "agents_list": self._list,
            "agent_card": self._card,
            "conversation_history": self._history,
            "node_status": self._status,
            "peers_list": self._peers,
            "hub_add": self._add,
        }

    def listed(self, caller: Principal) -> list[dict[str, Any]]:
        return self._for_owner if caller.is_owner else self._for_others

    def schema(self, name: str) -> dict[str, Any] | None:
        return self._schemas.get(name)

    def has(self, name: str, caller: Principal) -> bool:
        tool = self._by_name.get(name)
        return tool is not None and (caller.is_owner or not tool.owner_only)

    async def call(self, ctx: Any, params: Any) -> dict[str, Any]:
        """The result of a tool that is there for this caller."""
        tool, caller = self._by_name[params.name], who(ctx)
        try:
            args = read(tool, params.arguments)
            if tool.args is Send:
                return await self._sending.send(ctx, caller, args, params)
            return found(await self._handlers[tool.name](caller, args))
        except RpcError as error:
            return failed(error)

    async def _search(self, caller: Principal, args: Search) -> dict[str, Any]:
        got = await self._calls.call(
            caller, "agents.search", {"query": args.query, "limit": args.limit}
        )
        return {"agents": words.agent_rows(got["agents"]), "total": got["total"]}

    async def _list(self, caller: Principal, args: Page) -> dict[str, Any]:
        rows = (await self._calls.call(caller, "agents.list"))["agents"]
        start = 0 if args.cursor is UNSET else int(args.cursor)
        told: dict[str, Any] = {"agents": words.agent_rows(rows[start : start + PAGE])}
        if len(rows) > start + PAGE:
            told["next_cursor"] = str(start + PAGE)
        return told

    async def _card(self, caller: Principal, args: Agent) -> dict[str, Any]:
        return words.card(await self._calls.call(caller, "agents.card", {"agent": args.agent}))

    async def _history(self, caller: Principal, args: History) -> dict[str, Any]:
        got = await self._calls.call(
            caller,
            "chat.history",
            {"conversation": args.conversation, "after": args.after, "limit": 200},
        )
        return {
            "conversation": got["conversation"],
            "messages": [words.message(row) for row in got["messages"]],
            "more": bool(got.get("more")),
        }

    async def _status(self, caller: Principal, _: Nothing) -> dict[str, Any]:
        return dict(await self._calls.call(caller, "node.info"))

    async def _peers(self, caller: Principal, _: Nothing) -> dict[str, Any]:
        got = await self._calls.call(caller, "node.peers")
        return {"peers": [{**row, "name": words.line(row["name"])} for row in got["peers"]]}

    async def _add(self, caller: Principal, args: Url) -> dict[str, Any]:
        return dict(await self._calls.call(caller, "hub.add", {"address": args.url}))


def read(tool: Tool, arguments: Mapping[str, Any] | None) -> Any:
    """The arguments of a call. Raises ``InvalidParams``."""
    try:
        return msgspec.convert(arguments or {}, tool.args)
    except msgspec.ValidationError as problem:
        usage = ", ".join(
            f.name if f.required else f.name + "?" for f in msgspec.structs.fields(tool.args)
        )
        raise InvalidParams(
            words.line(f"{tool.name}: {problem}", 200), hint=f"{tool.name}({usage})"
        ) from None


def found(told: dict[str, Any]) -> dict[str, Any]:
    """A result for programs, and the same as text for those that read only that."""
    text = words.encode(told).decode()
    return {"content": [{"type": "text", "text": text}], "structuredContent": told}


def failed(error: RpcError) -> dict[str, Any]:
    """The result of a tool that failed. Raises what is an error of the protocol itself."""
    code, text = for_mcp(error)
    if code is not None:
        raise MCPError(code, text) from error
    return {"content": [{"type": "text", "text": text}], "isError": True}
