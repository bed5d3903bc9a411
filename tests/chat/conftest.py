"""Nodes for the chat room's tests."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.sites import TestSite


@pytest.fixture
def make_site(tmp_path: Path) -> Iterator[Callable[..., TestSite]]:
    """Start nodes; those still running are stopped at the end."""
    sites: list[TestSite] = []

    def make(*agents: Any, **settings: Any) -> TestSite:
        site = TestSite(tmp_path / "home", agents, **settings)
        sites.append(site)
        return site

    yield make
    for site in sites:
        site.stop()
