"""What one node offers, changes and withdraws, as all others see it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from aios_nb.client import RemoteClient, SiteClient
from aios_nb.client.interface import Flow
from tests.network.conftest import (
    PATIENCE_S,
    Make,
    found,
    meet,
    refused,
    say,
    states,
    the,
    until,
    works,
)
from tests.sites import TestSite

Heard = tuple[str, str, bool]


def test_what_comes_changes_and_goes_does_so_everywhere(node: Make):
    a = node("a")
    b = node("b", join=a)
    c = node("c", works("painter", "paints walls"), join=a)
    meet(a, b, c)
    painter = the(c, "painter")
    for site in (a, b):
        until(lambda site=site: painter in found(site, "paints walls"))

    c.node.host(works("painter", "paints portraits"))
    c.node.host(works("late", "comes late"))
    for site in (a, b):
        until(lambda site=site: the(c, "late") in found(site, "name:late"))
        until(lambda site=site: _about(site, painter) == "paints portraits")
        assert found(site, "portraits")[painter]["live"]

    c.call("agents.withdraw", name="painter")
    for site in (a, b):
        until(lambda site=site: painter not in found(site, "name:painter"))
        assert painter not in found(site, "portraits")
        assert the(c, "late") in found(site, "name:late")
        assert "no such agent" in str(refused(site, "painter"))


def _about(site: TestSite, agent: str) -> str | None:
    row = found(site, f"name:{agent.partition('@')[0]}").get(agent)
    return None if row is None else row["about"]


async def _in_process(site: TestSite) -> SiteClient:
    return site.node.client


async def _over_a_socket(site: TestSite) -> SiteClient:
    assert site.node.run_info is not None
    return await RemoteClient.connect(site.node.run_info)


@pytest.mark.parametrize("connect", [_in_process, _over_a_socket])
def test_a_watcher_hears_of_the_agents_of_other_nodes(
    node: Make, connect: Callable[[TestSite], Awaitable[SiteClient]]
):
    a = node("a")
    b = node("b", works("painter", "paints walls"), join=a)
    meet(a, b)
    until(lambda: the(b, "painter") in found(a, "name:painter"))

    async def watch() -> list[Heard]:
        client = await connect(a)
        flow = client.notices("agents.watch")
        first = await flow.result()
        assert the(b, "painter") in {row["id"] for row in first["agents"]}
        heard: list[Heard] = []
        for change in (
            lambda: b.node.host(works("late", "comes late")),
            lambda: b.node.host(works("painter", "paints portraits")),
            lambda: b.node.withdraw("late"),
            b.stop,
        ):
            await asyncio.to_thread(change)
            heard.append(await _next(flow))
        flow.close()
        if isinstance(client, RemoteClient):
            await client.close()
        return heard

    assert a.node.run(watch) == [
        ("offered", "late", True),
        ("replaced", "painter", True),
        ("withdrawn", "late", False),
        ("withdrawn", "painter", False),
    ]


def test_a_watcher_hears_of_doubt_and_of_its_end(node: Make):
    a = node("a")
    b = node("b", works("painter"), join=a)
    meet(a, b)
    until(lambda: the(b, "painter") in found(a, "name:painter"))

    async def watch() -> list[Heard]:
        flow = a.flow("agents.watch")
        await flow.result()
        thawed = threading.Event()
        b.node.loop.loop.call_soon_threadsafe(thawed.wait, PATIENCE_S)
        doubted = await _next(flow)
        thawed.set()
        return [doubted, await _next(flow)]

    assert a.node.run(watch) == [("replaced", "painter", False), ("replaced", "painter", True)]


def test_a_restarted_node_shows_only_what_is_really_there(node: Make):
    a = node("a")
    b = node("b", works("painter"), works("singer"), join=a)
    c = node("c", join=a)
    meet(a, b, c)
    for site in (a, c):
        until(lambda site=site: the(b, "painter") in found(site, "name:painter"))
    b_id = b.node.node_id
    b.stop()
    again = node("b", works("singer"), works("dancer"), join=a)
    assert again.node.node_id == b_id
    for site in (a, c):
        until(lambda site=site: the(again, "dancer") in found(site, "name:dancer"))
        until(lambda site=site: the(again, "singer") in found(site, "name:singer"))
        assert found(site, "name:painter") == {}
        assert say(site, "dancer") == "dancer has hello"


def test_one_that_left_is_hidden_at_once(node: Make):
    a = node("a")
    b = node("b", works("painter", "paints walls"), join=a)
    c = node("c", join=a)
    meet(a, b, c)
    painter, gone = the(b, "painter"), b.node.node_id
    for site in (a, c):
        until(lambda site=site: painter in found(site, "paints"))
    b.stop()
    for site in (a, c):
        until(lambda site=site: states(site)[gone] == "left")
        assert painter not in found(site, "paints")
        assert found(site, "name:painter") == {}


async def _next(flow: Flow) -> Heard:
    change: dict[str, Any] = await asyncio.wait_for(anext(flow), PATIENCE_S)
    return change["event"], change["agent"]["name"], change["agent"]["live"]
