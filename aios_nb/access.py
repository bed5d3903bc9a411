"""Who is calling, and which agents that caller may reach.

The principal is the session (a token, a key, nothing), never what a message claims.
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


class Principal(msgspec.Struct, frozen=True):
    """An authenticated caller. ``id`` keys its message ids, logs and limits."""

    kind: Caller
    id: str

    @property
    def is_owner(self) -> bool:
        return self.kind is Caller.OWNER

    def may_call(self, access: Access) -> bool:
        """Whether an agent with this access answers this caller."""
        return access in _REACH[self.kind]


ANYONE = Principal(Caller.ANYONE, "anyone")


def owner_of(node_id: str) -> Principal:
    """The person whose node this is."""
    return Principal(Caller.OWNER, f"owner@{node_id}")
