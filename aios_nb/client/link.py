"""One proven websocket, shared by many calls."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from aios_nb.client.interface import CHOOSE_ID, encoded
from aios_nb.errors import Busy, ConnectionLost, InternalError, RpcError, from_wire

if TYPE_CHECKING:
    import aiohttp

CALLS_MAX = 1000
"""Unanswered calls on one connection; the node's own limit is the same."""


class Listener(Protocol):
    """A flow, to the connection it listens on."""

    def take(self, params: dict[str, Any]) -> None:
        """One notification of this flow."""

    def answered(self, result: Any, link: Link) -> None:
        """The result came over ``link``."""

    def wake(self) -> None:
        """Something changed: look again."""


class Link:
    """One proven connection: many calls share it, told apart by their ids."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse, node: str) -> None:
        self._socket = socket
        self._node = node
        self._last_id = 0
        self._waiting: dict[int, Call] = {}
        self._flows: dict[str, list[Listener]] = {}
        self.alive = True
        self._reader = asyncio.create_task(self._read(), name="aios-client-reader")

    async def send(self, call: Call) -> None:
        if len(self._waiting) >= CALLS_MAX:
            raise Busy("too many unanswered calls on this connection", hint="wait for some")
        if not self.alive:
            raise self._lost(call)
        params = msgspec.Raw(encoded(call.method, call.params))
        self._last_id += 1
        call.id = self._last_id
        request = {"jsonrpc": "2.0", "id": call.id, "method": call.method, "params": params}
        frame = msgspec.json.encode(request).decode()
        self._waiting[call.id] = call
        try:
            await self._socket.send_str(frame)
        except (ConnectionError, RuntimeError) as error:
            self.forget(call)
            raise self._lost(call) from error

    def forget(self, call: Call) -> None:
        self._waiting.pop(call.id, None)

    def listen(self, key: str, flow: Listener) -> None:
        self._flows.setdefault(key, []).append(flow)

    def unlisten(self, key: str, flow: Listener) -> None:
        flows = self._flows.get(key, [])
        if flow in flows:
            flows.remove(flow)
        if not flows:
            self._flows.pop(key, None)

    def is_heard(self, key: str) -> bool:
        """Whether somebody listens to exactly this."""
        return key in self._flows

    async def close(self) -> None:
        await self._socket.close()
        self._reader.cancel()
        with suppress(asyncio.CancelledError):
            await self._reader

    async def _read(self) -> None:
        from aiohttp import WSMsgType

        try:
            async for frame in self._socket:
                if frame.type is not WSMsgType.TEXT or not self._take(frame.data):
                    break
        finally:
            self._drop()

    def _take(self, text: str) -> bool:
        """False when this is not a frame of the protocol: the connection is then given up."""
        try:
            frame = msgspec.json.decode(text)
        except (msgspec.DecodeError, UnicodeError):
            return False
        if not isinstance(frame, dict):
            return False
        if "method" in frame:
            params = frame.get("params")
            if isinstance(params, dict):
                self._notify(params)
            return True
        call = self._waiting.pop(frame.get("id") or 0, None)
        if call is not None:
            if "error" in frame:
                call.fail(_error_of(frame["error"]))
            else:
                call.done(frame.get("result"), self)
        return True

    def _notify(self, params: dict[str, Any]) -> None:
        watch = params.pop("watch", None)
        # A reply is listened to by its own id, or by that of the message it answers.
        keys = (watch,) if watch else (params.get("reply_id"), params.get("message_id"))
        for key in keys:
            for flow in tuple(self._flows.get(str(key), ())):
                flow.take(params)

    def _drop(self) -> None:
        self.alive = False
        waiting, self._waiting = self._waiting, {}
        for call in waiting.values():
            call.fail(self._lost(call))
        flows, self._flows = self._flows, {}
        for flow in {flow for some in flows.values() for flow in some}:
            flow.wake()

    def _lost(self, call: Call) -> ConnectionLost:
        sent = call.params.get("message_id") if call.method in CHOOSE_ID else None
        if sent is None:
            return ConnectionLost(
                f"the connection to {self._node} broke before it answered", hint="ask again"
            )
        return ConnectionLost(
            f"the connection to {self._node} broke before it answered",
            hint=f"ask again with message_id {sent}: it runs at most once",
            message_id=sent,
        )


def _error_of(wire: Any) -> RpcError:
    try:
        return from_wire(wire)
    except (TypeError, ValueError, AttributeError):
        return InternalError("the node sent an error that makes no sense")


class Call:
    """One request and the place of its answer."""

    def __init__(self, method: str, params: dict[str, Any], flow: Listener | None = None) -> None:
        self.id = 0
        self.method = method
        self.params = params
        self._flow = flow
        self.answer: asyncio.Future[Any] = asyncio.get_running_loop().create_future()

    def done(self, result: Any, link: Link) -> None:
        if self._flow is not None:
            # At once, not in a callback: the first event may be in the very next frame.
            self._flow.answered(result, link)
        if not self.answer.done():
            self.answer.set_result(result)

    def fail(self, error: Exception) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)
            self.answer.exception()  # seen: nobody may be waiting any more
        if self._flow is not None:
            self._flow.wake()
