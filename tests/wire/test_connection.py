"""Whose connection it is: this machine's own, or another's."""

from __future__ import annotations

import asyncio
from typing import Any, cast

import pytest

from aios_nb.config import Limits
from aios_nb.wire.connection import Listener


class Ends:
    """The two ends of a connection, as a transport tells them."""

    def __init__(self, there: str, here: str) -> None:
        self._told = {"peername": (there, 50_000), "sockname": (here, 8000)}

    def get_extra_info(self, name: str) -> Any:
        return self._told.get(name)


@pytest.mark.parametrize(
    ("there", "here", "near"),
    [
        ("127.0.0.1", "127.0.0.1", True),
        ("::1", "::1", True),
        ("10.77.0.2", "10.77.0.2", True),  # a node that listens on one address only
        ("10.77.0.1", "10.77.0.2", False),
        ("2001:db8::1", "2001:db8::2", False),
    ],
)
def test_a_connection_from_our_own_address_has_not_left_the_machine(
    there: str, here: str, *, near: bool
) -> None:
    async def look() -> bool:
        listener = Listener(cast("Any", None), Limits(), by_uid=False)
        return listener._peer(cast("Any", Ends(there, here))).loopback

    assert asyncio.run(look()) is near
