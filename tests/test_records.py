from __future__ import annotations

import contextlib
from typing import Any

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from aios_nb import records
from aios_nb.access import Access
from aios_nb.errors import RecordError, UnknownRecord
from aios_nb.identity import TAG_HELLO, TAG_RECORD, Identity
from aios_nb.records import (
    ABOUT_LIMIT_BYTES,
    HOUR_MS,
    LIFETIME_MS,
    RECORD_LIMIT_BYTES,
    WITHDRAWN_LIFETIME_MS,
    AgentRecord,
    NodeRecord,
    Record,
    Scope,
    Signed,
    agent_record,
    check_time,
    cut_about,
    is_live,
    next_epoch,
    next_seq,
    node_record,
    parse,
    peek,
    rank,
    reread,
    sign_record,
    supersedes,
    withdrawal,
)

ALICE = Identity.from_seed(b"a" * 32)
BOB = Identity.from_seed(b"b" * 32)
NOW = 1_800_000_000_000
CARD = b"c" * 32


def agent(**changes: Any) -> AgentRecord:
    fields: dict[str, Any] = {
        "net": "main",
        "node": ALICE.node_id,
        "name": "adder",
        "access": Access.NETWORK,
        "card": CARD,
        "seq": NOW,
        "epoch": NOW - 5,
        "now_ms": NOW,
        "title": "Adder",
        "about": "Adds the numbers in a sentence",
        "tags": ["math"],
        "version": "1.0",
    }
    return agent_record(**fields | changes)


def node(**changes: Any) -> NodeRecord:
    fields: dict[str, Any] = {
        "net": "main",
        "node": ALICE.node_id,
        "name": "alice",
        "scope": Scope.LOOPBACK,
        "endpoints": [("http", "127.0.0.1", 8765)],
        "seq": NOW,
        "epoch": NOW,
        "now_ms": NOW,
    }
    return node_record(**fields | changes)


def altered(record: Record, **changes: Any) -> AgentRecord:
    return msgspec.structs.replace(record, **changes)


def packed(fields: dict[str, Any] | bytes, identity: Identity = ALICE) -> bytes:
    """A map that is signed as it is, right or wrong."""
    payload = fields if isinstance(fields, bytes) else msgspec.msgpack.encode(fields)
    return identity.public_key + identity.sign(TAG_RECORD, payload) + payload


def fields_of(record: Record, **changes: Any) -> dict[str, Any]:
    fields = msgspec.to_builtins(record, builtin_types=(bytes,)) | changes
    return dict(sorted(fields.items()))


# What is signed


@pytest.mark.parametrize("record", [agent(), node(), node(endpoints=[]), agent(tags=[], title="")])
def test_a_record_comes_back_as_it_was_signed(record: Record):
    signed = sign_record(ALICE, record)
    again = parse(signed.to_bytes())
    assert again == signed
    assert again.record == record


texts = st.text(max_size=60)
agents = st.builds(
    agent,
    name=st.from_regex(r"[a-z0-9][a-z0-9_-]{0,47}", fullmatch=True),
    access=st.sampled_from(["network", "public"]),
    card=st.binary(min_size=32, max_size=32),
    seq=st.integers(0, 2**53 - 1),
    epoch=st.integers(0, 2**53 - 1),
    now_ms=st.integers(0, 2**52),
    title=texts,
    about=st.text(),
    tags=st.lists(st.text(max_size=5), max_size=8),
    version=st.text(max_size=10),
)
nodes = st.builds(
    node,
    name=st.from_regex(r"[a-z0-9][a-z0-9_-]{0,47}", fullmatch=True),
    scope=st.sampled_from(Scope),
    endpoints=st.lists(
        st.tuples(
            st.text(min_size=1, max_size=4), st.text(min_size=1, max_size=40), st.integers(1, 65535)
        ),
        max_size=3,
    ),
    seq=st.integers(0, 2**53 - 1),
    index=st.integers(0, 2**53 - 1),
)


