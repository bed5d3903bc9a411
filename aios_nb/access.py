"""Who is calling, and which agents that caller may reach.

The principal is the session (a token, a key, nothing), never what a message claims. What a message
says of its way here can only lower what its caller may do (``lowered``).
"""

from __future__ import annotations

from enum import StrEnum

import msgspec


class Caller(StrEnum):
    """The kinds of caller; the columns of the method table."""

    OWNER = "owner"
    TOKEN = "token"  # noqa: S105  (a kind of caller)
    KNOWN = "known"
    NODE = "node"
    ANYONE = "anyone"


class Access(StrEnum):
    """Who may call an agent; each level includes those before it."""

    PRIVATE = "private"
    KNOWN = "known"
    NETWORK = "network"
    PUBLIC = "public"


_REACH: dict[Caller, frozenset[Access]] = {
    Caller.OWNER: frozenset(Access),
    Caller.TOKEN: frozenset({Access.KNOWN, Access.NETWORK, Access.PUBLIC}),
    Caller.KNOWN: frozenset({Access.KNOWN, Access.NETWORK, Access.PUBLIC}),
    Caller.NODE: frozenset({Access.NETWORK, Access.PUBLIC}),
    Caller.ANYONE: frozenset({Access.PUBLIC}),
}

_RANK: dict[Caller, int] = {
    Caller.OWNER: 3,
    Caller.TOKEN: 2,
    Caller.KNOWN: 2,
    Caller.NODE: 1,
    Caller.ANYONE: 0,
}

_NODES = frozenset({Caller.KNOWN, Caller.NODE})
STRANGERS = frozenset({Caller.NODE, Caller.ANYONE})
"""Callers nobody vouched for: they share one pool, and the owner never waits behind it."""


class Principal(msgspec.Struct, frozen=True):
    """An authenticated caller. ``id`` keys its message ids, logs and limits."""

    kind: Caller
    id: str
    prefix: str = ""
    """Of a scoped token: it speaks for the people whose sender ids start with this."""
    as_owner: bool = False
    """Of a scoped token: it reaches the agents that its owner reaches."""

    @property
    def is_owner(self) -> bool:
        return self.kind is Caller.OWNER

    @property
    def is_stranger(self) -> bool:
        """Nobody the owner knows: shares one pool with all others of its kind."""
        return self.kind in STRANGERS

    @property
    def is_node(self) -> bool:
        """It came over a peer link; ``id`` is that node's."""
        return self.kind in _NODES

    @property
    def reach(self) -> Caller:
        """Whose agents these are to this caller: a token may reach what its owner does."""
        acts_as_owner = self.as_owner and self.kind is Caller.TOKEN
        return Caller.OWNER if acts_as_owner else self.kind

    def may_call(self, access: Access) -> bool:
        """Whether an agent with this access answers this caller."""
        return access in _REACH[self.reach]

    def speaks_for(self, sender_id: str) -> bool:
        """Whether this caller may name that sender, whatever the form of it.

        Its own id always. A token: who is behind its prefix, but nobody of another node (``@``).
        A node: who is behind its ``@``. The owner: everybody who is not of another node.
        """
        if sender_id == self.id:
            return True
        _, at, node = sender_id.rpartition("@")
        if at:
            return node == self.id and self.kind in _NODES
        if self.kind is Caller.TOKEN:
            return bool(self.prefix) and sender_id.startswith(self.prefix)
        return self.is_owner


def at_most(caller: Caller, other: Caller) -> bool:
    """Whether ``caller`` may do no more than ``other``: owner > token, known > node > anyone."""
    return _RANK[caller] <= _RANK[other]


def lowered(principal: Principal, to: Caller) -> Principal:
    """The same caller with no more rights than ``to`` has; never with more than before."""
    if at_most(principal.reach, to):
        return principal
    kind = principal.kind if at_most(principal.kind, to) else to
    return msgspec.structs.replace(principal, kind=kind, as_owner=False)


ANYONE = Principal(Caller.ANYONE, "anyone")


def owner_of(node_id: str) -> Principal:
    """The person whose node this is."""
    return Principal(Caller.OWNER, f"owner@{node_id}")


def looks_strange(caller_id: str) -> bool:
    """Whether an id, as logs keep it, is a stranger's as far as its form tells.

    The owner and agents have an ``@``, tokens their prefix; what is left are nodes and *anyone*.
    Which nodes are known, only the node can say.
    """
    return "@" not in caller_id and not caller_id.startswith("token:")
