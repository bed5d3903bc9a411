from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aios_nb.errors import UsageError
from aios_nb.hub.catalogue.digest import DIGEST_BYTES
from aios_nb.records import Scope, Signed, may_be_told
from tests.hub.catalogue.writers import ALICE, BOB, NOW, Watched, check, writer

LOOPBACK, PRIVATE, GLOBAL = Scope


def filled(*several: Signed) -> Watched:
    watched = Watched()
    for signed in several:
        watched.catalogue.offer(signed.to_bytes())
    return watched


choices = st.lists(
    st.builds(
        lambda number, name, seq: writer(number).agent(f"a{name}", seq=NOW + seq),
        st.integers(10, 13),
        st.integers(0, 3),
        st.integers(0, 2),
    ),
    max_size=12,
)


@given(choices, choices)
@settings(max_examples=100, deadline=None)
def test_digests_are_equal_exactly_if_the_records_are(one: list[Signed], two: list[Signed]):
    left, right = filled(*one), filled(*two)
    same = left.mirror == right.mirror
    assert (left.catalogue.digest(LOOPBACK) == right.catalogue.digest(LOOPBACK)) is same
    buckets = left.catalogue.differing_buckets(right.catalogue.digest(LOOPBACK), LOOPBACK)
    differing = dict(left.catalogue.listing(buckets, LOOPBACK))
    for key in set(left.mirror) | set(right.mirror):
        if left.mirror.get(key) != right.mirror.get(key) and key in left.mirror:
            assert left.catalogue.handle(key) in differing
    assert bool(buckets) is not same
    check(left)


def test_a_digest_fits_into_a_datagram_and_is_empty_at_first():
    empty = Watched().catalogue.digest(GLOBAL)
    assert len(empty) == DIGEST_BYTES == 1024
    assert empty == bytes(1024)


def test_one_difference_is_one_bucket():
    both = [ALICE.agent(f"a{number}") for number in range(50)]
    left, right = filled(*both), filled(*both, BOB.agent())
    handle = left.catalogue.handle(BOB.agent().key)
    bucket = handle[0] >> 1
    assert left.catalogue.differing_buckets(right.catalogue.digest(LOOPBACK), LOOPBACK) == [bucket]
    listed = right.catalogue.listing([bucket], LOOPBACK)
    assert handle in dict(listed)
    missing = [pair for pair in listed if left.catalogue.wants(*pair)]
    assert [one for one, _ in missing] == [handle]


@pytest.mark.parametrize("length", [0, 8, 1023, 1025])
def test_a_digest_of_another_length_is_refused(length: int):
    with pytest.raises(UsageError, match="1024 bytes"):
        Watched().catalogue.differing_buckets(bytes(length), LOOPBACK)


def test_what_is_wide_is_for_everyone_and_what_is_narrow_stays():
    assert [may_be_told(GLOBAL, peer) for peer in Scope] == [True, True, True]
    assert [may_be_told(PRIVATE, peer) for peer in Scope] == [True, True, False]
    assert [may_be_told(LOOPBACK, peer) for peer in Scope] == [True, False, False]


def test_a_node_of_narrow_scope_does_not_show_in_a_wider_digest():
    left, right = filled(ALICE.node(scope=GLOBAL)), filled(ALICE.node(scope=GLOBAL))
    right.catalogue.offer(BOB.node(scope=PRIVATE).to_bytes())
    assert left.catalogue.digest(GLOBAL) == right.catalogue.digest(GLOBAL)
    for scope in (PRIVATE, LOOPBACK):
        assert left.catalogue.digest(scope) != right.catalogue.digest(scope)
