"""Who is speaking when another node calls."""

from __future__ import annotations

import pytest

from aios_nb.access import Caller, Principal
from aios_nb.chat.room import voice_of_node
from aios_nb.envelope import SENDER_ID

NODE, OTHER = "b" * 32, "c" * 32
PRINCIPAL = Principal(Caller.NODE, NODE)
LONG = "tg:" + "x" * 111


@pytest.mark.parametrize(
    ("claimed", "kind", "sender", "type_"),
    [
        (f"owner@{NODE}", "human", f"owner@{NODE}", "human"),
        (f"owner@{NODE}", "agent", f"owner@{NODE}", "human"),
        (f"adder@{NODE}", "agent", f"adder@{NODE}", "agent"),
        (f"adder@{NODE}", "human", f"adder@{NODE}", "agent"),
        ("tg:1:2", "human", f"tg:1:2@{NODE}", "human"),
        (f"tg:1:2@{NODE}", "human", f"tg:1:2@{NODE}", "human"),
        (LONG, "human", f"{LONG}@{NODE}", "human"),
    ],
)
def test_a_node_speaks_for_its_own_people_and_agents(claimed, kind, sender, type_):
    said = voice_of_node(PRINCIPAL, claimed, kind)

    assert (said.id, said.type) == (sender, type_)


@pytest.mark.parametrize(
    "claimed",
    [
        f"owner@{OTHER}",
        f"adder@{OTHER}",
        f"tg:1:2@{OTHER}",
        f"adder@{OTHER}@{NODE}",
        f"Adder@{NODE}",
        f"@{NODE}",
        "owner",
        "adder",
        NODE,
        "alice",
        "token:1",
        f"token:1@{NODE}",
        "tg:",
        "tg:a b",
        "",
        LONG + "x",
    ],
)
@pytest.mark.parametrize("kind", ["human", "agent"])
def test_whatever_else_a_node_claims_is_its_owners_word(claimed, kind):
    said = voice_of_node(PRINCIPAL, claimed, kind)

    assert (said.id, said.type) == (f"owner@{NODE}", "human")


def test_what_a_node_says_is_never_in_the_name_of_somebody_here():
    for claimed in ("tg:1:2", f"tg:1:2@{NODE}", f"adder@{NODE}", f"owner@{OTHER}", "x" * 500):
        said = voice_of_node(PRINCIPAL, claimed, "human")
        assert said.id.endswith(f"@{NODE}")
        assert SENDER_ID.fullmatch(said.id)


def test_an_agent_cannot_pass_for_a_person_behind_a_bridge():
    assert voice_of_node(PRINCIPAL, "tg:1:2", "agent").id == f"owner@{NODE}"
