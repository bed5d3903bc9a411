"""Several real nodes, each in a home of its own, joined over real links."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from tests.sites import TestSite

Make = Callable[..., TestSite]
Other = TestSite | str


def the(site: TestSite, name: str) -> str:
    """The id of an agent of that node."""
    return f"{name}@{site.node.node_id}"


def until(done: Callable[[], Any]) -> None:
    """Wait for what another node does in its own time."""
    ends = time.monotonic() + 30
    while not done():
        assert time.monotonic() < ends
        time.sleep(0.01)


def _address(other: Other) -> str:
    return other if isinstance(other, str) else f"{other.node.url}#{other.node.node_id}"


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Make]:
    """``node("a", agents…, join=other)``: strangers to each other unless they are allowed."""
    sites: list[TestSite] = []

    def make(
        name: str,
        *agents: Any,
        join: Other | Sequence[Other] = (),
        home: Path | None = None,
        **settings: Any,
    ) -> TestSite:
        others = [join] if isinstance(join, (TestSite, str)) else join
        settings["join"] = tuple(map(_address, others))
        # Only by the links a test makes, and no way around them.
        settings = {"gossip": False, "dht": False, **settings}
        site = TestSite(home or tmp_path / name, agents, name=name, **settings)
        sites.append(site)
        return site

    yield make
    for site in reversed(sites):
        site.stop()
