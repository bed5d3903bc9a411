"""The doors for programs that speak another protocol: each answers what is below one path.

The server has let the caller in, knows who it is and has read the body before a door is asked.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Protocol

import msgspec
from aiohttp import web

from aios_nb.access import Principal

STRANGERS_PART = 4
"""Of the streams that may be open at a door, strangers together have one in so many."""


class Door(Protocol):
    """Answers everything under one path."""

    async def answer(
        self, request: web.BaseRequest, who: Principal, body: bytes
    ) -> web.StreamResponse:
        """Is cancelled when the client goes away."""

    def shut_out(self, caller: str) -> None:
        """The token of that caller is good no more: end its streams."""

    async def close(self) -> None:
        """Leave no task behind."""


class Facts(msgspec.Struct, frozen=True, kw_only=True):
    """What every door may say of the node it belongs to."""

    node_id: str
    name: str
    version: str
    url: Callable[[], str]
    """Where it is reached from outside; known once it listens."""


class Late:
    """A door whose other side is heavy to load: it is made when somebody first comes to it."""

    def __init__(self, make: Callable[[], Door]) -> None:
        self._make = make
        self._door: Door | None = None

    async def answer(
        self, request: web.BaseRequest, who: Principal, body: bytes
    ) -> web.StreamResponse:
        if self._door is None:
            self._door = self._make()
        return await self._door.answer(request, who, body)

    def shut_out(self, caller: str) -> None:
        if self._door is not None:
            self._door.shut_out(caller)

    async def close(self) -> None:
        if self._door is not None:
            await self._door.close()
