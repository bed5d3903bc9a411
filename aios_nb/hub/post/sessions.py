"""Who has proven to be at which address, and the tokens that say so in both directions. No I/O."""

from __future__ import annotations

from collections import OrderedDict

from aios_nb.hub.post.datagram import CARRIED, Source, head_of, text_of
from aios_nb.hub.post.tokens import TOKEN_S

MOST_SESSIONS = 4096
MOST_TALLIES = 2 * MOST_SESSIONS
"""Of nodes that had a session; those that began theirs first are forgotten first."""
RENEW_S = TOKEN_S * 0.8
"""A token is renewed before it ends, so that what is sent meanwhile does not wait."""
_RTT_SHARE = 0.25
"""Of the newest measure in the average."""


class Tally:
    """Bytes of datagrams, their heads with them."""

    __slots__ = ("received", "sent")

    def __init__(self) -> None:
        self.sent = self.received = 0


class Session:
    """One node at one address."""

    __slots__ = (
        "_given",
        "_given_at",
        "expected",
        "expected_until",
        "greeted_at",
        "heads",
        "node_id",
        "rtt",
        "source",
        "tally",
    )

    def __init__(self, node: bytes, source: Source, tally: Tally) -> None:
        self.node_id = text_of(node)
        self.source = source
        self.tally = tally
        """Of that node, wherever it is."""
        self.expected = b""
        """The token it shows us, and until when that is good."""
        self.expected_until = 0.0
        self.heads: dict[int, bytes] = {}
        """How our datagrams to it begin, by kind: ready made, with the token it gave us."""
        self._given = b""
        self._given_at = 0.0
        self.rtt: float | None = None
        self.greeted_at = 0.0

    def given(self, token: bytes, mark: bytes, me: bytes, now: float) -> None:
        """It takes our datagrams with this token."""
        self._given, self._given_at = token, now
        self.heads = {kind: head_of(kind, mark, me, token) for kind in CARRIED}

    def expect(self, token: bytes, until: float) -> None:
        self.expected, self.expected_until = token, until

    def withdraw(self, token: bytes) -> bool:
        """It says that our token is not good there any more; whether it means the one we have."""
        if not self.heads or token != self._given:
            return False
        self.heads = {}
        return True

    def is_open(self, now: float) -> bool:
        """Whether datagrams can go there now."""
        return bool(self.heads) and now - self._given_at < TOKEN_S

    def was_met(self, now: float) -> bool:
        """Whether it has shown lately that it is there and wants our datagrams."""
        return bool(self._given) and now - self._given_at < 2 * TOKEN_S

    def wants_renewal(self, now: float) -> bool:
        return now - self._given_at > RENEW_S

    def measured(self, seconds: float) -> None:
        before = self.rtt
        self.rtt = seconds if before is None else before + _RTT_SHARE * (seconds - before)


class Sessions:
    """By the 20 bytes of the node id; those not used for longest are closed first."""

    __slots__ = ("_open", "_tallies", "carried")

    def __init__(self) -> None:
        self._open: OrderedDict[bytes, Session] = OrderedDict()
        self._tallies: dict[bytes, Tally] = {}
        self.carried: dict[int, Tally] = {kind: Tally() for kind in CARRIED}
        """All that went through, by kind."""

    def __len__(self) -> int:
        return len(self._open)

    def get(self, node: bytes) -> Session | None:
        found = self._open.get(node)
        if found is not None:
            self._open.move_to_end(node)
        return found

    def at(self, node: bytes, source: Source) -> tuple[Session, bool]:
        """The session with that node at that address, and whether it is a new one."""
        found = self.get(node)
        if found is not None and found.source == source:
            return found, False
        made = self._open[node] = Session(node, source, self._tally(node))
        self._open.move_to_end(node)
        if len(self._open) > MOST_SESSIONS:
            self._open.popitem(last=False)
        return made, True

    def close(self, node: bytes) -> None:
        self._open.pop(node, None)

    def tally(self, node: bytes) -> Tally | None:
        """What went to and fro with that node; None if nothing ever did."""
        return self._tallies.get(node)

    def _tally(self, node: bytes) -> Tally:
        found = self._tallies.pop(node, None) or Tally()
        self._tallies[node] = found
        if len(self._tallies) > MOST_TALLIES:
            del self._tallies[next(iter(self._tallies))]
        return found
