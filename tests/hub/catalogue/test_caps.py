from __future__ import annotations

import itertools
import tracemalloc
from collections import Counter
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aios_nb import records
from aios_nb.config import Limits
from aios_nb.hub.catalogue import Offered, version_of
from aios_nb.hub.catalogue.refusals import REMEMBERED_MAX
from aios_nb.records import AgentRecord, Scope, Signed
from tests.hub.catalogue.writers import ALICE, BOB, EPOCH, NOW, OWN, Watched, check, writer

MOST = Limits().agents_per_publisher


def put(watched: Watched, *several: Signed) -> list[Offered]:
    return [watched.catalogue.offer(signed.to_bytes()) for signed in several]


def sizes(watched: Watched) -> Counter[str]:
    """How many agents each node has here."""
    return Counter(
        signed.record.node
        for signed in watched.mirror.values()
        if isinstance(signed.record, AgentRecord)
    )


def tight(**limits: int) -> Limits:
    return Limits(**({"records": 10, "agents_per_publisher": 4} | limits))


# One publisher


def test_one_node_has_64_agents_here_and_its_own_records_beside():
    watched = Watched()
    put(watched, *(ALICE.agent(f"a{number}") for number in range(MOST)))
    assert sizes(watched) == {ALICE.id: 64}
    put(watched, *(ALICE.agent(f"b{number}") for number in range(MOST)))
    assert sizes(watched) == {ALICE.id: 64}
    assert put(watched, *(ALICE.node(scope=scope) for scope in Scope)) == [Offered.NEW] * 3
    assert put(watched, BOB.agent()) == [Offered.NEW]
    assert not watched.catalogue.crowded  # the whole has room
    check(watched)


def test_one_that_the_owner_allows_may_have_more():
    watched = Watched(allowed=lambda node: node == ALICE.id)
    agents = [ALICE.agent(f"a{number}") for number in range(MOST + 10)]
    assert put(watched, *agents) == [Offered.NEW] * len(agents)
    bobs = [BOB.agent(f"a{number}") for number in range(MOST + 10)]
    put(watched, *bobs)
    assert sizes(watched) == {ALICE.id: MOST + 10, BOB.id: MOST}


def test_one_that_is_not_allowed_any_more_loses_what_is_too_much():
    allowed = {ALICE.id}
    watched = Watched(allowed=allowed.__contains__)
    put(watched, *(ALICE.agent(f"a{number}") for number in range(MOST + 10)))
    allowed.clear()
    watched.catalogue.node_changed(ALICE.id)
    assert sizes(watched) == {ALICE.id: MOST}
    check(watched)


def test_our_own_agents_are_not_capped():
    watched = Watched(tight())
    for number in range(100):
        assert watched.catalogue.own(OWN.agent(f"a{number}")) is Offered.NEW
    put(watched, *(writer(number).agent() for number in range(10, 40)))
    assert sizes(watched)[OWN.id] == 100
    assert sum(sizes(watched).values()) == 110
    check(watched)


@given(st.permutations(range(9)), st.sets(st.integers(0, 8), max_size=4))
@settings(max_examples=60, deadline=None)
def test_which_ones_stay_does_not_depend_on_the_order(order: list[int], gone: set[int]):
    def final(numbers: list[int]) -> set[str]:
        watched = Watched(tight())
        for number in numbers:
            offered = ALICE.agent(f"a{number}")
            put(watched, offered, *([ALICE.ended(f"a{number}")] if number in gone else []))
        check(watched)
        return watched.keys()

    kept = final(order)
    assert len(kept) == 4
    assert kept == final(sorted(order))
    assert {ALICE.agent(f"a{number}").key for number in gone} <= kept


def test_a_newer_record_of_what_is_here_needs_no_room():
    watched = Watched(tight())
    agents = [ALICE.agent(f"a{number}") for number in range(4)]
    put(watched, *agents)
    again = [ALICE.agent(f"a{number}", seq=NOW + 5) for number in range(4)]
    assert put(watched, *again) == [Offered.NEWER] * 4
    assert put(watched, ALICE.ended("a0", seq=NOW + 6)) == [Offered.NEWER]
    assert len(watched.catalogue) == 4
    check(watched)


