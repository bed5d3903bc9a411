"""What members of the network can do to others by lying. Their packets are really from them."""

from __future__ import annotations

import random

import pytest

from aios_nb.hub.gossip import LAN, Life
from aios_nb.hub.gossip.packets import (
    Ack,
    Alive,
    Ask,
    Faces,
    Have,
    Ping,
    Suspect,
    Want,
    Whole,
    pack,
    raw_id,
    unpack,
)
from aios_nb.hub.gossip.trust import FORGERIES
from aios_nb.hub.presence import State, declare
from aios_nb.identity import Identity
from aios_nb.records import Scope
from tests.hub.gossip.networks import Watched, network, state_of, states


def test_a_hundred_accusers_do_not_kill_a_live_node():
    town = network(104, pace=LAN)
    victim, judge, *accusers = town.up
    for _ in range(30):
        life = judge.gossip.members[victim.node_id].life
        claim = pack([Suspect(raw_id(victim.node_id), life, 60_000)])
        for accuser in accusers[:100]:
            town.inject(accuser, judge, claim)
        town.run(1)
    assert not town.times(Life.DEAD)
    assert state_of(victim, seen_by=judge) is Life.ALIVE


def test_accusers_do_not_kill_a_node_that_is_heard_through_others_only():
    town = network(12, pace=LAN)
    victim, judge, *accusers = town.up
    town.cut(victim, judge)
    for _ in range(40):
        life = judge.gossip.members[victim.node_id].life
        claim = pack([Suspect(raw_id(victim.node_id), life, 60_000)])
        for accuser in accusers[:4]:
            town.inject(accuser, judge, claim)
        town.run(1)
    assert not town.times(Life.DEAD)


def test_a_liar_cannot_keep_a_dead_node_alive():
    town = network(12, pace=LAN)
    dead, liar, *others = town.up
    town.kill(dead)
    honest = liar.gossip.received

    def lying(now, sender, packet):
        for message in unpack(packet) or ():
            if isinstance(message, Ask):
                town.inject(liar, town.nodes[sender], pack([Ack(message.seq)]))
                return
        honest(now, sender, packet)

    liar.gossip.received = lying
    assert town.run_until(
        lambda: all(state_of(dead, seen_by=node) is Life.DEAD for node in others), 120
    )


def test_doubts_do_not_make_a_node_flood_the_network():
    town = network(6, pace=LAN)
    victim, liar = town.node(0), town.node(1)
    for _ in range(100):
        said = victim.gossip.presence.said
        town.inject(liar, victim, pack([Ping(1, (said.epoch, said.incarnation))]))
        town.run(0.1)
    assert victim.gossip.presence.said.incarnation <= 3 + 10 / 5


def test_a_doubt_about_a_life_we_never_had_is_ignored():
    town = network(3, pace=LAN)
    victim, liar = town.node(0), town.node(1)
    town.inject(liar, victim, pack([Ping(1, (victim.epoch, 2**32 - 1)), Ping(2, (2**53 - 1, 0))]))
    town.run(1)
    assert victim.gossip.presence.said.incarnation == 0


def test_a_forged_presence_is_not_believed_and_its_teller_is_shunned():
    town = network(4, pace=LAN)
    here, liar, victim = town.node(0), town.node(1), town.node(2)
    true = here.gossip.members[victim.node_id].presence
    forger = Identity.generate()
    later = declare(
        forger, "main", epoch=victim.epoch + 1, incarnation=0, scope=Scope.GLOBAL, address=None
    )
    forged = true.pk + later.sig + later.payload
    for _ in range(FORGERIES + 3):
        town.inject(liar, here, pack([Alive(forged)]))
    town.run(1)
    assert here.gossip.members[victim.node_id].presence == true
    assert here.gossip.counts["forged"] == FORGERIES
    assert here.gossip.counts["from a forger"] == 3


def test_an_old_word_changes_nothing():
    town = network(4, pace=LAN)
    here, liar, victim = town.node(0), town.node(1), town.node(2)
    old = victim.gossip.presence
    town.restart(victim, here)
    town.run(3)
    known = here.gossip.members[victim.node_id]
    town.inject(liar, here, pack([Alive(old.to_bytes())]))
    town.run(1)
    assert here.gossip.members[victim.node_id] == known


def test_a_word_of_another_network_is_not_taken():
    town = network(2, pace=LAN)
    here, there = town.up
    stranger = declare(
        Identity.generate(), "other", epoch=1, incarnation=0, scope=Scope.GLOBAL, address=None
    )
    town.inject(there, here, pack([Alive(stranger.to_bytes())]))
    town.run(1)
    assert stranger.node_id not in here.gossip.members


def test_a_copy_of_our_key_in_a_later_life_is_told():
    town = network(3, pace=LAN)
    here, there = town.node(0), town.node(1)
    copy = declare(
        here.identity,
        "main",
        epoch=here.epoch + 5,
        incarnation=0,
        scope=Scope.GLOBAL,
        address=None,
    )
    town.inject(there, here, pack([Alive(copy.to_bytes())]))
    town.run(1)
    assert here.superseded_by == here.epoch + 5


