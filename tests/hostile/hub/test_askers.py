"""A member that asks and tells without end: what it gets, and what others still get."""

from __future__ import annotations

import random

import pytest

from aios_nb.hub.gossip import LAN, PACKET_LIMIT_BYTES, Send
from aios_nb.hub.gossip.packets import (
    Ack,
    Alive,
    Ask,
    Faces,
    Have,
    Listing,
    MemberSums,
    Message,
    Missing,
    Nack,
    Ping,
    RecordSums,
    Roots,
    Suspect,
    Want,
    encode,
    pack,
    raw_id,
    unpack,
)
from aios_nb.hub.gossip.trust import ANSWER_BYTES, ANSWER_BYTES_PER_S, PACKETS, PACKETS_PER_S
from aios_nb.hub.gossip.wanting import Wanting
from aios_nb.sim.virtual import VirtualNode
from tests.hub.gossip.networks import Watched, network, state_of

SECONDS = 10
PACKETS_A_SECOND = 300
ALL_ZERO, ALL_ONE = b"\0" * 1024, b"\xff" * 1024


def _town() -> Watched:
    town = network(12, pace=LAN)
    for number in range(30):
        town.publish(town.node(0), f"agent{number}", "words " * 30)
    town.run(15)
    return town


def _questions(here: VirtualNode, other: VirtualNode) -> dict[str, Message]:
    """Of each kind of message one that asks for much."""
    said = here.gossip.presence.said
    handles = [handle for handle, _ in here.catalogue.listing(range(128), here.scope)] or [
        b"handles."
    ]
    target = raw_id(other.node_id)
    return {
        "pings": Ping(1),
        "old doubts": Ping(1, (said.epoch - 1, 0)),
        "acks that doubt": Ack(1, (said.epoch - 1, 0)),
        "probes for others": Ask(1, target),
        "old claims": Suspect(target, (1, 0), 9),
        "new claims": Suspect(target, other.gossip.members[here.node_id].life, 9),
        "roots": Roots(b"\1" * 8, b"\1" * 8),
        "members, all zero": MemberSums(ALL_ZERO),
        "members, all one": MemberSums(ALL_ONE),
        "records, all zero": RecordSums(ALL_ZERO),
        "records, all one": RecordSums(ALL_ONE),
        "empty faces": Faces(3, b"", b"\xff" * 20, ()),
        "empty listings": Listing(handles[0][0] >> 1, b"", b"\xff" * 8, ()),
        "missing, always the same": Missing((target,) * 50),
        "wants": Want(tuple(handles)),
        "haves of nothing": Have(tuple((bytes([n]) * 8, b"v" * 8) for n in range(50))),
        "old words": Alive(other.gossip.presence.to_bytes()),
        "nacks": Nack(3),
    }


def _full(message: Message) -> bytes:
    """A packet with as many of them as there is room for."""
    return pack([message] * max(1, (PACKET_LIMIT_BYTES - 3) // len(encode(message))))


@pytest.mark.parametrize("what", _questions(*network(2, pace=LAN).up))
def test_no_question_gets_more_than_its_share_of_bytes(what):
    town = _town()
    here, liar, other = town.node(0), town.node(1), town.node(2)
    packet = _full(_questions(here, other)[what])
    asked = answered = 0
    start, step = here.now(), 1 / PACKETS_A_SECOND
    for number in range(SECONDS * PACKETS_A_SECOND):
        here.gossip.received(start + number * step, liar.node_id, packet)
        asked += len(packet)
        answered += sum(
            len(one.packet)
            for one in here.gossip.take()
            if isinstance(one, Send) and one.to == liar.node_id
        )
    print(f"\n{what}: {answered / asked:.2f} bytes for a byte, {answered / SECONDS:.0f} B/s")  # noqa: T201
    # News that it would have been told anyway comes on top of what it made us say.
    own_rounds = SECONDS / LAN.gossip_s * PACKET_LIMIT_BYTES
    assert answered <= ANSWER_BYTES + SECONDS * ANSWER_BYTES_PER_S + own_rounds


def test_one_that_floods_is_not_read_but_still_alive():
    town = _town()
    here, liar = town.node(0), town.node(1)
    for _ in range(PACKETS + 5 * PACKETS_PER_S):
        here.gossip.received(here.now(), liar.node_id, pack([Nack(1)]))
    assert here.gossip.counts["too many"] == 5 * PACKETS_PER_S
    town.run(30)
    assert state_of(liar, seen_by=here).value == "alive"


def test_others_are_answered_while_one_asks_for_everything():
    town = _town()
    here, liar, friend = town.node(0), town.node(1), town.node(2)
    for question in _questions(here, friend).values():
        for _ in range(40):
            here.gossip.received(here.now(), liar.node_id, _full(question))
    here.gossip.take()
    here.gossip.received(here.now(), friend.node_id, pack([Ping(77), Roots(b"\1" * 8, b"\1" * 8)]))
    answers = [
        message
        for one in here.gossip.take()
        if isinstance(one, Send) and one.to == friend.node_id
        for message in unpack(one.packet) or ()
    ]
    assert Ack(77) in answers
    assert any(isinstance(message, RecordSums) for message in answers)


def test_one_asker_does_not_use_up_the_probes_for_others():
    town = network(6, pace=LAN)
    here, liar, friend, slow = (town.node(number) for number in range(4))
    town.kill(slow)
    ask = pack([Ask(number, raw_id(slow.node_id)) for number in range(30)])
    for _ in range(10):
        here.gossip.received(here.now(), liar.node_id, ask)
    here.gossip.take()
    here.gossip.received(here.now(), friend.node_id, pack([Ask(5, raw_id(slow.node_id))]))
    sent = {one.to: unpack(one.packet) for one in here.gossip.take() if isinstance(one, Send)}
    assert friend.node_id not in sent, "it is not told no before anyone tried"
    assert any(isinstance(message, Ping) for message in sent[slow.node_id])


def test_those_who_say_they_have_a_record_do_not_keep_out_one_who_has_it():
    """They came first and never send it; who has it says so again and again, as they do."""
    wanting = Wanting(0.1, random.Random(3))
    liars = [f"liar{number}" for number in range(20)]
    assert wanting.add(0.0, b"handle", liars[0])
    for liar in liars:
        wanting.add(0.0, b"handle", liar)
    asked: list[str] = []
    now = 0.0
    while len(wanting):
        wanting.add(now, b"handle", "author")
        now = wanting.next_at
        asked += [source for _, source in wanting.due(now)]
    assert "author" in asked
