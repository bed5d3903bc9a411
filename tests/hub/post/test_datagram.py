"""What is on the wire, byte for byte, against the description of it."""

from __future__ import annotations

import asyncio

import pytest

from aios_nb.hub.post.datagram import Kind, head_of, mark_of, raw_of, text_of
from aios_nb.identity import Identity
from tests.hub.post import by_hand
from tests.hub.post.offices import office, stranger, town, until, word

SEED = bytes(range(32))
ID_HEX = "56475aa75463474c0285df5dbf2bcab73da65135"
"""The first 20 bytes of the SHA-256 of that seed's public key."""


@pytest.mark.parametrize(("net", "mark"), [("main", "b8d07efd"), ("lab", "cb154624")])
def test_a_network_has_its_mark(net, mark):
    assert mark_of(net).hex() == mark


def test_a_head_is_kind_network_sender_and_token():
    raw = raw_of(Identity.from_seed(SEED).node_id)
    assert raw.hex() == ID_HEX
    assert text_of(raw) == Identity.from_seed(SEED).node_id
    head = head_of(Kind.DHT, mark_of("main"), raw, by_hand.NONCE)
    assert head.hex() == "03" + "b8d07efd" + ID_HEX + "0102030405060708"


def test_a_greeting_written_by_hand_opens_the_way_in_both_directions():
    async def scene():
        async with town() as stack:
            here, other = await office(stack), stranger(stack)
            key = Identity.from_seed(SEED)
            said = word(key, other.address)
            me = bytes.fromhex(ID_HEX)

            other.send(by_hand.hello(key, said), here)
            welcome = await other.answer()
            assert welcome[:33] == by_hand.datagram(1, by_hand.raw(here.identity), by_hand.NONCE)
            token, presence = welcome[33:41], welcome[41:]
            assert presence == here.said.to_bytes()

            ours = b"for-you!"
            other.send(by_hand.datagram(5, me, token, ours + said.to_bytes()), here)
            other.send(by_hand.datagram(2, me, token, b"a rumour"), here)
            other.send(by_hand.datagram(3, me, token, b"a lookup"), here)
            await until(lambda: len(here.letters) == 2)
            assert here.letters == [
                (key.node_id, Kind.GOSSIP, b"a rumour"),
                (key.node_id, Kind.DHT, b"a lookup"),
            ]
            assert here.met == [said]

            assert here.post.send(key.node_id, Kind.DHT, b"found")
            answer = await other.answer()
            assert answer == by_hand.datagram(3, by_hand.raw(here.identity), ours, b"found")

    asyncio.run(scene())


def test_a_node_greets_first_and_sends_what_waited_after_its_proof():
    async def scene():
        async with town() as stack:
            here, other = await office(stack), stranger(stack)
            key = Identity.from_seed(SEED)
            said = word(key, other.address)
            here.post.know(said)
            assert here.post.send(key.node_id, Kind.GOSSIP, b"news")
            sender = by_hand.raw(here.identity)

            hello = await other.answer()
            nonce = hello[25:33]
            assert hello == by_hand.datagram(0, sender, nonce, here.said.to_bytes())
            welcome = by_hand.datagram(1, by_hand.raw(key), nonce, b"a-token!" + said.to_bytes())
            other.send(welcome, here)
            proof = await other.answer()
            assert proof[:33] == by_hand.datagram(5, sender, b"a-token!")
            assert proof[41:] == here.said.to_bytes()
            assert await other.answer() == by_hand.datagram(2, sender, b"a-token!", b"news")

            other.send(by_hand.datagram(2, by_hand.raw(key), proof[33:41], b"thanks"), here)
            await until(lambda: here.bodies() == [b"thanks"])

    asyncio.run(scene())


def test_a_token_that_is_not_known_is_answered_by_again_which_names_it():
    async def scene():
        async with town() as stack:
            here, other = await office(stack), stranger(stack)
            other.send(by_hand.datagram(2, b"s" * 20, b"old-tokn", b"hello?"), here)
            again = await other.answer()
            assert again == by_hand.datagram(4, by_hand.raw(here.identity), b"old-tokn")
            assert here.letters == []

    asyncio.run(scene())
