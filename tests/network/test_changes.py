"""What one node offers, changes and withdraws, as all others see it."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest

from aios_nb.client import RemoteClient, SiteClient
from aios_nb.client.interface import Flow
from tests.network.conftest import PATIENCE_S, Make, found, meet, refused, say, the, until, works
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
    info = site.node.run_info
    assert info is not None
    return await RemoteClient.connect(info.url, info.token)


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
        stopped = asyncio.get_running_loop().create_future()
        b.node.loop.submit(_busy(a, stopped))
        doubted = await _next(flow)
        a.node.loop.loop.call_soon(stopped.set_result, None)
        return [doubted, await _next(flow)]

    assert a.node.run(watch) == [("replaced", "painter", False), ("replaced", "painter", True)]


async def _next(flow: Flow) -> Heard:
    change: dict[str, Any] = await asyncio.wait_for(anext(flow), PATIENCE_S)
    return change["event"], change["agent"]["name"], change["agent"]["live"]
