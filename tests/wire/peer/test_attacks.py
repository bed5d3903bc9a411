"""A node's port under a program that keeps no rule: whatever it sends, others do not notice."""

from __future__ import annotations

import asyncio
import contextlib

import msgspec
import pytest

from aios_nb.config import Limits
from aios_nb.errors import Busy, ConnectionLost, Unreachable
from aios_nb.identity import Identity
from aios_nb.wire.peer import channel, pulse
from aios_nb.wire.peer import link as link_module
from aios_nb.wire.peer.frames import (
    BYE,
    CREDIT,
    END,
    FRAME_BYTES,
    MESSAGE,
    NUMBER_MAX,
    PIECE,
    PING,
    PONG,
    READY,
    Ready,
    credit,
    head,
    say,
)
from aios_nb.wire.peer.handshake import Initiator, Responder
from tests.wire.peer import attacker as ws
from tests.wire.peer.attacker import READY_NOW, Attacker, HungUp, request, ws_frame
from tests.wire.peer.conftest import OPEN, Relay, until


async def still_serves(a, b) -> None:
    """Whatever was done to ``b``, another node is answered."""
    there = await a.links.reach(b.node_id)
    assert await there.call("test.echo", {"text": "in"}) == {"text": "in"}


# Proofs that are not one's own ------------------------------------------------------------


def test_a_recorded_handshake_proves_nothing_a_second_time(pair):
    async def run():
        async with pair() as (a, b):
            async with Attacker(b.port) as first:
                await first.link()
                first.ask(1)
                assert "result" in await first.answer(1)
            await until(lambda: not b.links._all)
            async with Attacker(b.port) as again:
                again.raw(first.sent)
                assert len(await again.hung_up()) <= 1  # another M2, and no ready
            assert not b.links._all
            await still_serves(a, b)

    asyncio.run(run())


@pytest.mark.parametrize("what", ["repeats", "swaps", "leaves out", "of another link", "reflects"])
def test_no_frame_counts_but_the_next_one_of_this_link(pair, what):
    async def run():
        async with pair() as (_, b), Attacker(b.port) as one, Attacker(b.port) as other:
            await one.link()
            await other.link()
            first, second = (one.seal(head(n, MESSAGE) + request()) for n in (1, 3))
            if what == "repeats":
                one.raw(ws_frame(first) + ws_frame(first))
            elif what == "swaps":
                one.raw(ws_frame(second) + ws_frame(first))
            elif what == "leaves out":
                one.raw(ws_frame(second))
            elif what == "of another link":
                one.raw(ws_frame(other.seal(head(1, MESSAGE) + request())))
            else:
                one.raw(ws_frame(one.got[1]))  # the node's own ready
            seen = [one.opened(frame) for frame in await one.hung_up()]
            answered = [number for number, kind, _ in seen if kind == MESSAGE]
            assert answered in ([], [1]) if what == "repeats" else answered == []
            other.session.sealer._count = 1
            other.ask(1)
            assert "result" in await other.answer(1)

    asyncio.run(run())


def test_a_nodes_own_messages_are_not_taken_back_by_it(pair):
    async def run():
        async with pair() as (a, b), Attacker(b.port) as one, Attacker(b.port) as two:
            initiator = Initiator(one.identity, "main")
            one.raw(ws_frame(initiator.first()))
            m2 = await one.read()
            # As M3 here, as M1 there, with and without what would stand before it.
            two.raw(ws_frame(b"\x01\x04main" + m2[:64]))
            assert await two.hung_up() == []
            one.raw(ws_frame(m2[64:]))
            assert await one.hung_up() == []
            await still_serves(a, b)

    asyncio.run(run())


def test_a_dial_that_is_led_back_to_its_node_makes_no_link(pair):
    async def run():
        async with pair() as (a, b):
            for expected in (a.node_id, b.node_id):
                a.addresses[expected] = [a.url]
            with pytest.raises(Unreachable) as refused:
                await a.links.reach(b.node_id)
            assert refused.value.data["reason"] == "refused"
            assert not a.links._all

    asyncio.run(run())


