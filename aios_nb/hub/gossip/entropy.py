"""Comparing with another node now and then, so that what no rumour brought is found all the same.

First two sums of everything; only if they differ, 128 sums; then the names in the buckets that
differ, in packets. Where too much differs for that, it is fetched over a link.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from aios_nb.hub.catalogue.digest import bucket_of
from aios_nb.hub.gossip.instructions import Outbox, Pull
from aios_nb.hub.gossip.members import Life, Member, Members
from aios_nb.hub.gossip.pace import Pace
from aios_nb.hub.gossip.packets import (
    END,
    Alive,
    Faces,
    Have,
    Listing,
    MemberSums,
    Message,
    Missing,
    RecordSums,
    Roots,
    Want,
    raw_id,
    text_id,
)
from aios_nb.hub.gossip.ports import Records
from aios_nb.hub.presence import Presence
from aios_nb.records import WIDTH, Scope, may_be_told

PULL_BUCKETS = 24
"""If more differ, a link is better."""
PAGES_MAX = 6
"""Packets with names in one comparison."""
PULL_WAIT_S = 10.0
"""For the answer to a pull, before another node is asked."""
_FACES_IN_PAGE = 32
_ITEMS_IN_PAGE = 52
_SOON_S = 0.5
"""The first comparison after something happened; each next one waits twice as long."""
_JITTER = 0.2
_AGAIN_SHARE = 0.25


class Reconciler:
    """Finds what we and another node do not both know."""

    def __init__(
        self,
        me: str,
        scope: Scope,
        pace: Pace,
        members: Members,
        records: Records,
        outbox: Outbox,
        rng: random.Random,
        now: float,
        *,
        presence: Callable[[], Presence],
        hint: Callable[[float, str], None],
    ) -> None:
        self._me, self._scope, self._pace = raw_id(me), scope, pace
        self._members, self._records, self._outbox, self._rng = members, records, outbox, rng
        self._presence, self._hint = presence, hint
        self._wait_s = _SOON_S
        self.next_at = now + _SOON_S
        self._pulling: dict[str, float] = {}

    def begin(self, now: float) -> None:
        """Compare with someone, and see whether one of the dead has come back."""
        most = self._pace.sync_every(self._members.size)
        self.next_at = now + self._wait_s * self._rng.uniform(1 - _JITTER, 1 + _JITTER)
        self._wait_s = min(most, 2 * self._wait_s)
        for node_id in self._members.choose(self._rng, 1):
            self.compare(self._members[node_id])
        gone = [one for one in self._members.gone if self._members[one].state is Life.DEAD]
        if gone:
            self._hint(now, self._rng.choice(gone))

    def soon(self, now: float) -> None:
        """Something happened that others may have missed, or we."""
        self._wait_s = _SOON_S
        self.next_at = min(self.next_at, now + _SOON_S * self._rng.random())

    def _again(self, now: float) -> None:
        """We differ: look again sooner than usual, for packets get lost."""
        soon = self._pace.sync_every(self._members.size) * _AGAIN_SHARE
        self._wait_s = min(self._wait_s, 2 * soon)
        self.next_at = min(self.next_at, now + soon)

    def compare(self, peer: Member) -> None:
        scope = self._common(peer)
        roots = Roots(_root(self._members.sums(scope)), _root(self._records.digest(scope)))
        self._outbox.send(peer.node_id, roots)

    def pulled(self, node_id: str) -> None:
        self._pulling.pop(node_id, None)

    # What comes in -----------------------------------------------------------------------

    def on_roots(self, peer: Member, roots: Roots) -> None:
        scope = self._common(peer)
        members, records = self._members.sums(scope), self._records.digest(scope)
        if _root(members) != roots.members:
            self._outbox.send(peer.node_id, MemberSums(members))
        if _root(records) != roots.records:
            self._outbox.send(peer.node_id, RecordSums(records))

    def on_member_sums(self, now: float, peer: Member, theirs: MemberSums) -> None:
        scope = self._common(peer)
        self._again(now)
        buckets = self._members.differing(theirs.sums, scope)
        if len(buckets) > PULL_BUCKETS:
            self._pull(now, peer)
            return
        self._rng.shuffle(buckets)
        pages = (page for bucket in buckets for page in self._faces(bucket, scope))
        self._send_some(peer, pages)

    def on_record_sums(self, now: float, peer: Member, theirs: RecordSums) -> None:
        scope = self._common(peer)
        self._again(now)
        buckets = self._records.differing_buckets(theirs.sums, scope)
        if len(buckets) > PULL_BUCKETS:
            self._pull(now, peer)
            return
        self._rng.shuffle(buckets)
        pages = (page for bucket in buckets for page in self._listing(bucket, scope))
        self._send_some(peer, pages)

    def on_faces(self, now: float, peer: Member, page: Faces) -> None:
        """What they lack is sent, what we lack is asked for, and who lives for them is probed."""
        scope = self._common(peer)
        theirs = {raw: (epoch, incarnation) for raw, epoch, incarnation in page.faces}
        answer: list[Message] = [
            Alive(member.presence.to_bytes())
            for member in self._members.in_bucket(page.bucket, scope)
            if page.after < (raw := raw_id(member.node_id)) <= page.upto and raw not in theirs
        ]
        missing: list[bytes] = []
        for raw, life in theirs.items():
            word, known = self._word_of(raw), self._members.get(text_id(raw))
            if word is None or _life(word) < life:
                missing.append(raw)
            elif _life(word) > life or (known and known.state is Life.LEFT):
                if may_be_told(word.said.scope, scope):
                    answer.append(Alive(word.to_bytes()))
            elif known and known.state is Life.DEAD:
                self._hint(now, known.node_id)
        if missing:
            answer.append(Missing(tuple(missing)))
        self._outbox.send_all(peer.node_id, answer)

    def on_missing(self, peer: Member, asked: Missing) -> None:
        far = self._members.distance(peer)
        words = (self._word_of(raw) for raw in asked.nodes)
        told = (word for word in words if word and may_be_told(word.said.scope, far))
        self._outbox.send_all(peer.node_id, [Alive(word.to_bytes()) for word in told])

    def on_listing(self, peer: Member, page: Listing) -> None:
        """Two versions of one record are exchanged both ways: only the record says which counts."""
        theirs = dict(page.items)
        mine = {
            handle: version
            for handle, version in self._records.listing([page.bucket], self._common(peer))
            if page.after < handle <= page.upto
        }
        have = tuple(item for item in mine.items() if theirs.get(item[0]) != item[1])
        want = tuple(
            handle
            for handle, version in theirs.items()
            if mine.get(handle) != version and self._records.wants(handle, version)
        )
        answer: list[Message] = []
        if want:
            answer.append(Want(want))
        answer.extend(
            Have(have[start : start + _ITEMS_IN_PAGE])
            for start in range(0, len(have), _ITEMS_IN_PAGE)
        )
        self._outbox.send_all(peer.node_id, answer)

    # Inside ------------------------------------------------------------------------------

    def _common(self, peer: Member) -> Scope:
        """The wider of both scopes: what may be told to either is compared, nothing else."""
        return max(self._scope, self._members.distance(peer), key=WIDTH.__getitem__)

    def _word_of(self, raw: bytes) -> Presence | None:
        if raw == self._me:
            return self._presence()
        member = self._members.get(text_id(raw))
        return None if member is None else member.presence

    def _pull(self, now: float, peer: Member) -> None:
        self._pulling = {one: until for one, until in self._pulling.items() if until > now}
        if not self._pulling:
            self._pulling[peer.node_id] = now + PULL_WAIT_S
            self._outbox.put(Pull(peer.node_id))

    def _send_some(self, peer: Member, pages: Iterator[Message]) -> None:
        for page, _ in zip(pages, range(PAGES_MAX), strict=False):
            self._outbox.send(peer.node_id, page)

    def _faces(self, bucket: int, scope: Scope) -> Iterator[Faces]:
        faces = [
            (raw_id(member.node_id), *member.life)
            for member in self._members.in_bucket(bucket, scope)
        ]
        mine = self._presence()
        if bucket == bucket_of(self._me) and may_be_told(mine.said.scope, scope):
            faces = sorted([*faces, (self._me, *_life(mine))])
        after = b""
        while len(faces) > _FACES_IN_PAGE:
            page, faces = faces[:_FACES_IN_PAGE], faces[_FACES_IN_PAGE:]
            yield Faces(bucket, after, page[-1][0], tuple(page))
            after = page[-1][0]
        yield Faces(bucket, after, END * 20, tuple(faces))

    def _listing(self, bucket: int, scope: Scope) -> Iterator[Listing]:
        items = sorted(self._records.listing([bucket], scope))
        after = b""
        while len(items) > _ITEMS_IN_PAGE:
            page, items = items[:_ITEMS_IN_PAGE], items[_ITEMS_IN_PAGE:]
            yield Listing(bucket, after, page[-1][0], tuple(page))
            after = page[-1][0]
        yield Listing(bucket, after, END * 8, tuple(items))


def _life(presence: Presence) -> tuple[int, int]:
    return presence.said.epoch, presence.said.incarnation


def _root(sums: bytes) -> bytes:
    """All sums in one."""
    whole = int.from_bytes(sums, "big")
    bits = len(sums) * 8
    while bits > 64:  # noqa: PLR2004 (one sum)
        bits //= 2
        whole = (whole >> bits) ^ (whole & ((1 << bits) - 1))
    return whole.to_bytes(8, "big")