@given(agents | nodes)
def test_any_record_comes_back_as_it_was_signed(record: Record):
    try:
        signed = sign_record(ALICE, record)
    except RecordError as error:
        assert str(RECORD_LIMIT_BYTES) in str(error)  # noqa: PT017 (either way is right)
        return
    assert parse(signed.to_bytes()) == signed


@given(agents | nodes)
def test_the_map_is_plain_msgpack_with_sorted_names(record: Record):
    payload = msgspec.msgpack.Encoder(order="sorted").encode(record)
    names = list(msgspec.msgpack.decode(payload))
    assert names == sorted(names)


def test_the_largest_record_that_fits_is_taken_and_one_byte_more_is_not():
    spare = RECORD_LIMIT_BYTES - len(sign_record(ALICE, agent(title="x" * 300)).to_bytes())
    largest = sign_record(ALICE, agent(title="x" * (300 + spare)))
    assert len(largest.to_bytes()) == RECORD_LIMIT_BYTES
    assert parse(largest.to_bytes()) == largest
    with pytest.raises(RecordError, match="has 1001 bytes; 1000 is the limit"):
        sign_record(ALICE, agent(title="x" * (301 + spare)))


def test_s08_a_record_that_is_too_large_is_refused_at_once_with_what_to_do():
    with pytest.raises(RecordError, match="1000 is the limit") as caught:
        sign_record(ALICE, agent(title="x" * 70_000))
    assert caught.value.hint == "shorten its title or tags"
    with pytest.raises(RecordError, match="fewer endpoints"):
        sign_record(ALICE, node(endpoints=[("http", "h" * 250, 1)] * 5))
    with pytest.raises(RecordError, match="at most 1000"):
        parse(packed(fields_of(agent(), padding="x" * 70_000)))


def test_a_long_about_is_cut_between_characters():
    assert cut_about("a" * 1000) == "a" * ABOUT_LIMIT_BYTES
    assert cut_about("a" + "é" * 300) == "a" + "é" * 199
    assert cut_about("😀" * 101) == "😀" * 100
    assert cut_about("aa" + "😀" * 100) == "aa" + "😀" * 99
    assert sign_record(ALICE, agent(about="é" * 9999)).record.about == "é" * 200


@given(st.text(alphabet=st.characters()))
def test_a_cut_about_is_the_start_of_what_was_said(text: str):
    cut = cut_about(text)
    assert len(cut.encode()) <= ABOUT_LIMIT_BYTES
    assert text.encode("utf-8", "replace").decode().startswith(cut)


def test_nine_tags_are_too_many():
    agent(tags=list("12345678"))
    with pytest.raises(RecordError, match="9 tags"):
        agent(tags=list("123456789"))


@pytest.mark.parametrize("access", [Access.PRIVATE, Access.KNOWN, "other"])
def test_an_agent_that_is_not_for_everyone_gets_no_record(access: str):
    with pytest.raises(RecordError, match="no record"):
        agent(access=access)


@pytest.mark.parametrize(
    "changes",
    [
        {"name": "Not A Name"},
        {"name": "a\n"},
        {"net": ""},
        {"seq": -1},
        {"seq": 2**53},
        {"card": b"short"},
        {"about": "x" * 401},
        {"tags": ("a",) * 9},
        {"node": BOB.node_id},
        {"title": "\ud800"},
    ],
)
def test_what_others_would_refuse_is_not_signed(changes: dict[str, Any]):
    with pytest.raises(RecordError):
        sign_record(ALICE, altered(agent(), **changes))


# What is read


def test_s07_a_stranger_cannot_speak_for_another_node():
    mine = sign_record(ALICE, agent())
    payload = mine.payload
    forged = [
        BOB.public_key + BOB.sign(TAG_RECORD, payload) + payload,
        ALICE.public_key + BOB.sign(TAG_RECORD, payload) + payload,
        ALICE.public_key + ALICE.sign(TAG_HELLO, payload) + payload,
        BOB.public_key + mine.sig + payload,
    ]
    for content in forged:
        with pytest.raises(RecordError):
            parse(content)


