"""Greetings under way: what was asked of whom, when to ask again, and what waits for the answer.

No I/O; the time is given.
"""

from __future__ import annotations

import secrets

from aios_nb.hub.post.datagram import TOKEN_BYTES, Kind, Source

MOST_GREETINGS = 1024
ASK_AGAIN_S = (0.3, 0.6, 1.2)
"""After each hello but the last; a far network answers within the first."""
GIVE_UP_S = 2.0
"""After the last hello."""
QUEUE_MOST = 8
QUEUE_BYTES = 256 * 1024
"""Of all greetings together."""


class Greeting:
    """The attempt to meet one node at one address."""

    __slots__ = ("asked", "charged", "due", "node", "queue", "source", "tries")

    def __init__(self, node: bytes, source: Source) -> None:
        self.node = node
        self.source = source
        self.tries = 0
        self.due = 0.0
        """When to ask again, or to give up."""
        self.asked: dict[bytes, float] = {}
        """When each nonce was sent."""
        self.charged = 0
        """How many of its hellos were taken from the budget of that address."""
        self.queue: list[tuple[Kind, bytes]] = []


class Greetings:
    """By the 20 bytes of the node id, and by nonce."""

    __slots__ = ("_by_nonce", "_queued_bytes", "_under_way")

    def __init__(self) -> None:
        self._under_way: dict[bytes, Greeting] = {}
        self._by_nonce: dict[bytes, Greeting] = {}
        self._queued_bytes = 0

    def __len__(self) -> int:
        return len(self._under_way)

    def get(self, node: bytes) -> Greeting | None:
        return self._under_way.get(node)

    def begin(self, node: bytes, source: Source) -> Greeting | None:
        """A new greeting; None if too many are under way."""
        if len(self._under_way) >= MOST_GREETINGS:
            return None
        greeting = self._under_way[node] = Greeting(node, source)
        return greeting

    def ask(self, greeting: Greeting, now: float) -> bytes:
        """The nonce of its next hello."""
        nonce = secrets.token_bytes(TOKEN_BYTES)
        greeting.asked[nonce] = now
        self._by_nonce[nonce] = greeting
        return nonce

    def wait(self, greeting: Greeting, now: float, jitter: float) -> None:
        """One try more was made, or could not be afforded: wait for the answer."""
        last = greeting.tries >= len(ASK_AGAIN_S)
        greeting.due = now + (GIVE_UP_S if last else ASK_AGAIN_S[greeting.tries]) * jitter
        greeting.tries += 1

    def queue(self, greeting: Greeting, kind: Kind, body: bytes) -> bool:
        """Whether there was room to keep it until the answer comes."""
        too_much = self._queued_bytes + len(body) > QUEUE_BYTES
        if too_much or len(greeting.queue) >= QUEUE_MOST:
            return False
        greeting.queue.append((kind, body))
        self._queued_bytes += len(body)
        return True

    def answered(self, nonce: bytes, source: Source) -> Greeting | None:
        """The greeting that this is the echo of, if it comes from where it was sent to."""
        greeting = self._by_nonce.get(nonce)
        return greeting if greeting is not None and greeting.source == source else None

    def end(self, node: bytes) -> Greeting | None:
        """Forget the greeting of that node; None if there was none."""
        greeting = self._under_way.pop(node, None)
        if greeting is None:
            return None
        for nonce in greeting.asked:
            del self._by_nonce[nonce]
        self._queued_bytes -= sum(len(body) for _, body in greeting.queue)
        return greeting

    def due(self, now: float) -> list[Greeting]:
        return [greeting for greeting in self._under_way.values() if greeting.due <= now]

    @staticmethod
    def is_over(greeting: Greeting) -> bool:
        """Whether there is nothing left to try."""
        return greeting.tries > len(ASK_AGAIN_S)