def test_a_handshake_between_two_nodes_gives_the_one_in_the_middle_neither(pair):
    """Who carries all three messages has a link it can neither read nor write."""

    async def run():
        async with pair() as (_, b), Attacker(b.port) as middle:
            victim = Initiator(Identity.generate(), "main")
            middle.raw(ws_frame(victim.first()))
            m3, _session = victim.third(await middle.read())
            middle.raw(ws_frame(m3))
            own = Initiator(middle.identity, "main")
            own.first()
            middle.raw(ws_frame(await middle.read()))  # its ready, as ours
            assert await middle.hung_up() == []
            assert not b.links._all

    asyncio.run(run())


def m1(**changed: bytes) -> bytes:
    whole = Initiator(Identity.generate(), "main").first()
    parts = {"v": whole[:1], "net": whole[1:6], "keys": whole[6:]} | changed
    return b"".join(parts.values())


WRONG_FIRST = {
    "version 0": m1(v=b"\0"),
    "version 2": m1(v=b"\x02"),
    "another network": m1(net=b"\x05other"),
    "a network in capitals": m1(net=b"\x04Main"),
    "no network": m1(net=b"\x00"),
    "a network too long": m1(net=b"\xffmain"),
    "no keys": m1(keys=b"\0" * 64),
    "a key of small order": m1(keys=b"\x01" + b"\0" * 63),
    "too short": m1()[:-1],
    "too long": m1() + b"\0",
    "nothing": b"",
}


@pytest.mark.parametrize("first", WRONG_FIRST.values(), ids=WRONG_FIRST)
def test_a_wrong_first_message_is_not_answered(pair, first):
    async def run():
        async with pair() as (_, b), Attacker(b.port) as attacker:
            attacker.raw(ws_frame(first))
            assert await attacker.hung_up() == []

    asyncio.run(run())


def test_a_node_does_not_talk_to_its_own_key(pair):
    async def run():
        async with pair() as (_, b), Attacker(b.port, b.identity) as attacker:
            attacker.raw(ws_frame(Initiator(b.identity, "main").first()))
            assert await attacker.hung_up() == []

    asyncio.run(run())


@pytest.mark.parametrize("third", [b"", b"\0" * 64, b"x" * 63, b"x" * 65, "M2", "of another"])
def test_a_key_without_its_signature_gets_no_ready(pair, third):
    async def run():
        async with pair() as (_, b), Attacker(b.port) as attacker:
            attacker.raw(ws_frame(Initiator(attacker.identity, "main").first()))
            m2 = await attacker.read()
            if third == "M2":
                last = m2[64:]
            elif third == "of another":
                other = Initiator(Identity.generate(), "main")
                responder = Responder(Identity.generate(), "main")
                responder.read(other.first())
                last = other.third(responder.second())[0]
            else:
                last = third
            attacker.raw(ws_frame(last))
            assert await attacker.hung_up() == []
            assert not b.links._all

    asyncio.run(run())


# Websocket --------------------------------------------------------------------------------


def test_a_handshake_in_single_bytes_is_a_handshake(pair):
    async def run():
        async with pair() as (_, b), Attacker(b.port) as attacker:
            initiator = Initiator(attacker.identity, "main")
            await attacker.pieces(ws_frame(initiator.first()))
            m3, attacker.session = initiator.third(await attacker.read())
            await attacker.pieces(ws_frame(m3))
            assert (await attacker.hear())[1] == READY
            await attacker.pieces(ws_frame(attacker.seal(say(READY, READY_NOW))))
            await attacker.pieces(ws_frame(attacker.seal(head(1, MESSAGE) + request(text="x"))))
            assert (await attacker.answer(1))["result"] == {"text": "x"}

    asyncio.run(run())


