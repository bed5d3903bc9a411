"""Nodes that mean well: they meet, lose each other, and find each other again."""

from __future__ import annotations

import asyncio
import logging

import pytest

from aios_nb.hub.post import BODY_LIMIT_BYTES, Kind
from aios_nb.hub.post.datagram import raw_of
from aios_nb.hub.post.greetings import QUEUE_MOST
from aios_nb.hub.post.tokens import TOKEN_S
from aios_nb.hub.presence import State
from aios_nb.identity import Identity
from tests.clock import Clock
from tests.hub.post.offices import office, run, town, until, word


def test_two_nodes_meet_and_write_to_each_other():
    async def scene():
        async with town() as stack:
            a, b = await office(stack), await office(stack)
            a.post.know(b.said)
            assert not a.post.proven(b.node_id)
            assert a.write(b, b"one")
            assert a.write(b, b"two", Kind.DHT)
            await until(lambda: len(b.letters) == 2)
            assert b.letters == [
                (a.node_id, Kind.GOSSIP, b"one"),
                (a.node_id, Kind.DHT, b"two"),
            ]
            # It was never told of the first, and can answer it.
            assert b.write(a, b"three")
            await until(lambda: a.bodies() == [b"three"])
            assert (a.met, b.met) == ([b.said], [a.said])
            assert a.post.proven(b.node_id)
            assert b.post.proven(a.node_id)
            assert 0 < a.post.rtt(b.node_id) < 30
            assert 0 < b.post.rtt(a.node_id) < 30
            assert a.post.rtt(Identity.generate().node_id) is None
            assert a.post.counts == b.post.counts == {}
            assert a.post.sent_bytes == b.post.received_bytes > 0

    run(scene)


def test_both_may_greet_at_once():
    async def scene():
        async with town() as stack:
            a, b = await office(stack), await office(stack)
            a.post.know(b.said)
            b.post.know(a.said)
            a.write(b, b"from a")
            b.write(a, b"from b")
            await until(lambda: a.letters and b.letters)
            assert (a.bodies(), b.bodies()) == ([b"from b"], [b"from a"])

    run(scene)


def test_there_is_no_way_to_one_who_is_unknown_and_none_for_what_is_too_long():
    async def scene():
        async with town() as stack:
            a, b = await office(stack), await office(stack)
            assert not a.write(b, b"hello")
            a.post.know(b.said)
            assert not a.write(b, b"x" * (BODY_LIMIT_BYTES + 1))
            assert a.write(b, b"x" * BODY_LIMIT_BYTES)
            await until(lambda: b.bodies() == [b"x" * BODY_LIMIT_BYTES])
            a.post.forget(b.node_id)
            assert not a.write(b, b"hello")
            assert not a.post.proven(b.node_id)
            with pytest.raises(ValueError, match="HELLO"):
                a.post.on(Kind.HELLO, lambda *_: None)
            with pytest.raises(ValueError, match="AGAIN"):
                a.post.send(b.node_id, Kind.AGAIN, b"")

    run(scene)


def test_only_a_few_letters_wait_for_a_welcome():
    async def scene():
        async with town() as stack:
            a, b = await office(stack), await office(stack)
            a.post.know(b.said)
            taken = [a.write(b, b"%d" % n) for n in range(QUEUE_MOST + 3)]
            assert taken == [True] * QUEUE_MOST + [False] * 3
            await until(lambda: len(b.letters) == QUEUE_MOST)

    run(scene)


def test_a_lost_hello_is_said_again():
    async def scene():
        async with town() as stack:
            a, gone = await office(stack), await office(stack)
            await gone.post.close()
            a.post.know(gone.said)
            assert a.write(gone, b"are you up")
            back = await office(stack, "127.0.0.1", gone.port, identity=gone.identity)
            assert back.address == gone.address
            await until(lambda: back.bodies() == [b"are you up"])

    run(scene)


def test_one_who_does_not_answer_is_left_alone_for_a_while():
    async def scene():
        async with town() as stack:
            clock = Clock()
            a, gone = await office(stack, clock=clock), await office(stack)
            await gone.post.close()
            a.post.know(gone.said)
            assert a.write(gone, b"are you up")

            def given_up() -> bool:
                clock.now += 0.5
                return a.post.counts["unanswered"] == 1

            await until(given_up)
            sent = a.post.sent_bytes
            assert not a.write(gone, b"and now")
            assert a.post.sent_bytes == sent
            clock.now += 10
            assert a.write(gone, b"and now")
            assert a.post.sent_bytes > sent

    run(scene)


@pytest.mark.parametrize("writer", ["who stayed", "who restarted"])
def test_a_restart_is_noticed_by_either_side(writer):
    async def scene():
        async with town() as stack:
            a, b = await office(stack), await office(stack)
            a.post.know(b.said)
            await a.reaches(b)
            await b.reaches(a)
            await b.post.close()
            again = await office(stack, "127.0.0.1", b.port, identity=b.identity, epoch=2)
            assert again.address == b.address
            if writer == "who stayed":
                await a.reaches(again, b"still there")
                assert again.post.counts["token"] >= 1
            else:
                again.post.know(a.said)
                await again.reaches(a, b"back")
                assert again.post.counts == {}
            assert again.said in a.met
            await again.reaches(a, b"both")
            await a.reaches(again, b"ways")

    run(scene)


