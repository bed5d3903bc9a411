"""One link for each pair of nodes: dialled on demand, kept warm, replaced, refused, closed."""

from __future__ import annotations

import asyncio
import logging

import pytest

from aios_nb.access import Caller
from aios_nb.errors import ConnectionLost, Unreachable
from aios_nb.identity import Identity
from aios_nb.records import HOUR_MS
from aios_nb.wire.peer import handshake, joins, links, pulse
from tests.wire.peer.conftest import NodeUnderTest, until


class Pins(dict):
    """Who was found where, in memory."""

    async def put(self, url: str, node_id: str) -> str:
        return self.setdefault(url, node_id)


def reason(problem: pytest.ExceptionInfo[Unreachable]) -> str:
    return problem.value.data["reason"]


async def ticks(node: NodeUnderTest) -> None:
    """Long enough for a link to be found idle, or silent."""
    enough = node.links._ticks + 15
    await until(lambda: node.links._ticks >= enough)


def states(node: NodeUnderTest) -> dict[str, str]:
    return {row["node_id"]: row["state"] for row in node.links.peers()}


def test_many_who_ask_at_once_share_one_dial(pair):
    async def run():
        async with pair() as (a, b):
            found = await asyncio.gather(*(a.links.reach(b.node_id) for _ in range(50)))

            assert len(set(found)) == 1
            await until(lambda: b.told)
            assert (a.told, b.told) == ([f"up {b.node_id}"], [f"up {a.node_id}"])

    asyncio.run(run())


def test_who_gives_up_waiting_does_not_end_the_dial_of_others(pair):
    async def run():
        async with pair() as (a, b):
            first = asyncio.ensure_future(a.links.reach(b.node_id))
            second = asyncio.ensure_future(a.links.reach(b.node_id))
            await asyncio.sleep(0)
            first.cancel()

            assert (await second).is_open

    asyncio.run(run())


@pytest.mark.parametrize("turn", range(20))
def test_two_that_dial_each_other_keep_the_link_of_the_lower_id(pair, turn):
    async def run():
        async with pair() as (a, b):
            calls = []

            async def ask(here, there) -> None:
                link = await here.links.reach(there.node_id)
                calls.append(await link.call("test.later", {"text": here.node_id}))

            await asyncio.gather(ask(a, b), ask(b, a), ask(b, a), ask(a, b))

            assert len(calls) == 4
            await until(lambda: len(a.links._all) == len(b.links._all) == 1)
            here, there = a.links.link(b.node_id), b.links.link(a.node_id)
            assert here is not None
            assert there is not None
            assert here.dialled != there.dialled
            assert await here.call("test.who", {}) == {"id": a.node_id, "as": "known"}
            assert a.told == [f"up {b.node_id}"]

    asyncio.run(run())


def test_if_both_links_stand_the_lower_ids_one_stays_and_the_other_finishes_its_calls(pair):
    async def run():
        async with pair() as (a, b):
            low, high = sorted((a, b), key=lambda node: node.node_id)
            old = await high.links.reach(low.node_id)
            await until(lambda: low.links.link(high.node_id))
            call = asyncio.ensure_future(old.call("test.gate", {"text": "under way"}))
            await low.entered.wait()
            new = await low.links._dial(high.url, high.node_id, None)

            assert new.dialled
            await until(lambda: high.links.link(low.node_id) is not old)
            assert not old.is_open
            assert not old.over.done()
            low.gate.set()
            assert await call == {"text": "under way"}
            await old.over
            assert old.why == "replaced"
            assert await new.call("test.echo", {"text": "new"}) == {"text": "new"}
            assert low.told == [f"up {high.node_id}"]
            assert high.told == [f"up {low.node_id}"]

    asyncio.run(run())


def test_a_node_that_dials_again_has_lost_its_link(pair):
    async def run():
        async with pair() as (a, b):
            old = await a.links.reach(b.node_id)
            await until(lambda: b.links.link(a.node_id))
            seen = b.links.link(a.node_id)
            new = await a.links._dial(b.url, b.node_id, None)

            await seen.over
            await old.over
            assert await new.call("test.echo", {"text": "new"}) == {"text": "new"}

    asyncio.run(run())


