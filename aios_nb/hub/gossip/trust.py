"""How often others may make us do something dear. Bounded, with the clock given."""

from __future__ import annotations

FORGERIES = 5
"""From one sender; what it tells of nodes is not looked at any more for a while."""
_SHUNNED_S = 60.0
_FORGERS_MAX = 256
ANSWER_BYTES = 128 << 10
ANSWER_BYTES_PER_S = 16 << 10
"""That one peer can make us send, at once and for long."""
PACKETS, PACKETS_PER_S = 400, 100
"""Of one peer that are read: each may hold a few signatures to check."""
_AROUND_BYTES = 61
"""Of a datagram, around each packet."""
_ACCOUNTS_MAX = 4096


class Allowance:
    """So many at once, and one more every so many seconds."""

    def __init__(self, burst: int, every_s: float, now: float) -> None:
        self._burst, self._every_s = burst, every_s
        self._left, self._at = float(burst), now

    def take(self, now: float) -> bool:
        self._left = min(self._burst, self._left + (now - self._at) / self._every_s)
        self._at = now
        if self._left < 1:
            return False
        self._left -= 1
        return True


class Account:
    """What one peer may still make us send and read. Both grow back."""

    __slots__ = ("_at", "_bytes", "_packets")

    def __init__(self, now: float) -> None:
        self._bytes, self._packets, self._at = float(ANSWER_BYTES), float(PACKETS), now

    def admits(self, now: float) -> bool:
        """Whether one more packet of that peer is read."""
        passed, self._at = now - self._at, now
        self._bytes = min(ANSWER_BYTES, self._bytes + passed * ANSWER_BYTES_PER_S)
        self._packets = min(PACKETS, self._packets + passed * PACKETS_PER_S)
        if self._packets < 1:
            return False
        self._packets -= 1
        return True

    @property
    def is_spent(self) -> bool:
        return self._bytes <= 0

    def pay(self, size: int) -> bool:
        """Whether an answer of so many bytes is sent."""
        if self.is_spent:
            return False
        self._bytes -= size + _AROUND_BYTES
        return True


class Accounts:
    """Of the peers that spoke lately.

    A few bytes can ask for much: for a digest, for all names in a bucket. Whoever asks without end
    gets no more than a busy neighbour would.
    """

    def __init__(self) -> None:
        self._of: dict[str, Account] = {}

    def of(self, now: float, node_id: str) -> Account:
        account = self._of.pop(node_id, None) or Account(now)
        self._of[node_id] = account
        if len(self._of) > _ACCOUNTS_MAX:
            del self._of[next(iter(self._of))]
        return account


class Forgers:
    """Who sent us words with wrong signatures: each of them costs a check."""

    def __init__(self) -> None:
        self._of: dict[str, tuple[int, float]] = {}

    def note(self, now: float, node_id: str) -> None:
        count = self._of.pop(node_id, (0, now))[0]
        if len(self._of) >= _FORGERS_MAX:
            del self._of[next(iter(self._of))]
        self._of[node_id] = (count + 1, now + _SHUNNED_S)

    def shunned(self, now: float, node_id: str) -> bool:
        found = self._of.get(node_id)
        if found is None:
            return False
        count, until = found
        if until < now:
            del self._of[node_id]
        return count >= FORGERIES and until >= now