def test_a_message_in_websocket_fragments_with_pings_between_is_one_message(pair):
    async def run():
        async with pair() as (_, b), Attacker(b.port) as attacker:
            initiator = Initiator(attacker.identity, "main")
            whole = initiator.first()
            attacker.raw(ws_frame(b"", first=ws.BINARY))
            for n, byte in enumerate(whole):
                attacker.raw(ws_frame(b"here?", ws.PING) if n % 30 == 0 else b"")
                attacker.raw(ws_frame(bytes((byte,)), first=ws.CONTINUED))
            attacker.raw(ws_frame(b"", ws.CONTINUED))
            assert await attacker.any() == (ws.PONG, b"here?")
            m3, _ = initiator.third(await attacker.read())
            attacker.raw(ws_frame(m3[:10], first=ws.BINARY) + ws_frame(b"", ws.PONG))
            attacker.raw(ws_frame(m3[10:], ws.CONTINUED))
            assert await attacker.read()

    asyncio.run(run())


ODD = {
    "text": ws_frame(b"x", ws.TEXT),
    "no mask": ws_frame(b"x", masked=False),
    "a compressed frame": ws_frame(b"x", first=0xC2),
    "a reserved bit": ws_frame(b"x", first=0xA2),
    "a reserved bit of a ping": ws_frame(b"x", first=0xC9),
    "a reserved kind": ws_frame(b"x", 3),
    "a reserved control kind": ws_frame(b"x", 11),
    "a ping in fragments": ws_frame(b"x", first=ws.PING),
    "a long ping": ws_frame(b"x" * 126, ws.PING),
    "a fragment of nothing": ws_frame(b"x", ws.CONTINUED),
    "two beginnings": ws_frame(b"x", first=ws.BINARY) + ws_frame(b"x"),
    "a long frame": ws_frame(b"x" * (FRAME_BYTES + 1)),
    "the head of an endless frame": b"\x82\xff" + b"\xff" * 8,
    "fragments without end": ws_frame(b"x" * 60_000, first=ws.BINARY)
    + ws_frame(b"x" * 60_000, first=ws.CONTINUED),
    "a goodbye": ws_frame(b"\x03\xe8", ws.CLOSE),
    "an empty goodbye": ws_frame(b"", ws.CLOSE),
    "a goodbye of one byte": ws_frame(b"x", ws.CLOSE),
    "a frame of no bytes": ws_frame(b""),
    "garbage": b"\xff" * 400,
    "http": b"GET / HTTP/1.1\r\nHost: x\r\n\r\n",
}


@pytest.mark.parametrize("odd", ODD)
@pytest.mark.parametrize("when", ["first", "after M1", "on the link"])
def test_what_is_no_whole_binary_frame_ends_the_connection(pair, odd, when, caplog):
    async def run():
        async with pair() as (a, b):
            async with Attacker(b.port) as attacker:
                if when == "after M1":
                    attacker.raw(ws_frame(Initiator(attacker.identity, "main").first()))
                    await attacker.read()
                elif when == "on the link":
                    await attacker.link()
                    await until(lambda: b.links._all)
                attacker.raw(ODD[odd])
                await attacker.hung_up()
                await until(lambda: not b.links._all and not b.links._door._half_open)
            await still_serves(a, b)

    asyncio.run(run())
    assert not [r for r in caplog.records if r.levelname in {"ERROR", "CRITICAL"}]


def test_a_hundred_frames_in_one_packet_do_not_hide_the_next_one(pair):
    """After a frame that came in parts, exactly as many as are read in one turn."""

    async def run():
        async with pair() as (_, b), Attacker(b.port) as attacker:
            await attacker.link()
            long = ws_frame(attacker.seal(head(1, MESSAGE) + request(text="x" * 30_000)))
            attacker.raw(long[:1000])
            await until(lambda: next(iter(b.links._all), None) is not None)
            channel = next(iter(b.links._all))._channel
            await until(lambda: len(channel._buffer) == 1000)
            rest = [ws_frame(attacker.seal(head(n, MESSAGE) + request())) for n in range(3, 201, 2)]
            attacker.raw(long[1000:] + b"".join(rest))
            await attacker.answers(range(1, 201, 2))
            attacker.ask(201)
            async with asyncio.timeout(5):
                assert "result" in await attacker.answer(201)

    asyncio.run(run())