def test_what_has_no_room_costs_no_signature_check(monkeypatch: pytest.MonkeyPatch):
    watched = Watched(tight())
    agents = sorted(
        (ALICE.agent(f"a{number}") for number in range(9)),
        key=lambda signed: watched.catalogue.handle(signed.key),
    )
    put(watched, *agents[:4])
    monkeypatch.setattr(records, "verify", lambda *_: pytest.fail("checked a signature"))
    assert put(watched, *agents[4:]) == [Offered.REFUSED] * 5
    assert watched.catalogue.counts["no room"] == 5
    handle, version = watched.catalogue.handle(agents[4].key), version_of(agents[4].payload)
    assert not watched.catalogue.wants(handle, version)
    watched.time.now += 30_001
    assert watched.catalogue.wants(handle, version)


# Withdrawals


def test_withdrawals_count_and_stay_before_what_is_offered():
    watched = Watched(tight())
    ended = [ALICE.ended(f"w{number}") for number in range(3)]
    put(watched, *(ALICE.agent(f"a{number}") for number in range(4)), *ended)
    assert sizes(watched) == {ALICE.id: 4}
    assert {signed.key for signed in ended} <= watched.keys()
    more = [ALICE.agent(f"b{number}") for number in range(20)]
    put(watched, *more)
    assert {signed.key for signed in ended} <= watched.keys()
    check(watched)


@pytest.mark.parametrize("order", ["oldest first", "newest first", "mixed"])
def test_what_was_withdrawn_does_not_come_back_when_there_are_too_many_withdrawals(order: str):
    watched = Watched(tight())
    offered = [ALICE.agent(f"a{n}", seq=NOW + n) for n in range(12)]
    ended = [ALICE.ended(f"a{n}", seq=NOW + n + 1) for n in range(12)]
    shuffled = Random(4).sample(ended, len(ended))
    put(watched, *{"oldest first": ended, "newest first": ended[::-1], "mixed": shuffled}[order])
    assert sizes(watched) == {ALICE.id: 4}
    for signed in offered:
        assert put(watched, signed) == [Offered.OLDER]
    assert not list(watched.catalogue.agents())
    assert watched.keys() == {signed.key for signed in ended[-4:]}  # the last ones live longest
    check(watched)


def test_a_forged_withdrawal_without_room_keeps_nothing_out():
    watched = Watched(tight())
    put(watched, *(ALICE.ended(f"w{number}") for number in range(3)))
    put(watched, ALICE.ended("w4"))
    forged = ALICE.ended("other", seq=NOW + 50)
    content = forged.pk + bytes(64) + forged.payload
    assert watched.catalogue.offer(content) is Offered.REFUSED
    later = ALICE.ended("fifth", seq=NOW + 40)
    assert put(watched, later) == [Offered.NEW]


# All together


def test_the_largest_publisher_gives_way():
    watched = Watched(tight())
    for number in (10, 11):
        put(watched, *(writer(number).agent(f"a{n}") for n in range(4)))
    put(watched, writer(12).agent(), writer(13).agent())
    assert len(watched.catalogue) == 10
    assert not watched.catalogue.crowded
    assert put(watched, writer(14).agent()) == [Offered.NEW]
    assert watched.catalogue.crowded
    put(watched, writer(15).agent(), writer(16).agent(), writer(17).agent())
    found = sizes(watched)
    assert sorted(found.values()) == [1, 1, 1, 1, 1, 1, 2, 2]
    check(watched)


def test_nobody_pushes_out_those_of_equal_size():
    watched = Watched(tight())
    first = [writer(number).agent() for number in range(10, 20)]
    put(watched, *first)
    others = [writer(number).agent() for number in range(20, 60)]
    assert put(watched, *others) == [Offered.REFUSED] * 40
    assert watched.keys() == {signed.key for signed in first}
    put(watched, writer(10).agent("second"))
    assert sum(sizes(watched).values()) == 10
    assert all(size == 1 for size in sizes(watched).values())
    check(watched)


