"""Calls over one link, in both directions, at once, at length, in pieces, and when it is cut."""

from __future__ import annotations

import asyncio
import json

import pytest

from aios_nb.access import Caller, Principal
from aios_nb.config import Limits
from aios_nb.errors import (
    Busy,
    ConnectionLost,
    InvalidParams,
    InvalidRequest,
    MethodNotFound,
    NoSuchAgent,
    NotAllowed,
    RpcError,
    TooLarge,
)
from aios_nb.wire.peer import asking
from aios_nb.wire.peer.frames import CREDIT_BYTES
from aios_nb.wire.peer.link import PeerLink
from tests.wire.peer.conftest import OPEN, until

MB = 1 << 20


async def linked(a, b) -> tuple[PeerLink, PeerLink]:
    """The two ends of one link that ``a`` dialled."""
    there = await a.links.reach(b.node_id)
    await until(lambda: b.links.link(a.node_id))
    return there, b.links.link(a.node_id)


def cut(link: PeerLink) -> None:
    link._channel.abort()


def test_both_sides_call_over_one_link(pair):
    async def run():
        async with pair() as (a, b):
            there, back = await linked(a, b)

            assert await there.call("test.echo", {"text": "hello"}) == {"text": "hello"}
            assert await back.call("test.who", {}) == {"id": b.node_id, "as": "known"}
            assert await there.call("test.later", {"text": "soon"}) == {"text": "soon"}
            assert await b.links.reach(a.node_id) is back
            assert (there.node_id, back.node_id) == (b.node_id, a.node_id)
            assert (there.dialled, back.dialled) == (True, False)

    asyncio.run(run())


def test_a_thousand_calls_at_once_each_get_their_own_answer(pair):
    async def run():
        async with pair() as (a, b):
            there, back = await linked(a, b)
            calls = [
                link.call(method, {"text": f"{method} {n}"})
                for n in range(500)
                for link, method in (
                    (there, "test.echo"),
                    (there, "test.later"),
                    (back, "test.later"),
                )
            ]
            answers = await asyncio.gather(*calls)

            assert [answer["text"] for answer in answers] == [
                f"{method} {n}"
                for n in range(500)
                for method in ("test.echo", "test.later", "test.later")
            ]

    asyncio.run(run())


def test_more_calls_than_the_other_side_takes_are_refused_here(pair):
    async def run():
        async with pair(limits=Limits(ws_calls=3, refused_per_s=1e6)) as (a, b):
            there, _ = await linked(a, b)
            waiting = [asyncio.ensure_future(there.call("test.gate", {})) for _ in range(3)]
            await b.entered.wait()
            with pytest.raises(Busy):
                await there.call("test.echo", {})
            b.gate.set()
            await asyncio.gather(*waiting)
            assert await there.call("test.echo", {"text": "again"}) == {"text": "again"}

    asyncio.run(run())


def test_four_megabytes_each_way_do_not_hold_up_small_calls(pair):
    async def run():
        async with pair() as (a, b):
            there, back = await linked(a, b)
            order: list[str] = []

            async def ask(link: PeerLink, name: str, text: str) -> None:
                answer = await link.call("test.echo", {"text": text})
                assert answer["text"] == text
                order.append(name)

            long = "x" * (4 * MB - 200)
            await asyncio.gather(
                ask(there, "long", long),
                ask(back, "long", long),
                *(ask(link, "small", f"{n}") for n in range(50) for link in (there, back)),
            )

            assert order[-2:] == ["long", "long"]

    asyncio.run(run())