# On the link ------------------------------------------------------------------------------


def numbers(*frames: bytes) -> tuple[bytes, ...]:
    return frames


BROKEN = {
    "a request before ready": None,
    "a second ready": numbers(say(READY, READY_NOW)),
    "our numbers": numbers(head(2, MESSAGE) + request()),
    "credit for a stream to come": numbers(credit(1, 5)),
    "credit for one of ours to come": numbers(credit(2, 5)),
    "the end of one to come": numbers(head(1, END)),
    "an answer to nothing": numbers(head(2, MESSAGE) + b'{"jsonrpc":"2.0","id":1,"result":1}'),
    "credit for the link": numbers(credit(0, 5)),
    "the end of the link": numbers(head(0, END)),
    "a piece of the link": numbers(head(0, PIECE) + b"x"),
    "three bytes of credit": numbers(head(1, PIECE) + b"x", head(1, CREDIT) + b"\0\0\1"),
    "credit beyond counting": numbers(
        head(1, PIECE) + b"x", *(credit(1, NUMBER_MAX) for _ in range(2))
    ),
    "an empty piece": numbers(head(1, PIECE)),
    "empty pieces behind a full one": numbers(head(1, PIECE) + b"x", head(1, PIECE)),
    "five in pieces": numbers(*(head(n, PIECE) + b"x" for n in (1, 3, 5, 7, 9))),
    "a ping on a stream": numbers(head(1, PING) + b"x" * 8),
    "a bye on a stream": numbers(head(1, BYE) + b"{}"),
    "a long ping": numbers(head(0, PING) + b"x" * 9),
    "a bye that is no JSON": numbers(head(0, BYE) + b"{"),
    "a bye of another shape": numbers(head(0, BYE) + b'{"why":["left"]}'),
    "four bytes": numbers(b"\0\0\0\1"),
    "no bytes": numbers(b""),
    "a message without end": numbers(*(head(1, PIECE) + b"x" * 60_000 for _ in range(75))),
}


@pytest.mark.parametrize("how", BROKEN)
def test_a_broken_rule_ends_the_link_and_no_other(pair, how, caplog):
    async def run():
        async with pair() as (a, b), Attacker(b.port) as other:
            await other.link()
            async with Attacker(b.port) as attacker:
                await attacker.prove()
                if BROKEN[how] is None:
                    attacker.ask(1)
                else:
                    attacker.say(say(READY, READY_NOW), *BROKEN[how])
                await attacker.hung_up()
            await until(lambda: b.links.link(attacker.identity.node_id) is None)
            other.ask(1)
            assert "result" in await other.answer(1)
            await still_serves(a, b)

    asyncio.run(run())
    assert not [r for r in caplog.records if r.levelname in {"ERROR", "CRITICAL"}]


