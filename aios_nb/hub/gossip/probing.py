"""Who answers and who does not: SWIM's probes, with Lifeguard's care not to accuse too soon.

A node that does not answer is probed through three others, then suspected, told so, and probed
again; only then, and when the time of doubt is over, it is dead for us. A packet from it, or its
own signed word with a higher incarnation, ends all doubt.
"""

from __future__ import annotations

import random

from aios_nb.hub.gossip.awareness import Awareness
from aios_nb.hub.gossip.instructions import Changed, Outbox
from aios_nb.hub.gossip.members import LIVING, Life, Member, Members
from aios_nb.hub.gossip.pace import Pace
from aios_nb.hub.gossip.packets import Ack, Alive, Ask, Nack, Ping, Suspect, encode, raw_id, text_id
from aios_nb.hub.gossip.probes import Probe, Probes
from aios_nb.hub.gossip.relaying import Relay
from aios_nb.hub.gossip.rumours import Rumour, Rumours
from aios_nb.hub.gossip.suspicion import CONFIRMATIONS, Claims, Hearsay, Suspicion
from aios_nb.hub.gossip.turns import Turns

RELAYS = 3
_PINGS = 2
"""To the node itself, before others are asked."""
PROBES_AT_ONCE = 16
_SLOW_FACTOR = 3.0
"""A timeout is at least so many of the slowest round trips."""
_SLOW_DECAY = 0.98
_AGE_MOST_S = 300.0
NEVER = float("inf")


