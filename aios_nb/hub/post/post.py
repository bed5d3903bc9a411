"""The post office of a node: what others send and receive by."""

from __future__ import annotations

import asyncio
import logging
import random
import time
from collections import Counter
from collections.abc import Callable

from aios_nb.hub.post.datagram import (
    BODY_LIMIT_BYTES,
    CARRIED,
    DATAGRAM_LIMIT_BYTES,
    HEAD_BYTES,
    SENDER_AT,
    TOKEN_AT,
    Kind,
    Source,
    mark_of,
    raw_of,
    text_of,
)
from aios_nb.hub.post.meeting import Meeting
from aios_nb.hub.post.places import place_of, signed_place
from aios_nb.hub.post.sessions import Tally
from aios_nb.hub.post.udp import Udp
from aios_nb.hub.presence import Presence, State
from aios_nb.identity import Identity

log = logging.getLogger(__name__)

LOOK_EVERY_S = 0.1
"""At greetings that have no answer yet; nothing runs while there are none."""
Receiver = Callable[[str, bytes], None]


class Post:
    """Carries datagrams of at most ``BODY_LIMIT_BYTES`` between nodes that proved themselves.

    They may be lost, doubled or out of order, and anyone on the way can read them: what must be
    true is signed inside.
    """

    def __init__(
        self,
        identity: Identity,
        network: str,
        presence: Callable[[], Presence],
        *,
        refuses: Callable[[str], bool] = lambda _: False,
        clock: Callable[[], float] = time.monotonic,
        rng: random.Random | None = None,
    ) -> None:
        """A node it ``refuses`` is neither greeted nor answered; forget it when that begins."""
        self._refuses = refuses
        self.counts: Counter[str] = Counter()
        """What was dropped, by reason."""
        self._me = raw_of(identity.node_id)
        self._network = network
        self._mark = mark_of(network)
        self._clock = clock
        self._udp = Udp(self._arrived, self.counts)
        self._meeting = Meeting(
            self._me,
            network,
            self._mark,
            presence,
            self._udp,
            self.counts,
            rng or random.Random(),  # noqa: S311 - for pauses; nonces and tokens are secret
        )
        self._sessions = self._meeting.sessions
        self._receivers: dict[int, Receiver] = {}
        self._look: asyncio.TimerHandle | None = None
        self._complained: set[str] = set()

    # Opening and closing -------------------------------------------------------------------

    async def open(self, host: str, port: int) -> int:
        """Listen at this port if it is free, else at any; the one it got."""
        return await self._udp.open(host, port)

    async def close(self) -> None:
        """Send and hear nothing more."""
        if self._look is not None:
            self._look.cancel()
            self._look = None
        self._udp.close()

    # Whom we know --------------------------------------------------------------------------

    def know(self, presence: Presence) -> None:
        """A node's word on where it is. Its signature is checked before anything is sent there."""
        node = raw_of(presence.node_id)
        if node == self._me or presence.said.net != self._network:
            return
        if not self._meeting.acquaintances.know(presence):
            return
        for way in (self._sessions.get(node), self._meeting.greetings.get(node)):
            if way is not None and not _leads_to(way.source, presence):
                self._sessions.close(node)
                self._meeting.greetings.end(node)

    def forget(self, node_id: str) -> None:
        """Send that node nothing more; it may greet us again."""
        node = raw_of(node_id)
        self._meeting.acquaintances.forget(node)
        self._meeting.greetings.end(node)
        self._sessions.close(node)

    def proven(self, node_id: str) -> bool:
        """Whether that node and this one have shown each other who and where they are."""
        session = self._sessions.get(raw_of(node_id))
        return session is not None and session.is_open(self._clock())

    def rtt(self, node_id: str) -> float | None:
        """Seconds to that node and back, as measured when greeting."""
        session = self._sessions.get(raw_of(node_id))
        return None if session is None else session.rtt

    def tally(self, node_id: str) -> Tally | None:
        """What went to and fro with that node; None if nothing ever did."""
        return self._sessions.tally(raw_of(node_id))

    def carried(self, kind: Kind) -> Tally:
        """All that went through of this kind; greetings are of none."""
        return self._sessions.carried[kind]

    @property
    def on_met(self) -> Callable[[Presence], None]:
        """Called with a genuine presence whose node has just shown to be at that address."""
        return self._meeting.on_met

    @on_met.setter
    def on_met(self, call: Callable[[Presence], None]) -> None:
        self._meeting.on_met = call

    @property
    def sent_bytes(self) -> int:
        return self._udp.sent_bytes

    @property
    def sent_datagrams(self) -> int:
        return self._udp.sent_datagrams

    @property
    def received_bytes(self) -> int:
        return self._udp.received_bytes

    # Sending -------------------------------------------------------------------------------

    def send(self, to: str, kind: Kind, body: bytes) -> bool:
        """Whether it was sent, or waits for the other's welcome; False: no way there by UDP."""
        if len(body) > BODY_LIMIT_BYTES:
            self.counts["long"] += 1
            return False
        node = raw_of(to)
        now = self._clock()
        session = self._sessions.get(node)
        if session is not None and session.is_open(now):
            if session.wants_renewal(now):
                self._greet(node, now)
            return self._meeting.carry(session, kind, body)
        if kind not in CARRIED:
            raise ValueError(f"{kind.name} is the post's own")
        return self._greet(node, now, (kind, body))

    def _greet(self, node: bytes, now: float, waiting: tuple[Kind, bytes] | None = None) -> bool:
        greeting = None if self._refuses(text_of(node)) else self._meeting.greet(node, now)
        if greeting is None:
            return False
        self._keep_looking()
        return waiting is None or self._meeting.greetings.queue(greeting, *waiting)

    def _keep_looking(self) -> None:
        if self._look is None and len(self._meeting.greetings):
            loop = asyncio.get_running_loop()
            self._look = loop.call_later(LOOK_EVERY_S, self._look_after_greetings)

    def _look_after_greetings(self) -> None:
        self._look = None
        self._meeting.go_on(self._clock())
        self._keep_looking()

    # Receiving -----------------------------------------------------------------------------

    def on(self, kind: Kind, receiver: Receiver) -> None:
        """Hand datagrams of this kind to ``receiver(node id of the sender, body)``."""
        if kind not in CARRIED:
            raise ValueError(f"{kind.name} is the post's own")
        self._receivers[kind] = receiver

    def _arrived(self, data: bytes, source: Source) -> None:
        try:
            self._take(data, source)
        except Exception as error:  # noqa: BLE001 - whatever a stranger sends, the node goes on
            self._failed("error", error)

    def _take(self, data: bytes, source: Source) -> None:
        if not HEAD_BYTES <= len(data) <= DATAGRAM_LIMIT_BYTES:
            self.counts["size"] += 1
            return
        if data[1:SENDER_AT] != self._mark:
            self.counts["network"] += 1
            return
        now = self._clock()
        if data[0] in CARRIED:
            self._deliver(data[0], data, source, now)
        elif data[SENDER_AT:TOKEN_AT] == self._me:
            self.counts["echo"] += 1
        elif self._refuses(text_of(data[SENDER_AT:TOKEN_AT])):
            self.counts["refused"] += 1
        else:
            self._meet(data[0], data, source, now)

    def _meet(self, kind: int, data: bytes, source: Source, now: float) -> None:
        """What the post itself says and hears."""
        if kind == Kind.HELLO:
            self._meeting.hello(data, source, now)
        elif kind == Kind.WELCOME:
            self._meeting.welcome(data, source, now)
        elif kind == Kind.PROOF:
            self._meeting.proof(data, source, now)
        elif kind == Kind.AGAIN:
            if self._meeting.again(data, source, now):
                self._keep_looking()
        else:
            self.counts["kind"] += 1

    def _deliver(self, kind: int, data: bytes, source: Source, now: float) -> None:
        node = data[SENDER_AT:TOKEN_AT]
        session = self._sessions.get(node)
        if session is None or session.source != source:
            if self._refuses(text_of(node)):
                self.counts["refused"] += 1
            else:
                self._meeting.ask_again(data, source, now)
            return
        token = data[TOKEN_AT:HEAD_BYTES]
        if token != session.expected or now >= session.expected_until:
            until = self._meeting.tokens.valid_until(token, source, node, now)
            if not until:
                self._meeting.ask_again(data, source, now)
                return
            session.expect(token, until)
        size = len(data)
        session.tally.received += size
        self._sessions.carried[kind].received += size
        receiver = self._receivers.get(kind)
        if receiver is None:
            self.counts["unwanted"] += 1
            return
        try:
            receiver(session.node_id, data[HEAD_BYTES:])
        except Exception as error:  # noqa: BLE001 - one bad letter must not stop the post
            self._failed("receiver", error)

    def _failed(self, where: str, error: Exception) -> None:
        """Count it, and log the first one: a line for each packet would fill the disk."""
        self.counts[where] += 1
        if where not in self._complained:
            self._complained.add(where)
            log.warning("a datagram made an error; more of them are only counted", exc_info=error)


def _leads_to(source: Source, presence: Presence) -> bool:
    if presence.said.state is State.LEFT or presence.address is None:
        return False
    return signed_place(presence.address) == place_of(source)
