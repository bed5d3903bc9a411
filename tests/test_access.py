"""Who may do more than whom, and for whom a caller may speak."""

from __future__ import annotations

from itertools import combinations, product

import pytest

from aios_nb.access import ANYONE, Access, Caller, Principal, at_most, lowered, owner_of

NODE, OTHER = "a" * 32, "b" * 32
OWNER = owner_of(NODE)
BRIDGE = Principal(Caller.TOKEN, "token:1", "tg:")
TRUSTED = Principal(Caller.TOKEN, "token:2", "tg:", as_owner=True)
KNOWN = Principal(Caller.KNOWN, OTHER)
STRANGER = Principal(Caller.NODE, OTHER)
EVERYONE = (OWNER, TRUSTED, BRIDGE, KNOWN, STRANGER, ANYONE)


def reached(who: Principal) -> set[Access]:
    return {access for access in Access if who.may_call(access)}


@pytest.mark.parametrize(
    ("who", "agents"),
    [
        (OWNER, {"private", "known", "network", "public"}),
        (TRUSTED, {"private", "known", "network", "public"}),
        (BRIDGE, {"known", "network", "public"}),
        (KNOWN, {"known", "network", "public"}),
        (STRANGER, {"network", "public"}),
        (ANYONE, {"public"}),
    ],
)
def test_each_caller_reaches_the_agents_of_the_contract(who, agents):
    assert reached(who) == agents


def test_only_a_token_can_act_as_the_owner():
    assert reached(Principal(Caller.NODE, OTHER, as_owner=True)) == reached(STRANGER)


def test_callers_are_ordered_by_what_they_may():
    order = [Caller.OWNER, Caller.TOKEN, Caller.NODE, Caller.ANYONE]

    assert all(at_most(low, high) for high, low in combinations(order, 2))
    assert not any(at_most(high, low) for high, low in combinations(order, 2))
    assert at_most(Caller.TOKEN, Caller.KNOWN)
    assert at_most(Caller.KNOWN, Caller.TOKEN)


@pytest.mark.parametrize(("who", "to"), list(product(EVERYONE, Caller)))
def test_lowering_gives_what_both_may_and_keeps_who_it_is(who, to):
    low = lowered(who, to)

    assert reached(low) == reached(who) & reached(Principal(to, "x"))
    assert (low.id, low.prefix) == (who.id, who.prefix)
    assert at_most(low.kind, who.kind)


def test_a_caller_that_need_not_be_lowered_stays_the_very_same():
    assert lowered(STRANGER, Caller.KNOWN) is STRANGER
    assert lowered(BRIDGE, Caller.KNOWN) is BRIDGE


def test_a_token_lowered_to_a_known_node_is_still_a_token():
    assert lowered(TRUSTED, Caller.KNOWN) == Principal(Caller.TOKEN, "token:2", "tg:")


@pytest.mark.parametrize(
    ("who", "sender", "may"),
    [
        (BRIDGE, "token:1", True),
        (BRIDGE, "tg:1:2", True),
        (BRIDGE, "sl:1:2", False),
        (BRIDGE, "TG:1:2", False),
        (BRIDGE, "xtg:1:2", False),
        (BRIDGE, "token:2", False),
        (BRIDGE, f"tg:1:2@{OTHER}", False),
        (BRIDGE, OWNER.id, False),
        (BRIDGE, f"adder@{NODE}", False),
        (TRUSTED, OWNER.id, False),
        (Principal(Caller.TOKEN, "token:3"), "tg:1:2", False),
        (OWNER, "tg:1:2", True),
        (OWNER, f"owner@{OTHER}", False),
        (OWNER, f"tg:1:2@{OTHER}", False),
        (KNOWN, f"owner@{OTHER}", True),
        (KNOWN, f"adder@{OTHER}", True),
        (KNOWN, f"owner@{NODE}", False),
        (KNOWN, "tg:1:2", False),
        (ANYONE, "tg:1:2", False),
    ],
)
def test_callers_speak_only_for_their_own(who, sender, may):
    assert who.speaks_for(sender) is may


def test_principals_are_equal_by_value_and_can_be_keys():
    assert {BRIDGE: 1}[Principal(Caller.TOKEN, "token:1", "tg:")] == 1
    assert Principal(Caller.TOKEN, "token:1", "tg:", as_owner=True) != BRIDGE
