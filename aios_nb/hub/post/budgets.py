"""How much is done for whom, before it is known who that is. No I/O; the time is given.

Whoever can put another's address into a record or onto a datagram must not be able to make us
send there without end, nor to keep us busy checking signatures.
"""

from __future__ import annotations

import secrets
from array import array
from collections.abc import Hashable
from typing import TypeAlias

from aios_nb.hub.post.places import Place, house, householder
from aios_nb.records import Scope

SLOTS = 4096
"""Of one budget. Two keys may share a slot, and then its budget: nobody gets more by that."""

Rate: TypeAlias = tuple[float, int]
"""So many a second, and so many at once."""

ANSWERS: Rate = (50.0, 100)
"""Welcomes and agains to one source that has proven nothing."""
ALL_ANSWERS: Rate = (1000.0, 2000)
"""To all of them: a flood from made-up sources is dropped at the door, for a few microseconds."""
CHECKS: Rate = (50.0, 100)
"""Signatures of one source, which has proven its address."""
ALL_CHECKS: Rate = (500.0, 2000)

PORT_HELLOS: dict[Scope, Rate] = {
    Scope.LOOPBACK: (1.0, 16),
    Scope.PRIVATE: (0.1, 8),
    Scope.GLOBAL: (1 / 60, 4),
}
"""Unanswered hellos to one port, whoever is said to live there. A false
record may reach ten thousand nodes: at this pace all of them together send 170 packets a second."""
HOST_HELLOS: dict[Scope, Rate] = {
    Scope.LOOPBACK: (200.0, 2000),
    Scope.PRIVATE: (5.0, 200),
    Scope.GLOBAL: (0.2, 32),
}
"""The same for all ports of one host."""

_ROUNDING = 0.01


class Budget:
    """So many a second for each key, with a burst, in a memory that does not grow."""

    __slots__ = ("_due", "_salt", "_slack", "_slots", "_step")

    def __init__(self, per_s: float, burst: int, *, slots: int = SLOTS) -> None:
        self._step = 1 / per_s
        self._slack = (burst - 1 + _ROUNDING) * self._step
        self._slots = slots
        self._salt = secrets.randbits(61)  # nobody can choose whose slot he shares
        self._due = array("d", bytes(8 * slots))
        """When each slot will have made up for all that was taken from it."""

    def take(self, key: Hashable, now: float) -> bool:
        """Whether one more is within the budget; it is counted then."""
        slot = hash((self._salt, key)) % self._slots
        due = self._due[slot]
        if due <= now:
            due = now
        elif due - now > self._slack:
            return False
        self._due[slot] = due + self._step
        return True

    def give_back(self, key: Hashable) -> None:
        """One that was taken did no harm."""
        self._due[hash((self._salt, key)) % self._slots] -= self._step


class SourceBudget:
    """What is done for each source, and for all of them."""

    __slots__ = ("_all", "_each")

    def __init__(self, each: Rate, together: Rate) -> None:
        self._each = Budget(*each)
        self._all = Budget(*together, slots=1)

    def take(self, place: Place, now: float, *, met: bool = False) -> bool:
        """Whether one more is within the budget; those we have met do not share it with all."""
        if not self._each.take(householder(place), now):
            return False
        return met or self._all.take(None, now)


class HelloBudget:
    """Hellos to addresses that have not answered yet, over all nodes that are said to be there."""

    __slots__ = ("_hosts", "_ports")

    def __init__(self) -> None:
        self._ports = {scope: Budget(*budget) for scope, budget in PORT_HELLOS.items()}
        self._hosts = {scope: Budget(*budget) for scope, budget in HOST_HELLOS.items()}

    def take(self, place: Place, scope: Scope, now: float) -> bool:
        return self._ports[scope].take(place, now) and self._hosts[scope].take(house(place[0]), now)

    def answered(self, place: Place, scope: Scope) -> None:
        """Somebody wanted that hello."""
        self._ports[scope].give_back(place)
        self._hosts[scope].give_back(house(place[0]))