def test_a_lost_proof_costs_some_letters_and_not_the_way():
    async def scene():
        async with town() as stack:
            a, b = await office(stack), await office(stack)
            a.post.know(b.said)
            send = a.post._udp.send
            lost = []

            def lossy(data, to):
                if data[0] == Kind.PROOF and not lost:
                    lost.append(data)
                    return True
                return send(data, to)

            a.post._udp.send = lossy
            await a.reaches(b)
            assert lost
            assert b.post.counts["token"] >= 1

    run(scene)


def test_tokens_are_renewed_before_they_end_and_nothing_waits_for_it():
    async def scene():
        async with town() as stack:
            clock = Clock()
            a, b = await office(stack, clock=clock), await office(stack, clock=clock)
            a.post.know(b.said)
            await a.reaches(b)
            for n in range(12):
                clock.now += TOKEN_S * 0.9
                sender, other = (a, b) if n % 3 else (b, a)
                assert sender.write(other, b"%d" % n)
                await until(lambda other=other, n=n: b"%d" % n in other.bodies())
                for one, two in ((a, b), (b, a)):
                    session = one.post._sessions.get(raw_of(two.node_id))
                    await until(lambda session=session: not session.wants_renewal(clock.now))
                assert sender.post.proven(other.node_id)
            assert a.post.counts["token"] == b.post.counts["token"] == 0

    run(scene)


def test_after_a_long_silence_they_greet_again():
    async def scene():
        async with town() as stack:
            clock = Clock()
            a, b = await office(stack, clock=clock), await office(stack, clock=clock)
            a.post.know(b.said)
            await a.reaches(b)
            clock.now += 10 * TOKEN_S
            assert not a.post.proven(b.node_id)
            await b.reaches(a, b"good morning")
            await a.reaches(b, b"good morning")

    run(scene)


def test_a_node_that_moved_is_found_at_its_new_address():
    async def scene():
        async with town() as stack:
            a, b = await office(stack), await office(stack)
            a.post.know(b.said)
            await a.reaches(b)
            moved = await office(stack, identity=b.identity, epoch=2)
            a.post.know(moved.said)
            assert not a.post.proven(b.node_id)
            await a.reaches(moved, b"new house")
            a.post.know(b.said)  # an old word changes nothing
            assert a.write(moved, b"still here")
            await until(lambda: b"still here" in moved.bodies())
            assert b"still here" not in b.bodies()

    run(scene)


def test_a_node_that_left_is_not_written_to_until_its_next_life():
    async def scene():
        async with town() as stack:
            a, b = await office(stack), await office(stack)
            a.post.know(b.said)
            await a.reaches(b)
            a.post.know(word(b.identity, b.address, state=State.LEFT))
            assert not a.write(b, b"come back")
            b.post.know(a.said)
            b.write(a, b"from the grave")
            await until(lambda: a.post.counts["stale"])
            assert not a.post.proven(b.node_id)
            a.post.know(word(b.identity, b.address, epoch=2))
            b.said = word(b.identity, b.address, epoch=2)
            await a.reaches(b, b"welcome back")
            assert b"from the grave" not in a.bodies()

    run(scene)


def test_a_word_that_is_overtaken_on_its_way_is_still_that_nodes():
    async def scene():
        async with town() as stack:
            a, b = await office(stack), await office(stack)
            b.post.know(a.said)
            a.post.know(word(b.identity, b.address, incarnation=7))
            await b.reaches(a)

    run(scene)


def test_a_taken_port_is_no_reason_not_to_open():
    async def scene():
        async with town() as stack:
            a = await office(stack)
            b = await office(stack, "127.0.0.1", a.port)
            assert b.port != a.port
            a.post.know(b.said)
            await a.reaches(b)

    run(scene)


def test_a_receiver_that_fails_is_counted_and_named_once(caplog):
    async def scene():
        async with town() as stack:
            a, b = await office(stack), await office(stack)

            def clumsy(sender: str, body: bytes) -> None:
                raise KeyError(body)

            b.post.on(Kind.DHT, clumsy)
            a.post.know(b.said)
            for _ in range(5):
                a.write(b, b"x", Kind.DHT)
            await until(lambda: b.post.counts["receiver"] == 5)
            await a.reaches(b)

    with caplog.at_level(logging.DEBUG, logger="aios_nb"):
        run(scene)
    assert len(caplog.records) == 1


def test_a_closed_post_sends_and_hears_nothing():
    async def scene():
        async with town() as stack:
            a, b = await office(stack), await office(stack)
            a.post.know(b.said)
            await a.reaches(b)
            await a.post.close()
            await a.post.close()
            assert not a.write(b, b"late")
            b.write(a, b"late")
            await asyncio.sleep(0)
            assert a.letters == []

    run(scene)
