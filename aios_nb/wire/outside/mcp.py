"""An MCP server of others as an entry of the hub: looked at, pinned, and called.

Before each call the server's list of tools is read again. If it is another one than its owner
approved, nothing is called.
"""

from __future__ import annotations

import asyncio
import importlib
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import msgspec

from aios_nb.envelope import Outcome, Seen, Task
from aios_nb.errors import AgentFailed, AiosError, Busy, RpcError, Unreachable, UsageError
from aios_nb.ports import Blobs, Carrier, ContextMemory, Run
from aios_nb.richtext import one_line, plain
from aios_nb.wire.outside.forms import Declined, one_value
from aios_nb.wire.outside.toolcalls import Tool, ToolCall, Unclear, read_call
from aios_nb.wire.places import Place

if TYPE_CHECKING:
    from mcp_types import Implementation

    from aios_nb.wire.outside.session import Session
    from aios_nb.wire.outside.sessions import Sessions
    from aios_nb.wire.outside.ways import Way

LIST_S = 30.0
"""To list all tools."""
TITLE_CHARS = 100
ABOUT_CHARS = 2000
TAGS_MAX = 8
TAG_CHARS = 48
EXAMPLES_MAX = 5
ARGUMENTS_MAX = 64
WORDS_MAX = 1000
NOTE_CHARS = 200


_HEAVY = frozenset(
    f"aios_nb.wire.outside.{part}" for part in ("sessions", "ways", "tools", "results")
)
_LOADED: set[str] = set()


async def _loaded() -> None:
    """Load the SDK in a thread: it takes a second, and the node goes on answering."""
    for name in _HEAVY - _LOADED:
        await asyncio.to_thread(importlib.import_module, name)
        _LOADED.add(name)


