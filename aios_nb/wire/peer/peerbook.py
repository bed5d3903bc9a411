"""What this node has seen of other nodes: whether they are there, and where. No I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable
from typing import Any

from aios_nb.records import Scope

IDLE_ALIVE_S = 300.0
"""A node whose link was idle counts as alive for so long."""
DEAD_AFTER_S = 60.0
"""Dials have failed for so long."""
REMEMBERED_MAX = 2000
"""Nodes without a link that are remembered."""


class Seen:
    """One other node."""

    __slots__ = (
        "failing_since",
        "left",
        "name",
        "node_id",
        "quiet_since",
        "received",
        "scope",
        "sent",
        "up",
        "url",
        "urls",
    )

    def __init__(self, node_id: str) -> None:
        self.node_id = node_id
        self.name = ""
        self.url = ""
        self.urls: tuple[str, ...] = ()
        """From its signed record."""
        self.scope: Scope | None = None
        """Of those."""
        self.up = False
        self.left = False
        self.quiet_since: float | None = None
        self.failing_since: float | None = None
        self.sent = self.received = 0
        """Bytes, over links that have ended."""


class PeerBook:
    """The other nodes, the one seen last at the end."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._seen: dict[str, Seen] = {}
        self.carried = (0, 0)
        """Bytes sent and received over all links that have ended."""

    def get(self, node_id: str) -> Seen | None:
        return self._seen.get(node_id)

    def note(self, node_id: str) -> Seen:
        """The page of that node, made if there is none."""
        seen = self._seen.pop(node_id, None) or Seen(node_id)
        self._seen[node_id] = seen
        if len(self._seen) > REMEMBERED_MAX:
            gone = next(
                (old for old in self._seen.values() if not old.up and old is not seen), None
            )
            if gone is not None:
                del self._seen[gone.node_id]
        return seen

    def up(self, node_id: str, name: str) -> Seen:
        """There is a link."""
        seen = self.note(node_id)
        seen.up, seen.left, seen.name = True, False, name
        seen.quiet_since = seen.failing_since = None
        return seen

    def down(self, node_id: str, why: str) -> None:
        """There is no link any more."""
        seen = self.note(node_id)
        seen.up = False
        seen.left = why == "left"
        seen.quiet_since = self._clock() if why == "idle" else None

    def ended(self, node_id: str, sent: int, received: int) -> None:
        """A link to it is over that carried so many bytes."""
        self.carried = self.carried[0] + sent, self.carried[1] + received
        seen = self._seen.get(node_id)
        if seen is not None:
            seen.sent += sent
            seen.received += received

    def failed(self, node_id: str, url: str) -> None:
        """It was dialled in vain."""
        seen = self.note(node_id)
        seen.quiet_since = None
        seen.url = seen.url or url
        if seen.failing_since is None:
            seen.failing_since = self._clock()

    def state(self, seen: Seen) -> str | None:
        """``alive``, ``suspect``, ``dead`` or ``left``; None when nothing is known any more."""
        now = self._clock()
        if seen.up:
            return "alive"
        if seen.left:
            return "left"
        if seen.quiet_since is not None:
            return "alive" if now - seen.quiet_since < IDLE_ALIVE_S else None
        if seen.failing_since is not None and now - seen.failing_since > DEAD_AFTER_S:
            return "dead"
        return "suspect"

    def rows(
        self,
        latency: Callable[[str], float | None],
        carried: Iterable[tuple[str, int, int]] = (),
    ) -> list[dict[str, Any]]:
        """What ``node.peers`` shows; ``carried`` are node and bytes of each link that is up."""
        sent, received = Counter[str](), Counter[str]()
        for node_id, out, come in carried:
            sent[node_id] += out
            received[node_id] += come
        shown = [(seen, self.state(seen)) for seen in self._seen.values()]
        return [
            {
                "node_id": seen.node_id,
                "name": seen.name,
                "url": seen.url,
                "state": state,
                "latency_ms": latency(seen.node_id),
                "link": seen.up,
                "sent": seen.sent + sent[seen.node_id],
                "received": seen.received + received[seen.node_id],
            }
            for seen, state in shown
            if state is not None
        ]
