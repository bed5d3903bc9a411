"""Strangers who claim to be others, or to be where others are."""

from __future__ import annotations

import asyncio
import os
import time

from aios_nb.hub.post import Kind
from aios_nb.hub.post.budgets import PORT_HELLOS
from aios_nb.hub.post.datagram import raw_of
from aios_nb.hub.presence import State
from aios_nb.identity import Identity
from aios_nb.records import Scope
from tests.clock import Clock
from tests.hub.post import by_hand
from tests.hub.post.offices import (
    forged,
    office,
    run,
    stranger,
    town,
    until,
    word,
)


def test_a_word_on_one_address_is_not_taken_from_another():
    async def scene():
        async with town() as stack:
            here, honest, thief = await office(stack), await office(stack), stranger(stack)
            await thief.told(by_hand.hello(honest.identity, honest.said), here)
            assert here.post.counts == {"address": 1, "size": 1}
            assert thief.answers == []

            # With a token of its own, it still cannot be the other one.
            own = Identity.generate()
            own_word = word(own, thief.address)
            token = await by_hand.token_for(thief, own, own_word, here)
            stolen = os.urandom(8) + honest.said.to_bytes()
            for sender in (own, honest.identity):
                await thief.told(by_hand.datagram(5, by_hand.raw(sender), token, stolen), here)
                await thief.told(by_hand.datagram(2, by_hand.raw(sender), token, b"boo"), here)
            assert here.letters == []
            assert here.met == []
            assert not here.post.proven(honest.node_id)
            assert not here.post.proven(own.node_id)

    run(scene)


def test_nobody_takes_anothers_name_with_a_word_of_its_own():
    async def scene():
        async with town() as stack:
            here, honest, thief = await office(stack), await office(stack), stranger(stack)
            own = Identity.generate()
            own_word = word(own, thief.address).to_bytes()
            name = by_hand.raw(honest.identity)
            await thief.told(by_hand.datagram(0, name, by_hand.NONCE, own_word), here)
            assert thief.answers == []
            # And if it had a token for that name.
            token = here.post._meeting.tokens.issue(thief.address, name, time.monotonic())
            await thief.told(by_hand.datagram(5, name, token, os.urandom(8) + own_word), here)
            await thief.told(by_hand.datagram(2, name, token, b"it is me"), here)
            assert here.post.counts["junk"] == 2
            assert (here.letters, here.met) == ([], [])

    run(scene)


def test_an_address_is_not_proven_by_a_guess():
    async def scene():
        async with town() as stack:
            here, liar = await office(stack), stranger(stack)
            key = Identity.generate()
            body = os.urandom(8) + word(key, liar.address).to_bytes()
            for token in (bytes(8), by_hand.NONCE, os.urandom(8)):
                await liar.told(by_hand.datagram(5, by_hand.raw(key), token, body), here)
                await liar.told(by_hand.datagram(2, by_hand.raw(key), token, b"boo"), here)
            assert {answer[0] for answer in liar.answers} == {by_hand.AGAIN}
            assert (here.letters, here.met) == ([], [])
            assert not here.post.proven(key.node_id)

            # Nor does a guess speak for one who is there: anyone can write his address.
            liar.answers.clear()
            await by_hand.introduced(liar, key, word(key, liar.address), here)
            assert here.post.proven(key.node_id)
            await liar.told(by_hand.datagram(2, by_hand.raw(key), os.urandom(8), b"boo"), here)
            assert here.letters == []

    run(scene)


def test_a_forged_word_is_not_taken_even_from_its_own_address():
    async def scene():
        async with town() as stack:
            here, thief = await office(stack), stranger(stack)
            victim = Identity.generate()
            token = await by_hand.introduced(thief, victim, forged(victim, thief), here)
            await thief.told(by_hand.datagram(2, by_hand.raw(victim), token, b"boo"), here)
            assert here.letters == []
            assert here.met == []
            assert here.post.counts["forged"] == 1

    run(scene)


def test_what_was_overheard_is_worth_nothing_elsewhere():
    async def scene():
        async with town() as stack:
            here, honest, thief = await office(stack), await office(stack), stranger(stack)
            heard: list[bytes] = []
            arrived = here.post._udp._receive

            def overhear(data, source):
                heard.append(data)
                arrived(data, source)

            here.post._udp._receive = overhear
            honest.post.know(here.said)
            await honest.reaches(here)
            here.post._udp._receive = arrived
            assert {data[0] for data in heard} == {by_hand.HELLO, by_hand.PROOF, by_hand.GOSSIP}
            await thief.told(b"", here)
            letters, met = list(here.letters), list(here.met)
            for data in heard * 3:
                await thief.told(data, here)
            assert (here.letters, here.met) == (letters, met)
            assert {data[0] for data in thief.answers} <= {by_hand.AGAIN}
            # And those agains do not reach the honest one's session.
            await honest.reaches(here, b"undisturbed")

    run(scene)


