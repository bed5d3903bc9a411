"""Cards of other nodes: shown as they are told, verified only when they are."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from aios_nb.access import Caller, Principal
from aios_nb.agents.card import Card
from aios_nb.errors import AgentFailed, Busy, NoSuchAgent, TooLarge, Unreachable
from aios_nb.hub.remote import CARD_LIMIT_BYTES, RemoteCard, read_card
from aios_nb.identity import Identity, from_base64url, to_base64url
from aios_nb.records import (
    LIFETIME_MS,
    AgentRecord,
    Record,
    card_bytes,
    node_record,
    parse,
    sign_record,
    withdrawal,
)
from aios_nb.records import Scope as RecordScope
from tests.hub.town import House, Town

Answer = dict[str, Any]


def test_a_published_agents_card_comes_with_its_record_and_is_verified(
    town: Town, here: House, b: House
) -> None:
    agent = town.run(
        b.offer("adder", about="Adds numbers", tags=["math"], examples=["2 and 2"], timeout_s=7)
    )
    for ref in (agent, "adder", agent[:18]):
        shown = town.run(here.card(ref))
        assert shown == town.run(b.card("adder"))
        assert shown["verified"] is True
        assert parse(from_base64url(shown["record"])).record.node == b.id


def test_a_counted_version_is_in_the_record_and_not_in_the_card_that_a_node_gets(
    town: Town, here: House, b: House
) -> None:
    agent = town.run(b.offer("adder"))
    answer = town.run(b.card("adder", Principal(Caller.KNOWN, here.id)))
    record = parse(from_base64url(answer["record"])).record
    assert isinstance(record, AgentRecord)
    assert (answer["card"]["version"], record.version) == ("", "1")
    # A node of an older program compares just this.
    assert record.card == hashlib.sha256(card_bytes(answer["card"])).digest()
    for version, proven in (("", True), ("1", True), ("2", False)):
        twisted = {**answer, "card": {**answer["card"], "version": version}}
        b.twist = lambda _, twisted=twisted: twisted  # type: ignore[misc]
        shown = town.run(here.card(agent))
        assert (shown["card"]["version"], shown["verified"]) == (version or "1", proven)


def test_a_version_that_is_named_is_in_the_card_that_a_node_gets(
    town: Town, here: House, b: House
) -> None:
    agent = town.run(b.offer("adder", version="2026-11"))
    answer = town.run(b.card("adder", Principal(Caller.KNOWN, here.id)))
    assert answer["card"]["version"] == "2026-11"
    b.twist = lambda _: {**answer, "card": {**answer["card"], "version": ""}}
    assert town.run(here.card(agent))["verified"] is False


def test_an_agent_for_known_nodes_has_no_record_and_is_verified_by_the_link(
    town: Town, here: House, b: House
) -> None:
    agent = town.run(b.offer("helper", access="known"))
    shown = town.run(here.card(agent))
    assert (shown["record"], shown["verified"]) == (None, True)
    b.twist = lambda answer: {**answer, "card": {**answer["card"], "id": f"helper@{here.id}"}}
    assert town.run(here.card(agent))["verified"] is False


def test_looking_at_a_card_binds_no_name(town: Town, here: House, b: House) -> None:
    town.run(b.offer("adder"))
    assert town.run(here.card("adder"))["card"]["id"] == f"adder@{b.id}"
    assert here.bindings.get("adder") is None


def test_fields_this_program_does_not_know_are_dropped_and_do_not_break_the_proof(
    town: Town, here: House, b: House
) -> None:
    agent = town.run(b.offer("adder"))
    plain = town.run(b.card("adder"))
    card = {**plain["card"], "colour": "blue"}
    record = parse(from_base64url(plain["record"])).record
    assert isinstance(record, AgentRecord)
    signed = resigned(record, b.identity, card=hashlib.sha256(card_bytes(card)).digest())
    b.twist = lambda _: {"card": card, "record": signed, "verified": False, "more": 1}
    shown = town.run(here.card(agent))
    assert shown["verified"] is True
    assert "colour" not in shown["card"]
    assert set(shown) == {"card", "record", "verified", "used", "outside"}


def resigned(record: Record, identity: Identity, **changes: Any) -> str:
    changed = msgspec.structs.replace(record, **changes)
    return to_base64url(sign_record(identity, changed).to_bytes())


def wrong_signature(record: AgentRecord, b: Identity, _: Identity) -> str:
    whole = bytearray(from_base64url(resigned(record, b)))
    whole[40] ^= 1
    return to_base64url(bytes(whole))


def now_ms() -> int:
    return int(time.time() * 1000)


FORGED: dict[str, Callable[[AgentRecord, Identity, Identity], str | None]] = {
    "wrong signature": wrong_signature,
    "of another node": lambda r, _, other: resigned(r, other, node=other.node_id),
    "of another agent": lambda r, b, _: resigned(r, b, name="other"),
    "of another network": lambda r, b, _: resigned(r, b, net="lab"),
    "of another card": lambda r, b, _: resigned(r, b, card=b"\0" * 32),
    "expired": lambda r, b, _: resigned(
        r, b, seq=now_ms() - 3 * LIFETIME_MS, exp=now_ms() - 2 * LIFETIME_MS
    ),
    "from the future": lambda r, b, _: resigned(
        r, b, seq=now_ms() + LIFETIME_MS, exp=now_ms() + 2 * LIFETIME_MS
    ),
    "withdrawn": lambda r, b, _: to_base64url(
        sign_record(b, withdrawal(r, seq=r.seq + 1, epoch=r.epoch, now_ms=now_ms())).to_bytes()
    ),
    "of a node, not an agent": lambda r, b, _: to_base64url(
        sign_record(
            b,
            node_record(
                net="main", node=b.node_id, name="adder", scope=RecordScope.LOOPBACK,
                endpoints=[("http", "127.0.0.1", 1)], seq=r.seq, epoch=r.epoch, now_ms=now_ms(),
            ),
        ).to_bytes()
    ),
    "no base64url": lambda *_: "!!!",
    "nothing": lambda *_: "",
    "missing though published": lambda *_: None,
}  # fmt: skip


@pytest.mark.parametrize("forgery", FORGED)
def test_a_card_whose_record_proves_nothing_is_shown_as_not_verified(
    town: Town, here: House, b: House, forgery: str
) -> None:
    agent = town.run(b.offer("adder"))
    answer = town.run(b.card("adder"))
    record = parse(from_base64url(answer["record"])).record
    assert isinstance(record, AgentRecord)
    forged = FORGED[forgery](record, b.identity, here.identity)
    b.twist = lambda _: {**answer, "record": forged, "verified": True}
    shown = town.run(here.card(agent))
    assert shown["verified"] is False
    assert shown["card"] == answer["card"]
    b.twist = lambda _: {**answer, "record": resigned(record, b.identity), "verified": False}
    assert town.run(here.card(agent))["verified"] is True


def test_a_changed_card_is_not_verified(town: Town, here: House, b: House) -> None:
    agent = town.run(b.offer("adder"))
    b.twist = lambda answer: {**answer, "card": {**answer["card"], "about": "Trust me"}}
    assert town.run(here.card(agent))["verified"] is False


@pytest.mark.parametrize(
    "answer",
    [
        None,
        [],
        "card",
        {},
        {"card": None},
        {"card": {}},
        {"card": {"id": 7, "name": "adder"}},
        {"card": {"id": "adder", "name": "adder", "tags": ["x"] * 33}},
        {"card": {"id": "adder", "name": "adder", "about": "x" * 4001}},
        {"card": {"id": "x" * 97, "name": "adder"}},
        {"card": {"id": "adder", "name": "adder"}, "record": 7},
        {"card": {"id": "adder", "name": "adder"}, "record": "x" * 1401},
    ],
)
def test_what_is_no_card_is_refused_in_one_line(answer: Any) -> None:
    with pytest.raises(AgentFailed, match="not its card") as refused:
        read_card(answer, f"adder@{'b' * 32}", "main", 0)
    assert refused.value.hint


def test_a_card_beyond_all_measure_is_refused() -> None:
    huge = {"id": "a", "name": "a", "extra": "x" * CARD_LIMIT_BYTES}
    with pytest.raises(TooLarge):
        read_card({"card": huge, "record": None}, f"a@{'b' * 32}", "main", 0)


def test_a_node_that_cannot_be_asked_is_said_to_be_unreachable(
    town: Town, here: House, b: House
) -> None:
    agent = town.run(b.offer("adder"))
    b.cut = True
    with pytest.raises(Unreachable) as lost:
        town.run(here.card(agent))
    assert lost.value.data["reason"] == "no answer"
    b.cut, b.away = False, True
    with pytest.raises(Unreachable):
        town.run(here.card(agent))
    with pytest.raises(NoSuchAgent):
        town.run(here.card("nobody"))


def test_an_agent_the_other_node_does_not_have_is_no_such_agent(
    town: Town, here: House, b: House
) -> None:
    town.run(b.offer("diary", access="private"))
    for name in ("nobody", "diary"):
        with pytest.raises(NoSuchAgent, match=f"{name}@{b.id}"):
            town.run(here.card(f"{name}@{b.id}"))


def test_what_another_node_says_went_wrong_is_cut_to_one_short_line(
    town: Town, here: House, b: House
) -> None:
    agent = town.run(b.offer("adder"))

    def refuses(_: Any) -> Any:
        raise Busy("no\n\x1b[31m" + "x" * 5000)

    b.twist = refuses
    with pytest.raises(AgentFailed) as refused:
        town.run(here.card(agent))
    assert "\n" not in refused.value.message
    assert "\x1b" not in refused.value.message
    assert len(refused.value.message) < 400


def test_a_remote_card_has_the_fields_of_our_own() -> None:
    assert RemoteCard.__struct_fields__ == Card.__struct_fields__


def test_the_largest_card_of_our_own_is_taken(town: Town, here: House, b: House) -> None:
    agent = town.run(
        b.offer(
            "wordy",
            access="known",
            title="\x01" * 200,
            about="\x01" * 4000,
            tags=[f"{n:02}" + "t" * 46 for n in range(32)],
            examples=[f"{n:02}" + "\x01" * 998 for n in range(20)],
        )
    )
    assert town.run(here.card(agent))["verified"] is True