def test_nodes_that_nobody_has_seen_give_way_to_those_that_are_there():
    members: dict[str, Scope] = {writer(10).id: Scope.LOOPBACK}
    watched = Watched(tight(), scope_of_node=members.get)
    put(watched, writer(10).agent("one"))
    put(watched, *(writer(number).agent() for number in range(20, 60)))
    assert sum(sizes(watched).values()) == 10
    put(watched, *(writer(10).agent(f"a{n}") for n in range(3)))
    assert sizes(watched)[writer(10).id] == 4
    newcomer = writer(99)
    assert put(watched, newcomer.agent()) == [Offered.REFUSED]
    members[newcomer.id] = Scope.LOOPBACK
    assert put(watched, newcomer.agent()) == [Offered.NEW]
    check(watched)
    members.clear()
    watched.catalogue.node_changed(writer(10).id)
    watched.catalogue.node_changed(newcomer.id)
    check(watched)
    put(watched, *(writer(number).agent() for number in range(100, 103)))
    assert sizes(watched)[writer(10).id] < 4  # it left, and is the largest of all that are gone
    check(watched)


def test_a_stranger_takes_no_place_of_a_member():
    members = {writer(10).id: Scope.LOOPBACK, writer(11).id: Scope.LOOPBACK}
    watched = Watched(tight(records=8), scope_of_node=members.get)
    for number in (10, 11):
        put(watched, *(writer(number).agent(f"a{n}") for n in range(4)))
    assert put(watched, writer(12).agent()) == [Offered.REFUSED]
    assert sizes(watched) == {writer(10).id: 4, writer(11).id: 4}


def test_node_records_are_bounded_too_and_apart_from_agents():
    watched = Watched(tight())
    put(watched, *(writer(number).agent() for number in range(10, 20)))
    nodes = itertools.product(range(10, 60), Scope)
    put(watched, *(writer(number).node(scope=scope) for number, scope in nodes))
    assert len(watched.catalogue) == 20
    assert sum(sizes(watched).values()) == 10
    check(watched)


def test_crowded_is_forgotten_after_a_day():
    watched = Watched(tight(records=1))
    put(watched, ALICE.agent(), BOB.agent())
    assert watched.catalogue.crowded
    watched.time.now += records.LIFETIME_MS
    assert not watched.catalogue.crowded


# Floods


def test_a_hundred_keys_that_flood_us_leave_small_publishers_and_our_own():
    watched = Watched(Limits(records=1000))
    small = [writer(number).agent(f"s{n}") for number in range(10, 30) for n in range(3)]
    own = [OWN.agent(f"o{number}") for number in range(20)]
    put(watched, *small)
    for signed in own:
        watched.catalogue.own(signed)
    for n, number in itertools.product(range(50), range(1000, 1100)):
        put(watched, writer(number).agent(f"flood{n}"))
    assert {signed.key for signed in [*small, *own]} <= watched.keys()
    assert len(watched.catalogue) == 1000 + 20
    assert watched.catalogue.crowded
    late = writer(31)
    assert put(watched, *(late.agent(f"a{n}") for n in range(3))) == [Offered.NEW] * 3
    assert {signed.key for signed in [*small, *own]} <= watched.keys()
    check(watched)


def test_one_key_with_5000_records_holds_64_and_little_memory():
    watched = Watched()
    watched.catalogue.on_change = lambda _: None
    contents = [ALICE.agent(f"a{number}").to_bytes() for number in range(5000)]
    tracemalloc.start()
    try:
        for content in contents[:500]:
            watched.catalogue.offer(content)
        before = tracemalloc.get_traced_memory()[0]
        for content in contents[500:]:
            watched.catalogue.offer(content)
        grown = tracemalloc.get_traced_memory()[0] - before
    finally:
        tracemalloc.stop()
    assert len(watched.catalogue) == MOST
    assert grown < REMEMBERED_MAX * 256  # the versions that were refused
    assert len(watched.catalogue._judge.refusals._until) <= REMEMBERED_MAX


def test_a_flood_of_lives_holds_no_more_than_one():
    watched = Watched()
    for life in range(200):
        put(watched, ALICE.agent(f"a{life}", epoch=EPOCH + life))
    assert len(watched.catalogue) == 1
    check(watched)
