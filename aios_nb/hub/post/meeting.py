"""How two nodes come to know that the other is really there.

::

    asker                                             answerer
      | -- hello (nonce, my presence) -------------->   |  costs it no memory and no signature check
      | <- welcome (nonce, token for you, presence) --  |  the asker now knows who and where it is
      | -- proof (token, token for you, presence) --->  |  and so does the answerer

A presence is a node's signed word on its own address; only from that very address is it taken.
Answers are about as large as what they answer, and go out only within a budget.
"""

from __future__ import annotations

import random
from collections import Counter, OrderedDict
from collections.abc import Callable

from aios_nb.hub.post import budgets
from aios_nb.hub.post.belief import Belief
from aios_nb.hub.post.datagram import (
    HEAD_BYTES,
    SENDER_AT,
    TOKEN_AT,
    TOKEN_BYTES,
    Kind,
    Source,
    head_of,
)
from aios_nb.hub.post.greetings import Greeting, Greetings
from aios_nb.hub.post.places import place_of
from aios_nb.hub.post.sessions import Session, Sessions
from aios_nb.hub.post.tokens import Tokens
from aios_nb.hub.post.udp import Udp
from aios_nb.hub.presence import Presence

AMPLIFICATION_MOST = 3
"""An answer to a source that has proven nothing has at most so many times the bytes that came."""
GREET_EVERY_S = 1.0
"""One that says ``again`` to everything is greeted no more often without need."""
WELCOMES_TIMED = 256
_JITTER = 0.2


