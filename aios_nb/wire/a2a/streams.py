"""The events of a task as server-sent events: each is a JSON-RPC response of its own."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from aios_nb.errors import Cancelled
from aios_nb.wire import jsonrpc
from aios_nb.wire.a2a import refusals
from aios_nb.wire.sse import GATHER_BYTES, Events

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

    from aios_nb.ports import Notices
    from aios_nb.wire.dispatch import Dispatcher


class Flow:
    """The events of one task, as ``TaskEvents`` takes them. Is a ``ports.Notices``."""

    notification = ""
    result_first = False

    def __init__(self, events: AsyncIterator[Any]) -> None:
        self._events = events

    def __aiter__(self) -> AsyncIterator[Any]:
        return self._events

    async def result(self) -> Any:
        """All is in the events."""

    def close(self) -> None:
        """Nothing to let go of: a run does not depend on who listens."""


class TaskEvents(Events):
    """The event stream that answers one request."""

    async def _follow(self, dispatcher: Dispatcher, call: jsonrpc.Call, notices: Notices) -> None:
        head = b'data: {"jsonrpc":"2.0","id":%b,"result":' % bytes(call.id)
        connection = self._connection
        try:
            async for event in notices:
                self._event(b"%b%b}\n\n" % (head, jsonrpc.encode(event)))
                if self._waiting_bytes > GATHER_BYTES:
                    self._flush()
                    await asyncio.sleep(0)
                if connection.writing_paused:
                    await connection.drained()
        except asyncio.CancelledError:
            if self._lost or (self._task is not None and self._task.cancelling()):
                raise
            self._event(b"data: %b\n\n" % failure(call, Cancelled("it was cancelled")))
        except ConnectionError:
            raise
        except Exception as problem:  # noqa: BLE001 - every failure is answered
            self._event(b"data: %b\n\n" % failure(call, explained(dispatcher, call, problem)))


def explained(dispatcher: Dispatcher, call: jsonrpc.Call, problem: Exception) -> Exception:
    """The error a caller may see; what was not meant to happen goes to the log."""
    if isinstance(problem, refusals.Refused):
        return problem
    return dispatcher.explain(call.method, problem)


def failure(call: jsonrpc.Call | None, problem: Exception) -> bytes:
    """The response that carries an error."""
    id_ = jsonrpc.NULL_ID if call is None or call.is_notification else call.id
    error = jsonrpc.encode(refusals.to_wire(problem))
    return b'{"jsonrpc":"2.0","error":%b,"id":%b}' % (error, bytes(id_))
