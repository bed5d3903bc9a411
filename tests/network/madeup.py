"""Nodes that do not run: a key, a presence and records, as if they did."""

from __future__ import annotations

import time
from typing import Any

from aios_nb.hub.presence import Presence, declare
from aios_nb.identity import Identity
from aios_nb.records import Scope, Signed, agent_record, node_record, sign_record

Endpoint = tuple[str, str, int]


class MadeUp:
    """One node that is only said to be there."""

    def __init__(
        self,
        net: str = "main",
        scope: Scope = Scope.LOOPBACK,
        address: tuple[str, int] | None = None,
    ) -> None:
        self.identity = Identity.generate()
        self.id = self.identity.node_id
        self._net = net
        self._scope = scope
        self._address = address
        self._now = int(time.time() * 1000)

    def presence(self) -> Presence:
        return declare(
            self.identity,
            self._net,
            epoch=self._now,
            incarnation=0,
            scope=self._scope,
            address=self._address,
        )

    def agent(self, name: str, about: str = "is made up", **fields: Any) -> Signed:
        record = agent_record(
            net=self._net,
            node=self.id,
            name=name,
            access="network",
            card=b"c" * 32,
            seq=self._now,
            epoch=self._now,
            now_ms=self._now,
            about=about,
            **fields,
        )
        return sign_record(self.identity, record)

    def node(self, *endpoints: Endpoint) -> Signed:
        record = node_record(
            net=self._net,
            node=self.id,
            name="made-up",
            scope=self._scope,
            endpoints=endpoints,
            seq=self._now,
            epoch=self._now,
            now_ms=self._now,
        )
        return sign_record(self.identity, record)
