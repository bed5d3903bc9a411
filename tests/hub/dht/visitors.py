"""Nodes in the hall that say what a test wants."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from aios_nb.hub.dht import codec
from aios_nb.hub.dht.codec import Find, Found, Get, Kept, Put
from aios_nb.hub.dht.contacts import Contact
from aios_nb.hub.dht.engine import KademliaDht
from aios_nb.hub.dht.tuning import Tuning
from aios_nb.identity import Identity
from aios_nb.records import Scope
from tests.hub.dht.village import NET, STILL, Hall, identity, presence_of

Answering = Callable[[Find | Get | Put], bytes | None]


def dht_in(
    hall: Hall,
    name: str,
    tuning: Tuning = STILL,
    *,
    host: str = "127.0.0.1",
    scope: Scope = Scope.LOOPBACK,
    who: Identity | None = None,
    **more: Any,
) -> KademliaDht:
    """A real node of the DHT at a made-up address."""
    me = who or identity(name)
    presence = presence_of(me, host, scope=scope)
    line = hall.line(me.node_id)
    dht = KademliaDht(
        me, NET, line, lambda: presence, rng=random.Random(name), tuning=tuning, **more
    )
    hall.presences[me.node_id] = presence
    hall.met[me.node_id] = lambda met: dht.meet(met, proven=True)
    return dht


class Visitor:
    """Hears what is sent to it, and answers what it was told to answer: nothing, if nothing."""

    def __init__(
        self,
        hall: Hall,
        name: str,
        answer: Answering | None = None,
        *,
        host: str = "127.0.0.1",
        scope: Scope = Scope.LOOPBACK,
        who: Identity | None = None,
    ) -> None:
        self.hall = hall
        self.identity = who or identity(name)
        self.node_id = self.identity.node_id
        self.presence = presence_of(self.identity, host, scope=scope)
        self.heard: list[bytes] = []
        self.on_heard: Callable[[], object] = lambda: None
        self._answer = answer
        hall.receivers[self.node_id] = self._hear
        hall.presences[self.node_id] = self.presence

    def _hear(self, sender: str, body: bytes) -> None:
        self.heard.append(body)
        self.on_heard()
        message = codec.read(body)
        if isinstance(message, Found | Kept):
            return
        answer = self.answer(message)
        if answer is not None:
            self.hall.carry(self.node_id, sender, answer)

    def answer(self, question: Find | Get | Put) -> bytes | None:
        return self._answer(question) if self._answer else None

    def say(self, to: KademliaDht, body: bytes) -> None:
        # The hall carries to whoever is known; the post knows whom it has heard.
        to._post.know(self.presence)  # type: ignore[attr-defined]
        to.protocol.datagram_received(body, self.node_id)


class Liar(Visitor):
    """Answers every question with one record and one list of contacts."""

    def __init__(self, hall: Hall, name: str, record: bytes, **more: Any) -> None:
        super().__init__(hall, name, **more)
        self.record = record
        self.names: list[bytes] = []

    def answer(self, question: Find | Get | Put) -> bytes | None:
        if isinstance(question, Put):
            return codec.write(Kept(question.number, kept=True))
        record = self.record if isinstance(question, Get) else b""
        names, more = codec.page([] if question.beyond else self.names, record)
        return codec.write(Found(question.number, bytes(8), more, record, names))


def contact(
    name: str = "someone",
    host: str = "127.0.0.1",
    *,
    scope: Scope = Scope.LOOPBACK,
    point: bytes | None = None,
) -> Contact:
    """A contact, at a point of the test's choosing."""
    made = Contact(presence_of(identity(name), host, scope=scope) if point is None else _ANYONE)
    if point is not None:
        made.id, made.long_id = point, int.from_bytes(point)
    return made


_ANYONE = presence_of(identity("anyone"))
