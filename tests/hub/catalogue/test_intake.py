from __future__ import annotations

import asyncio
import threading

import pytest

from aios_nb import records
from aios_nb.hub.catalogue import Offered, take_in
from aios_nb.hub.catalogue.intake import AT_ONCE
from tests.hub.catalogue.writers import ALICE, BOB, EPOCH, NOW, Watched, check, writer


def crowd(count: int) -> list[bytes]:
    return [writer(number % 10 + 10).agent(f"a{number}").to_bytes() for number in range(count)]


def test_many_are_taken_in_as_if_one_by_one():
    contents = crowd(3 * AT_ONCE + 7)
    forged = ALICE.agent()
    contents[5:5] = [
        forged.pk + bytes(64) + forged.payload,
        b"garbage",
        contents[0],
        BOB.agent(seq=NOW + 1).to_bytes(),
        BOB.agent().to_bytes(),
        BOB.agent("other", epoch=EPOCH + 1).to_bytes(),
    ]
    one, many = Watched(), Watched()
    expected = list(one.catalogue.offer_many(contents))
    came = asyncio.run(take_in(many.catalogue, contents))
    assert many.mirror == one.mirror
    assert came[Offered.REFUSED] == expected.count(Offered.REFUSED) == 2
    assert sum(came.values()) == len(contents)
    assert many.catalogue.counts["forged"] == 1
    check(many)


def test_signatures_are_checked_beside_the_loop_and_others_get_their_turn(
    monkeypatch: pytest.MonkeyPatch,
):
    where: set[int] = set()
    verify = records.verify

    def noted(*args: bytes) -> bool:
        where.add(threading.get_ident())
        return verify(*args)

    monkeypatch.setattr(records, "verify", noted)
    watched = Watched()
    sizes: set[int] = set()

    async def main() -> None:
        taking = asyncio.ensure_future(take_in(watched.catalogue, crowd(5 * AT_ONCE)))
        while not taking.done():
            sizes.add(len(watched.catalogue))
            await asyncio.sleep(0)
        await taking

    asyncio.run(main())
    assert threading.get_ident() not in where
    assert {0, AT_ONCE, 2 * AT_ONCE} <= sizes


def test_what_is_known_needs_no_thread(monkeypatch: pytest.MonkeyPatch):
    contents = crowd(2 * AT_ONCE)
    watched = Watched()
    list(watched.catalogue.offer_many(contents))
    monkeypatch.setattr(asyncio, "to_thread", lambda *_: pytest.fail("a thread"))
    came = asyncio.run(take_in(watched.catalogue, contents))
    assert came == {Offered.KNOWN: 2 * AT_ONCE}


def test_a_record_that_arrives_twice_at_once_is_kept_once():
    watched = Watched()
    contents = crowd(20)

    async def main() -> None:
        came = await asyncio.gather(*(take_in(watched.catalogue, contents) for _ in range(3)))
        assert sum(one[Offered.NEW] for one in came) == 20

    asyncio.run(main())
    assert len(watched.told) == 20
    check(watched)


def test_results_of_many_come_as_they_are_asked_for():
    watched = Watched()
    results = watched.catalogue.offer_many(crowd(5))
    assert next(results) is Offered.NEW
    assert len(watched.catalogue) == 1
