"""Many records at once, without holding up the loop: signatures are checked in a thread."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Protocol

from aios_nb.errors import RecordError
from aios_nb.hub.catalogue.change import Offered
from aios_nb.records import Scope, Signed, Unproven

AT_ONCE = 32
"""Records between two turns of the loop: a millisecond of its time, and 5 of the thread's."""


class Taker(Protocol):
    """The part of the catalogue that takes records in."""

    def examine(self, content: bytes, over: Scope) -> Unproven | Offered: ...
    def place(self, signed: Signed) -> Offered: ...
    def forged(self) -> Offered: ...


async def take_in(
    catalogue: Taker, contents: Iterable[bytes], over: Scope = Scope.LOOPBACK
) -> Counter[Offered]:
    """Offer them all; what came of them. Others get their turn in between."""
    came: Counter[Offered] = Counter()
    waiting = iter(contents)
    while some := list(islice(waiting, AT_ONCE)):
        looked = [catalogue.examine(content, over) for content in some]
        came.update(verdict for verdict in looked if isinstance(verdict, Offered))
        claims = [claim for claim in looked if isinstance(claim, Unproven)]
        proven = await asyncio.to_thread(_prove, claims) if claims else await _turn()
        came.update(
            catalogue.forged() if signed is None else catalogue.place(signed) for signed in proven
        )
    return came


async def _turn() -> Sequence[Signed | None]:
    await asyncio.sleep(0)
    return ()


def _prove(claims: Sequence[Unproven]) -> Sequence[Signed | None]:
    return list(_each(claims))


def _each(claims: Sequence[Unproven]) -> Iterator[Signed | None]:
    for claim in claims:
        try:
            yield claim.prove()
        except RecordError:
            yield None
