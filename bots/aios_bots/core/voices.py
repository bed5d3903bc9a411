"""The node as the people of a bridge reach it: with the owner's rights, or with those of a guest.

Which agents somebody reaches is for the node to decide, not for us: whoever is not the owner speaks
through a connection that reaches no private agent, whatever their words try.
"""

from __future__ import annotations

from typing import Any

import msgspec

from aios_bots.core.pairing import Role
from aios_nb.client import SiteClient

SCOPE = "chat"


class Keys(msgspec.Struct, frozen=True):
    """The two scoped tokens of a bridge. Never shown."""

    owner: str
    others: str

    def __repr__(self) -> str:
        return "<the tokens of a bridge>"


class Voices:
    """Two connections to one node, which see what they opened and what they were brought into."""

    def __init__(
        self, owner: SiteClient, others: SiteClient, keeper: SiteClient | None = None
    ) -> None:
        self.owner, self.others = owner, others
        self.keeper = keeper
        """The node's owner itself, for two things: to list the owner's conversations to the owner,
        and to bring somebody into one of them. None: only what the others see can be joined."""

    @property
    def node_id(self) -> str:
        return self.owner.node_id

    def of(self, role: Role) -> SiteClient:
        """The connection for somebody with that role."""
        return self.owner if role is Role.OWNER else self.others

    async def close(self) -> None:
        for client in (self.owner, self.others, self.keeper):
            if client is not None:
                await client.close()


async def new_keys(owner: SiteClient, prefix: str) -> Keys:
    """Two tokens for people whose sender ids begin so; asked for by the owner of the node."""
    made: list[Any] = [
        await owner.call("tokens.create", scope=SCOPE, prefix=prefix, **how)
        for how in ({"as": "owner"}, {})
    ]
    return Keys(*(one["token"] for one in made))
