"""What this node says of itself, and how it answers those who think it is gone."""

from __future__ import annotations

from collections.abc import Callable

from aios_nb.hub.gossip.instructions import Outbox, Superseded
from aios_nb.hub.gossip.members import Members
from aios_nb.hub.gossip.packets import Alive, encode
from aios_nb.hub.gossip.rumours import Rumour, Rumours
from aios_nb.hub.gossip.trust import Allowance
from aios_nb.hub.presence import Presence, State

_REFUTE_BURST, _REFUTE_EVERY_S = 3, 5.0
"""A liar who doubts us must not make us flood the network with our word."""


class Voice:
    """Our own presence; each new word of it is spread."""

    def __init__(
        self,
        speak: Callable[[int, State], Presence],
        members: Members,
        rumours: Rumours,
        outbox: Outbox,
        now: float,
    ) -> None:
        self._speak, self._members, self._rumours, self._outbox = speak, members, rumours, outbox
        self.presence = speak(0, State.ALIVE)
        members.toggle(self.presence)
        self._refutations = Allowance(_REFUTE_BURST, _REFUTE_EVERY_S, now)
        self._superseded_by = 0
        self._announce()

    @property
    def life(self) -> tuple[int, int]:
        return self.presence.said.epoch, self.presence.said.incarnation

    def again(self) -> None:
        """Our next word: whatever is held against an earlier one is void."""
        self._say(State.ALIVE, self.presence.said.incarnation + 1)

    def goodbye(self) -> None:
        self._say(State.LEFT, self.presence.said.incarnation)

    def answer_doubt(self, now: float, doubted: tuple[int, int]) -> Alive | None:
        """For one who doubts that life of ours: what we say against it, if there is anything.

        Only our own signed next word convinces those whom we do not reach ourselves.
        """
        if doubted == self.life and self._refutations.take(now):
            self.again()
        told = doubted < self.life
        return Alive(self.presence.to_bytes()) if told else None

    def overheard(self, presence: Presence) -> None:
        """A genuine word of ours that we did not say: another program has our key."""
        epoch, incarnation = presence.said.epoch, presence.said.incarnation
        if epoch > self.life[0]:
            if epoch > self._superseded_by:
                self._superseded_by = epoch
                self._outbox.put(Superseded(epoch))
        elif presence.rank > self.presence.rank:
            self._say(State.ALIVE, incarnation + 1)

    def _say(self, state: State, incarnation: int) -> None:
        self._members.toggle(self.presence)
        self.presence = self._speak(incarnation, state)
        self._members.toggle(self.presence)
        self._announce()

    def _announce(self) -> None:
        content = encode(Alive(self.presence.to_bytes()))
        rumour = Rumour(lambda _: content, about=self.presence.said.scope)
        self._rumours.add(("alive", self.presence.node_id), rumour)