def test_many_long_messages_share_the_link(pair):
    async def run():
        async with pair() as (a, b):
            there, back = await linked(a, b)
            asked = [
                (link, f"{n}{link is there}" * (300_000 // 5))
                for n in range(8)
                for link in (there, back)
            ]
            answers = await asyncio.gather(
                *(link.call("test.echo", {"text": t}) for link, t in asked)
            )

            assert [answer["text"] for answer in answers] == [text for _, text in asked]

    asyncio.run(run())


def test_too_long_a_request_stays_here_and_too_long_an_answer_there(pair):
    async def run():
        async with pair() as (a, b):
            there, _ = await linked(a, b)
            with pytest.raises(TooLarge):
                await there.call("test.echo", {"text": "x" * 4 * MB})
            with pytest.raises(TooLarge):
                await there.call("test.long", {"text": "x" * MB, "times": 5})
            assert await there.call("test.echo", {"text": "fine"}) == {"text": "fine"}

    asyncio.run(run())


def test_errors_come_back_as_what_they_are(pair):
    async def run():
        async with pair() as (a, b):
            there, _ = await linked(a, b)
            with pytest.raises(NoSuchAgent, match="no agent Bob") as failed:
                await there.call("test.fails", {"text": "Bob"})
            assert (failed.value.hint, failed.value.data) == ("look again", {"near": ["echo"]})
            with pytest.raises(MethodNotFound):
                await there.call("test.nothing", {})
            with pytest.raises(NotAllowed):
                await there.call("chat.list", {})
            with pytest.raises(InvalidParams):
                await there.call("test.echo", {"wrong": 1})
            with pytest.raises(InvalidParams, match="not JSON"):
                await there.call("test.echo", {"text": object()})

    asyncio.run(run())


@pytest.mark.parametrize(
    "error",
    [
        {"code": -32005, "message": "m", "data": {"message": "twice"}},
        {"code": -32005, "message": "m", "data": [1, 2]},
        {"code": "odd", "message": None, "data": {"self": 1, "hint": 7}},
        {},
    ],
)
def test_an_error_with_anything_in_it_is_still_an_error(error):
    assert isinstance(asking.failure(error), RpcError)


def test_a_batch_is_refused(pair):
    async def run():
        async with pair() as (a, b):
            there, _ = await linked(a, b)
            answer = asyncio.get_running_loop().create_future()
            one = {"jsonrpc": "2.0", "id": 1, "method": "test.echo"}
            there._ask(json.dumps([one, one]).encode(), answer)
            with pytest.raises(InvalidRequest, match="no batches"):
                await answer

    asyncio.run(run())


def test_a_notification_is_heard_and_leaves_nothing_open(pair):
    async def run():
        async with pair() as (a, b):
            there, back = await linked(a, b)
            there.notify("test.note", {"text": "by the way"})

            assert await b.notified.get() == "by the way"
            await until(lambda: there.quiet and back.quiet)

    asyncio.run(run())


def test_rights_change_while_the_link_is_up(pair):
    async def run():
        async with pair() as (a, b):
            there, back = await linked(a, b)
            back.principal = Principal(Caller.NODE, a.node_id)

            assert await there.call("test.who", {}) == {"id": a.node_id, "as": "node"}

    asyncio.run(run())


def test_who_gives_up_waiting_gives_up_the_stream_and_the_method_goes_on(pair):
    async def run():
        async with pair() as (a, b):
            there, back = await linked(a, b)
            call = asyncio.ensure_future(there.call("test.gate", {}))
            await b.entered.wait()
            call.cancel()
            await until(lambda: there.quiet and back.quiet)
            b.gate.set()

            await b.finished.wait()
            assert await there.call("test.echo", {"text": "next"}) == {"text": "next"}

    asyncio.run(run())


# In pieces -----------------------------------------------------------------------------


@pytest.mark.parametrize("method", ["test.flow", "test.paper"])
def test_an_answer_in_pieces(pair, method):
    async def run():
        async with pair() as (a, b):
            there, _ = await linked(a, b)
            stream = there.stream(method, {"text": "abcdefgh"})
            told = await b.flows.get()
            told.write(3)
            assert await anext(stream) == {"text": "abc"}
            told.write(8, last=True)

            assert [piece async for piece in stream] == [{"text": "defgh"}]
            assert await stream.result() == {"length": 8}
            await told.closed.wait()

    asyncio.run(run())


def test_a_stream_that_fails_says_so_in_its_result(pair):
    async def run():
        async with pair() as (a, b):
            there, _ = await linked(a, b)
            stream = there.stream("test.fails", {"text": "Bob"})

            assert [piece async for piece in stream] == []
            with pytest.raises(NoSuchAgent):
                await stream.result()

    asyncio.run(run())


def test_who_asks_for_the_result_only_gets_it(pair):
    async def run():
        async with pair() as (a, b):
            there, _ = await linked(a, b)
            stream = there.stream("test.flow", {"text": "x", "times": 3 * CREDIT_BYTES})
            told = await b.flows.get()

            async def write() -> None:
                for part in range(1, 31):
                    told.write(part * CREDIT_BYTES // 10, last=part == 30)
                    await asyncio.sleep(0)

            writing = asyncio.ensure_future(write())
            assert await stream.result() == {"length": 3 * CREDIT_BYTES}
            await writing

    asyncio.run(run())


def test_who_stops_listening_closes_the_notices_only(pair):
    async def run():
        async with pair() as (a, b):
            there, back = await linked(a, b)
            stream = there.stream("test.flow", {"text": "abc"})
            told = await b.flows.get()
            told.write(1)
            await anext(stream)
            stream.close()

            await told.closed.wait()
            await until(lambda: there.quiet and back.quiet)
            with pytest.raises(ConnectionLost):
                await stream.result()

    asyncio.run(run())


def test_a_slow_reader_skips_pieces_holds_nobody_up_and_catches_up(pair):
    async def run():
        async with pair() as (a, b):
            there, back = await linked(a, b)
            steps, step = 400, 2000
            stream = there.stream("test.flow", {"text": "x", "times": steps * step})
            told = await b.flows.get()
            for n in range(1, steps + 1):
                told.write(n * step, last=n == steps)
                await there.call("test.echo", {"text": "others go on"})

            held = sum(len(item["text"]) for item, _ in stream._items)
            assert held <= CREDIT_BYTES
            assert back._streams.queued_bytes <= steps * step
            assert told.pieces < steps
            whole = "".join([piece["text"] async for piece in stream])
            assert whole == "x" * steps * step
            assert await stream.result() == {"length": steps * step}

    asyncio.run(run())


def test_open_streams_are_bounded_for_the_whole_node(pair):
    async def run():
        limits = Limits(open_streams=1, refused_per_s=1e6)
        async with pair(limits=limits) as (a, b):
            there, _ = await linked(a, b)
            first = there.stream("test.flow", {"text": "abc"})
            told = await b.flows.get()
            with pytest.raises(Busy):
                await there.stream("test.flow", {"text": "abc"}).result()
            await (await b.flows.get()).closed.wait()
            told.write(3, last=True)
            await first.result()
            await told.closed.wait()
            again = there.stream("test.flow", {"text": "abc"})
            (await b.flows.get()).write(3, last=True)
            assert await again.result() == {"length": 3}

    asyncio.run(run())


def test_a_watch_without_end_is_not_for_a_link(pair):
    async def run():
        async with pair() as (a, b):
            there, _ = await linked(a, b)
            original = b._flow

            def endless(who, params):
                flow = original(who, params)
                flow.result_first = True
                return flow

            b.dispatcher._bound["test.flow"].handler = endless
            with pytest.raises(InvalidRequest, match="no end"):
                await there.stream("test.flow", {}).result()
            await (await b.flows.get()).closed.wait()

    asyncio.run(run())


# Cut -----------------------------------------------------------------------------------


@pytest.mark.parametrize("end", ["mine", "theirs"])
def test_a_cut_link_tells_who_waits_and_lets_the_method_finish(pair, end):
    async def run():
        async with pair() as (a, b):
            there, back = await linked(a, b)
            call = asyncio.ensure_future(there.call("test.gate", {}))
            stream = there.stream("test.flow", {"text": "abc"})
            told = await b.flows.get()
            told.write(1)
            assert await anext(stream) == {"text": "a"}
            await b.entered.wait()
            cut(there if end == "mine" else back)

            with pytest.raises(ConnectionLost):
                await call
            assert [piece async for piece in stream] == []
            with pytest.raises(ConnectionLost):
                await stream.result()
            await told.closed.wait()
            assert not there.is_open
            with pytest.raises(ConnectionLost):
                await there.call("test.echo", {})
            b.gate.set()
            await b.finished.wait()

    asyncio.run(run())


def test_a_cut_link_is_dialled_anew(pair):
    async def run():
        async with pair() as (a, b):
            for _ in range(5):
                there, back = await linked(a, b)
                assert await there.call("test.echo", {"text": "x"}) == {"text": "x"}
                cut(back)
                await there.over
                await back.over
            assert [word.split()[0] for word in a.told] == ["up", "down"] * 5

    asyncio.run(run())


def test_the_round_trip_is_known(pair):
    async def run():
        async with pair() as (a, b):
            there, back = await linked(a, b)
            await until(lambda: there.latency_ms and back.latency_ms)

    asyncio.run(run())


def test_a_node_that_does_not_read_gets_busy_instead_of_more(pair, monkeypatch):
    async def run():
        monkeypatch.setattr("aios_nb.wire.peer.answering.UNSENT_BYTES", 0)
        async with pair(limits=OPEN) as (a, b):
            there, _ = await linked(a, b)
            long = there.call("test.long", {"text": "x" * 1024, "times": 3 * 1024})
            answers = await asyncio.gather(
                long, *(there.call("test.echo", {}) for _ in range(20)), return_exceptions=True
            )

            assert len(answers[0]["text"]) == 3 * MB
            assert any(isinstance(answer, Busy) for answer in answers[1:])

    asyncio.run(run())
