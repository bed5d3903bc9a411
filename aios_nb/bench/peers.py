"""Load over peer links: the handshake as another node makes it, then sealed frames."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from aios_nb.bench import frames
from aios_nb.bench.calls import ChatStream, decode, quoted
from aios_nb.bench.keys import identity
from aios_nb.bench.session import CONNECT_WAIT_S, Session, Shared, SharedSession
from aios_nb.bench.spec import Broken, Target
from aios_nb.bench.upgraded import Upgraded
from aios_nb.identity import Identity
from aios_nb.wire.peer.frames import (
    BYE,
    CREDIT_BYTES,
    END,
    FRAME_BYTES,
    HEAD_BYTES,
    LINK,
    MESSAGE,
    PIECE,
    PING,
    PONG,
    READY,
    SUBPROTOCOL,
    Ready,
    Violation,
    credit,
    head,
    read_head,
    read_ready,
    say,
)
from aios_nb.wire.peer.handshake import Initiator, Refused
from aios_nb.wire.peer.sealing import Tampered

NETWORK = "main"
MESSAGE_BYTES = 4 << 20
STREAMS = 1000
DIALS_PER_S = 150
"""A node takes two hundred handshakes a second from nodes that it knows."""
_BINARY = frames.BINARY
_READY = Ready(credit=CREDIT_BYTES, frame=FRAME_BYTES, message=MESSAGE_BYTES, streams=STREAMS)


class PeerSession(SharedSession):
    """One link, with a stream for each call."""

    over = "a peer link"

    async def connect(self) -> Shared:
        link = _CallLink(self)
        await link.dial(self, identity(self.target.seed))
        return link


class Aside(PeerSession):
    """One stream on every slot, begun when the link is open and never counted.

    A stalled one stops reading from the socket, as a laptop does whose lid was closed.
    """

    async def open(self) -> None:
        await super().open()
        for slot in range(self.slots):
            self.send(slot)
        if self.shared is not None and self.target.side == "stalled":
            self.shared.transport.pause_reading()

    def close(self) -> None:
        unread = self.slots - len(self._latencies)
        super().close()
        if self.target.side == "read" and (unread or self._wrong):
            raise Broken(f"{unread} streams beside were not read well: {self._first_wrong}")


class IdleLinks(Session):
    """``concurrency`` links, each of another node, on which nothing is said."""

    def __init__(self, target: Target) -> None:
        super().__init__(target)
        self._links: list[Link] = []

    async def open(self) -> None:
        async def one(number: int) -> Link:
            await asyncio.sleep(number / DIALS_PER_S)
            link = Link()
            await link.dial(self, identity(self.target.seed, number))
            return link

        self._links = await asyncio.gather(*map(one, range(self.slots)))

    def send(self, slot: int) -> None:
        del slot
        raise Broken("nothing is said on an idle link")

    def close(self) -> None:
        lost = sum(link.transport.is_closing() for link in self._links)
        for link in self._links:
            link.transport.close()
        if lost:
            raise Broken(f"{lost} of {len(self._links)} idle links were closed by the node")


class Link(Upgraded):
    """The dialler's end of a link."""

    def __init__(self, in_flight: int = 1) -> None:
        super().__init__(in_flight)
        self._seal: Callable[[bytes], bytes] = _not_yet
        self._open: Callable[[bytes], bytes] = _not_yet
        self._pieces: dict[int, list[bytes]] = {}
        self._owed: dict[int, int] = {}

    async def dial(self, session: Session, who: Identity) -> None:
        """Connect, prove this identity, and exchange what both sides take."""
        host, port = session.host, session.port
        loop = asyncio.get_running_loop()
        async with asyncio.timeout(CONNECT_WAIT_S):
            await loop.create_connection(lambda: self, host, port)
            try:
                await self.upgrade(f"{host}:{port}", SUBPROTOCOL)
                await self._prove(Initiator(who, NETWORK, expects=session.target.node_id))
            except BaseException:
                self.transport.close()
                raise

    async def _prove(self, steps: Initiator) -> None:
        self.put(frames.frame(steps.first(), _BINARY))
        try:
            m3, proven = steps.third(await self.heard("the handshake"))
            self.put(frames.frame(m3, _BINARY))
            self._seal, self._open = proven.sealer.seal, proven.opener.open
            read_ready(self._open(await self.heard("ready")))
        except (Refused, Violation, Tampered) as problem:
            raise Broken(f"no link: {problem}") from None
        self.introduced = True
        self.tell(say(READY, _READY))

    def tell(self, frame: bytes) -> None:
        """Seal a frame and send it."""
        self.put(frames.frame(self._seal(frame), _BINARY))

    def got(self, payload: bytes) -> None:
        try:
            frame = self._open(payload)
        except Tampered:
            self.fail("a frame that does not open")
            return
        number, kind = read_head(frame)
        if kind == MESSAGE:
            message = frame[HEAD_BYTES:]
            if number in self._pieces:
                message = b"".join((*self._pieces.pop(number), message))
            self.take(number, message)
        elif kind == PIECE:
            self._pieces.setdefault(number, []).append(frame[HEAD_BYTES:])
            self.give_back(number, len(frame) - HEAD_BYTES)
        elif kind == PING:
            self.tell(head(LINK, PONG) + frame[HEAD_BYTES:])
        elif kind in (END, BYE):
            self.fail(f"the node gave up: {quoted(frame)}")

    def give_back(self, number: int, size: int) -> None:
        """Let the node send as much again on a stream, once it is worth a frame."""
        owed = self._owed.get(number, 0) + size
        if owed >= CREDIT_BYTES // 4:
            self.tell(credit(number, owed))
            owed = 0
        self._owed[number] = owed

    def take(self, number: int, message: bytes) -> None:
        """A whole message came on this stream."""
        self.fail(f"nothing was asked on stream {number}: {quoted(message)}")

    def fail(self, problem: str) -> None:
        del problem
        self.transport.close()


class _CallLink(Link):
    """A link with calls in flight."""

    def __init__(self, session: PeerSession) -> None:
        super().__init__(session.slots)
        self._session = session
        self._next = 1
        self._slots: dict[int, int] = {}

    def ask(self, slot: int, body: bytes) -> None:
        """Open the next stream with this request."""
        number = self._next
        self._next = number + 2
        self._slots[number] = slot
        self.put(frames.frame(self._seal(head(number, MESSAGE) + body), _BINARY))

    def take(self, number: int, message: bytes) -> None:
        session, slot = self._session, self._slots.get(number)
        incoming = decode(message)
        if incoming is None or slot is None:
            self.fail(f"a message that belongs to no call: {quoted(message)}")
            return
        rpc = session.rpc
        if isinstance(rpc, ChatStream):
            if rpc.take(slot, incoming):
                session.began(slot)
            if incoming.method is not None:
                self.give_back(number, len(message))
                return
            self._owed.pop(number, None)
            problem = rpc.end(slot)
        else:
            problem = rpc.answer(slot, incoming)
        del self._slots[number]
        session.finished(slot, problem)

    def fail(self, problem: str) -> None:
        self.transport.close()
        slots, self._slots = self._slots, {}
        for slot in slots.values():
            self._session.lost(slot, problem)


def _not_yet(data: bytes) -> bytes:
    raise Broken(f"a link that is used before its handshake: {quoted(data)}")
