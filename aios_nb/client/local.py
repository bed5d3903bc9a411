"""The node in this process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable
from typing import Any, Protocol

import msgspec

from aios_nb.access import Principal
from aios_nb.client.interface import Flow, prepared, require_pieces, require_whole
from aios_nb.ports import Notices


class Dispatcher(Protocol):
    """The methods of the node in this process."""

    async def call(self, principal: Principal, method: str, params: Any) -> Any:
        """The result, or a ``Notices`` where the answer comes in pieces."""


def _as_over_the_wire(value: Any) -> Any:
    """The very shape that JSON gives: no tuples, no structs, no NaN."""
    return msgspec.json.decode(msgspec.json.encode(value))


class LocalClient:
    """The node in this process. Use it on the node's own loop."""

    def __init__(
        self, dispatcher: Dispatcher, principal: Principal, node_id: str, name: str
    ) -> None:
        self._dispatcher = dispatcher
        self._principal = principal
        self.node_id = node_id
        self.name = name

    async def call(self, method: str, /, **params: Any) -> Any:
        require_whole(method)
        return _as_over_the_wire(await self._dispatch(method, params))

    def notices(self, method: str, /, **params: Any) -> Flow:
        require_pieces(method)
        return _Pieces(lambda: self._dispatch(method, params))

    async def close(self) -> None:
        """Nothing to end: the node is not ours."""

    async def _dispatch(self, method: str, params: dict[str, Any]) -> Any:
        given = _as_over_the_wire(prepared(method, params))
        return await self._dispatcher.call(self._principal, method, given)


class _Pieces:
    """The node's ``Notices``, opened at the first ``await``."""

    def __init__(self, ask: Callable[[], Awaitable[Notices]]) -> None:
        self._ask = ask
        self._opened: tuple[Notices, AsyncIterator[Any]] | None = None
        self._closed = False

    def __aiter__(self) -> AsyncIterator[dict[str, Any]]:
        return self

    async def __anext__(self) -> dict[str, Any]:
        if self._closed:
            raise StopAsyncIteration
        _, pieces = await self._open()
        piece: dict[str, Any] = _as_over_the_wire(await anext(pieces))
        return piece

    async def result(self) -> Any:
        notices, _ = await self._open()
        if not notices.result_first:
            async for _ in self:
                pass
        return _as_over_the_wire(await notices.result())

    def close(self) -> None:
        self._closed = True
        if self._opened is not None:
            self._opened[0].close()

    async def _open(self) -> tuple[Notices, AsyncIterator[Any]]:
        if self._opened is None:
            notices = await self._ask()
            self._opened = (notices, aiter(notices))
        return self._opened
