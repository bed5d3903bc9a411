"""What another node asks over a link: answered at once, later, or in pieces."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NoReturn

from aios_nb.access import Principal
from aios_nb.config import MB, Limits
from aios_nb.errors import Busy, Cancelled, InvalidRequest, TooLarge
from aios_nb.wire import jsonrpc
from aios_nb.wire.jsonrpc import ABSENT, Call
from aios_nb.wire.methods import Answers

if TYPE_CHECKING:
    from aios_nb.ports import Notices
    from aios_nb.wire.dispatch import Dispatcher
    from aios_nb.wire.peer.streams import Stream, Streams

UNSENT_BYTES = 16 * MB
"""With so much waiting for a node that does not read, it gets no new answers but ``Busy``."""


class Desk:
    """What the links of a node share: who answers, and the calls under way."""

    def __init__(self, dispatcher: Dispatcher, limits: Limits) -> None:
        self.dispatcher = dispatcher
        self.limits = limits
        self.flows = 0
        """Answers in pieces, over all links."""
        self.calls: set[asyncio.Future[Any]] = set()
        """Calls under way; they outlive their link."""

    def keep(self, call: asyncio.Future[Any]) -> None:
        """Hold on to a call until it is done."""
        self.calls.add(call)
        call.add_done_callback(self.calls.discard)

    async def close(self) -> None:
        """Cancel every call."""
        await asyncio.sleep(0)  # a call that was made in this very turn gets to its first await
        for task in tuple(self.calls):
            task.cancel()
        if self.calls:
            await asyncio.wait(self.calls)


class Answering:
    """The calls that came over one link."""

    def __init__(
        self, desk: Desk, streams: Streams, message_bytes: int, wake: Callable[[], None]
    ) -> None:
        """``message_bytes`` is what the other side takes; ``wake`` has what is queued sent."""
        self._desk = desk
        self._dispatcher = desk.dispatcher
        self._streams = streams
        self._message_bytes = message_bytes
        self._wake = wake
        self._loop = asyncio.get_running_loop()
        self._pumps: dict[Stream, asyncio.Task[None]] = {}
        self.unpaused: asyncio.Event | None = None
        """Set while the other side reads too slowly; set off when it has caught up."""

    def take(
        self, principal: Principal, number: int, body: bytes, stream: Stream | None = None
    ) -> None:
        """A request came, on a stream of that number; ``stream`` if it came in pieces."""
        call = self._dispatcher.read(body)
        if type(call) is not Call:
            if type(call) is not bytes:
                refusal = InvalidRequest("no batches between nodes", hint="open a stream for each")
                call = jsonrpc.error(jsonrpc.NULL_ID, refusal)
            self._reply_at_once(number, stream, call)
            return
        try:
            if self._streams.queued_bytes > UNSENT_BYTES:
                _refuse_more()
            bound, value = self._dispatcher.start(principal, call)
            if bound.kind is Answers.CALL and not hasattr(value, "__await__"):
                answer = b"" if call.id is ABSENT else jsonrpc.result(call.id, value)
                self._reply_at_once(number, stream, answer, call)
                return
        except Exception as problem:  # noqa: BLE001 - every failure is answered
            self._reply_at_once(number, stream, self._dispatcher.failure(call, problem), call)
            return
        stream = stream or self._streams.adopt(number)
        self._desk.keep(self._loop.create_task(self._later(stream, call, value)))

    def ended(self, stream: Stream) -> None:
        """Nobody listens to that answer any more."""
        pump = self._pumps.get(stream)
        if pump is not None:
            pump.cancel()

    def close(self) -> None:
        """Nobody listens to any of them. What runs, runs on."""
        for pump in tuple(self._pumps.values()):
            pump.cancel()

    def _reply_at_once(
        self, number: int, stream: Stream | None, answer: bytes, call: Call | None = None
    ) -> None:
        if stream is not None:
            self._reply(stream, answer, call)
        elif not answer:
            return
        elif self._streams.prompt(number, answer):
            self._wake()
        else:
            self._reply(self._streams.adopt(number), answer, call)

    def _reply(self, stream: Stream, answer: bytes, call: Call | None = None) -> None:
        if not answer:
            self._streams.close(stream)
            return
        if len(answer) > self._message_bytes:
            id_ = jsonrpc.NULL_ID if call is None else call.id
            answer = jsonrpc.error(id_, TooLarge("the answer is longer than that node takes"))
        self._streams.send(stream, answer, last=True)
        self._wake()

    async def _later(self, stream: Stream, call: Call, value: Any) -> None:
        """The link may break meanwhile: the method goes on, and its answer is dropped."""
        try:
            if hasattr(value, "__await__"):
                value = await value
            if hasattr(value, "result_first"):
                self._open(stream, call, value)
                return
            answer = b"" if call.id is ABSENT else jsonrpc.result(call.id, value)
        except asyncio.CancelledError:
            if _being_cancelled():
                raise
            answer = self._dispatcher.failure(call, Cancelled(f"{call.method} was cancelled"))
        except Exception as problem:  # noqa: BLE001 - every failure is answered
            answer = self._dispatcher.failure(call, problem)
        self._reply(stream, answer, call)

    # In pieces ------------------------------------------------------------------------

    def _open(self, stream: Stream, call: Call, notices: Notices) -> None:
        if stream.gone or call.id is ABSENT:
            notices.close()
            self._streams.close(stream)
            return
        if notices.result_first:
            notices.close()
            raise InvalidRequest(f"{call.method} has no end, and is not for a link")
        if self._desk.flows >= self._desk.limits.open_streams:
            notices.close()
            raise Busy("too many open streams on this node", hint="try again")
        pump = self._loop.create_task(self._pump(stream, call, notices))
        self._desk.flows += 1
        self._desk.keep(pump)
        self._pumps[stream] = pump
        pump.add_done_callback(lambda _: self._pumped(stream, notices))

    def _pumped(self, stream: Stream, notices: Notices) -> None:
        notices.close()  # here: a task that is cancelled before it begins runs no line of its own
        self._desk.flows -= 1
        self._pumps.pop(stream, None)

    async def _pump(self, stream: Stream, call: Call, notices: Notices) -> None:
        head = jsonrpc.notification_head(notices.notification)
        room = Room(self._loop)
        stream.on_room = room.came
        try:
            async for item in notices:
                self._streams.send(stream, b"%b%b}" % (head, jsonrpc.encode(item)))
                self._wake()
                # One at a time: what is written meanwhile comes in one piece, later.
                await room.wait()
                while self.unpaused is not None:
                    await self.unpaused.wait()
            answer = jsonrpc.result(call.id, await notices.result())
        except asyncio.CancelledError:
            if _being_cancelled():
                raise
            answer = self._dispatcher.failure(call, Cancelled(f"{call.method} ended"))
        except Exception as problem:  # noqa: BLE001 - every failure is answered
            answer = self._dispatcher.failure(call, problem)
        self._reply(stream, answer, call)


class Room:
    """Waits until a stream has sent what it had, and has credit for more."""

    __slots__ = ("_loop", "_waiter")

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiter: asyncio.Future[None] | None = None

    def came(self) -> None:
        waiter = self._waiter
        if waiter is not None and not waiter.done():
            waiter.set_result(None)

    async def wait(self) -> None:
        """To be called right after something was queued."""
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None


def _refuse_more() -> NoReturn:
    raise Busy("too much waits to be read on this link", hint="read it first")


def _being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