def test_a_forged_or_swapped_record_is_not_taken():
    town = network(3, pace=LAN)
    here, liar, author = town.up
    true, other = author.sign("agent"), author.sign("other")
    handle, version = here.catalogue.handle(true.key), b"versions"
    content = bytearray(true.to_bytes())
    content[40] ^= 1
    town.inject(liar, here, pack([Whole(0, handle, version, bytes(content))]))
    town.inject(liar, here, pack([Whole(0, handle, version, other.to_bytes())]))
    town.run(2)
    assert here.catalogue.get(true.key) is None
    assert here.catalogue.get(other.key) == other, "genuine, under whatever name"


def test_things_of_a_narrow_node_never_reach_a_wider_one():
    town = Watched(pace=LAN)
    town.add(4, scope=Scope.LOOPBACK)
    town.add(3, scope=Scope.PRIVATE)
    town.add(3, scope=Scope.GLOBAL)
    narrow, middle, wide = town.up[:4], town.up[4:7], town.up[7:]
    for node in town.up[1:]:
        town.join(node, town.node(0))
    # Whoever joined sees the one it joined; nobody is to tell it of others that are narrower.
    seen = town.node(0)
    records = {node.node_id: town.publish(node, "agent") for node in town.up}
    town.run(60)
    for node in wide:
        assert not [one for one in narrow if one is not seen and one.node_id in node.gossip.members]
        assert not [one for one in middle if one.node_id in node.gossip.members]
        assert not [
            one for one in (*narrow, *middle) if node.catalogue.get(records[one.node_id].key)
        ]
    for node in narrow:
        living = {one for one, state in states(node).items() if state is Life.ALIVE}
        assert living == set(town.nodes) - {node.node_id}, "the others are heard through the first"
        assert all(node.catalogue.get(record.key) == record for record in records.values())


def test_a_word_that_means_another_place_over_there_is_not_taken():
    town = Watched(pace=LAN)
    town.add(2, scope=Scope.GLOBAL)
    town.join_all()
    here, there = town.up
    narrow = declare(
        Identity.generate(),
        "main",
        epoch=1,
        incarnation=0,
        scope=Scope.LOOPBACK,
        address=("127.0.0.1", 22),
    )
    town.inject(there, here, pack([Alive(narrow.to_bytes())]))
    town.run(1)
    assert narrow.node_id not in here.gossip.members
    assert here.gossip.counts["out of scope"] == 1


@pytest.mark.parametrize("seed", range(4))
def test_junk_never_raises_and_costs_no_memory(seed):
    town = network(3, pace=LAN)
    here, there = town.node(0), town.node(1)
    rng = random.Random(seed)
    model = pack(
        [Ping(1), Faces(3, b"", b"\xff" * 20, ((b"x" * 20, 1, 1),)), Have(((b"h" * 8, b"v" * 8),))]
    )
    for number in range(1500):
        packet = bytearray(model if number % 2 else rng.randbytes(rng.randrange(1, 200)))
        for _ in range(rng.randrange(1, 4)):
            packet[rng.randrange(len(packet))] = rng.randrange(256)
        here.gossip.received(here.now(), there.node_id, bytes(packet))
    for odd in (b"", b"\x91" * 1100, b"\x00" * 1201, pack([Ping(1)]) * 2, b"\xdd\xff\xff\xff\xff"):
        here.gossip.received(here.now(), there.node_id, odd)
    assert here.gossip.counts["junk"] > 500
    assert len(here.gossip.members) == 2
    assert len(here.gossip._spreader.wanting) <= 2048
    here.gossip.take()
    here.gossip.received(here.now(), there.node_id, pack([Ping(77)]))
    assert any(b"\x4d" in getattr(one, "packet", b"") for one in here.gossip.take())


def test_a_stranger_is_not_heard():
    town = network(3, pace=LAN)
    here = town.node(0)
    here.gossip.received(here.now(), Identity.generate().node_id, pack([Ping(1)]))
    assert here.gossip.counts["of a stranger"] == 1
    assert here.gossip.take() == []


def test_answers_are_bounded_however_much_is_asked():
    town = network(2, pace=LAN)
    here, there = town.up
    records = [town.publish(here, f"agent{number}", "words " * 60) for number in range(60)]
    town.run(20)
    before = here.sent_bytes
    handles = tuple(here.catalogue.handle(record.key) for record in records)
    for _ in range(100):
        town.inject(there, here, pack([Want(handles)]))
    town.run(1)
    assert here.sent_bytes - before < 200_000


def test_left_is_believed_of_its_own_node_only():
    town = network(3, pace=LAN)
    here, liar, victim = town.up
    fake = declare(
        liar.identity,
        "main",
        epoch=victim.epoch,
        incarnation=9,
        scope=Scope.GLOBAL,
        address=None,
        state=State.LEFT,
    )
    town.inject(liar, here, pack([Alive(victim.identity.public_key + fake.sig + fake.payload)]))
    town.run(1)
    assert state_of(victim, seen_by=here) is Life.ALIVE