def test_a_node_that_dials_after_a_while_has_lost_its_link_whoever_dialled(pair, monkeypatch):
    monkeypatch.setattr(links, "SETTLE_S", -1.0)

    async def run():
        async with pair() as (a, b):
            low, high = sorted((a, b), key=lambda node: node.node_id)
            old = await low.links.reach(high.node_id)
            await until(lambda: high.links.link(low.node_id))
            new = await high.links._dial(low.url, low.node_id, None)

            await old.over
            assert await new.call("test.echo", {"text": "new"}) == {"text": "new"}

    asyncio.run(run())


def test_a_restarted_node_is_told_apart_by_its_epoch(pair):
    async def run():
        async with pair() as (a, b):
            twin = NodeUnderTest(identity=b.identity, epoch=2)
            twin.knows(a)
            old = await a.links.reach(b.node_id)
            await twin.links.reach(a.node_id)
            await old.over
            await until(lambda: a.links.link(b.node_id))

            assert a.links.link(b.node_id).epoch == 2
            assert a.told == [f"up {b.node_id}", f"down {b.node_id}", f"up {b.node_id}"]
            await twin.stop()

    asyncio.run(run())


# Not reached ---------------------------------------------------------------------------


def test_why_a_node_is_not_reached(pair):
    async def run():
        async with pair() as (a, b):
            nobody = Identity.generate().node_id
            with pytest.raises(Unreachable) as problem:
                await a.links.reach(nobody)
            assert reason(problem) == "no address"
            a.addresses[nobody] = ["http://127.0.0.1:9"]
            with pytest.raises(Unreachable) as problem:
                await a.links.reach(nobody)
            assert reason(problem) == "no answer"
            a.addresses[nobody] = [b.url]
            with pytest.raises(Unreachable) as problem:
                await a.links.reach(nobody)
            assert reason(problem) == "refused"
            with pytest.raises(Unreachable) as problem:
                await a.links.reach(a.node_id)
            assert reason(problem) == "refused"

    asyncio.run(run())


def test_a_second_address_is_tried(pair):
    async def run():
        async with pair() as (a, b):
            a.addresses[b.node_id] = ["http://127.0.0.1:9", b.url]

            assert (await a.links.reach(b.node_id)).is_open

    asyncio.run(run())


@pytest.mark.parametrize("who", ["dialler", "acceptor"])
def test_a_blocked_node_is_refused_whoever_dials(pair, who):
    async def run():
        async with pair() as (a, b):
            (a if who == "dialler" else b).blocked.add((b if who == "dialler" else a).node_id)
            with pytest.raises(Unreachable) as problem:
                await a.links.reach(b.node_id)
            assert reason(problem) == "refused"
            assert not b.links._all

    asyncio.run(run())


def test_a_review_changes_rights_or_ends_the_link(pair):
    async def run():
        async with pair() as (a, b):
            there = await a.links.reach(b.node_id)
            b.known = False
            b.links.review(a.node_id)
            assert (await there.call("test.who", {}))["as"] == Caller.NODE
            b.blocked.add(a.node_id)
            b.links.review(a.node_id)

            await there.over
            with pytest.raises(ConnectionLost):
                await there.call("test.who", {})

    asyncio.run(run())


def test_nodes_of_another_network_do_not_link(pair):
    async def run():
        async with pair() as (a, _):
            other = await NodeUnderTest(network="lab").start()
            a.knows(other)
            with pytest.raises(Unreachable) as problem:
                await a.links.reach(other.node_id)
            assert reason(problem) == "refused"
            await other.stop()

    asyncio.run(run())


def test_nodes_of_another_version_do_not_link(pair, monkeypatch):
    async def run():
        async with pair() as (a, b):
            original = handshake.Initiator.first

            def newer(self) -> bytes:
                return b"\x02" + original(self)[1:]

            monkeypatch.setattr(handshake.Initiator, "first", newer)
            with pytest.raises(Unreachable) as problem:
                await a.links.reach(b.node_id)
            assert reason(problem) == "refused"

    asyncio.run(run())


def test_a_node_that_left_says_so(pair):
    async def run():
        async with pair() as (a, b):
            await a.links.reach(b.node_id)
            await until(lambda: b.links.link(a.node_id))
            await b.stop()
            await until(lambda: len(a.told) == 2)

            assert states(a) == {b.node_id: "left"}
            with pytest.raises(Unreachable) as problem:
                await a.links.reach(b.node_id)
            assert reason(problem) == "left"

    asyncio.run(run())


