"""What this node asks over a link: the request, and the answer or the pieces that come back."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Mapping
from typing import Any

import msgspec

from aios_nb.errors import ConnectionLost, InvalidParams, RpcError, from_wire
from aios_nb.wire import jsonrpc
from aios_nb.wire.peer.frames import Violation


class Said(msgspec.Struct, gc=False):
    """What comes back on a stream: a notification, or the response."""

    method: str = ""
    params: Any = None
    result: Any = None
    error: dict[str, Any] | None = None


_said = msgspec.json.Decoder(Said).decode


def request(method: str, params: Mapping[str, Any]) -> bytes:
    """The bytes of a request. One stream holds one, so that all can have the same id."""
    return b'{"jsonrpc":"2.0","id":1,"method":%b,"params":%b}' % (
        jsonrpc.encode(method),
        _encoded(method, params),
    )


def notification(method: str, params: Mapping[str, Any]) -> bytes:
    return b"%b%b}" % (jsonrpc.notification_head(method), _encoded(method, params))


def _encoded(method: str, params: Mapping[str, Any]) -> bytes:
    try:
        return jsonrpc.encode(params)
    except (TypeError, ValueError, RecursionError) as problem:
        raise InvalidParams(f"{method}: params are not JSON: {problem}") from None


def read(body: bytes) -> Said:
    """What was said. Raises ``Violation`` for bytes that say nothing."""
    try:
        return _said(body)
    except jsonrpc.NOT_JSON as problem:
        raise Violation(f"not an answer: {problem}") from None


def failure(error: dict[str, Any]) -> RpcError:
    """The error another node answered with; it may have put anything into it."""
    try:
        return from_wire(error)
    except (TypeError, ValueError):
        return RpcError(str(error.get("message"))[:200], code=error.get("code"))


class PeerStream:
    """An answer in pieces. Unread pieces wait within the credit of the stream, and no further."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._items: deque[tuple[Any, int]] = deque()
        self._waiter: asyncio.Future[None] | None = None
        self._final: asyncio.Future[Any] = loop.create_future()
        self._skipping = False
        self.took: Callable[[int], None] = lambda _: None
        """Told what a piece that was read had cost."""
        self.give_up: Callable[[], None] = lambda: None

    def __aiter__(self) -> AsyncIterator[Any]:
        return self

    async def __anext__(self) -> Any:
        while not self._items:
            if self._final.done():
                raise StopAsyncIteration  # how it ended is what ``result`` tells
            self._waiter = self._loop.create_future()
            try:
                await self._waiter
            finally:
                self._waiter = None
        item, cost = self._items.popleft()
        self.took(cost)
        return item

    async def result(self) -> Any:
        """The result. Pieces that nobody is waiting for are dropped from now on."""
        self._skipping = True
        if self._waiter is None:
            while self._items:
                self.took(self._items.popleft()[1])
        try:
            return await asyncio.shield(self._final)
        except asyncio.CancelledError:
            if self._final.cancelled():
                raise ConnectionLost("this stream was closed") from None
            raise

    def close(self) -> None:
        """Stop listening. What was asked for goes on over there."""
        if not self._final.done():
            self._final.cancel()
            self.give_up()
        self._items.clear()
        self._wake()

    def heard(self, params: Any, cost: int) -> None:
        """One notification."""
        if self._skipping and self._waiter is None:
            self.took(cost)
            return
        self._items.append((params, cost))
        self._wake()

    def finish(self, result: Any, problem: Exception | None) -> None:
        if self._final.done():
            return
        if problem is None:
            self._final.set_result(result)
        else:
            self._final.set_exception(problem)
            self._final.exception()  # seen: who only iterates need not ask for it
        self._wake()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)