HARMLESS = {
    "unknown types": numbers(head(0, 8), head(0, 255) + b"x", head(1, 200) + b"x"),
    "credit for a stream that is over": numbers(
        head(1, MESSAGE) + request(), credit(1, NUMBER_MAX), credit(1, NUMBER_MAX)
    ),
    "the end of one that is over": numbers(
        head(1, MESSAGE) + request(), head(1, END), head(1, END)
    ),
    "a number that goes back": numbers(
        head(9, MESSAGE) + request(), head(3, MESSAGE) + request(), head(9, MESSAGE) + request()
    ),
    "a pong to nothing": numbers(head(0, PONG) + b"x" * 8, head(0, PONG), head(0, PONG) + b"y"),
    "no JSON": numbers(head(1, MESSAGE) + b"{", head(3, MESSAGE), head(5, MESSAGE) + b"\xff" * 9),
    "deep JSON": numbers(head(1, MESSAGE) + b"[" * 60_000),
    "a batch": numbers(head(1, MESSAGE) + b"[" + request() + b"]", head(3, MESSAGE) + b"[]"),
    "a response as request": numbers(head(1, MESSAGE) + b'{"jsonrpc":"2.0","id":1,"result":1}'),
    "an odd id": numbers(head(1, MESSAGE) + b'{"jsonrpc":"2.0","id":{},"method":"test.echo"}'),
    "a notification with an odd method": numbers(head(1, MESSAGE) + request("no.such", None)),
    "a request that is given up": numbers(head(1, MESSAGE) + request("test.gate"), head(1, END)),
    "no credit": numbers(head(1, MESSAGE) + request("test.gate"), credit(1, 0)),
}


@pytest.mark.parametrize("what", HARMLESS)
def test_what_is_odd_and_breaks_no_rule_is_answered_or_passed_over(pair, what, caplog):
    async def run():
        async with pair() as (_, b), Attacker(b.port) as attacker:
            await attacker.link()
            attacker.say(*HARMLESS[what])
            attacker.ask(101)
            assert "result" in await attacker.answer(101)
            attacker.say(head(0, PING) + b"12345678")
            while (await attacker.hear())[:2] != (0, PONG):
                pass
            b.gate.set()

    asyncio.run(run())
    assert not [r for r in caplog.records if r.levelname in {"ERROR", "CRITICAL"}]


def test_a_goodbye_in_the_middle_lets_what_was_asked_come_to_its_end(pair):
    async def run():
        async with pair() as (_, b), Attacker(b.port) as attacker:
            await attacker.link()
            attacker.ask(1, request("test.gate", text="late"))
            attacker.say(head(0, BYE) + b'{"why":"idle"}', head(0, BYE) + b'{"why":"again"}')
            await b.entered.wait()
            b.gate.set()
            assert (await attacker.answer(1))["result"] == {"text": "late"}
            await attacker.hung_up()

    asyncio.run(run())


def test_a_hundred_thousand_streams_are_answered_and_leave_nothing(pair):
    async def run():
        async with pair() as (_, b), Attacker(b.port) as attacker:
            await attacker.link()
            link = next(iter(b.links._all)) if b.links._all else None
            await until(lambda: b.links._all)
            link = next(iter(b.links._all))

            async def ask() -> None:
                for start in range(1, 200_001, 2000):
                    attacker.writer.write(
                        b"".join(
                            ws_frame(attacker.seal(head(n, MESSAGE) + request()))
                            for n in range(start, start + 2000, 2)
                        )
                    )
                    await attacker.writer.drain()

            asking = asyncio.ensure_future(ask())
            answered = 0
            while answered < 100_000:
                answered += (await attacker.hear())[1] == MESSAGE
            await asking
            assert link.quiet
            assert not link._streams._table

    asyncio.run(run())


def test_more_notifications_than_streams_are_no_breach(pair):
    """To the one who says them they are over at once, however long the method takes."""

    async def run():
        async with pair() as (a, b):
            there = await a.links.reach(b.node_id)
            for _ in range(b.limits.ws_calls + 10):
                there.notify("test.gate", {})
                await asyncio.sleep(0)
            assert await there.call("test.echo", {"text": "in"}) == {"text": "in"}
            b.gate.set()

    asyncio.run(run())


