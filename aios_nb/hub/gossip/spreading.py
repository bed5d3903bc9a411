"""Rounds of news to a few nodes at a time, and records for those who ask for them."""

from __future__ import annotations

import random
from collections.abc import Iterable

from aios_nb.hub.catalogue.change import Offered
from aios_nb.hub.gossip.instructions import Outbox
from aios_nb.hub.gossip.members import Member, Members
from aios_nb.hub.gossip.pace import Pace
from aios_nb.hub.gossip.packets import Have, Message, Want, Whole, encode
from aios_nb.hub.gossip.ports import Records
from aios_nb.hub.gossip.probing import NEVER
from aios_nb.hub.gossip.rumours import Rumour, Rumours
from aios_nb.hub.gossip.wanting import Wanting
from aios_nb.records import may_be_told, peek

WHOLE_HOPS = 2
"""So far a record goes whole; nodes further on ask for it."""
ANSWER_BYTES_PER_S = 16 << 10
ANSWER_BURST_BYTES = 128 << 10
PULLED_SPREAD_MAX = 32
_WANT_AT_ONCE = 64
_ASK_AGAIN_SHARE = 0.6
"""Of the interval."""
_FRESH = frozenset({Offered.NEW, Offered.NEWER})


class Spreader:
    """Tells news, and fetches what others say they have."""

    def __init__(
        self,
        pace: Pace,
        members: Members,
        records: Records,
        outbox: Outbox,
        rumours: Rumours,
        rng: random.Random,
        now: float,
    ) -> None:
        self._pace, self._members, self._records = pace, members, records
        self._outbox, self._rng = outbox, rng
        self.rumours = rumours
        self._round_at = now
        self.wanting = Wanting(_ASK_AGAIN_SHARE * pace.gossip_s, rng)
        self._budget, self._budget_at = float(ANSWER_BURST_BYTES), now

    def next_at(self) -> float:
        return min(self._next_round_at(), self.wanting.next_at)

    def tick(self, now: float) -> None:
        """A round: at once if the last one is long ago, so that the first hops lose no time."""
        if now >= self.wanting.next_at:
            self._ask_again(now)
        if now >= self._next_round_at():
            self._round_at = now + self._pace.gossip_s
            self.round(now, self._pace.fanout)

    def _next_round_at(self) -> float:
        return self._round_at if self.rumours and self._members.living else NEVER

    def round(self, now: float, fanout: int) -> None:
        most = self._pace.sends(self._members.size)
        for node_id in self._members.choose(self._rng, fanout):
            far = self._members.distance(self._members[node_id])
            pieces = self.rumours.pick(now, node_id, far, most)
            if pieces:
                self._outbox.send(node_id, *pieces)

    # Records -----------------------------------------------------------------------------

    def spread(self, handle: bytes, hops: int, knows: str | None = None) -> None:
        """Tell others of a record that is in the catalogue."""
        version, content = self._records.version(handle), self._records.content(handle)
        about = self._records.scope(handle)
        if version is None or content is None or about is None:
            return
        whole = encode(Whole(min(hops, WHOLE_HOPS), handle, version, content))
        whole_sends = self._pace.fanout * (WHOLE_HOPS - hops) if hops < WHOLE_HOPS else 0
        rumour = Rumour(
            lambda _: whole if self._records.version(handle) == version else None,
            about=about,
            item=(handle, version),
            whole_sends=whole_sends,
            knows=knows,
        )
        self.rumours.add(("record", handle), rumour)

    def on_whole(self, peer: Member, whole: Whole) -> None:
        handle = whole.handle
        if self._records.version(handle) == whole.version:
            self.rumours.knows(("record", handle), peer.node_id)
            return
        if not self._records.wants(handle, whole.version):
            return
        offered = self._records.offer(whole.content, self._members.distance(peer))
        self.wanting.drop(handle)
        if offered in _FRESH and self._records.content(handle) == whole.content:
            self.spread(handle, whole.hops + 1, peer.node_id)
        elif offered is Offered.OLDER:
            self._offer_back(peer, handle)

    def on_have(self, now: float, peer: Member, have: Have) -> None:
        want: list[bytes] = []
        for handle, version in have.items:
            if self._records.version(handle) == version:
                self.rumours.knows(("record", handle), peer.node_id)
            elif self._records.wants(handle, version) and self.wanting.add(
                now, handle, peer.node_id
            ):
                want.append(handle)
        if want:
            self._outbox.send(peer.node_id, Want(tuple(want)))

    def on_want(self, now: float, peer: Member, want: Want) -> None:
        found: list[Message] = []
        for handle in dict.fromkeys(want.handles):
            content, version = self._records.content(handle), self._records.version(handle)
            about = self._records.scope(handle)
            if content is None or version is None or about is None:
                continue
            if may_be_told(about, self._members.distance(peer)) and self._afford(now, len(content)):
                found.append(Whole(WHOLE_HOPS, handle, version, content))
        self._outbox.send_all(peer.node_id, found)

    def _ask_again(self, now: float) -> None:
        asked: dict[str, list[bytes]] = {}
        for handle, source in self.wanting.due(now):
            if source in self._members:
                asked.setdefault(source, []).append(handle)
        for source, handles in asked.items():
            self._outbox.send_all(
                source,
                [
                    Want(tuple(handles[start : start + _WANT_AT_ONCE]))
                    for start in range(0, len(handles), _WANT_AT_ONCE)
                ],
            )

    def on_pulled(self, peer: Member, contents: Iterable[bytes]) -> None:
        """Records over a link. A few are news to others as well; many are only what we missed."""
        offer, over = self._records.offer, self._members.distance(peer)
        fresh = [content for content in contents if offer(content, over) in _FRESH]
        if len(fresh) <= PULLED_SPREAD_MAX:
            for content in fresh:
                key = peek(content).record.key
                self.spread(self._records.handle(key), WHOLE_HOPS, peer.node_id)

    def _offer_back(self, peer: Member, handle: bytes) -> None:
        """They told us something older than what we have."""
        version, about = self._records.version(handle), self._records.scope(handle)
        far = self._members.distance(peer)
        if version is not None and about is not None and may_be_told(about, far):
            self._outbox.send(peer.node_id, Have(((handle, version),)))

    def _afford(self, now: float, size: int) -> bool:
        earned = (now - self._budget_at) * ANSWER_BYTES_PER_S
        self._budget = min(float(ANSWER_BURST_BYTES), self._budget + earned)
        self._budget_at = now
        if self._budget < size:
            return False
        self._budget -= size
        return True
