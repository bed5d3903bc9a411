"""How nodes and agents are named to people."""

from __future__ import annotations

import pytest

from aios_nb.people.naming import caller, is_built_in

NODE = "kzdvvj2umnduyauf35o36k6kw462mujv"
ROW = {"name": "calc", "node_id": "ours", "access": "private"}


@pytest.mark.parametrize(
    ("row", "found"),
    [
        (ROW, True),
        (ROW | {"name": "adder"}, False),
        (ROW | {"node_id": "theirs"}, False),
        (ROW | {"access": "public"}, False),
        (ROW | {"source": "mcp"}, False),
        ({"name": "calc"}, False),
    ],
)
def test_only_what_a_node_comes_with_is_built_in(row: dict[str, str], found: bool) -> None:
    assert is_built_in(row, "ours") is found


def test_a_caller_has_the_name_of_its_node_and_the_start_of_its_id() -> None:
    assert caller(NODE, "bob") == "bob · kzdvvj2u"
    assert caller(f"owner@{NODE}", "") == "you"
    assert caller("token:phone", "") == "token:phone"
    assert caller(NODE, "") == NODE, "all there is to block it by"
