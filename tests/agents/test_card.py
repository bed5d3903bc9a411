"""A card's bytes never depend on anything but what it says."""

from __future__ import annotations

from aios_nb.agents import describe
from aios_nb.records import card_bytes


def test_a_card_is_canonical_json():
    card = describe(
        lambda text: text, name="adder", title="Adder", about="Adds ünïcode", tags=["math"]
    ).card("a" * 32)
    expected = (
        '{"about":"Adds ünïcode","access":"network","engine":"thread","examples":[],'
        f'"id":"adder@{"a" * 32}","idempotent":false,"name":"adder","source":"","streams":false,'
        '"tags":["math"],"timeout_s":300.0,"title":"Adder","version":"1"}'
    ).encode()
    assert card_bytes(card) == expected


def test_another_version_has_another_hash():
    one = describe(lambda text: text, name="x").card("a" * 32)
    two = describe(lambda text: text, name="x", version="2").card("a" * 32)
    assert card_bytes(one) != card_bytes(two)
