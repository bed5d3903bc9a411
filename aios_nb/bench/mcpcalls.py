"""What an MCP client sends to call a tool, in both eras of the protocol, and what must come back.

No I/O. Newer clients say with each request who they are; older ones have opened a session.
"""

from __future__ import annotations

from typing import Any

import msgspec

from aios_nb.bench.calls import Rpc, quoted
from aios_nb.bench.events import EventParser
from aios_nb.bench.spec import Broken, Target

MODERN, LEGACY = "2026-07-28", "2025-11-25"
LIST, SEND = "agents_list", "agent_send"
ACCEPT = ("Accept", "application/json, text/event-stream")
SESSION = "Mcp-Session-Id"
CLIENT = {"name": "aios-nb bench", "version": "1"}
BEGIN = msgspec.json.encode(
    {
        "jsonrpc": "2.0",
        "id": 0,
        "method": "initialize",
        "params": {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": CLIENT},
    }
)
BEGUN = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
ABOUT_ITSELF = {
    "io.modelcontextprotocol/protocolVersion": MODERN,
    "io.modelcontextprotocol/clientInfo": CLIENT,
    "io.modelcontextprotocol/clientCapabilities": {},
}
"""What a newer client says with each request."""
_META = b',"_meta":' + msgspec.json.encode(ABOUT_ITSELF)


def headers(tool: str, *, modern: bool) -> tuple[tuple[str, str], ...]:
    """What goes into the head of each call of this tool."""
    if not modern:
        return (ACCEPT, ("MCP-Protocol-Version", LEGACY))
    return (
        ACCEPT,
        ("MCP-Protocol-Version", MODERN),
        ("Mcp-Method", "tools/call"),
        ("Mcp-Name", tool),
    )


class Content(msgspec.Struct):
    type: str = ""
    text: str = ""


class ToolResult(msgspec.Struct, rename="camel"):
    content: list[Content] = []
    structured_content: Any = None
    is_error: bool = False


class ToolAnswer(msgspec.Struct):
    """A response, as far as a benchmark looks at it."""

    jsonrpc: str = ""
    id: int | str | None = None
    result: ToolResult | None = None
    error: Any = None


_decode = msgspec.json.Decoder(ToolAnswer).decode


class ToolCall(Rpc):
    """Calls one tool; subclasses give it arguments and look at what it says."""

    tool: str

    def __init__(self, target: Target) -> None:
        super().__init__(target.concurrency)
        meta = b"" if target.wire == "mcp-session" else _META
        self._form = (
            b'{"jsonrpc":"2.0","id":%%d,"method":"tools/call","params":{"name":"%b",'
            b'"arguments":%%b%b}}' % (self.tool.encode(), meta)
        )

    def body(self, slot: int, number: int, task: bytes) -> bytes:
        del slot
        return self._form % (number, self.arguments(task))

    def arguments(self, task: bytes) -> bytes:
        raise NotImplementedError

    def reply(self, slot: int, body: bytes) -> str | None:
        if not body.startswith(b"{"):
            body = last_event(body)
        try:
            answer = _decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return f"not the answer of a tool: {quoted(body)}"
        result = answer.result
        if result is None or answer.jsonrpc != "2.0":
            return f"no result: {quoted(body)}"
        if answer.id != self._id[slot]:
            return f"the reply to another call: id {answer.id}, not {self._id[slot]}"
        said = result.content[0].text if result.content else ""
        if result.is_error:
            return f"a tool that failed: {said}"
        return self.looked_at(slot, said, result.structured_content)

    def looked_at(self, slot: int, said: str, data: Any) -> str | None:
        """What is wrong with a result: its text, and the same for programs."""
        raise NotImplementedError


class AgentsList(ToolCall):
    """Always the same result: the one that the target names."""

    tool = LIST

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        if not target.wanted:
            raise Broken(f"{self.tool} is checked against a result, and none was given")
        self._wanted = msgspec.json.decode(target.wanted)
        self._said: str | None = None
        """The text that was read once and found right."""

    def arguments(self, task: bytes) -> bytes:
        del task
        return b"{}"

    def looked_at(self, slot: int, said: str, data: Any) -> str | None:
        del slot
        if data != self._wanted:
            return f"another result: {quoted(msgspec.json.encode(data))}"
        if said != self._said:
            try:
                if msgspec.json.decode(said) != self._wanted:
                    raise ValueError  # noqa: TRY301 - the same for both
            except ValueError:
                return f"another text than data: {quoted(said.encode())}"
            self._said = said
        return None


class AgentSend(ToolCall):
    """The durable call, a new conversation each."""

    tool = SEND

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self._agent = target.agent.encode()

    def arguments(self, task: bytes) -> bytes:
        return b'{"agent":"%b","text":"%b"}' % (self._agent, task)

    def looked_at(self, slot: int, said: str, data: Any) -> str | None:
        told = data if isinstance(data, dict) else {}
        if said != self._text[slot] or told.get("text") != said:
            return f"another text: {quoted(said.encode())}"
        if told.get("status") != "done" or not told.get("conversation"):
            return f"status {told.get('status')!r} in {told.get('conversation')!r}"
        return None


def last_event(body: bytes) -> bytes:
    """The data of the last event in a stream that has ended."""
    events = [b""]
    EventParser(events.append).feed(body)
    return events[-1]
