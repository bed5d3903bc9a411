"""The door at ``/mcp``: opens when the first client comes, and knows whose sessions there are."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
from typing import TYPE_CHECKING, Any

from aiohttp import web

from aios_nb.access import Principal
from aios_nb.config import MB, Limits
from aios_nb.ports import AgentNews, Blobs
from aios_nb.wire.dispatch import Dispatcher
from aios_nb.wire.doors import STRANGERS_PART, Facts
from aios_nb.wire.guard import Refusal
from aios_nb.wire.replies import refused

if TYPE_CHECKING:
    from aios_nb.wire.mcp.house import House

STRANGERS_HELD_BYTES = 8 * MB
"""What strangers asked, of requests that are still open: read, it takes many times as much."""
_TOO_MANY = Refusal(503, "too many open requests here", "close some, or try again later")
_GOING = Refusal(503, "this node is stopping")


class McpDoor:
    """Answers MCP clients of both eras. Is a ``doors.Door``."""

    def __init__(
        self,
        calls: Dispatcher,
        facts: Facts,
        limits: Limits,
        blobs: Blobs,
        *,
        news: AgentNews,
        conformance: bool = False,
    ) -> None:
        """``news`` tells who comes and goes; ``conformance`` adds the public suite's fixtures."""
        self._parts: dict[str, Any] = {
            "calls": calls, "facts": facts, "limits": limits, "blobs": blobs,
            "news": news, "conformance": conformance,
        }  # fmt: skip
        self._most = limits.open_streams
        self._house: House | None = None
        self._opening: asyncio.Task[House] | None = None
        self._closed = False
        self._busy: dict[asyncio.Task[Any], str] = {}
        """Requests that are being answered, and whose they are."""
        self._strangers = 0
        self._strangers_bytes = 0

    async def answer(
        self, request: web.BaseRequest, who: Principal, body: bytes
    ) -> web.StreamResponse:
        if self._closed:
            return refused(_GOING)
        stranger = who.is_stranger
        held = len(body) if stranger else 0
        if len(self._busy) >= self._most or (
            stranger
            and (
                self._strangers >= self._most // STRANGERS_PART
                or self._strangers_bytes + held > STRANGERS_HELD_BYTES
            )
        ):
            return refused(_TOO_MANY)
        task = asyncio.current_task()
        assert task is not None  # noqa: S101 - a coroutine runs in one
        self._busy[task] = who.id
        self._strangers += stranger
        self._strangers_bytes += held
        try:
            house = self._house or await self._open()
            return await house.answer(request, who, body)
        finally:
            self._strangers -= stranger
            self._strangers_bytes -= held
            del self._busy[task]

    async def _open(self) -> House:
        """Load the SDK in a thread: it takes a second, and the node goes on answering."""
        if self._opening is None:
            self._opening = asyncio.create_task(self._opened())
        try:
            return await asyncio.shield(self._opening)
        except Exception:
            self._opening = None  # the next one may have more luck
            raise

    async def _opened(self) -> House:
        module = await asyncio.to_thread(importlib.import_module, "aios_nb.wire.mcp.house")
        house: House = module.House(**self._parts)
        await house.open()
        self._house = house
        return house

    def shut_out(self, caller: str) -> None:
        """End the requests and the sessions of a caller whose token is good no more."""
        for task, whose in tuple(self._busy.items()):
            if whose == caller:
                task.cancel()
        if self._house is not None:
            self._house.shut_out(caller)

    async def close(self) -> None:
        """End everything; runs are left to the chat room, which says that they were cut."""
        self._closed = True
        if self._opening is not None and self._house is None:
            self._opening.cancel()
            with contextlib.suppress(asyncio.CancelledError, Exception):
                await self._opening
        house, self._house = self._house, None
        if house is not None:
            house.leaving()
        tasks = tuple(self._busy)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        if house is not None:
            await house.close()
