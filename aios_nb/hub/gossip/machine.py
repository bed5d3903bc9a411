"""Gossip as a state machine: events go in, instructions come out. No I/O, no clock of its own.

Everything is hearsay but three things: who sent a packet, what a node signed of itself, and what
our own probes found. So nobody can be talked to death, and nothing unsigned is passed on.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping

from aios_nb.errors import RecordError
from aios_nb.hub.gossip import packets
from aios_nb.hub.gossip.entropy import Reconciler
from aios_nb.hub.gossip.instructions import Instruction, Outbox
from aios_nb.hub.gossip.members import Life, Member, Members
from aios_nb.hub.gossip.pace import Pace
from aios_nb.hub.gossip.ports import Records
from aios_nb.hub.gossip.probing import NEVER, Detector
from aios_nb.hub.gossip.register import Register
from aios_nb.hub.gossip.rumours import Rumours
from aios_nb.hub.gossip.spreading import Spreader
from aios_nb.hub.gossip.trust import Accounts
from aios_nb.hub.gossip.voice import Voice
from aios_nb.hub.presence import Presence, State, peek
from aios_nb.records import Scope, Signed, may_be_told

GAP_S = 1.0
"""A node that comes so late to its own tick was away, not the others."""
PATIENCE_SHARE = 0.6
"""Of the doubt. Who does not reach us for no longer will soon; we need not say anything."""
ANNOUNCED_TO = 12
"""So many hear at once that we leave, or are back."""


class Gossip:
    """One node's part in the gossip."""

    def __init__(
        self,
        me: str,
        pace: Pace,
        records: Records,
        speak: Callable[[int, State], Presence],
        *,
        scope: Scope,
        rng: random.Random,
        now: float,
        genuine: Callable[[Presence], bool] = Presence.is_genuine,
    ) -> None:
        self.me, self.pace = me, pace
        self._records = records
        self._members, self._outbox = Members(), Outbox()
        rumours = Rumours()
        self._detector = Detector(pace, self._members, self._outbox, rumours, rng, now)
        self._spreader = Spreader(pace, self._members, records, self._outbox, rumours, rng, now)
        self._voice = Voice(speak, self._members, rumours, self._outbox, now)
        self._reconciler = Reconciler(
            me,
            scope,
            pace,
            self._members,
            records,
            self._outbox,
            rng,
            now,
            presence=lambda: self._voice.presence,
            hint=self._detector.turns.hurry,
        )
        self._register = Register(
            self._members,
            self._voice,
            self._detector,
            self._reconciler,
            rumours,
            self._outbox,
            genuine,
        )
        self.counts = self._register.counts
        """What was dropped, by why."""
        self._accounts = Accounts()
        self._left = False
        self.next_at = NEVER
        """When ``tick`` is wanted."""

    @property
    def members(self) -> Mapping[str, Member]:
        """All other nodes, the dead included for a while."""
        return self._members

    @property
    def size(self) -> int:
        """Of the network: the living, and this node."""
        return self._members.size

    @property
    def alive(self) -> int:
        """How many others there are that answer."""
        return len(self._members.living) - self._members.suspects

    @property
    def presence(self) -> Presence:
        """This node's own word, as it is now."""
        return self._voice.presence

    @property
    def waiting(self) -> int:
        """Pieces of news that are still being told."""
        return len(self._spreader.rumours)

    def presences(self) -> list[Presence]:
        """The words of all living nodes, this one's first: for one who pulls."""
        living = (self._members[node_id].presence for node_id in self._members.living)
        return [self.presence, *living]

    def begin_among(self, now: float, presences: Iterable[Presence]) -> None:
        """Know these nodes as if it had been so for long: for networks that begin in the middle.

        Whoever calls this has made the presences itself: nothing is checked, nothing is news.
        """
        for presence in presences:
            self._register.know(now, presence)
        self._spreader.rumours.clear()
        self._done(now)

    def take(self) -> list[Instruction]:
        """What is to be done now, in this order."""
        return self._outbox.take()

    # Events ------------------------------------------------------------------------------

    def received(self, now: float, sender: str, packet: bytes) -> None:
        """A packet came; whatever carried it has proven the sender."""
        self._notice_gap(now)
        peer = self._members.get(sender)
        messages = packets.unpack(packet)
        if messages is None:
            self.counts["junk"] += 1
        elif peer is None:
            self.counts["of a stranger"] += 1
        elif not self._left and peer.state is not Life.LEFT:
            self._detector.heard(now, peer)
            if peer.state is Life.DEAD:
                self._register.take_back(peer)
            self._read_all(now, peer, messages)
            self._spreader.tick(now)
        self._done(now)

    def tick(self, now: float) -> None:
        """Time passed."""
        self._notice_gap(now)
        if not self._left:
            self._detector.tick(now)
            self._spreader.tick(now)
            if now >= self._reconciler.next_at:
                self._reconciler.begin(now)
                self._detector.claims.expire(now)
                self._register.forget(now - self.pace.forget_s)
        self._done(now)

    def introduce(self, now: float, presence: Presence, over: Scope | None = None) -> bool:
        """A node's own word; True if it was news and is genuine.

        ``over`` is the scope of the link it came by; None: it came from the address it names.
        """
        self._notice_gap(now)
        news = self._register.introduce(now, presence, None)
        self._members.seen_from(presence, over)
        self._spreader.tick(now)
        self._done(now)
        return news

    def heard(self, now: float, node_id: str) -> None:
        """That node is alive: a link to it works."""
        self._notice_gap(now)
        member = self._members.get(node_id)
        if member is not None and member.state is not Life.LEFT:
            self._detector.heard(now, member)
            if member.state is Life.DEAD:
                self._register.take_back(member)
        self._done(now)

    def published(self, now: float, signed: Signed) -> None:
        """A record of ours, already in the catalogue, is to be known everywhere."""
        self._spreader.spread(self._records.handle(signed.key), 0)
        self._spreader.tick(now)
        self._done(now)

    def pulled(
        self, now: float, node_id: str, presences: Iterable[bytes], records: Iterable[bytes]
    ) -> None:
        """What that node answered to a pull. A shell that has offered the records gives none."""
        self._notice_gap(now)
        self._reconciler.pulled(node_id)
        peer = self._members.get(node_id)
        if peer is not None and not self._left:
            for content in presences:
                self._on_alive(now, peer, content)
            self._spreader.on_pulled(peer, records)
            self._spreader.tick(now)
        self._done(now)

    def leave(self, now: float) -> None:
        """Say goodbye; after this the machine is silent."""
        if not self._left:
            self._voice.goodbye()
            self._spreader.round(now, ANNOUNCED_TO)
            self._left = True
            self._done(now)

    # Packets -----------------------------------------------------------------------------

    def _read_all(self, now: float, peer: Member, messages: list[packets.Message]) -> None:
        """As long as that peer has not asked too much of us."""
        account = self._accounts.of(now, peer.node_id)
        if not account.admits(now):
            self.counts["too many"] += 1
            return
        self._outbox.payer = account
        try:
            for message in messages:
                if account.is_spent:
                    self.counts["too much"] += 1
                    break
                self._read(now, peer, message)
        finally:
            self._outbox.payer = None

    def _read(self, now: float, peer: Member, message: packets.Message) -> None:  # noqa: C901, PLR0912
        match message:
            case packets.Ping():
                self._on_ping(now, peer, message)
            case packets.Ack():
                self._on_doubt(now, peer, message.doubted)
                self._detector.on_ack(now, peer, message)
            case packets.Alive():
                self._on_alive(now, peer, message.presence)
            case packets.Have():
                self._spreader.on_have(now, peer, message)
            case packets.Whole():
                self._spreader.on_whole(peer, message)
            case packets.Want():
                self._spreader.on_want(now, peer, message)
            case packets.Ask():
                self._detector.relay.on_ask(now, peer, message)
            case packets.Nack():
                self._detector.on_nack(peer, message)
            case packets.Suspect():
                if message.node == packets.raw_id(self.me):
                    old = message.age_ms > PATIENCE_SHARE * self.pace.doubt(self.size) * 1000
                    self._on_doubt(now, peer, message.life if old else None)
                else:
                    self._detector.on_suspect(now, peer, message)
            case packets.Roots():
                self._reconciler.on_roots(peer, message)
            case packets.MemberSums():
                self._reconciler.on_member_sums(now, peer, message)
            case packets.RecordSums():
                self._reconciler.on_record_sums(now, peer, message)
            case packets.Faces():
                self._reconciler.on_faces(now, peer, message)
            case packets.Missing():
                self._reconciler.on_missing(peer, message)
            case packets.Listing():
                self._reconciler.on_listing(peer, message)

    def _on_ping(self, now: float, peer: Member, ping: packets.Ping) -> None:
        """Answer; and if the one who asks was dead for us, say so, that it can tell everyone."""
        doubted = peer.life if peer.state is Life.DEAD else None
        ack = packets.Ack(ping.seq, doubted)
        proof = self._voice.answer_doubt(now, ping.doubted) if ping.doubted else None
        if proof is None:
            self._outbox.send(peer.node_id, ack)
        else:
            self._detector.awareness.worse()
            self._outbox.send(peer.node_id, proof, ack)

    def _on_doubt(self, now: float, peer: Member, doubted: tuple[int, int] | None) -> None:
        proof = self._voice.answer_doubt(now, doubted) if doubted else None
        if proof is not None:
            self._outbox.send(peer.node_id, proof)

    def _on_alive(self, now: float, peer: Member, content: bytes) -> None:
        try:
            presence = peek(content)
        except RecordError:
            self.counts["junk"] += 1
            return
        own = presence.node_id == peer.node_id
        if own or may_be_told(presence.said.scope, self._members.distance(peer)):
            self._register.introduce(now, presence, peer)
        else:  # its address means something else where that peer is
            self.counts["out of scope"] += 1

    # Time --------------------------------------------------------------------------------

    def _notice_gap(self, now: float) -> None:
        """After a pause of our own nobody is accused, and everyone hears that we are back."""
        if now > self.next_at + GAP_S and not self._left:
            self._detector.forgive(now)
            self._reconciler.soon(now)
            self._voice.again()
            self._spreader.round(now, ANNOUNCED_TO)

    def _done(self, now: float) -> None:
        if self._left or not self._members:
            self.next_at = NEVER
            return
        soonest = min(self._detector.next_at(), self._spreader.next_at())
        # Never in the past: what is overdue already is no sign that we were away.
        self.next_at = max(now, min(soonest, self._reconciler.next_at))