class Meeting:
    """Greets, and answers greetings."""

    def __init__(
        self,
        me: bytes,
        network: str,
        mark: bytes,
        presence: Callable[[], Presence],
        udp: Udp,
        counts: Counter[str],
        rng: random.Random,
    ) -> None:
        self._me = me
        self._mark = mark
        self._presence = presence
        self._udp = udp
        self._counts = counts
        self._rng = rng
        self.tokens = Tokens()
        self._belief = Belief(network, presence, counts)
        self.acquaintances = self._belief.acquaintances
        self.sessions = Sessions()
        self.greetings = Greetings()
        self._hellos = budgets.HelloBudget()
        self._answers = budgets.SourceBudget(budgets.ANSWERS, budgets.ALL_ANSWERS)
        self._welcomed: OrderedDict[Source, float] = OrderedDict()
        self.on_met: Callable[[Presence], None] = lambda _: None

    # We ask --------------------------------------------------------------------------------

    def greet(self, node: bytes, now: float) -> Greeting | None:
        """The greeting of that node that is under way; None if there is no way to it now."""
        greeting = self.greetings.get(node)
        if greeting is not None:
            return greeting
        known = self.acquaintances.get(node)
        if known is None or known.silent_until > now:
            return None
        place = self._belief.place_of(known)
        to = None if place is None else self._udp.address_of(place)
        greeting = None if to is None else self.greetings.begin(node, to)
        if greeting is None:
            return None
        if not self._ask(greeting, now):
            self.greetings.end(node)
            return None
        return greeting

    def go_on(self, now: float) -> None:
        """Ask again, or give up, where that is due."""
        for greeting in self.greetings.due(now):
            if not self.greetings.is_over(greeting):
                self._ask(greeting, now)
            else:
                self._not_there(greeting, now)

    def _not_there(self, greeting: Greeting, now: float) -> None:
        self._counts["unanswered"] += 1
        self.greetings.end(greeting.node)
        known = self.acquaintances.get(greeting.node)
        if known is not None:
            known.did_not_answer(now)

    def _ask(self, greeting: Greeting, now: float) -> bool:
        self.greetings.wait(greeting, now, 1 + _JITTER * self._rng.random())
        session = self.sessions.get(greeting.node)
        if session is not None and session.source == greeting.source and session.was_met(now):
            session.greeted_at = now
        elif self._hellos.take(place_of(greeting.source), self._presence().said.scope, now):
            greeting.charged += 1
        else:
            self._counts["budget"] += 1
            return False
        nonce = self.greetings.ask(greeting, now)
        hello = head_of(Kind.HELLO, self._mark, self._me, nonce) + self._presence().to_bytes()
        return self._udp.send(hello, greeting.source)

    def welcome(self, data: bytes, source: Source, now: float) -> None:
        """The answer to a hello of ours, if it is one: prove ourselves, and send what waited."""
        node, nonce = _sender(data), _token(data)
        greeting = self.greetings.answered(nonce, source)
        if greeting is None:
            self._counts["unasked"] += 1
            return
        place = place_of(source)
        body = data[HEAD_BYTES:]
        presence = self._belief.read(body[TOKEN_BYTES:], node, place)
        if presence is None:
            return
        news = self._belief.believe(node, presence, place, now)
        if news is None:
            return
        if greeting.node != node:
            self._not_there(greeting, now)  # the address is another's, whom we have met now
        session, new = self.sessions.at(node, source)
        session.measured(now - greeting.asked[nonce])
        token = body[:TOKEN_BYTES]
        session.given(token, self._mark, self._me, now)
        ours = self.tokens.issue(source, node, now)
        proof = head_of(Kind.PROOF, self._mark, self._me, token) + ours
        self._udp.send(proof + self._presence().to_bytes(), source)
        self._met(node, session)
        if new or news:
            self.on_met(presence)

    def again(self, data: bytes, source: Source, now: float) -> bool:
        """It does not know our token any more, or us: greet it anew. Whether that was begun."""
        node = _sender(data)
        session = self.sessions.get(node)
        if session is None or session.source != source or not session.withdraw(_token(data)):
            self._counts["unasked"] += 1
            return False
        ours = self._belief.later_of_ours(data[HEAD_BYTES:], place_of(source), now)
        if ours is not None:
            self.on_met(ours)
        if now - session.greeted_at < GREET_EVERY_S:
            return False  # the next thing we send will greet it
        return self.greet(node, now) is not None

    # We are asked --------------------------------------------------------------------------

    def hello(self, data: bytes, source: Source, now: float) -> None:
        """Somebody says he is at that address: send a token there."""
        node, place = _sender(data), place_of(source)
        if not self._may_answer(node, source, now):
            self._counts["busy"] += 1
            return
        if self._belief.read(data[HEAD_BYTES:], node, place) is None:
            return
        token = self.tokens.issue(source, node, now)
        head = head_of(Kind.WELCOME, self._mark, self._me, _token(data))
        answer = head + token + self._presence().to_bytes()
        if len(answer) > AMPLIFICATION_MOST * len(data):
            self._counts["short"] += 1
            return
        self._welcomed[source] = now
        if len(self._welcomed) > WELCOMES_TIMED:
            self._welcomed.popitem(last=False)
        self._udp.send(answer, source)

    def proof(self, data: bytes, source: Source, now: float) -> None:
        """Somebody has the token that was sent to his address, and shows whose address it is."""
        node, token = _sender(data), _token(data)
        until = self.tokens.valid_until(token, source, node, now)
        if not until:
            self.ask_again(data, source, now)
            return
        place = place_of(source)
        body = data[HEAD_BYTES:]
        presence = self._belief.read(body[TOKEN_BYTES:], node, place)
        if presence is None:
            return
        news = self._belief.believe(node, presence, place, now)
        if news is None:
            self._contradict(node, presence, token, source)
            return
        session, new = self.sessions.at(node, source)
        session.expect(token, until)
        session.given(body[:TOKEN_BYTES], self._mark, self._me, now)
        welcomed_at = self._welcomed.pop(source, None)
        if welcomed_at is not None:
            session.measured(now - welcomed_at)
        self._met(node, session)
        if new or news:
            self.on_met(presence)

    def _contradict(self, node: bytes, presence: Presence, token: bytes, source: Source) -> None:
        """Its key has spoken elsewhere since: nobody else can tell it so.

        The answer is smaller than the proof.
        """
        later = self._belief.later_word(node, presence)
        if later is not None:
            head = head_of(Kind.AGAIN, self._mark, self._me, token)
            self._udp.send(head + later.to_bytes(), source)

    def ask_again(self, data: bytes, source: Source, now: float) -> None:
        """A token that is not good here: whoever sent it may have known this node before."""
        self._counts["token"] += 1
        if self._may_answer(_sender(data), source, now):
            self._udp.send(head_of(Kind.AGAIN, self._mark, self._me, _token(data)), source)

    def _may_answer(self, node: bytes, source: Source, now: float) -> bool:
        """Whether it is within the budget. Friends renew their tokens also while others flood."""
        session = self.sessions.get(node)
        met = session is not None and session.source == source
        return self._answers.take(place_of(source), now, met=met)

    def _met(self, node: bytes, session: Session) -> None:
        """The way is open: send what waited for it."""
        known = self.acquaintances.get(node)
        if known is not None:
            known.answered()
        greeting = self.greetings.end(node)
        if greeting is None:
            return
        if greeting.source == session.source:
            for _ in range(greeting.charged):
                self._hellos.answered(place_of(session.source), self._presence().said.scope)
        for kind, body in greeting.queue:
            self.carry(session, kind, body)

    def carry(self, session: Session, kind: Kind, body: bytes) -> bool:
        """Send it by a way that is open; whether the system took it."""
        datagram = session.heads[kind] + body
        if not self._udp.send(datagram, session.source):
            return False
        size = len(datagram)
        session.tally.sent += size
        self.sessions.carried[kind].sent += size
        return True


def _sender(data: bytes) -> bytes:
    return data[SENDER_AT:TOKEN_AT]


def _token(data: bytes) -> bytes:
    return data[TOKEN_AT:HEAD_BYTES]
