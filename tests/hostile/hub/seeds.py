"""Nodes that are joined and tell whatever a test wants of members and records."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from aios_nb.hub.catalogue import Page
from aios_nb.hub.presence import Presence, declare
from aios_nb.identity import Identity
from aios_nb.records import NodeRecord, Scope, Signed, agent_record, node_record, sign_record
from tests.between.liar import Liar

CARD = b"c" * 32


def now_ms() -> int:
    return int(time.time() * 1000)


def key(name: str) -> Identity:
    """The same name is the same key."""
    return Identity.from_seed(name.encode().ljust(32))


def word(
    identity: Identity,
    address: tuple[str, int] | None = None,
    *,
    epoch: int = 1,
    scope: Scope = Scope.LOOPBACK,
) -> Presence:
    return declare(identity, "main", epoch=epoch, incarnation=0, scope=scope, address=address)


def agent(identity: Identity, name: str, *, epoch: int = 1, at: int = 0, **fields: Any) -> Signed:
    """A record as that key would sign it now, or at another time."""
    record = agent_record(
        net="main",
        node=identity.node_id,
        name=name,
        access="network",
        card=CARD,
        seq=at or now_ms(),
        epoch=epoch,
        now_ms=at or now_ms(),
        **fields,
    )
    return sign_record(identity, record)


def place(identity: Identity, *endpoints: tuple[str, str, int], index: int = 0) -> Signed:
    record: NodeRecord = node_record(
        net="main",
        node=identity.node_id,
        name="made-up",
        scope=Scope.LOOPBACK,
        endpoints=endpoints,
        seq=now_ms(),
        epoch=1,
        now_ms=now_ms(),
        index=index,
    )
    return sign_record(identity, record)


def tells(liar: Liar, presences: Sequence[bytes] = (), records: Sequence[bytes] = ()) -> None:
    """Whoever pulls from it gets these, on one page."""
    own = word(liar.identity, epoch=liar.epoch).to_bytes()
    page = Page(presences=(own, *presences), records=tuple(records))
    liar.says["gossip.sync"] = lambda _: page
    liar.says["gossip.packet"] = lambda _: None


def tells_pages(liar: Liar, pages: Callable[[], Iterator[Page]]) -> None:
    """Page by page, without end if they have none."""
    own = word(liar.identity, epoch=liar.epoch).to_bytes()
    each = pages()

    def answer(params: Any) -> Page:
        part = next(each, Page())
        return Page(
            presences=part.presences if params.after else (own, *part.presences),
            records=part.records,
            after=part.after,
        )

    liar.says["gossip.sync"] = answer
    liar.says["gossip.packet"] = lambda _: None
