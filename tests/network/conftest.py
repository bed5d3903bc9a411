"""Real nodes on loopback that gossip: each in a home of its own unless a test says otherwise."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from aios_nb.agents.definition import Definition, describe
from aios_nb.errors import RpcError
from tests.sites import TestSite

Make = Callable[..., TestSite]
Other = TestSite | str
PATIENCE_S = 40.0
"""For what nodes do in their own time: a ceiling, never a measure."""


def works(name: str, about: str = "", **card: Any) -> Definition:
    """An agent that says who answered."""

    async def answer(text: str) -> str:
        return f"{name} has {text}"

    return describe(answer, name=name, about=about or f"{name} answers", **card)


def the(site: TestSite, name: str) -> str:
    """The id of an agent of that node."""
    return f"{name}@{site.node.node_id}"


def until(done: Callable[[], Any], tells: Callable[[], Any] = lambda: "it never came") -> None:
    """Wait for what nodes do in their own time."""
    ends = time.monotonic() + PATIENCE_S
    while not done():
        assert time.monotonic() < ends, tells()
        time.sleep(0.02)


def found(site: TestSite, words: str, limit: int = 50) -> dict[str, dict[str, Any]]:
    """What a search brings there, by id."""
    rows = site.call("agents.search", query=words, limit=limit)["agents"]
    return {row["id"]: row for row in rows}


def states(site: TestSite) -> dict[str, str]:
    """The other nodes as that one sees them, by id."""
    return {row["node_id"]: row["state"] for row in site.call("node.peers")["peers"]}


def sees(site: TestSite, other: TestSite) -> str | None:
    return states(site).get(other.node.node_id)


def know_each_other(*sites: TestSite) -> bool:
    return all(sees(one, other) == "alive" for one in sites for other in sites if one is not other)


def meet(*sites: TestSite) -> None:
    """Wait until all of them know all of them."""
    until(lambda: know_each_other(*sites), lambda: [states(site) for site in sites])


def say(site: TestSite, agent: str, text: str = "hello") -> str:
    return str(site.call("chat.send", agent=agent, text=text)["text"])


def refused(site: TestSite, agent: str) -> RpcError:
    """Why that agent cannot be called."""
    with pytest.raises(RpcError) as raised:
        say(site, agent)
    return raised.value


def address(other: Other) -> str:
    return other if isinstance(other, str) else f"{other.node.url}#{other.node.node_id}"


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Make]:
    """``node("a", agents…, join=other)``."""
    sites: list[TestSite] = []

    def make(
        name: str,
        *agents: Any,
        join: Other | Sequence[Other] = (),
        home: Path | None = None,
        **settings: Any,
    ) -> TestSite:
        others = [join] if isinstance(join, (TestSite, str)) else join
        settings["join"] = tuple(map(address, others))
        site = TestSite(home or tmp_path / name, agents, name=name, **settings)
        sites.append(site)
        return site

    yield make
    for site in reversed(sites):
        site.stop()