# Learned -------------------------------------------------------------------------------


def test_where_a_node_is_is_learned_from_its_signed_record(pair):
    async def run():
        async with pair() as (a, b):
            b.addresses.clear()
            there = await a.links.reach(b.node_id)
            await until(lambda: b.links.link(a.node_id))
            there._channel.abort()
            await there.over
            await until(lambda: not b.links._all)

            assert (await b.links.reach(a.node_id)).dialled

    asyncio.run(run())


@pytest.mark.parametrize("wrong", ["another node's", "of another network", "garbage", "expired"])
def test_a_record_that_is_not_right_is_not_used(pair, wrong):
    async def run():
        async with pair() as (a, b):
            b.addresses.clear()
            match wrong:
                case "another node's":
                    a.links._record = b.record
                case "of another network":
                    a._network = "lab"
                case "garbage":
                    a.links._record = lambda: b"\0" * 300
                case "expired":
                    a.made_ago_ms = 30 * HOUR_MS
            there = await a.links.reach(b.node_id)
            await until(lambda: b.links.link(a.node_id))
            there._channel.abort()
            await there.over
            await until(lambda: not b.links._all)

            with pytest.raises(Unreachable) as problem:
                await b.links.reach(a.node_id)
            assert reason(problem) == "no address"

    asyncio.run(run())


# Joined --------------------------------------------------------------------------------


def test_a_joined_url_is_linked_and_its_node_remembered(pair):
    async def run():
        pins = Pins()
        async with pair(pins=pins) as (a, b):
            a.addresses.clear()
            a.links.join(b.url)
            await until(lambda: a.links.link(b.node_id) and a.links.joined())

            assert a.links.joined() == (b.node_id,)
            assert pins == {b.url: b.node_id}
            assert a.links.waiting() == []

    asyncio.run(run())


def test_a_joined_node_is_linked_again_when_it_comes_back(pair, monkeypatch):
    monkeypatch.setattr(joins, "BACKOFF_S", (0.01, 0.05))

    async def run():
        async with pair() as (a, b):
            a.addresses.clear()
            a.links.join(b.url, expects=b.node_id)
            await until(lambda: a.links.link(b.node_id))
            a.links.link(b.node_id)._channel.abort()
            await until(
                lambda: a.told == [f"up {b.node_id}", f"down {b.node_id}", f"up {b.node_id}"]
            )
            await b.stop()
            await until(lambda: a.links.waiting() and a.links.waiting()[0]["problem"])
            assert a.links.joined() == (b.node_id,)
            again = NodeUnderTest(identity=b.identity, epoch=2)
            news = asyncio.ensure_future(a.links.news(b.node_id, 60))
            await again.start(b.port)

            await news
            assert a.links.link(b.node_id).epoch == 2
            await again.stop()

    asyncio.run(run())


def test_another_node_at_a_joined_url_is_refused_and_said_once(pair, monkeypatch, caplog):
    monkeypatch.setattr(joins, "BACKOFF_S", (0.01, 0.02))
    dials = []
    original = links.Dialler.dial

    async def counted(self, *args, **options):
        dials.append(1)
        return await original(self, *args, **options)

    monkeypatch.setattr(links.Dialler, "dial", counted)

    async def run():
        pins = Pins()
        async with pair(pins=pins) as (a, b):
            before = Identity.generate().node_id
            pins[b.url] = before
            a.links.join(b.url)
            await until(lambda: len(dials) > 3)

            assert a.links.joined() == (before,)
            assert states(a) == {before: "suspect"}
            [waiting] = a.links.waiting()
            assert b.node_id in waiting["problem"]
            assert not a.links._all

    with caplog.at_level(logging.WARNING):
        asyncio.run(run())
    said = [record for record in caplog.records if "is refused" in record.getMessage()]
    assert len(said) == 1


