"""A question that is out, and who waits for its answer."""

from __future__ import annotations

import asyncio
from typing import Any, Protocol

from aios_nb.hub.dht import codec
from aios_nb.hub.dht.codec import Answer, Question
from aios_nb.hub.dht.contacts import Contact


class Listener(Protocol):
    """Who asked, and hears exactly one of ``answered`` and ``lost``."""

    def answered(self, pending: Pending, answer: Answer) -> None:
        """It came."""

    def slow(self, pending: Pending) -> None:
        """It should have come."""

    def late(self, pending: Pending) -> None:
        """It will hardly come."""

    def lost(self, pending: Pending) -> None:
        """It did not come."""


class Pending:
    """One question to one node."""

    __slots__ = (
        "about", "body", "contact", "due", "excused_at", "hedge_s", "kind", "listener", "number",
        "sent_at", "stage", "timer",
    )  # fmt: skip

    timer: asyncio.TimerHandle
    due: float

    def __init__(
        self,
        question: Question,
        contact: Contact,
        listener: Listener,
        about: Any,
        *,
        hedge_s: float,
        sent_at: float,
    ) -> None:
        self.kind = type(question)
        self.number = question.number
        self.body = codec.write(question)
        self.contact = contact
        self.listener = listener
        self.about = about
        """Whatever the listener wants to be reminded of."""
        self.hedge_s = hedge_s
        self.sent_at = sent_at
        self.stage = 0
        self.excused_at = -1
        """The last stage at which it got more time because this process was late itself."""


class Greeting:
    """Listens for nothing but that it is over."""

    def __init__(self, open_ones: set[bytes]) -> None:
        self._open = open_ones

    def answered(self, pending: Pending, answer: Answer) -> None:  # noqa: ARG002
        self._open.discard(pending.contact.id)

    def slow(self, pending: Pending) -> None:
        """It has time."""

    def late(self, pending: Pending) -> None:
        """It has time."""

    def lost(self, pending: Pending) -> None:
        self._open.discard(pending.contact.id)