def test_calls_that_are_given_up_at_once_do_not_pile_up(pair):
    async def run():
        limits = msgspec.structs.replace(OPEN, ws_calls=50)
        async with pair(limits=limits) as (a, b), Attacker(b.port) as attacker:
            await attacker.link()
            for n in range(1, 401, 2):
                attacker.say(head(n, MESSAGE) + request("test.gate"), head(n, END))
            attacker.ask(401)
            assert (await attacker.answer(401))["error"]["code"] == Busy.code
            assert len(b.links._desk.calls) == 50
            await still_serves(a, b)
            b.gate.set()
            await until(lambda: not b.links._desk.calls)
            attacker.ask(403)
            assert "result" in await attacker.answer(403)

    asyncio.run(run())


@pytest.mark.parametrize("number", ["a call", "a flow"])
def test_thousands_of_answers_without_credit_are_held_within_bounds(pair, number):
    async def run():
        async with pair() as (a, b), Attacker(b.port) as attacker:
            small = Ready(credit=4096, frame=1024, message=1 << 22, streams=1000)
            await attacker.link(small)
            await until(lambda: b.links._all)
            link = next(iter(b.links._all))
            method = "test.long" if number == "a call" else "test.flow"
            for n in range(1, 1999, 2):
                attacker.ask(n, request(method, text="x" * 100, times=1000))
            await attacker.writer.drain()
            if number == "a call":
                assert (await attacker.answer(1997))["error"]["code"] == Busy.code
            else:
                await until(lambda: link._streams.open_theirs == 999)
            assert link._streams.queued_bytes < 32 << 20
            await still_serves(a, b)

    asyncio.run(run())


# Reading nothing --------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["websocket pings", "pings", "calls", "long calls", "ends"])
def test_who_sends_without_end_and_reads_nothing_costs_little(pair, kind):
    async def run():
        async with pair() as (a, b), Attacker(b.port) as attacker:
            await attacker.link()
            await until(lambda: b.links.link(attacker.identity.node_id))
            transport = b.links.link(attacker.identity.node_id)._channel._transport
            link = b.links.link(attacker.identity.node_id)
            most = 0
            number = 1
            with contextlib.suppress(ConnectionError, TimeoutError):
                for _ in range(300):
                    if kind == "websocket pings":
                        data = ws_frame(b"x" * 125, ws.PING) * 500
                    else:
                        frames = []
                        for _ in range(100):
                            if kind == "pings":
                                frames.append(head(0, PING) + b"x" * 8)
                            elif kind == "ends":
                                frames += [head(number, MESSAGE) + request(), head(number, END)]
                            else:
                                times = 600 if kind == "long calls" else 1
                                asked = request("test.long", text="x" * 100, times=times)
                                frames.append(head(number, MESSAGE) + asked)
                            number += 2
                        data = b"".join(ws_frame(attacker.seal(frame)) for frame in frames)
                    attacker.writer.write(data)
                    async with asyncio.timeout(2):
                        await attacker.writer.drain()
                    most = max(most, transport.get_write_buffer_size() + link._streams.queued_bytes)
            assert most < 40 << 20
            if kind in {"websocket pings", "pings"}:
                assert most < 4 << 20
            await still_serves(a, b)

    asyncio.run(run())


def test_who_does_not_read_is_let_go_of_by_ticks(pair, fast, monkeypatch):
    """Ticks, not seconds: a loop that was held up has seen few of them."""
    monkeypatch.setattr(link_module, "STALL_S", 5.0)

    async def run():
        async with pair() as (_, b), Attacker(b.port) as attacker:
            await attacker.link()
            await until(lambda: b.links._all)
            link = next(iter(b.links._all))
            with contextlib.suppress(ConnectionError):
                for n in range(1, 1999, 2):
                    attacker.ask(n, request("test.long", text="x" * 100, times=500))
                    await attacker.writer.drain()
            await link.over
            assert link.why == "broke"

    asyncio.run(run())


