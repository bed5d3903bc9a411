"""How much one node can make another do, and what goes on when something fails."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import pytest

from aios_nb.hub.dht import codec
from aios_nb.hub.dht.codec import Find
from aios_nb.hub.dht.engine import KademliaDht
from aios_nb.hub.dht.tuning import Tuning
from aios_nb.records import Scope
from tests.clock import Clock
from tests.hub.dht.village import Hall, TimelessLoop, identity, run
from tests.hub.dht.visitors import Visitor, dht_in

FEW = Tuning(first_refresh_s=3600.0, requests_per_s=2.0, requests_burst=5)
QUESTION = codec.write(Find(1, bytes(20), b""))


async def _asked(dht: KademliaDht, visitor: Visitor, times: int) -> int:
    """How many of so many questions were answered."""
    before = len(visitor.heard)
    for _ in range(times):
        visitor.say(dht, QUESTION)
    await asyncio.sleep(0.01)
    return len(visitor.heard) - before


def test_who_asks_without_end_is_answered_now_and_then_and_others_at_once() -> None:
    async def story() -> None:
        hall, clock = Hall(), Clock()
        dht = dht_in(hall, "asked", FEW, clock=clock)
        greedy, modest = Visitor(hall, "greedy"), Visitor(hall, "modest")
        for visitor in (greedy, modest):
            dht.meet(visitor.presence, proven=True)
        assert await _asked(dht, greedy, 50) == 5
        assert dht.stats["over the limit"] == 45
        assert await _asked(dht, modest, 3) == 3
        clock.now += 1
        assert await _asked(dht, greedy, 50) == 2
        await dht.close()

    run(story, TimelessLoop)


def test_the_nodes_of_one_owner_share_what_they_may_ask() -> None:
    async def story() -> None:
        hall = Hall()
        dht = dht_in(hall, "asked", FEW, clock=Clock(), host="20.0.0.1", scope=Scope.GLOBAL)
        answered = 0
        for place in range(1, 21):
            host = f"30.1.2.{place}"
            visitor = Visitor(hall, f"neighbour {place}", host=host, scope=Scope.GLOBAL)
            dht.meet(visitor.presence, proven=True)
            answered += await _asked(dht, visitor, 5)
        assert answered == 4 * FEW.requests_burst
        await dht.close()

    run(story, TimelessLoop)


def test_upkeep_that_fails_is_said_and_done_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    async def story() -> None:
        hall = Hall()
        dht = dht_in(hall, "keeper", Tuning())
        tries = 0

        async def broken(*_: object) -> list[int]:
            nonlocal tries
            tries += 1
            raise RuntimeError("no way")

        monkeypatch.setattr(dht, "walk_to", broken)
        dht.meet(Visitor(hall, "friend").presence, proven=True)
        await asyncio.sleep(100)
        assert tries > 1
        await dht.close()

    with caplog.at_level(logging.ERROR):
        run(story, TimelessLoop)
    assert "upkeep" in caplog.text


def test_a_lookup_ends_although_this_process_is_always_late() -> None:
    class Late(TimelessLoop):
        """Every timer rings half a second after its time."""

        def call_at(self, when, callback, *args, context=None):
            return super().call_at(when, _ringing, self, callback, args, context=context)

    def _ringing(loop: TimelessLoop, callback: Callable[..., object], args: object) -> None:
        loop._leaping.now += 0.5
        callback(*args)

    async def story() -> None:
        hall = Hall()
        dht = dht_in(hall, "slow", FEW)
        dht.meet(Visitor(hall, "silent").presence, proven=True)
        assert await dht.get(identity("nobody").node_id) is None
        assert asyncio.get_running_loop().time() < 60
        await dht.close()

    run(story, Late)