class Detector:
    """Finds out who is alive, says so, and tells others whom it cannot reach."""

    def __init__(
        self,
        pace: Pace,
        members: Members,
        outbox: Outbox,
        rumours: Rumours,
        rng: random.Random,
        now: float,
    ) -> None:
        self._pace, self._members, self._outbox = pace, members, outbox
        self._rumours, self._rng = rumours, rng
        self.awareness = Awareness()
        self.claims = Claims()
        self._suspicions: dict[str, Suspicion] = {}
        self._look_at = NEVER
        """Before this there is nothing to do about any of them."""
        self._looked_with = (0.0, 0)
        """The doubt, and who could agree, when that was found out."""
        self._probes = Probes()
        self.turns = Turns(members, rng, now)
        self._via: dict[str, str] = {}
        """Through whom a node that we may not reach ourselves answered last, or was heard of."""
        self._hearsay = Hearsay()
        self._seq = rng.getrandbits(16)
        self._slowest_s = 0.0
        self._probe_at = now + rng.random() * pace.probe_s
        self.relay = Relay(members, outbox, pace.timeout_s, self._next_seq)

    # Time --------------------------------------------------------------------------------

    def next_at(self) -> float:
        if not self._members:
            return NEVER
        soonest = min(self.relay.next_at(), self._probes.next_at())
        if self._members.living:
            soonest = min(soonest, self._probe_at)
        if len(self._probes) < PROBES_AT_ONCE:
            soonest = min(soonest, self.turns.hurried_at())
        return min(soonest, self._next_look())

    def tick(self, now: float) -> None:
        for probe in self._probes.overdue(now):
            if probe.pings < _PINGS:
                self._ping_again(now, probe)
            elif probe.relays is None:
                self._ask_others(now, probe)
            else:
                self._failed(now, probe)
        self.relay.tick(now)
        if now >= self._next_look():
            doubt_s, others = self._looked_with
            for node_id, suspicion in list(self._suspicions.items()):
                if self._next_of(node_id, suspicion, doubt_s, others) <= now:
                    self._look_again(now, node_id, suspicion)
            self._look_through()
        if now >= self.turns.hurried_at() and len(self._probes) < PROBES_AT_ONCE:
            self.probe(now, self.turns.next_hurried(now), pings=_PINGS)
        if now >= self._probe_at:
            interval = self._pace.probe_every(self._members.size)
            self._probe_at = now + self.awareness.scale(interval)
            in_turn = self.turns.next_in_turn()
            if in_turn is not None:
                self.probe(now, in_turn)

    def forgive(self, now: float) -> None:
        """We were away: whatever was not answered meanwhile is no one's fault but ours."""
        self._probes.clear()
        self.relay.clear()
        self.claims.clear()
        self.awareness.worse()
        for node_id in list(self._suspicions):
            self._turn(now, self._members[node_id], Life.ALIVE)
        self._suspicions.clear()
        self._probe_at = now + self._pace.probe_every(self._members.size)

    # Probes ------------------------------------------------------------------------------

    def probe(self, now: float, node_id: str, pings: int = 1) -> None:
        """Ask it; one probe of a node at a time. ``pings``: how many count as sent with this one.

        Of whom someone spoke already, others are asked sooner: so word of a death runs faster.
        """
        member = self._members.get(node_id)
        if member is None or self._probes.of(node_id) or member.state is Life.LEFT:
            return
        seq = self._next_seq()
        probe = Probe(node_id, seq, now, now + self._timeout() / _PINGS, pings)
        self._probes.open(probe)
        self._ping(member, probe)

    def heard(self, now: float, member: Member) -> None:
        """It is alive: a packet came from it, or a link to it is open."""
        node_id = member.node_id
        self._members.meet(node_id)
        self._hearsay.drop(node_id)
        probe = self._probes.of(node_id)
        if probe is not None:
            if probe.relays is None:
                rtt = now - probe.sent
                self._slowest_s = max(rtt, self._slowest_s * _SLOW_DECAY)
            self._answered(probe)
        if self.claims.of(node_id):
            self.claims.drop(node_id)
        if member.state in {Life.SUSPECT, Life.DEAD}:
            self.clear(node_id)
            self._turn(now, member, Life.ALIVE)

    def new_word(self, node_id: str) -> None:
        """It spoke for itself, whoever told us."""
        self._hearsay.drop(node_id)
        self.clear(node_id)

    def clear(self, node_id: str) -> None:
        """What was held against it is void."""
        self._suspicions.pop(node_id, None)
        self.claims.drop(node_id)
        probe = self._probes.of(node_id)
        if probe is not None:
            self._probes.close(probe)

    def told_by(self, node_id: str, teller: str) -> None:
        """If we do not reach a node, who told us of it may."""
        self._via.setdefault(node_id, teller)

    def forget(self, node_id: str) -> None:
        self.clear(node_id)
        self._via.pop(node_id, None)
        self._hearsay.drop(node_id)
        self.turns.forget(node_id)

    # What comes in -----------------------------------------------------------------------

    def on_ack(self, now: float, sender: Member, ack: Ack) -> None:
        self.relay.on_ack(sender, ack)
        probe = self._probes.numbered(ack.seq)
        if probe is None or probe.relays is None or sender.node_id not in probe.relays:
            return  # from the target itself it was heard already, as any packet is
        # Another's word. If several say the opposite from their own probes, only what the target
        # signs counts, and then it is no suspect any more when we get here.
        if self._needs_proof(now, probe.target):
            probe.vouched = True
            return
        self._via[probe.target] = sender.node_id
        self._hearsay.note(now, probe.target)
        self._answered(probe)
        if self._suspicions.pop(probe.target, None):
            self._turn(now, self._members[probe.target], Life.ALIVE)

    def on_nack(self, sender: Member, nack: Nack) -> None:
        probe = self._probes.numbered(nack.seq)
        if probe is not None and probe.relays and sender.node_id in probe.relays:
            probe.nacks.add(sender.node_id)

    def on_suspect(self, now: float, sender: Member, claim: Suspect) -> None:
        """Someone cannot reach a node that we know. It makes us look, no more."""
        member = self._members.get(text_id(claim.node))
        if member is None or member.node_id == sender.node_id or member.state not in LIVING:
            return
        if claim.life < member.life:
            self._outbox.send(sender.node_id, Alive(member.presence.to_bytes()))
        elif claim.life == member.life:
            age_s = min(claim.age_ms / 1000, _AGE_MOST_S)
            self.claims.note(member.node_id, sender.node_id, now - age_s)
            self._look_sooner(member.node_id)
            if member.state is Life.ALIVE:
                self.turns.hurry(now, member.node_id)

    def claim_of(self, now: float, node_id: str) -> bytes | None:
        """Our accusation as it is sent now; None if it does not hold any more."""
        suspicion, member = self._suspicions.get(node_id), self._members.get(node_id)
        if suspicion is None or member is None:
            return None
        origin = suspicion.origin(self._doubt_s(), self.claims.of(node_id))
        age_ms = max(0, int((now - origin) * 1000))
        return encode(Suspect(raw_id(node_id), member.life, min(age_ms, 2**32 - 1)))

    # Inside ------------------------------------------------------------------------------

    def _turn(self, now: float, member: Member, state: Life) -> None:
        """It is in another state now."""
        turned = Member(member.node_id, state, member.presence, now)
        self._members.put(turned)
        self._outbox.put(Changed(turned, member))

    def _accuse(self, member: Member) -> None:
        node_id = member.node_id
        rumour = Rumour(lambda now: self.claim_of(now, node_id), about=member.scope)
        self._rumours.add(("suspect", node_id), rumour)

    def _ping(self, member: Member, probe: Probe) -> None:
        """Tell it that it is doubted only if the doubt lasts: its answer goes to everyone."""
        suspicion = self._suspicions.get(member.node_id)
        doubted = member.state is Life.DEAD or (suspicion and suspicion.lasts)
        self._outbox.send(member.node_id, Ping(probe.seq, member.life if doubted else None))

    def _ping_again(self, now: float, probe: Probe) -> None:
        """A packet gets lost more often than a node."""
        member = self._members.get(probe.target)
        if member is None:
            self._probes.close(probe)
            return
        probe.pings += 1
        probe.due = now + self._timeout() / _PINGS
        self._ping(member, probe)

    def _ask_others(self, now: float, probe: Probe) -> None:
        relays = self._relays_for(probe.target)
        member = self._members.get(probe.target)
        if member is None:
            self._probes.close(probe)
            return
        probe.relays = tuple(relays)
        if not relays:
            self._failed(now, probe)
            return
        probe.due = now + self._timeout()
        self._ping(member, probe)
        doubted = member.life if self._needs_proof(now, probe.target) else None
        for relay in relays:
            self._outbox.send(relay, Ask(probe.seq, raw_id(probe.target), doubted))

    def _relays_for(self, target: str) -> list[str]:
        """Three healthy others; first the one through whom it answered before."""
        drawn = self._members.choose(self._rng, RELAYS + self._members.suspects + 2)
        via = self._via.get(target)
        found = dict.fromkeys([via, *drawn] if via else drawn)
        healthy = (
            node_id
            for node_id in found
            if node_id != target
            and (member := self._members.get(node_id)) is not None
            and member.state is Life.ALIVE
        )
        return [node_id for node_id, _ in zip(healthy, range(RELAYS), strict=False)]

    def _failed(self, now: float, probe: Probe) -> None:
        self._probes.close(probe)
        if probe.relays and not probe.nacks:
            self.awareness.worse()  # not even those who seem well speak to us
        member = self._members.get(probe.target)
        if member is None:
            return
        suspicion = self._suspicions.get(probe.target)
        if suspicion is not None:
            suspicion.rounds += 1
            suspicion.vouched |= probe.vouched
            self._accuse(member)
        elif member.state is Life.ALIVE:
            self._suspicions[probe.target] = Suspicion(probe.sent, vouched=probe.vouched)
            self._turn(now, member, Life.SUSPECT)
            self._accuse(member)
        self._look_sooner(probe.target)

    def _look_again(self, now: float, node_id: str, suspicion: Suspicion) -> None:
        claimed, others = self.claims.of(node_id), self._who_could_agree()
        dead_at = suspicion.dead_at(self._doubt_s(), claimed, others)
        if dead_at is not None and dead_at <= now:
            self.clear(node_id)
            self._turn(now, self._members[node_id], Life.DEAD)
        else:
            self.probe(now, node_id)

    def _next_look(self) -> float:
        """When there may be something to do about a suspect; asked after each event.

        They are looked through when that is now, or when the size of the network changed and with
        it all their times. In between, whatever may bring one of them forward says so; what puts
        one off does not, and costs one look too many.
        """
        if self._looked_with != self._measure():
            self._look_through()
        return self._look_at

    def _look_through(self) -> None:
        self._looked_with = doubt_s, others = self._measure()
        times = (
            self._next_of(node_id, suspicion, doubt_s, others)
            for node_id, suspicion in self._suspicions.items()
        )
        self._look_at = min(times, default=NEVER)

    def _look_sooner(self, node_id: str) -> None:
        """Something was said of it, or a probe of it failed."""
        suspicion = self._suspicions.get(node_id)
        if suspicion is not None:
            at = self._next_of(node_id, suspicion, *self._looked_with)
            self._look_at = min(self._look_at, at)

    def _measure(self) -> tuple[float, int]:
        return self._doubt_s(), min(CONFIRMATIONS, self._who_could_agree())

    def _next_of(self, node_id: str, suspicion: Suspicion, doubt_s: float, others: int) -> float:
        """When there is something to do about it."""
        claimed, probed = self.claims.of(node_id), self._probes.of(node_id) is not None
        check_at = None if probed else suspicion.check_at(doubt_s, claimed)
        dead_at = suspicion.dead_at(doubt_s, claimed, others)
        if dead_at is None:
            return NEVER if check_at is None else check_at
        return dead_at if check_at is None else min(check_at, dead_at)

    def _who_could_agree(self) -> int:
        return self._members.size - 1 - self._members.suspects

    def _answered(self, probe: Probe) -> None:
        self._probes.close(probe)
        self.awareness.better()

    def _needs_proof(self, now: float, node_id: str) -> bool:
        """Whether a relay's word is not enough: many accuse it, or it did not speak for long."""
        if self._hearsay.is_worn(now, node_id, self._doubt_s()):
            return True
        others = self._members.size - 2 - self._members.suspects
        return len(self.claims.of(node_id)) >= max(1, min(CONFIRMATIONS, others))

    def _timeout(self) -> float:
        base = self._pace.timeout_s
        slow = min(_SLOW_FACTOR * self._slowest_s, 2 * base)
        return self.awareness.scale(max(base, slow))

    def _doubt_s(self) -> float:
        return self._pace.doubt(self._members.size)

    def _next_seq(self) -> int:
        self._seq = (self._seq + 1) & 0xFFFFFFFF
        return self._seq