@pytest.mark.parametrize("direction", ["there", "back", "both"])
def test_a_way_that_swallows_everything_is_noticed_at_both_ends(pair, fast, monkeypatch, direction):
    monkeypatch.setattr(pulse, "PING_AFTER_S", 0.1)
    monkeypatch.setattr(pulse, "SILENCE_S", 0.4)

    async def run():
        async with pair() as (a, b), Relay(b.port) as relay:
            a.addresses[b.node_id] = [f"http://127.0.0.1:{relay.port}"]
            there = await a.links.reach(b.node_id)
            assert await there.call("test.echo", {"text": "x"}) == {"text": "x"}
            back = b.links.link(a.node_id)
            relay.swallows = {"there", "back"} if direction == "both" else {direction}
            asked = asyncio.ensure_future(there.call("test.gate", {}))
            asked_back = asyncio.ensure_future(back.call("test.gate", {}))
            for call in (asked, asked_back):
                with pytest.raises(ConnectionLost):
                    await call
            for node, other in ((a, b), (b, a)):
                await until(lambda node=node: not node.links._all)
                assert [row["state"] for row in node.links.peers()] == ["suspect"], other

    asyncio.run(run())


# Room for others --------------------------------------------------------------------------


def test_who_proved_nothing_makes_nobody_leave(pair):
    """The house is full of idle strangers: one goes for a node that came in, and not before."""

    async def run():
        limits = Limits(stranger_links=1, stranger_handshakes_per_s=1e6, refused_per_s=1e6)
        async with pair(limits=limits, known=False) as (a, b), Attacker(b.port) as attacker:
            there = await a.links.reach(b.node_id)
            await until(lambda: b.links.link(a.node_id))
            attacker.raw(ws_frame(Initiator(attacker.identity, "main").first()))
            await attacker.read()
            attacker.raw(ws_frame(b"x" * 64))
            await attacker.hung_up()
            assert await there.call("test.echo", {"text": "still"}) == {"text": "still"}
            async with Attacker(b.port) as proven:
                await proven.link()
                await there.over
            assert there.why == "idle"

    asyncio.run(run())


def test_links_that_were_replaced_count_among_those_of_strangers(pair):
    """A node that comes again with an older epoch is not let go of its calls; nor let fill up."""

    async def run():
        limits = Limits(stranger_links=3, stranger_handshakes_per_s=1e6, refused_per_s=1e6)
        async with pair(limits=limits, known=False) as (_, b), contextlib.AsyncExitStack() as stack:
            identity = Identity.generate()
            for n in range(6):
                attacker = await stack.enter_async_context(Attacker(b.port, identity))
                try:
                    await attacker.link(msgspec.structs.replace(READY_NOW, epoch=10 - n))
                except HungUp:
                    break
                attacker.ask(1, request("test.gate"))
                await until(lambda n=n: len(b.links._all) == n + 1)
            assert n == 3
            b.gate.set()

    asyncio.run(run())


def test_silent_connections_push_out_no_node_that_proved_its_key(pair):
    async def run():
        limits = Limits(connections=8, refused_per_s=1e6, stranger_handshakes_per_s=1e6)
        async with pair(limits=limits, known=False) as (a, b):
            there = await a.links.reach(b.node_id)
            await until(lambda: b.links.link(a.node_id))
            silent = [await asyncio.open_connection("127.0.0.1", b.port) for _ in range(20)]
            for reader, _ in silent[:5]:
                with contextlib.suppress(ConnectionError):
                    assert await reader.read() == b""
            assert await there.call("test.echo", {"text": "still"}) == {"text": "still"}
            for _, writer in silent:
                writer.transport.abort()
                with contextlib.suppress(OSError):
                    await writer.wait_closed()

    asyncio.run(run())