class McpServer:
    """An MCP server at a URL, or behind a command. Is a ``ports.Outsider``."""

    kind = "mcp"

    def __init__(
        self,
        address: str | Sequence[str],
        blobs: Blobs,
        *,
        local: bool = False,
        headers: Mapping[str, str] | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        """Asks nobody yet. Raises ``UsageError`` for an address that cannot be one."""
        self.address: str | Sequence[str]
        if isinstance(address, str):
            self.address = Place.parse(address).url
        else:
            self.address = _command(address)
        self.blobs = blobs
        self._local = local
        self._headers = dict(headers or {})
        self._env = dict(env or {})
        self._sessions: Sessions | None = None
        self._closed = False

    async def look(self) -> Seen:
        """What the server says of itself, by a handshake. Also raises ``UsageError``."""
        await _loaded()
        from aios_nb.wire.outside.tools import cleaned, pin_of

        if isinstance(self.address, str):
            async with self._all().fresh() as session:
                tools = await _listed(session)
                pin = pin_of(tools)
                return _seen(session, cleaned(tools), pin, self._spoken_name())
        found: list[Any] = []

        async def check(session: Session) -> None:
            found[:] = await _listed(session)

        # A program that runs already is not started a second time.
        async with self._all().lent("", check) as session:
            pin = pin_of(found)
            return _seen(session, cleaned(found), pin, self._spoken_name())

    def carrier(self, seen: Seen, memory: ContextMemory) -> Carrier:
        del memory  # a server of tools knows no conversations
        return _Calls(self, seen)

    async def close(self) -> None:
        self._closed = True
        if self._sessions is not None:
            await self._sessions.close()

    @asynccontextmanager
    async def lent(self, caller: str, pin: str, name: str) -> AsyncIterator[Session]:
        """A session whose tools are those that were approved.

        Each caller has its own over HTTP, where a server may keep what it was told by session; a
        program behind a command is one for all.
        """
        await _loaded()
        from aios_nb.wire.outside.tools import pin_of

        async def check(session: Session) -> None:
            if not pin or pin_of(await _listed(session)) != pin:
                raise AgentFailed(
                    f"the tools of {name} are not those that were approved; nothing was called",
                    hint=f"look at them, then: aios-nb hub approve {name}",
                    changed=True,
                    ran="no",
                )

        key = caller if isinstance(self.address, str) else ""
        async with self._all().lent(key, check) as session:
            yield session

    def _all(self) -> Sessions:
        if self._closed:
            raise Busy("this node is stopping")
        if self._sessions is None:
            from aios_nb.wire.outside.sessions import Sessions

            self._sessions = Sessions(self._way, f"The MCP server {self._spoken_name()}")
        return self._sessions

    def _way(self) -> Way:
        from aios_nb.wire.outside.ways import Command, Web

        if isinstance(self.address, str):
            return Web(self.address, local=self._local, headers=self._headers)
        return Command(self.address, self._env)

    def _spoken_name(self) -> str:
        if isinstance(self.address, str):
            return Place.parse(self.address).host
        return one_line(self.address[0].rpartition("/")[2], TITLE_CHARS) or "program"


class _Calls:
    """Carries tasks to the tools that were approved."""

    def __init__(self, server: McpServer, seen: Seen) -> None:
        self._server = server
        self._pin = seen.pin
        try:
            self._tools = msgspec.convert(seen.details.get("tools", []), list[Tool])
        except msgspec.ValidationError:
            self._tools = []

    async def carry(self, task: Task, run: Run) -> Outcome:
        from aios_nb.wire.outside.results import outcome_of

        if task.files:
            raise AgentFailed("the tools of an MCP server take no files", ran="no")
        try:
            call = await _completed(read_call(self._tools, task.text, task.data), run)
        except Unclear as unclear:
            return Outcome(str(unclear))
        try:
            result = await self._called(call, task, run)
        except RpcError:
            raise
        except AiosError as refused:  # an address that must not be called
            raise Unreachable(
                refused.message, hint=refused.hint, reason="refused", ran="no"
            ) from None
        return await outcome_of(result, call.tool.name, task, run, self._server.blobs)

    async def _called(self, call: ToolCall, task: Task, run: Run) -> Any:
        async def progress(progress: float, total: float | None, message: str | None) -> None:
            note = one_line(message or call.tool.name, NOTE_CHARS)
            part = progress / total if total else -1.0
            run.progress(note, part if 0 <= part <= 1 else None)

        name = task.agent.partition("@")[0]
        async with self._server.lent(task.caller, self._pin, name) as session:
            run.begin()
            return await session.call(call.tool.name, call.arguments, run.ask_user, progress)


async def _completed(call: ToolCall, run: Run) -> ToolCall:
    """The call with what was missing, asked of the person."""
    tool, arguments = call.tool, dict(call.arguments)
    if len(call.missing) > ARGUMENTS_MAX:
        raise AgentFailed(f"{tool.name} wants too much", ran="no")
    for name in call.missing:
        question = f"{tool.name} needs {tool.asks_for(name)}"
        try:
            arguments[name] = await one_value(
                run.ask_user, question, tool.arguments.get(name, {}), tool.input_schema
            )
        except Declined:
            missing = one_line(name, 60)
            raise AgentFailed(f"{tool.name} was not called without {missing}", ran="no") from None
    return ToolCall(tool, arguments)


async def _listed(session: Session) -> list[Any]:
    from aios_nb.wire.outside.tools import read_tools

    try:
        async with asyncio.timeout(LIST_S):
            found: list[Any] = await session.ask(read_tools, ran="no")
    except TimeoutError:
        session.spent = True
        raise Unreachable(
            "the server did not list its tools in time", hint="try again later", reason="no answer"
        ) from None
    return found


def _seen(session: Session, tools: list[Tool], pin: str, spoken: str) -> Seen:
    client = session.client
    info: Implementation | None = client.server_info
    title = one_line((info and (info.title or info.name)) or spoken, TITLE_CHARS)
    names = ", ".join(tool.name for tool in tools)
    about = plain((client.instructions or "")[:ABOUT_CHARS]).strip()
    listing = f"An MCP server with the tools {names}." if tools else "An MCP server without tools."
    told = [about, listing, *(one_line(tool.description) for tool in tools)]
    tags = dict.fromkeys(["mcp", *(tool.name.lower()[:TAG_CHARS] for tool in tools)])
    return Seen(
        title=title or spoken,
        about="\n".join(part for part in told if part)[:ABOUT_CHARS],
        tags=tuple(tags)[:TAGS_MAX],
        examples=tuple(tool.usage() for tool in tools[:EXAMPLES_MAX]),
        version=one_line((info and info.version) or "", TAG_CHARS),
        details={
            "protocol": one_line(str(client.protocol_version), TAG_CHARS),
            "tools": msgspec.to_builtins(tools),
        },
        pin=pin,
    )


def _command(words: Sequence[str]) -> tuple[str, ...]:
    command = tuple(words)
    good = all(isinstance(w, str) and len(w) <= WORDS_MAX and "\0" not in w for w in command)
    if not command or not command[0] or not good or len(command) > WORDS_MAX:
        raise UsageError(
            "a command is a program and its arguments", hint="like: python -m my_mcp_server"
        )
    return command