def test_an_unpinned_url_that_does_not_answer_yet_is_waited_for(pair, monkeypatch):
    monkeypatch.setattr(joins, "BACKOFF_S", (0.01, 0.02))

    async def run():
        async with pair() as (a, b):
            late = NodeUnderTest()
            port = b.port
            await b.stop()
            a.links.join(f"http://127.0.0.1:{port}")
            await until(lambda: a.links.waiting()[0]["problem"])
            assert a.links.joined() == ()
            assert states(a) == {}
            await late.start(port)

            await until(lambda: a.links.link(late.node_id))
            await late.stop()

    asyncio.run(run())


# Idle, silent, gone --------------------------------------------------------------------


def test_an_idle_link_is_closed_and_counts_as_alive(pair, fast):
    async def run():
        async with pair(idle_s=0.1) as (a, b):
            there = await a.links.reach(b.node_id)
            assert await there.call("test.echo", {"text": "x"}) == {"text": "x"}
            await there.over

            assert there.why == "idle"
            await until(lambda: not b.links._all)
            assert states(a) == {b.node_id: "alive"}
            assert states(b) == {a.node_id: "alive"}

    asyncio.run(run())


def test_a_link_with_a_call_under_way_is_not_idle_and_a_joined_one_never(pair, fast):
    async def run():
        async with pair(idle_s=0.1) as (a, b):
            there = await a.links.reach(b.node_id)
            call = asyncio.ensure_future(there.call("test.gate", {"text": "long"}))
            await ticks(a)
            assert there.is_open
            a.links.join(b.url, expects=b.node_id)
            b.gate.set()
            assert await call == {"text": "long"}
            await ticks(a)
            assert there.is_open

    asyncio.run(run())


def test_what_is_asked_while_the_link_says_goodbye_is_still_answered(pair):
    async def run():
        async with pair() as (a, b):
            there = await a.links.reach(b.node_id)
            await until(lambda: b.links.link(a.node_id))
            back = b.links.link(a.node_id)
            asked = asyncio.ensure_future(back.call("test.echo", {"text": "crossing"}))
            await asyncio.sleep(0)
            there.drain("idle")

            assert await asked == {"text": "crossing"}
            await there.over
            await back.over

    asyncio.run(run())


def test_a_silent_node_is_given_up(pair, fast, monkeypatch):
    monkeypatch.setattr(pulse, "PING_AFTER_S", 0.05)
    monkeypatch.setattr(pulse, "SILENCE_S", 0.2)

    async def run():
        async with pair() as (a, b):
            there = await a.links.reach(b.node_id)
            await until(lambda: b.links.link(a.node_id))
            b.links.link(a.node_id)._channel.write = lambda frames: None
            call = asyncio.ensure_future(there.call("test.gate", {}))
            with pytest.raises(ConnectionLost):
                await call
            assert states(a) == {b.node_id: "suspect"}

    asyncio.run(run())


def test_pings_keep_a_link_with_nothing_to_say(pair, fast, monkeypatch):
    monkeypatch.setattr(pulse, "PING_AFTER_S", 0.05)
    monkeypatch.setattr(pulse, "SILENCE_S", 0.3)
    monkeypatch.setattr(pulse, "TICK_S", links.TICK_S)
    monkeypatch.setattr(pulse, "LATE_S", 0.1)  # a loop held up for longer accuses nobody

    async def run():
        async with pair() as (a, b):
            there = await a.links.reach(b.node_id)
            await until(lambda: there._stamps > 7 or not there.is_open)
            assert there.is_open

    asyncio.run(run())


def test_news_come_with_a_link_or_with_time(pair):
    async def run():
        async with pair() as (a, b):
            waiting = asyncio.ensure_future(b.links.news(a.node_id, 60))
            await asyncio.sleep(0)
            await a.links.reach(b.node_id)
            await waiting
            await b.links.news(a.node_id, 0.01)
            assert not b.links._news

    asyncio.run(run())


def test_closing_tells_all_and_ends_what_waits(pair):
    async def run():
        async with pair() as (a, b):
            there = await a.links.reach(b.node_id)
            call = asyncio.ensure_future(there.call("test.gate", {}))
            await b.entered.wait()
            await a.links.close()

            with pytest.raises(ConnectionLost):
                await call
            await until(lambda: not b.links._all)
            assert states(b) == {a.node_id: "left"}
            with pytest.raises(Unreachable):
                await a.links.reach(b.node_id)
            b.gate.set()
            await b.finished.wait()

    asyncio.run(run())
