"""Whom to probe next: everyone in turn, and before that those of whom someone spoke."""

from __future__ import annotations

import random

from aios_nb.hub.gossip.members import LIVING, Members

HURRIED_MAX = 1024
_HURRY_S = 0.05
"""Between two probes that someone's word brought forward."""
_AGAIN_S = 2.0
"""Before words about the same node bring its probe forward again."""


class Turns:
    """Round robin in shuffled order, so that everyone is probed within a known time."""

    def __init__(self, members: Members, rng: random.Random, now: float) -> None:
        self._members, self._rng = members, rng
        self._orders: list[list[str]] = [[], []]
        """Of those we have met, and of those we only heard of."""
        self._strangers_turn = False
        self._hurried: dict[str, None] = {}
        self._hurried_at: dict[str, float] = {}
        self._next_hurried_at = now

    def hurry(self, now: float, node_id: str) -> None:
        """Someone's word is reason to look at that node soon, but not again and again."""
        if len(self._hurried) >= HURRIED_MAX:
            return
        if now - self._hurried_at.get(node_id, now - _AGAIN_S) < _AGAIN_S:
            return
        if len(self._hurried_at) >= HURRIED_MAX:
            del self._hurried_at[next(iter(self._hurried_at))]
        self._hurried_at[node_id] = now
        self._hurried[node_id] = None

    def hurried_at(self) -> float:
        """When the next one is to be probed out of turn."""
        return self._next_hurried_at if self._hurried else float("inf")

    def next_hurried(self, now: float) -> str:
        self._next_hurried_at = now + _HURRY_S
        node_id = next(iter(self._hurried))
        del self._hurried[node_id]
        return node_id

    def next_in_turn(self) -> str | None:
        """None if there is nobody.

        By turns one we have met and one we have not: a flood of made-up nodes must not keep us
        from noticing that one we know has died.
        """
        self._strangers_turn = not self._strangers_turn
        both = (self._members.met, self._members.unmet)
        for which in (self._strangers_turn, not self._strangers_turn):
            node_id = self._next_of(self._orders[which], both[which])
            if node_id is not None:
                return node_id
        return None

    def _next_of(self, order: list[str], of: list[str]) -> str | None:
        if not of:
            return None
        while True:
            if not order:
                order.extend(self._rng.sample(of, len(of)))
            member = self._members.get(order.pop())
            if member is not None and member.state in LIVING:
                return member.node_id

    def forget(self, node_id: str) -> None:
        self._hurried.pop(node_id, None)
        self._hurried_at.pop(node_id, None)
