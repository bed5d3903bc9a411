"""Agents as people name them."""

from __future__ import annotations

import pytest

from aios_nb.people.naming import is_built_in

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