def test_nobody_else_can_make_a_node_greet_again():
    async def scene():
        async with town() as stack:
            a, b, thief = await office(stack), await office(stack), stranger(stack)
            a.post.know(b.said)
            await a.reaches(b)
            token = a.post._sessions.get(raw_of(b.node_id)).heads[2][25:33]
            for guess in (os.urandom(8), token):
                await thief.told(by_hand.datagram(4, by_hand.raw(b.identity), guess), a)
            # From the right address, with a guess.
            a.post._arrived(by_hand.datagram(4, by_hand.raw(b.identity), b"guessing"), b.address)
            assert a.post.counts["unasked"] == 3
            assert a.post.proven(b.node_id)

    run(scene)


def test_a_welcome_counts_only_from_where_the_hello_went():
    async def scene():
        async with town() as stack:
            here, asked, other = await office(stack), stranger(stack), stranger(stack)
            key, helper = Identity.generate(), Identity.generate()
            here.post.know(word(key, asked.address))
            here.post.send(key.node_id, Kind.GOSSIP, b"news")
            nonce = (await asked.answer())[25:33]
            for who, at in ((helper, other), (key, other), (key, asked)):
                body = b"a-token!" + word(who, at.address).to_bytes()
                await other.told(by_hand.datagram(1, by_hand.raw(who), nonce, body), here)
            assert here.post.counts["unasked"] == 3
            assert other.answers == []
            assert here.met == []

    run(scene)


def test_one_that_says_again_to_everything_is_not_greeted_without_end():
    async def scene():
        async with town() as stack:
            clock = Clock()
            here, other = await office(stack, clock=clock), stranger(stack)
            key = Identity.generate()
            said, me = word(key, other.address), by_hand.raw(key)
            await by_hand.introduced(other, key, said, here)
            hellos = 0
            assert here.post.send(key.node_id, Kind.GOSSIP, b"news")
            quiet = 0
            while quiet < 20:
                other.read()
                quiet = 0 if other.answers else quiet + 1
                for data in other.answers:
                    hellos += data[0] == by_hand.HELLO
                    if data[0] == by_hand.HELLO:
                        body = b"a-token!" + said.to_bytes()
                        other.send(by_hand.datagram(1, me, data[25:33], body), here)
                    else:
                        other.send(by_hand.datagram(4, me, data[25:33]), here)
                other.answers.clear()
                await asyncio.sleep(0.001)
            assert 1 <= hellos <= 2

    run(scene)


# Victims -----------------------------------------------------------------------------------


def test_a_thousand_nodes_that_name_one_victim_make_no_flood():
    async def scene():
        async with town() as stack:
            clock = Clock()
            here, victim = await office(stack, clock=clock), stranger(stack)
            liars = [Identity.generate() for _ in range(1000)]
            for liar in liars:
                here.post.know(word(liar, victim.address))
            rate, burst = PORT_HELLOS[Scope.LOOPBACK]
            seconds = 0
            for _ in range(10):
                for liar in liars:
                    here.post.send(liar.node_id, Kind.GOSSIP, b"are you there")
                here.post._look_after_greetings()
                await asyncio.sleep(0)
                victim.read()
                assert 0 < len(victim.answers) <= burst + rate * seconds
                clock.now += 7
                seconds += 7
            assert here.post.counts["budget"] > 5000
            assert len(here.post._meeting.greetings) <= burst + rate * seconds
            assert {data[0] for data in victim.answers} == {by_hand.HELLO}

    run(scene)


def test_a_node_is_met_although_liars_name_its_address():
    async def scene():
        async with town() as stack:
            here, honest = await office(stack, clock=Clock()), await office(stack)
            liars = [Identity.generate() for _ in range(100)]
            for liar in liars:
                here.post.know(word(liar, honest.address))
                here.post.send(liar.node_id, Kind.GOSSIP, b"for the liar")
            here.post.know(honest.said)
            await here.reaches(honest, b"for you")
            assert set(honest.bodies()) == {b"for you"}
            assert not any(here.post.proven(liar.node_id) for liar in liars)

    run(scene)


def test_a_forged_word_is_never_greeted_and_displaces_nothing():
    async def scene():
        async with town() as stack:
            here, b, victim = await office(stack), await office(stack), stranger(stack)
            here.post.know(forged(b.identity, victim, epoch=10**9))
            assert not here.write(b, b"first")
            here.post.know(b.said)
            await here.reaches(b, b"second")
            here.post.know(forged(b.identity, victim, epoch=10**10))
            here.post.know(forged(b.identity, victim, epoch=10**10, state=State.LEFT))
            assert here.write(b, b"third")
            await until(lambda: b"third" in b.bodies())
            assert victim.read() == []

    run(scene)
