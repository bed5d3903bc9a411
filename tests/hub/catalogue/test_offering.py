from __future__ import annotations

from collections.abc import Callable

import msgspec
import pytest

from aios_nb import records
from aios_nb.hub.catalogue import Event, Offered, version_of
from aios_nb.identity import TAG_HELLO
from aios_nb.records import HOUR_MS, LIFETIME_MS, RECORD_LIMIT_BYTES, Signed, supersedes
from tests.hub.catalogue.writers import ALICE, BOB, CARD, EPOCH, NOW, OWN, Watched, check


@pytest.fixture
def watched() -> Watched:
    return Watched()


@pytest.fixture
def proofs(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """The signatures that were checked."""
    seen: list[bytes] = []
    verify = records.verify

    def counted(pk: bytes, tag: bytes, message: bytes, sig: bytes) -> bool:
        seen.append(sig)
        return verify(pk, tag, message, sig)

    monkeypatch.setattr(records, "verify", counted)
    return seen


def version(signed: Signed) -> bytes:
    return version_of(signed.payload)


def put(watched: Watched, signed: Signed) -> Offered:
    return watched.catalogue.offer(signed.to_bytes())


def test_a_new_record_is_kept_and_told(watched: Watched):
    signed = ALICE.agent()
    assert put(watched, signed) is Offered.NEW
    assert watched.catalogue.get(signed.key) == signed
    assert [(change.event, change.after) for change in watched.told] == [(Event.PUT, signed)]
    check(watched)


def test_a_newer_one_takes_its_place(watched: Watched):
    old, new = ALICE.agent(), ALICE.agent(seq=NOW + 1, about="adds well")
    assert put(watched, old) is Offered.NEW
    assert put(watched, new) is Offered.NEWER
    assert watched.catalogue.get(old.key) == new
    assert watched.told[-1].event is Event.REPLACED
    assert (watched.told[-1].before, watched.told[-1].after) == (old, new)
    check(watched)


def test_a_replayed_older_one_changes_nothing(watched: Watched):
    old, new = ALICE.agent(), ALICE.agent(seq=NOW + 1)
    put(watched, new)
    told = len(watched.told)
    assert put(watched, old) is Offered.OLDER
    assert watched.catalogue.get(old.key) == new
    assert len(watched.told) == told


def test_what_is_known_or_older_costs_no_signature_check(watched: Watched, proofs: list[bytes]):
    old, new = ALICE.agent(), ALICE.agent(seq=NOW + 1)
    later = ALICE.agent("other", epoch=EPOCH + 1, seq=NOW + 2)
    put(watched, new)
    assert len(proofs) == 1
    assert put(watched, new) is Offered.KNOWN
    assert put(watched, old) is Offered.OLDER
    assert len(proofs) == 1
    put(watched, later)
    assert len(proofs) == 2
    assert put(watched, ALICE.agent("third", seq=NOW + 3)) is Offered.OLDER  # of an earlier life
    assert len(proofs) == 2


def test_what_cannot_be_kept_costs_no_signature_check(watched: Watched, proofs: list[bytes]):
    refused = [
        ALICE.agent(net="lab").to_bytes(),
        ALICE.agent(seq=NOW + HOUR_MS + 1).to_bytes(),
        ALICE.agent(seq=NOW - LIFETIME_MS - HOUR_MS - 1).to_bytes(),
        OWN.agent().to_bytes(),
        b"",
        b"\0" * 5000,
        ALICE.raw(ALICE.agent().record, type="planet"),
    ]
    for content in refused:
        assert watched.catalogue.offer(content) is Offered.REFUSED
    assert not proofs
    assert len(watched.catalogue) == 0
    assert dict(watched.catalogue.counts) == {
        "of another network": 1,
        "out of time": 2,
        "ours, but not from us": 1,
        "not a record": 2,
        "of unknown type or version": 1,
    }


def test_an_oversized_record_is_refused_though_its_signature_is_right(watched: Watched):
    for room in (400, 1000, 60_000):
        content = ALICE.raw(ALICE.agent().record, padding="x" * room)
        fits = len(content) <= RECORD_LIMIT_BYTES
        assert (watched.catalogue.offer(content) is Offered.NEW) is fits
    assert watched.catalogue.counts["not a record"] == 2


def test_s07_a_stranger_cannot_speak_for_another_node(watched: Watched):
    mine = ALICE.agent()
    payload = mine.payload
    forged = [
        BOB.identity.public_key + BOB.identity.sign(records.TAG_RECORD, payload) + payload,
        mine.pk + BOB.identity.sign(records.TAG_RECORD, payload) + payload,
        mine.pk + ALICE.identity.sign(TAG_HELLO, payload) + payload,
        BOB.identity.public_key + mine.sig + payload,
    ]
    for content in forged:
        assert watched.catalogue.offer(content) is Offered.REFUSED
    assert watched.catalogue.counts == {"not a record": 2, "forged": 2}
    assert not watched.told


def test_a_forgery_does_not_keep_its_original_out(watched: Watched):
    mine = ALICE.agent()
    forged = mine.pk + bytes(64) + mine.payload
    assert watched.catalogue.offer(forged) is Offered.REFUSED
    handle = watched.catalogue.handle(mine.key)
    assert watched.catalogue.wants(handle, version(mine))
    assert put(watched, mine) is Offered.NEW
    assert watched.catalogue.offer(forged) is Offered.KNOWN  # it says nothing else


def test_a_forged_later_life_ends_nothing(watched: Watched):
    mine = ALICE.agent()
    put(watched, mine)
    later = ALICE.agent("other", epoch=EPOCH + 9)
    assert watched.catalogue.offer(later.pk + mine.sig + later.payload) is Offered.REFUSED
    assert watched.catalogue.get(mine.key) == mine


@pytest.mark.parametrize("turned", [False, True])
def test_of_two_records_with_one_number_the_same_one_stays_everywhere(turned: bool):
    watched = Watched()
    pair = [ALICE.agent(about="one"), ALICE.agent(about="two")]
    if turned:
        pair.reverse()
    winner = pair[0] if supersedes(pair[0], pair[1]) else pair[1]
    for signed in pair:
        put(watched, signed)
    assert watched.catalogue.get(winner.key) == winner
    assert watched.catalogue.has_equivocated(ALICE.id)
    assert watched.catalogue.counts["equivocation"] == 1
    assert not watched.catalogue.has_equivocated(BOB.id)


def test_nobody_else_can_make_a_node_look_like_a_liar(watched: Watched):
    mine, other = ALICE.agent(about="one"), ALICE.agent(about="two")
    put(watched, mine)
    forged = other.pk + mine.sig + other.payload
    assert watched.catalogue.offer(forged) is Offered.REFUSED
    assert not watched.catalogue.has_equivocated(ALICE.id)
    assert watched.catalogue.get(mine.key) == mine


def test_the_bounds_of_time_are_those_of_records(watched: Watched):
    assert put(watched, ALICE.agent("ahead", seq=NOW + HOUR_MS)) is Offered.NEW
    last = NOW - LIFETIME_MS - HOUR_MS
    assert put(watched, ALICE.agent("old", seq=last)) is Offered.NEW
    too_long = ALICE.changed(ALICE.agent("long"), exp=NOW + LIFETIME_MS + HOUR_MS + 1)
    assert put(watched, too_long) is Offered.REFUSED


def test_what_has_expired_is_dropped_and_told(watched: Watched):
    signed, later = ALICE.agent(), ALICE.agent("later", seq=NOW + 10)
    put(watched, signed)
    put(watched, later)
    watched.time.now = NOW + LIFETIME_MS + HOUR_MS
    assert watched.catalogue.expire() == 0
    watched.time.now += 1
    assert watched.catalogue.expire() == 1
    assert watched.keys() == {later.key}
    assert watched.told[-1].before == signed
    check(watched)
    watched.time.now += 10
    assert watched.catalogue.expire() == 1
    assert watched.catalogue.expire() == 0
    check(watched)


def test_many_expire_some_at_a_time(watched: Watched, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr("aios_nb.hub.catalogue.catalogue.EXPIRED_AT_ONCE", 3)
    for number in range(7):
        put(watched, ALICE.agent(f"a{number}"))
    watched.time.now += LIFETIME_MS + HOUR_MS + 1
    assert [watched.catalogue.expire() for _ in range(4)] == [3, 3, 1, 0]
    check(watched)


def test_our_own_come_only_from_us(watched: Watched):
    mine = OWN.agent()
    assert put(watched, mine) is Offered.REFUSED
    assert watched.catalogue.own(mine) is Offered.NEW
    assert watched.catalogue.own(mine) is Offered.KNOWN
    assert put(watched, mine) is Offered.KNOWN
    newer = OWN.agent(seq=NOW + 1)
    assert put(watched, newer) is Offered.REFUSED
    assert watched.catalogue.own(newer) is Offered.NEWER
    assert watched.catalogue.own(mine) is Offered.OLDER
    assert watched.catalogue.get(mine.key) == newer
    check(watched)
    with pytest.raises(ValueError, match="not ours"):
        watched.catalogue.own(ALICE.agent())
    with pytest.raises(ValueError, match="not ours"):
        watched.catalogue.own(OWN.agent(net="lab"))


def test_node_records_are_found_by_scope_the_widest_first(watched: Watched):
    scopes = list(records.Scope)
    nodes = {scope: ALICE.node(scope=scope) for scope in scopes}
    assert watched.catalogue.node_record(ALICE.id) is None
    for scope in scopes:
        assert put(watched, nodes[scope]) is Offered.NEW
        assert watched.catalogue.node_record(ALICE.id) == nodes[scope]
    for scope in scopes:
        assert watched.catalogue.node_record(ALICE.id, scope) == nodes[scope]
    assert list(watched.catalogue.agents()) == []
    check(watched)


def test_agents_of_one_name_are_found_together(watched: Watched):
    both = [ALICE.agent(), BOB.agent()]
    for signed in [*both, ALICE.agent("other"), BOB.node(name="adder")]:
        put(watched, signed)
    assert list(watched.catalogue.agents_named("adder")) == both
    assert list(watched.catalogue.agents_named("nobody")) == []
    put(watched, BOB.ended())
    assert list(watched.catalogue.agents_named("adder")) == [both[0]]
    check(watched)


def test_records_may_come_and_go_while_all_are_read(watched: Watched):
    for number in range(20):
        put(watched, ALICE.agent(f"a{number}"))
    seen = set()
    for signed in watched.catalogue.agents():
        seen.add(signed.key)
        put(watched, BOB.agent(f"b{len(seen)}"))
        put(watched, ALICE.ended(signed.record.name))
    assert len({key for key in seen if ALICE.id in key}) == 20
    check(watched)


def test_a_handle_that_belongs_to_another_node_is_not_taken_over(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
):
    def same(_: str) -> bytes:
        return b"\1" * 8

    for module in ("entry", "catalogue"):
        monkeypatch.setattr(f"aios_nb.hub.catalogue.{module}.handle_of", same)
    mine, theirs = ALICE.agent(), BOB.agent()
    assert put(watched, mine) is Offered.NEW
    assert put(watched, theirs) is Offered.REFUSED
    assert put(watched, BOB.agent(epoch=EPOCH + 1)) is Offered.REFUSED
    assert watched.catalogue.get(mine.key) == mine


def version_after(change: Callable[[], object], watched: Watched, handle: bytes) -> bytes | None:
    change()
    return watched.catalogue.version(handle)


def test_a_version_is_another_one_with_any_change_and_only_then(watched: Watched):
    signed = ALICE.agent()
    handle = watched.catalogue.handle(signed.key)
    assert watched.catalogue.version(handle) is None
    first = version_after(lambda: put(watched, signed), watched, handle)
    assert version_after(lambda: put(watched, signed), watched, handle) == first
    second = version_after(lambda: put(watched, ALICE.agent(seq=NOW + 1)), watched, handle)
    assert second != first


def test_what_was_refused_is_not_wanted_again_for_a_while(watched: Watched):
    catalogue = watched.catalogue
    old, new = ALICE.agent(), ALICE.agent(seq=NOW + 1)
    handle = catalogue.handle(new.key)
    assert catalogue.wants(handle, version(old))
    put(watched, new)
    assert not catalogue.wants(handle, version(new))
    assert catalogue.wants(handle, version(old))  # nobody knows yet that it is older
    put(watched, old)
    assert not catalogue.wants(handle, version(old))
    watched.time.now += 600_001
    assert catalogue.wants(handle, version(old))


def test_what_the_wire_may_ask_for_does_no_harm(watched: Watched):
    put(watched, ALICE.agent())
    catalogue = watched.catalogue
    for handle in (b"", b"\0", b"\xff" * 8, b"\0" * 100):
        assert catalogue.version(handle) is None
        assert catalogue.content(handle) is None
        assert catalogue.scope(handle) is None
    assert catalogue.listing([-1, 128, 10**9], records.Scope.LOOPBACK) == []


def test_unknown_fields_travel_on(watched: Watched):
    content = ALICE.raw(ALICE.agent().record, later="something")
    assert watched.catalogue.offer(content) is Offered.NEW
    signed = watched.catalogue.get(ALICE.agent().key)
    assert signed is not None
    assert signed.to_bytes() == content
    assert msgspec.msgpack.decode(signed.payload)["later"] == "something"
    assert signed.record.card == CARD