@pytest.mark.parametrize("what", ["half messages", "unread answers"])
def test_what_strangers_have_us_hold_is_bounded_for_all_of_them(pair, what):
    async def run():
        limits = msgspec.structs.replace(OPEN, stranger_held_bytes=4 << 20)
        async with (
            pair(limits=limits, known=False) as (a, b),
            contextlib.AsyncExitStack() as stack,
        ):
            there = await a.links.reach(b.node_id)
            crowd = []
            for _ in range(8):
                one = await stack.enter_async_context(Attacker(b.port))
                crowd.append(
                    await one.link(Ready(credit=4096, frame=1024, message=1 << 22, streams=99))
                )
            await until(lambda: len(b.links._all) == 9)
            for n in range(1, 40, 2):
                for one in crowd:
                    with contextlib.suppress(ConnectionError):
                        if what == "half messages":
                            one.say(head(1, PIECE) + b"x" * 60_000)
                        else:
                            one.ask(n, request("test.long", text="x" * 100, times=600))
                        await one.writer.drain()
            await until(lambda: len(b.links._all) < 9)
            await until(lambda: sum(link.held_bytes for link in b.links._all) <= 4 << 20)
            assert await there.call("test.echo", {"text": "still"}) == {"text": "still"}

    asyncio.run(run())


def test_strangers_do_not_take_all_open_streams_of_a_node(pair):
    async def run():
        limits = msgspec.structs.replace(OPEN, open_streams=8)
        async with pair(limits=limits) as (a, b), Attacker(b.port) as stranger:
            b.known = False
            await stranger.link()
            for n in range(1, 41, 2):
                stranger.ask(n, request("test.flow", text="x"))
            refused = 0
            while refused < 16:  # the other four are half of what there is
                _, _, payload = await stranger.hear()
                refused += b"too many open streams" in payload
            b.known = True
            there = await a.links.reach(b.node_id)
            while not b.flows.empty():
                b.flows.get_nowait()
            flow = there.stream("test.flow", {"text": "in"})
            (await b.flows.get()).write(2, last=True)
            assert [piece async for piece in flow] == [{"text": "in"}]

    asyncio.run(run())


def test_whoever_sends_much_at_once_has_one_turn_after_the_other(pair, monkeypatch):
    """Work that takes longer than a turn ends the turn: others come in between."""
    monkeypatch.setattr(channel, "TURN_S", 0.0)

    async def run():
        async with pair() as (_, b), Attacker(b.port) as attacker:
            await attacker.link()
            loop = asyncio.get_running_loop()
            turns = [0]

            def turn() -> None:
                turns[0] += 1
                going[0] = loop.call_soon(turn)

            going = [loop.call_soon(turn)]
            seen = []
            monkeypatch.setattr(b.dispatcher, "read", noting(b.dispatcher.read, seen, turns))
            attacker.say(*(head(n, MESSAGE) + request() for n in range(1, 41, 2)))
            await attacker.answers(range(1, 41, 2))
            going[0].cancel()
            assert len(set(seen)) == 20

    asyncio.run(run())


def noting(original, seen, turns):
    def read(body):
        seen.append(turns[0])
        return original(body)

    return read


# What a node says of itself ---------------------------------------------------------------


@pytest.mark.parametrize("name", ["\x1b[2J", "Upper", "a b", "-x", "x" * 49, "x\n", "<b>"])
def test_a_name_that_is_no_name_ends_the_link(pair, name):
    async def run():
        async with pair() as (_, b), Attacker(b.port) as attacker:
            told = msgspec.json.decode(msgspec.json.encode(READY_NOW)) | {"name": name}
            await attacker.prove()
            attacker.say(head(0, READY) + msgspec.json.encode(told))
            await attacker.hung_up()
            assert b.links.peers() == []

    asyncio.run(run())


def test_behind_a_proxy_nobody_sends_us_to_our_own_machine(pair):
    """All links come from 127.0.0.1 there, and say nothing about where the other node is."""

    async def run():
        async with pair(wide=True) as (a, b):
            await a.links.reach(b.node_id)
            await until(lambda: b.links.link(a.node_id))
            assert b.links._book.get(a.node_id).urls == ()
            assert a.links._book.get(b.node_id).urls == (b.url,)

    asyncio.run(run())
