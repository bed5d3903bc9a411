"""Probing for others, who do not reach a node themselves: one packet for one packet."""

from __future__ import annotations

from collections.abc import Callable

from aios_nb.hub.gossip.instructions import Outbox
from aios_nb.hub.gossip.members import Life, Member, Members
from aios_nb.hub.gossip.packets import Ack, Alive, Ask, Nack, Ping, text_id

AT_ONCE = 256
AT_ONCE_EACH = 16
"""For one asker, who has no more probes open than this: nobody else is refused because of it."""
_NACK_SHARE = 0.7
"""Of the timeout: who probes for another says so before the other stops waiting."""


class Relay:
    """What we were asked, by the number of our own ping."""

    def __init__(
        self, members: Members, outbox: Outbox, timeout_s: float, number: Callable[[], int]
    ) -> None:
        self._members, self._outbox, self._number = members, outbox, number
        self._wait_s = _NACK_SHARE * timeout_s
        self._waiting: dict[int, tuple[str, Ask, float]] = {}
        """Who asked, what, and when to say no."""

    def next_at(self) -> float:
        return min((no_at for _, _, no_at in self._waiting.values()), default=float("inf"))

    def tick(self, now: float) -> None:
        """Say no for those who did not answer: it shows that at least we are well."""
        for seq in [seq for seq, (_, _, no_at) in self._waiting.items() if no_at <= now]:
            asker, ask, _ = self._waiting.pop(seq)
            self._outbox.send(asker, Nack(ask.seq))

    def clear(self) -> None:
        self._waiting.clear()

    def on_ask(self, now: float, asker: Member, ask: Ask) -> None:
        node_id = text_id(ask.target)
        target = self._members.get(node_id)
        his = sum(asker.node_id == other for other, _, _ in self._waiting.values())
        full = len(self._waiting) >= AT_ONCE or his >= AT_ONCE_EACH
        if target is None or target.state is Life.LEFT or full or node_id == asker.node_id:
            self._outbox.send(asker.node_id, Nack(ask.seq))
            return
        seq = self._number()
        self._waiting[seq] = (asker.node_id, ask, now + self._wait_s)
        self._outbox.send(node_id, Ping(seq, ask.doubted))

    def on_ack(self, sender: Member, ack: Ack) -> None:
        """It answered us: pass it on, with its own newer word if the asker doubts."""
        asker, ask, _ = self._waiting.get(ack.seq, ("", None, 0.0))
        if ask is None or text_id(ask.target) != sender.node_id:
            return
        del self._waiting[ack.seq]
        target = self._members[sender.node_id]
        if ask.doubted is not None and target.life > ask.doubted:
            self._outbox.send(asker, Alive(target.presence.to_bytes()), Ack(ask.seq))
        else:
            self._outbox.send(asker, Ack(ask.seq))
