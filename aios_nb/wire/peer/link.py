"""One live link to another node: many calls at once in both directions, and nobody else reads it.

All frames of one turn of the loop leave in one write. A call whose method does not wait is answered
in the turn it came in, without a task.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from aios_nb.access import Principal
from aios_nb.errors import Busy, ConnectionLost, TooLarge
from aios_nb.wire.connection import STALL_S
from aios_nb.wire.peer import asking
from aios_nb.wire.peer.answering import Answering, Desk
from aios_nb.wire.peer.asking import PeerStream
from aios_nb.wire.peer.channel import Channel, Closed
from aios_nb.wire.peer.frames import (
    BYE,
    END,
    HEAD_BYTES,
    LINK,
    MESSAGE,
    PIECE,
    PING,
    PONG,
    READY,
    Ready,
    Violation,
    read_bye,
    read_ready,
    say,
    split,
)
from aios_nb.wire.peer.pulse import TICK_S, Pulse, Verdict
from aios_nb.wire.peer.sealing import Tampered
from aios_nb.wire.peer.streams import Full, Stream, Streams

if TYPE_CHECKING:
    from aios_nb.wire.peer.handshake import Session

log = logging.getLogger(__name__)

OUT_BYTES = 1 << 18
"""What is written in one turn, about; then others have theirs."""
STAMP_BYTES = 8
WEIGHED_BYTES = 1 << 20
"""After so much in pieces it is looked at what the links of strangers hold."""


class PeerLink:
    """A link that is up, from both sides' ``ready`` to its end. It is a ``ports.Link``."""

    def __init__(
        self,
        channel: Channel,
        session: Session,
        desk: Desk,
        principal: Principal,
        *,
        dialled: bool,
        mine: Ready,
        theirs: Ready,
        clock: Callable[[], float],
        on_weight: Callable[[], None] = lambda: None,
    ) -> None:
        """``on_weight`` is told again and again while long messages come in."""
        self.node_id = session.node_id
        self.epoch = theirs.epoch
        self.name = theirs.name
        self.dialled = dialled
        """By this side."""
        self.principal = principal
        """What the other node may do here; its owner may change that at any time."""
        self.why = ""
        """Why it ends: ``idle``, ``left``, ``replaced``, ``blocked`` or ``broke``."""
        self.address = channel.address
        self.since = self.asked_at = clock()
        self.over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._clock = clock
        self._channel = channel
        self._seal = session.sealer.seal
        self._unseal = session.opener.open
        self._loop = asyncio.get_running_loop()
        self._theirs = theirs
        self._streams = Streams(mine, theirs, dialled=dialled)
        self._answering = Answering(desk, self._streams, theirs.message, self._wake)
        self._pulse = Pulse(clock)
        self._desk = desk
        self._on_weight = on_weight
        self._in_pieces = 0
        self._stalled_ticks = 0
        self._stamps = 0
        self._heard = self._used = False
        self._waking = self._reading = False
        self._draining: asyncio.Task[None] | None = None
        self._bye_sent = self._bye_heard = self._left = False

    # The interface of a link ----------------------------------------------------------

    @property
    def is_open(self) -> bool:
        """New things can be asked here."""
        return not (self._bye_sent or self._bye_heard or self.over.done())

    @property
    def latency_ms(self) -> float | None:
        return self._pulse.latency_ms

    @property
    def carried(self) -> tuple[int, int]:
        """Bytes sent and received, those of the handshake with them."""
        return self._channel.sent_bytes, self._channel.received_bytes

    @property
    def quiet(self) -> bool:
        """Nothing is under way on it."""
        return self._streams.idle

    @property
    def parted(self) -> bool:
        """It ends as soon as the connection does, whatever is under way."""
        return self._left or self.over.done()

    @property
    def held_bytes(self) -> int:
        """What is held in memory for it: messages that came in part or were not read yet."""
        streams = self._streams
        return streams.assembled_bytes + streams.queued_bytes + self._channel.unsent_bytes

    async def call(self, method: str, params: Mapping[str, Any]) -> Any:
        """The result as builtins. Raises its ``RpcError``, or ``ConnectionLost``."""
        answer: asyncio.Future[Any] = self._loop.create_future()
        stream = self._ask(asking.request(method, params), answer)
        try:
            return await answer
        except asyncio.CancelledError:
            self._give_up(stream)
            raise

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Say it and wait for nothing; lost if the link breaks."""
        self._ask(asking.notification(method, params), None, last=True)

    def stream(self, method: str, params: Mapping[str, Any]) -> PeerStream:
        """Ask for what comes in pieces. It is sent at once."""
        flow = PeerStream(self._loop)
        stream = self._ask(asking.request(method, params), flow)
        flow.took = lambda cost: self._took(stream, cost)
        flow.give_up = lambda: self._give_up(stream)
        return flow

    # Its life -------------------------------------------------------------------------

    async def run(self) -> None:
        """Read until either side ends it. Everything that waited has been told afterwards."""
        self.ping()
        self._channel.attach(self._hear, self._heard_all, self._rest)
        try:
            problem = await asyncio.shield(self._channel.closed)
        finally:
            self._lost()
        if problem is None:
            return
        if isinstance(problem, Tampered | Violation):
            why = str(problem) or "a frame was tampered with"
            log.info("the link to %s ended: %s", self.node_id, why)
        else:
            log.error("the link to %s ended", self.node_id, exc_info=problem)

    def tick(self, *, kept: bool, idle_s: float) -> None:
        """Look after the link, every second. One that is not ``kept`` ends when it is idle."""
        heard, self._heard = self._heard, False
        verdict = self._pulse.tick(heard=heard)
        now = self._clock()
        if self._used or not self._streams.idle:
            self._used = False
            self.asked_at = now
        # By ticks, not by a clock: time in which we were held up ourselves does not count.
        self._stalled_ticks = 0 if self._draining is None else self._stalled_ticks + 1
        if self._stalled_ticks * TICK_S >= STALL_S:
            log.info("%s does not read", self.node_id)
            self._channel.abort()
        elif verdict is Verdict.DEAD:
            log.info("%s is silent", self.node_id)
            self._channel.abort()
        elif verdict is Verdict.PING:
            self.ping()
        elif self._streams.worn:
            self.drain("replaced")
        elif self.dialled and not kept and now - self.asked_at >= idle_s:
            # Only the side that dialled: it knows whether the link is to be kept warm.
            self.drain("idle")

    def ping(self) -> None:
        self._stamps += 1
        self._pulse.pinged()
        self._streams.ping(self._stamps.to_bytes(STAMP_BYTES, "big"))
        self._wake()

    def drain(self, why: str) -> None:
        """Ask nothing more here; the link ends when what is under way has come to its end."""
        if not self._bye_sent and not self.over.done():
            self._bye_sent = True
            self.why = self.why or why
            self._streams.bye(why)
            self._wake()

    def leave(self, why: str = "left") -> None:
        """Say goodbye and end; the other side hangs up."""
        if self.over.done() or self._left:
            return
        self._bye_sent = self._left = True
        self.why = self.why or why
        self._streams.bye(why, at_once=True)
        self._write()

    def part(self, why: str) -> None:
        """Say goodbye and hang up."""
        self.leave(why)
        self._channel.close()

    def abort(self, why: str) -> None:
        """End it now, without a word."""
        self.why = self.why or why
        self._channel.abort()

    def release(self) -> None:
        """Give back the connection."""
        self._channel.release()

    # Reading --------------------------------------------------------------------------

    def _hear(self, sealed: bytes | bytearray) -> None:
        self._heard = self._reading = True
        frame = self._unseal(sealed)
        number, kind = split(frame)
        if kind == MESSAGE:
            body = self._streams.request(number, frame)
            if body is not None:
                self._used = True
                self._answering.take(self.principal, number, body)
                return
        self._take(number, kind, frame)

    def _heard_all(self) -> None:
        """The frames of one packet were taken: their answers leave together."""
        self._reading = False
        if self._waking:
            self._flush()

    def _rest(self, worked_s: float) -> float:
        return self._desk.pace.rest_s(worked_s) if self.principal.is_stranger else 0.0

    def _take(self, number: int, kind: int, frame: bytes) -> None:
        """Everything but a short request."""
        if number == LINK:
            self._take_link(kind, frame)
            return
        if kind > END:
            if kind <= BYE:
                raise Violation("that is for the link, not for a stream")
            return  # of a later version
        got = self._streams.receive(number, kind, frame)
        if got is None:
            if self._streams.pending:
                self._wake()
            if kind == PIECE:
                self._weigh(len(frame))
            return
        stream, body = got
        if body is None:
            self._given_up(stream)
        elif stream.ours:
            self._answered(stream, body)
        else:
            self._used = True
            self._answering.take(self.principal, stream.number, body, stream)
        if self._bye_heard:
            self._settle()

    def _weigh(self, more_bytes: int) -> None:
        self._in_pieces += more_bytes
        if self._in_pieces >= WEIGHED_BYTES:
            self._in_pieces = 0
            self._on_weight()

    def _take_link(self, kind: int, frame: bytes) -> None:
        if kind == PING:
            if len(frame) != HEAD_BYTES + STAMP_BYTES:
                raise Violation("a ping has eight bytes")
            self._streams.pong(frame[HEAD_BYTES:])
            self._wake()
        elif kind == PONG:
            if frame[HEAD_BYTES:] == self._stamps.to_bytes(STAMP_BYTES, "big"):
                self._pulse.ponged()
        elif kind == BYE:
            self._bye(read_bye(frame).why)
        elif kind <= READY:
            raise Violation("that is not for the link itself")

    def _bye(self, why: str) -> None:
        self._bye_heard = True
        self.why = self.why or why
        if why == "left" or self._left:
            self._channel.close()
            raise Closed
        if not self._bye_sent:
            self._bye_sent = True
            self._streams.bye(why)
            self._wake()
        self._settle()

    def _answered(self, stream: Stream, body: bytes) -> None:
        said = asking.read(body)
        owner = stream.owner
        if said.method:
            if type(owner) is PeerStream:
                owner.heard(said.params, self._streams.hold(stream))
            else:
                self._streams.owe(stream, stream.cost)
                self._wake()
            return
        self._streams.close(stream)
        problem = None if said.error is None else asking.failure(said.error)
        _finish(owner, said.result, problem)

    def _given_up(self, stream: Stream) -> None:
        if stream.ours:
            _finish(stream.owner, None, self._broke("was given up by the other side"))
        else:
            self._answering.ended(stream)
        self._wake()  # it may have held the place of another

    # Asking ---------------------------------------------------------------------------

    def _ask(self, message: bytes, owner: Any, *, last: bool = False) -> Stream:
        if not self.is_open:
            raise self._broke("is over")
        if len(message) > self._theirs.message:
            raise TooLarge(f"that is longer than {self.node_id} takes")
        try:
            stream = self._streams.open(message, owner, last=last)
        except Full:
            raise Busy(f"too many calls to {self.node_id} at once") from None
        self._used = True
        self._wake()
        return stream

    def _give_up(self, stream: Stream) -> None:
        self._streams.end(stream)
        self._wake()

    def _took(self, stream: Stream, cost: int) -> None:
        self._streams.took(stream, cost)
        if self._streams.pending:
            self._wake()

    # Writing --------------------------------------------------------------------------

    def _wake(self) -> None:
        """Have what is queued sent at the end of this turn of the loop."""
        if not self._waking and self._draining is None:
            self._waking = True
            if not self._reading:
                self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        if not self._waking:
            return
        self._waking = False
        if self._draining is not None or self.over.done():
            return
        self._write()
        if self._channel.paused and self._channel.open:
            self._streams.stalled = True
            self._answering.unpaused = asyncio.Event()
            self._draining = self._loop.create_task(self._drain())
        elif self._streams.pending:
            self._wake()
        elif self._bye_heard:
            self._settle()

    def _write(self) -> None:
        frames = self._streams.take(OUT_BYTES)
        if frames and self._channel.open:
            seal = self._seal
            self._channel.write([seal(frame) for frame in frames])

    async def _drain(self) -> None:
        try:
            await self._channel.drained()
        except ConnectionError:
            self._channel.abort()
        finally:
            self._draining = None
            self._streams.stalled = False
            unpaused, self._answering.unpaused = self._answering.unpaused, None
            if unpaused is not None:
                unpaused.set()
            if not self.over.done():
                self._wake()

    # The end --------------------------------------------------------------------------

    def _settle(self) -> None:
        """Both have said goodbye: hang up when nothing is under way any more."""
        if self._bye_sent and self._streams.idle:
            self._channel.close()

    def _lost(self) -> None:
        if self.over.done():
            return
        self.why = self.why or "broke"
        self.over.set_result(None)
        self._channel.close()
        self._answering.close()
        if self._draining is not None:
            self._draining.cancel()
        for stream in self._streams.all():
            if stream.ours:
                _finish(stream.owner, None, self._broke("broke in the middle of a call"))
            self._streams.close(stream)

    def _broke(self, how: str) -> ConnectionLost:
        return ConnectionLost(
            f"the link to {self.node_id} {how}", hint="asking again with the same ids is safe"
        )


def _finish(owner: Any, result: Any, problem: Exception | None) -> None:
    """Tell whoever asked; nobody did for a notification."""
    if type(owner) is PeerStream:
        owner.finish(result, problem)
    elif owner is None or owner.done():
        return
    elif problem is None:
        owner.set_result(result)
    else:
        owner.set_exception(problem)


async def exchange_ready(
    channel: Channel, session: Session, mine: Ready, *, dialled: bool
) -> Ready:
    """What the other side takes. Both say ``ready`` before anything else, the acceptor first."""
    said = session.sealer.seal(say(READY, mine))
    if not dialled:
        channel.write([said])
    theirs = read_ready(session.opener.open(await channel.read()))
    if dialled:
        channel.write([said])
    return theirs