@pytest.mark.parametrize("record", [agent(), node()])
def test_a_record_with_any_byte_changed_is_refused(record: Record):
    content = sign_record(ALICE, record).to_bytes()
    for place in range(len(content)):
        for flip in (0x01, 0x80, 0xFF):
            changed = bytearray(content)
            changed[place] ^= flip
            with pytest.raises(RecordError):
                parse(bytes(changed))


@pytest.mark.parametrize("record", [agent(), node()])
def test_a_record_cut_or_grown_anywhere_is_refused(record: Record):
    content = sign_record(ALICE, record).to_bytes()
    for length in range(len(content)):
        with pytest.raises(RecordError):
            parse(content[:length])
    for more in (b"\0", b"\xc0", content):
        with pytest.raises(RecordError):
            parse(content + more)


@given(st.binary(max_size=1100))
@settings(max_examples=500)
def test_random_bytes_are_a_record_error_and_nothing_else(content: bytes):
    for candidate in (content, packed(content)):
        with pytest.raises(RecordError):
            parse(candidate)


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text(max_size=8)
    | st.binary(max_size=8)
    | st.sampled_from(["node", "agent", 1, ALICE.node_id, "main"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=6,
)


@given(st.sampled_from([agent(), node()]), st.data())
@settings(max_examples=500)
def test_a_signed_map_with_any_value_in_any_field_is_read_or_refused(
    record: Record, data: st.DataObject
):
    fields = fields_of(record)
    fields[data.draw(st.sampled_from(sorted(fields)))] = data.draw(values)
    content = packed(fields)
    with contextlib.suppress(RecordError):
        assert parse(content).to_bytes() == content


@given(st.dictionaries(st.text(max_size=8).map(lambda name: f"x{name}"), values, max_size=4))
def test_unknown_fields_are_kept_and_still_signed(extra: dict[str, Any]):
    content = packed(fields_of(agent(), **extra))
    if len(content) > RECORD_LIMIT_BYTES:
        return
    signed = parse(content)
    assert signed.record == agent()
    assert signed.to_bytes() == content
    kept = msgspec.msgpack.decode(parse(signed.to_bytes()).payload)
    assert set(extra) <= set(kept)


def test_an_endpoint_may_say_more_than_we_know():
    fields = fields_of(node(), endpoints=[["http", "127.0.0.1", 1, "later"], ["new", "h", 2]])
    assert [end.kind for end in parse(packed(fields)).record.endpoints] == ["http", "new"]


@pytest.mark.parametrize(
    "changes", [{"type": "planet"}, {"v": 2}, {"v": 2, "type": "planet", "node": 7}]
)
def test_unknown_types_and_versions_can_be_told_from_garbage(changes: dict[str, Any]):
    with pytest.raises(UnknownRecord):
        parse(packed(fields_of(agent(), **changes)))


@pytest.mark.parametrize("field", sorted(fields_of(node())))
def test_a_node_record_without_a_field_we_need_is_refused(field: str):
    fields = fields_of(node())
    del fields[field]
    if field == "index":
        assert parse(packed(fields)).record == node()
        return
    with pytest.raises(RecordError):
        parse(packed(fields))


def test_an_agent_record_may_leave_out_what_is_only_for_people():
    fields = fields_of(agent())
    for field in ("title", "about", "tags", "version", "withdrawn"):
        del fields[field]
    assert parse(packed(fields)).record == agent(title="", about="", tags=[], version="")


def test_fields_out_of_order_are_refused():
    fields = fields_of(agent())
    with pytest.raises(RecordError, match="sorted"):
        parse(packed(dict(reversed(fields.items()))))


def test_a_field_that_comes_twice_is_refused():
    payload = bytearray(msgspec.msgpack.encode(fields_of(agent())))
    assert payload[0] == 0x8F  # a map of 15 fields
    twice = b"\xde\x00\x10" + payload[1:] + msgspec.msgpack.encode("withdrawn") + b"\xc3"
    with pytest.raises(RecordError, match="unique"):
        parse(packed(twice))


@pytest.mark.parametrize("header", [b"\xde\x00\x0f", b"\xdf\x00\x00\x00\x0f"])
def test_the_length_of_the_map_may_be_written_in_any_of_its_ways(header: bytes):
    payload = header + msgspec.msgpack.encode(fields_of(agent()))[1:]
    assert parse(packed(payload)).record == agent()


@pytest.mark.parametrize("opening", [b"\x91", b"\x81\xa1a", b"\xc1", b"\x81\x91"])
def test_deep_nesting_is_refused_like_anything_else(opening: bytes):
    with pytest.raises(RecordError):
        parse(packed(opening * 400))


def test_a_deep_unknown_field_does_no_harm_however_deep_the_caller_is():
    payload = msgspec.msgpack.encode(fields_of(agent()))
    deep = b"\xde\x00\x10" + payload[1:] + msgspec.msgpack.encode("z") + b"\x91" * 500 + b"\xc0"

    def read_below(frames: int) -> Record:
        return read_below(frames - 1) if frames else parse(packed(deep)).record

    assert read_below(0) == agent()
    with contextlib.suppress(RecordError):
        read_below(700)


# Order and time


def test_seq_follows_the_clock_and_never_stands_still():
    assert next_seq(None, NOW) == NOW
    assert next_seq(NOW - 10, NOW) == NOW
    assert next_seq(NOW, NOW) == NOW + 1
    assert next_seq(NOW + 5, NOW) == NOW + 6


def test_a_stored_seq_from_a_wrong_clock_is_dropped():
    assert next_seq(NOW + HOUR_MS, NOW) == NOW + HOUR_MS + 1
    assert next_seq(NOW + HOUR_MS + 1, NOW) == NOW


def test_every_start_has_a_later_epoch_even_if_the_clock_went_back():
    assert next_epoch(None, NOW) == NOW
    assert next_epoch(NOW - 10, NOW) == NOW
    assert next_epoch(NOW, NOW) == NOW + 1
    assert next_epoch(NOW + 365 * 24 * HOUR_MS, NOW) == NOW + 365 * 24 * HOUR_MS + 1


def test_a_record_from_more_than_an_hour_ahead_is_refused():
    check_time(agent(seq=NOW + HOUR_MS), NOW)
    with pytest.raises(RecordError, match="ahead"):
        check_time(agent(seq=NOW + HOUR_MS + 1), NOW)


def test_a_record_counts_for_a_day_and_an_hour_of_tolerance():
    record = agent()
    check_time(record, NOW + LIFETIME_MS + HOUR_MS)
    with pytest.raises(RecordError, match="expired"):
        check_time(record, NOW + LIFETIME_MS + HOUR_MS + 1)


@pytest.mark.parametrize(("withdrawn", "hours"), [(False, 24), (True, 26)])
def test_a_record_that_would_live_too_long_is_refused(withdrawn: bool, hours: int):
    longest = NOW + (hours + 1) * HOUR_MS
    check_time(altered(agent(), exp=longest, withdrawn=withdrawn), NOW)
    with pytest.raises(RecordError, match="too long"):
        check_time(altered(agent(), exp=longest + 1, withdrawn=withdrawn), NOW)
    with pytest.raises(RecordError, match="too long"):
        check_time(node(now_ms=NOW + 2 * HOUR_MS), NOW)


def test_what_we_make_counts_from_the_first_moment():
    for record in (agent(), node(), withdrawal(agent(), seq=NOW + 1, epoch=NOW, now_ms=NOW)):
        check_time(record, NOW)


def signed(**changes: Any) -> Signed:
    return sign_record(ALICE, agent(**changes))


def test_the_higher_seq_takes_the_place_of_the_lower():
    old, new = signed(seq=NOW), signed(seq=NOW + 1)
    assert supersedes(new, old)
    assert not supersedes(old, new)
    assert not supersedes(old, old)


def test_of_two_lives_of_one_node_the_later_wins_whatever_its_seq():
    old = signed(epoch=NOW - 10, seq=NOW + 100)
    new = signed(epoch=NOW, seq=NOW)
    assert supersedes(new, old)
    assert not supersedes(old, new)


def test_equal_numbers_end_with_the_same_record_everywhere():
    one, two = signed(title="one"), signed(title="two")
    assert supersedes(one, two) != supersedes(two, one)
    ended = sign_record(ALICE, withdrawal(agent(), seq=NOW, epoch=NOW - 5, now_ms=NOW))
    assert supersedes(ended, two)
    assert not supersedes(two, ended)


def test_records_of_different_things_do_not_replace_each_other():
    others = [signed(name="other"), signed(net="lab"), sign_record(ALICE, node())]
    others += [sign_record(BOB, agent(node=BOB.node_id))]
    for other in others:
        assert other.key != signed().key
        with pytest.raises(ValueError, match="same thing"):
            supersedes(signed(), other)
    scopes = {sign_record(ALICE, node(scope=scope)).key for scope in Scope}
    assert len(scopes) == 3


def test_a_withdrawal_ends_an_agent_and_outlives_its_record():
    offered = agent()
    ended = withdrawal(offered, seq=NOW + 1, epoch=offered.epoch, now_ms=NOW + 1)
    assert parse(sign_record(ALICE, ended).to_bytes()).record == ended
    assert supersedes(sign_record(ALICE, ended), sign_record(ALICE, offered))
    assert (ended.about, ended.title, ended.tags, ended.card) == ("", "", (), b"")
    assert ended.exp == NOW + 1 + WITHDRAWN_LIFETIME_MS
    last_moment = offered.exp + HOUR_MS
    check_time(offered, last_moment)
    check_time(ended, last_moment + HOUR_MS)


def test_an_agent_is_live_only_in_the_epoch_of_its_node():
    record = agent(epoch=NOW)
    assert is_live(record, NOW)
    assert not is_live(record, NOW + 1)
    assert not is_live(record, NOW - 1)
    assert not is_live(record, None)
    assert not is_live(withdrawal(record, seq=NOW, epoch=NOW, now_ms=NOW), NOW)


def test_an_agents_id_is_its_name_at_its_node():
    assert agent().id == f"adder@{ALICE.node_id}"


def test_garbage_is_refused_before_any_signature_is_checked(monkeypatch: pytest.MonkeyPatch):
    checked: list[bytes] = []
    monkeypatch.setattr(records, "verify", lambda pk, *_: checked.append(pk))
    not_alices = sign_record(BOB, agent(node=BOB.node_id)).payload
    for payload in (b"\x80", b"\xff", not_alices):
        with pytest.raises(RecordError):
            parse(ALICE.public_key + bytes(64) + payload)
    assert checked == []


# Proving


@pytest.mark.parametrize("record", [agent(), node()])
def test_a_peek_reads_what_parse_reads_and_proves_it_only_when_asked(
    record: Record, monkeypatch: pytest.MonkeyPatch
):
    whole = sign_record(ALICE, record)
    claim = peek(whole.to_bytes())
    assert (claim.record, claim.payload, rank(claim)) == (record, whole.payload, rank(whole))
    assert claim.prove() == whole
    forged = peek(whole.pk + bytes(64) + whole.payload)
    assert forged.record == record
    with pytest.raises(RecordError, match="signature"):
        forged.prove()
    monkeypatch.setattr(records, "verify", lambda *_: pytest.fail("checked a signature"))
    assert peek(whole.to_bytes()) == claim
    assert reread(whole.to_bytes(), record.type) == whole


def test_what_is_read_again_keeps_its_unknown_fields():
    content = packed(fields_of(agent(), later="something"))
    assert reread(content, "agent") == parse(content)
    assert reread(content, "agent").to_bytes() == content
