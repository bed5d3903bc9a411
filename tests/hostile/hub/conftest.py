"""Real nodes on loopback, as the tests of the network have them."""

from __future__ import annotations

from tests.network.conftest import node

__all__ = ["node"]
