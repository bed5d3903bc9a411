"""What a node tells those who ask, and keeps for those who may write. No I/O."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator

from aios_nb.hub.dht import codec
from aios_nb.hub.dht.codec import Answer, Find, Found, Get, Kept, Put, Question
from aios_nb.hub.dht.contacts import Contact
from aios_nb.hub.dht.keys import number
from aios_nb.hub.dht.routing import Routes
from aios_nb.hub.dht.storage import NodeRecords
from aios_nb.hub.dht.tokens import WriteTokens
from aios_nb.hub.dht.tuning import Tuning
from aios_nb.hub.post.budgets import Budget
from aios_nb.records import NodeRecord, Scope, may_be_told

_PER_BLOCK = 4
"""How many nodes of one owner's addresses may ask at full pace."""


class Answering:
    """Answers one node's questions, as many as it is allowed."""

    def __init__(
        self,
        routes: Routes,
        storage: NodeRecords,
        counts: Counter[str],
        clock: Callable[[], float],
        tuning: Tuning,
    ) -> None:
        self._routes = routes
        self._storage = storage
        self._counts = counts
        self._clock = clock
        self._tokens = WriteTokens(clock, tuning.token_s)
        per_s, burst = tuning.requests_per_s, tuning.requests_burst
        self._peers = Budget(per_s, burst)
        self._blocks = Budget(_PER_BLOCK * per_s, _PER_BLOCK * burst)

    def allows(self, point: bytes, asker: Contact | None) -> bool:
        """Whether this node may ask now."""
        now = self._clock()
        block = asker.prefix if asker else None
        return self._peers.take(point, now) and (block is None or self._blocks.take(block, now))

    def answer(self, question: Question, point: bytes, asker: Contact | None) -> Answer:
        """What the node at that point is told."""
        if isinstance(question, Put):
            return self._keep(question, point)
        # Of whom nothing is known we tell only what everyone may hear.
        return self._tell(question, point, asker.scope if asker else Scope.GLOBAL)

    def _keep(self, put: Put, sender: bytes) -> Kept:
        if not self._tokens.holds(put.token, sender, put.target):
            self._counts["bad token"] += 1
            return Kept(put.number, kept=False)
        kept = self._storage.offer(put.target, put.record)
        if not kept:
            self._counts["refused record"] += 1
        return Kept(put.number, kept=kept)

    def _tell(self, question: Find | Get, asker: bytes, scope: Scope) -> Found:
        record = self._record(question.target, scope) if _wants_record(question) else b""
        shown, more = codec.page(self._contacts(question, asker, scope), record)
        token = self._tokens.give(asker, question.target)
        return Found(question.number, token, more, record, shown)

    def _record(self, key: bytes, scope: Scope) -> bytes:
        signed = self._storage.record(key)
        if signed is None or not isinstance(signed.record, NodeRecord):
            return b""
        return signed.to_bytes() if may_be_told(signed.record.scope, scope) else b""

    def _contacts(self, question: Find | Get, asker: bytes, scope: Scope) -> Iterator[bytes]:
        """The nearest contacts that are where they say, and that this asker may hear of."""
        target = number(question.target)
        beyond = number(question.beyond) if question.beyond else -1
        for contact in self._routes.nearest(target):
            if not contact.seen or contact.failures or not may_be_told(contact.scope, scope):
                continue
            if contact.long_id ^ target > beyond and contact.id != asker:
                yield contact.presence.to_bytes()


def _wants_record(question: Find | Get) -> bool:
    return isinstance(question, Get) and not question.beyond
