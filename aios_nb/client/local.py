"""The node in this process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any, Protocol

import msgspec

from aios_nb.access import Principal
from aios_nb.client.interface import (
    Flow,
    closed_early,
    encoded,
    prepared,
    require_pieces,
    require_whole,
)
from aios_nb.errors import AiosError, RpcError, from_wire
from aios_nb.ports import Notices


class Dispatcher(Protocol):
    """The methods of the node in this process."""

    async def call(self, principal: Principal, method: str, params: Any) -> Any:
        """The result, or a ``Notices`` where the answer comes in pieces."""

    def explain(self, method: str, problem: Exception) -> RpcError:
        """The error a caller may see."""


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
        given = encoded(method, prepared(method, params))
        return _as_over_the_wire(await self._dispatch(method, given))

    def notices(self, method: str, /, **params: Any) -> Flow:
        require_pieces(method)
        given = prepared(method, params)
        return _Pieces(
            lambda: self._dispatch(method, encoded(method, given)),
            lambda problem: self._dispatcher.explain(method, problem),
        )

    async def close(self) -> None:
        """Nothing to end: the node is not ours."""

    async def _dispatch(self, method: str, params: bytes) -> Any:
        with _told():
            return await self._dispatcher.call(self._principal, method, msgspec.json.decode(params))


@contextmanager
def _told(explain: Callable[[Exception], RpcError] | None = None) -> Iterator[None]:
    """Errors as they arrive over a socket: with the hint that travels, and plain data."""
    try:
        yield
    except RpcError as error:
        raise from_wire(_as_over_the_wire(error.to_wire())) from error
    except (AiosError, StopAsyncIteration):
        raise
    except Exception as problem:
        if explain is None:
            raise
        raise from_wire(_as_over_the_wire(explain(problem).to_wire())) from problem


class _Pieces:
    """The node's ``Notices``, opened at the first ``await``."""

    def __init__(
        self, ask: Callable[[], Awaitable[Notices]], explain: Callable[[Exception], RpcError]
    ) -> None:
        self._ask = ask
        self._explain = explain
        self._opened: tuple[Notices, AsyncIterator[Any]] | None = None
        self._turn = asyncio.Lock()
        """Who reads and who waits for the result take the pieces in turn."""
        self._step: asyncio.Task[dict[str, Any]] | None = None
        self._failed: AiosError | None = None
        self._ended = False
        self._result: Any = None
        """What a stream ended with."""
        self._closed = False

    def __aiter__(self) -> AsyncIterator[dict[str, Any]]:
        return self

    async def __anext__(self) -> dict[str, Any]:
        async with self._turn:
            if self._closed or self._ended:
                raise StopAsyncIteration
            with self._remembered():
                return await self._next()

    async def result(self) -> Any:
        if not self._closed:
            with self._remembered():
                notices, _ = await self._open()
        if self._opened is None:
            raise closed_early()
        notices, _ = self._opened
        if not notices.result_first:
            async for _ in self:
                pass
            if not self._ended:
                raise closed_early()
            return self._result
        with self._remembered(), _told(self._explain):
            return _as_over_the_wire(await notices.result())

    def close(self) -> None:
        self._closed = True
        if self._opened is not None:
            self._opened[0].close()
        if self._step is not None:
            self._step.cancel()

    async def _open(self) -> tuple[Notices, AsyncIterator[Any]]:
        if self._opened is None:
            notices = await self._ask()
            self._opened = (notices, aiter(notices))
        return self._opened

    async def _next(self) -> dict[str, Any]:
        notices, pieces = await self._open()
        # In a task of its own, so that close() ends the wait for what may never come.
        self._step = asyncio.create_task(_one(pieces), name="aios-client-step")
        try:
            with _told(self._explain):
                return await self._step
        except StopAsyncIteration:
            if not notices.result_first:
                with _told(self._explain):
                    self._result = _as_over_the_wire(await notices.result())
            self._ended = True
            raise
        except asyncio.CancelledError:
            me = asyncio.current_task()
            if not self._closed or (me is not None and me.cancelling()):
                raise
            raise StopAsyncIteration from None
        finally:
            self._step = None

    @contextmanager
    def _remembered(self) -> Iterator[None]:
        """A flow that failed fails again in the same way."""
        if self._failed is not None:
            raise self._failed
        try:
            yield
        except AiosError as error:
            self._failed = error
            raise


async def _one(pieces: AsyncIterator[Any]) -> dict[str, Any]:
    piece: dict[str, Any] = _as_over_the_wire(await anext(pieces))
    return piece
