"""How nodes come into the list of members and go from it: by their own genuine word only."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable

from aios_nb.hub.gossip.entropy import Reconciler
from aios_nb.hub.gossip.instructions import Changed, Outbox
from aios_nb.hub.gossip.members import LIVING, Life, Member, Members
from aios_nb.hub.gossip.packets import Alive, Ping, encode
from aios_nb.hub.gossip.probing import Detector
from aios_nb.hub.gossip.rumours import Rumour, Rumours
from aios_nb.hub.gossip.trust import Forgers
from aios_nb.hub.gossip.voice import Voice
from aios_nb.hub.presence import Presence, State


class Register:
    """Believes what a node signed of itself, if it is newer than what is known, and spreads it."""

    def __init__(
        self,
        members: Members,
        voice: Voice,
        detector: Detector,
        reconciler: Reconciler,
        rumours: Rumours,
        outbox: Outbox,
        genuine: Callable[[Presence], bool],
    ) -> None:
        self._members, self._voice, self._detector = members, voice, detector
        self._reconciler, self._rumours, self._outbox = reconciler, rumours, outbox
        self._genuine = genuine
        self._forgers = Forgers()
        self.counts: Counter[str] = Counter()

    def introduce(self, now: float, presence: Presence, teller: Member | None) -> bool:
        """True if it was news. ``teller``: who gossips it; None if it came from the node itself."""
        node_id, known = presence.node_id, self._members.get(presence.node_id)
        own = self._voice.presence
        word = own if node_id == own.node_id else known.presence if known else None
        if word is not None and presence.rank <= word.rank:
            self._on_old_word(now, presence, known, teller)
            return False
        if word is None and not self._has_room(teller):
            self.counts["no room"] += 1
            return False
        if not self._believes(now, presence, teller):
            return False
        if node_id == own.node_id:
            self._voice.overheard(presence)
            return False
        alone = not self._members.living
        state = Life.LEFT if presence.said.state is State.LEFT else Life.ALIVE
        member = Member(node_id, state, presence, now)
        if known is None:
            self._make_room(now)
        self._members.put(member)
        if teller is None:
            self._members.meet(node_id)
        self._detector.new_word(node_id)
        if teller is not None:
            self._detector.told_by(node_id, teller.node_id)
        self._outbox.put(Changed(member, known))
        self._spread(presence, teller)
        if state is Life.ALIVE and (alone or (known is None and teller is None)):
            self._reconciler.soon(now)
            self._reconciler.compare(member)
        return True

    def know(self, now: float, presence: Presence) -> None:
        """One that is there and was met long ago."""
        if presence.node_id != self._voice.presence.node_id:
            self._members.put(Member(presence.node_id, Life.ALIVE, presence, now))
            self._members.meet(presence.node_id)

    def take_back(self, member: Member) -> None:
        """It was dead for us and speaks: tell it, and see what both of us missed."""
        self._outbox.send(member.node_id, Ping(0, member.life))
        self._reconciler.compare(member)

    def forget(self, before: float) -> None:
        """Those who are gone since before that."""
        for node_id in [one for one in self._members.gone if self._members[one].since < before]:
            self._detector.forget(node_id)
            self._members.drop(node_id)

    def _has_room(self, teller: Member | None) -> bool:
        """For one more. One who came itself takes the place of one known from hearsay only."""
        if not self._members.is_full:
            return True
        weakest = self._members.weakest()
        return weakest is not None and (teller is None or weakest.state not in LIVING)

    def _make_room(self, now: float) -> None:
        weakest = self._members.weakest() if self._members.is_full else None
        if weakest is None:
            return
        self._detector.forget(weakest.node_id)
        self._members.drop(weakest.node_id)
        if weakest.state in LIVING:
            gone = Member(weakest.node_id, Life.DEAD, weakest.presence, now)
            self._outbox.put(Changed(gone, weakest))

    def _spread(self, presence: Presence, teller: Member | None) -> None:
        content = encode(Alive(presence.to_bytes()))
        knows = teller.node_id if teller else None
        rumour = Rumour(lambda _: content, about=presence.said.scope, knows=knows)
        self._rumours.add(("alive", presence.node_id), rumour)

    def _believes(self, now: float, presence: Presence, teller: Member | None) -> bool:
        source = teller.node_id if teller else presence.node_id
        if presence.said.net != self._voice.presence.said.net:
            self.counts["of another network"] += 1
        elif self._forgers.shunned(now, source):
            self.counts["from a forger"] += 1
        elif not self._genuine(presence):
            self._forgers.note(now, source)
            self.counts["forged"] += 1
        else:
            return True
        return False

    def _on_old_word(
        self, now: float, presence: Presence, known: Member | None, teller: Member | None
    ) -> None:
        """It says nothing new, except that its teller holds it for alive."""
        if teller is None:
            return
        self._rumours.knows(("alive", presence.node_id), teller.node_id)
        if known is not None and known.state is Life.DEAD:
            self._detector.turns.hurry(now, presence.node_id)
