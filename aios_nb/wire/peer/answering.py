"""What another node asks over a link: answered at once, later, or in pieces."""

from __future__ import annotations

import asyncio
import functools
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from aios_nb.access import Principal
from aios_nb.config import MB, Limits
from aios_nb.errors import Busy, Cancelled, InvalidRequest, TooLarge
from aios_nb.later import Later
from aios_nb.wire import jsonrpc
from aios_nb.wire.jsonrpc import ABSENT, Call
from aios_nb.wire.methods import Answers
from aios_nb.wire.peer.pace import Pace

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
        self.stranger_flows = 0
        """Those of them that strangers asked for."""
        self.pace = Pace(time.monotonic)
        self.calls: set[asyncio.Future[Any]] = set()
        """Calls under way; they outlive their link."""

    def has_room(self, *, stranger: bool) -> bool:
        """Whether one more answer may come in pieces. Half of the places are not for strangers."""
        most = self.limits.open_streams
        return self.flows < most and not (stranger and self.stranger_flows >= max(1, most // 2))

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
        self._at_work = 0
        """Calls whose methods are not done, also if nobody waits for them any more."""
        self._unanswered = 0
        """The same for notifications."""
        self.unpaused: asyncio.Event | None = None
        """There while the other side reads too slowly; rung when it has caught up."""

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
            self._check_room(call)
            bound, value = self._dispatcher.start(principal, call)
            if bound.kind is Answers.CALL and not hasattr(value, "__await__"):
                answer = b"" if call.id is ABSENT else jsonrpc.result(call.id, value)
                self._reply_at_once(number, stream, answer, call)
                return
        except Exception as problem:  # noqa: BLE001 - every failure is answered
            self._reply_at_once(number, stream, self._dispatcher.failure(call, problem), call)
            return
        if call.id is ABSENT:
            self._notified(stream, call, value)
            return
        stream = stream or self._streams.adopt(number)
        self._at_work += 1
        if type(value) is Later:
            value.then(functools.partial(self._come, stream, call))
            return
        later = self._later(principal, stream, call, value)
        self._desk.keep(self._loop.create_task(later))

    def ended(self, stream: Stream) -> None:
        """Nobody listens to that answer any more."""
        pump = self._pumps.get(stream)
        if pump is not None:
            pump.cancel()

    def close(self) -> None:
        """Nobody listens to any of them. What runs, runs on."""
        for pump in tuple(self._pumps.values()):
            pump.cancel()

    def _check_room(self, call: Call) -> None:
        """Raises ``Busy``; of a notification nobody hears that, and it is lost."""
        if self._streams.queued_bytes > UNSENT_BYTES:
            raise Busy("too much waits to be read on this link", hint="read it first")
        at_work = self._unanswered if call.id is ABSENT else self._at_work
        if at_work >= self._desk.limits.ws_calls:
            raise Busy("too many calls of this link are still at work", hint="try again")

    def _notified(self, stream: Stream | None, call: Call, value: Any) -> None:
        """Let the method go on. To its sender the stream is over: it must not count as open."""
        if stream is not None:
            self._streams.close(stream)
        self._unanswered += 1
        task = self._loop.create_task(self._unheard(call, value))
        task.add_done_callback(self._heard_out)
        self._desk.keep(task)

    def _heard_out(self, _: asyncio.Task[None]) -> None:
        self._unanswered -= 1

    async def _unheard(self, call: Call, value: Any) -> None:
        try:
            if hasattr(value, "__await__"):
                value = await value
        except Exception as problem:  # noqa: BLE001 - what was not meant to happen is logged
            self._dispatcher.failure(call, problem)
            return
        if hasattr(value, "result_first"):
            value.close()

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

    def _come(self, stream: Stream, call: Call, value: Any, error: Exception | None) -> None:
        """What was to come later is there. The link may be gone: then it is dropped."""
        self._at_work -= 1
        if error is None:
            try:
                answer = jsonrpc.result(call.id, value)
            except Exception as problem:  # noqa: BLE001 - every failure is answered
                error = problem
        if error is not None:
            answer = self._dispatcher.failure(call, error)
        self._reply(stream, answer, call)

    async def _later(self, principal: Principal, stream: Stream, call: Call, value: Any) -> None:
        """The link may break meanwhile: the method goes on, and its answer is dropped."""
        try:
            if hasattr(value, "__await__"):
                value = await value
            if hasattr(value, "result_first"):
                self._open(principal, stream, call, value)
                return
            answer = jsonrpc.result(call.id, value)
        except asyncio.CancelledError:
            if _being_cancelled():
                raise
            answer = self._dispatcher.failure(call, Cancelled(f"{call.method} was cancelled"))
        except Exception as problem:  # noqa: BLE001 - every failure is answered
            answer = self._dispatcher.failure(call, problem)
        finally:
            self._at_work -= 1
        self._reply(stream, answer, call)

    # In pieces ------------------------------------------------------------------------

    def _open(self, principal: Principal, stream: Stream, call: Call, notices: Notices) -> None:
        if stream.gone:
            notices.close()
            return
        if notices.result_first:
            notices.close()
            raise InvalidRequest(f"{call.method} has no end, and is not for a link")
        stranger = principal.is_stranger
        if not self._desk.has_room(stranger=stranger):
            notices.close()
            # What it is about may have been taken: Busy alone would say that nothing was.
            raise Busy("too many open streams on this node", hint="try again", taken=True)
        pump = self._loop.create_task(self._pump(stream, call, notices))
        self._desk.flows += 1
        self._desk.stranger_flows += stranger
        self._desk.keep(pump)
        self._pumps[stream] = pump
        pump.add_done_callback(lambda _: self._pumped(stream, notices, stranger=stranger))

    def _pumped(self, stream: Stream, notices: Notices, *, stranger: bool) -> None:
        notices.close()  # here: a task that is cancelled before it begins runs no line of its own
        self._desk.flows -= 1
        self._desk.stranger_flows -= stranger
        self._pumps.pop(stream, None)

    async def _pump(self, stream: Stream, call: Call, notices: Notices) -> None:
        head = jsonrpc.notification_head(notices.notification)
        room = Room(self._loop)
        stream.on_room = room.came
        try:
            async for item in notices:
                self._streams.send(stream, self._piece(head, item))
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

    def _piece(self, head: bytes, item: Any) -> bytes:
        said = b"%b%b}" % (head, jsonrpc.encode(item))
        if len(said) > self._message_bytes:
            # It would end the link, and everything else on it.
            raise TooLarge("a piece of the answer is longer than that node takes")
        return said


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


def _being_cancelled() -> bool:
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
