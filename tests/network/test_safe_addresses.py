"""Records name addresses that may be anyone's: what is looked for is not knocked at."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator, Sequence
from typing import Any

import pytest

from aios_nb.errors import RpcError, Unreachable
from aios_nb.hub.dialling import Dialling
from aios_nb.hub.post.budgets import PORT_HELLOS
from aios_nb.hub.presence import Presence
from aios_nb.records import Scope, Signed
from aios_nb.wire.peer.dial import Dialler
from tests.network.conftest import Make, found, meet, the, until, works
from tests.network.madeup import MadeUp
from tests.sites import TestSite

NEVER = ("169.254.169.254", "fe80::1", "fd00:ec2::254", "224.0.0.1", "0.0.0.0", "[::]", "::", "%")


@pytest.fixture
def dialled(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The URLs that any node dials."""
    urls: list[str] = []
    real = Dialler.dial

    async def dial(self: Dialler, url: str, *args: Any, **named: Any) -> Any:
        urls.append(url)
        return await real(self, url, *args, **named)

    monkeypatch.setattr(Dialler, "dial", dial)
    return urls


@pytest.fixture
def victim() -> Iterator[socket.socket]:
    """Somebody's server on this machine that has nothing to do with us."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        server.setblocking(False)
        yield server


def _tell(site: TestSite, node: MadeUp, records: Sequence[Signed]) -> None:
    """As if the gossip had brought it."""

    def tell() -> None:
        network = site.rooms.network
        spreading = network._started()
        spreading.gossip.introduce(asyncio.get_running_loop().time(), node.presence())
        for signed in records:
            network.catalogue.offer(signed.to_bytes())
        spreading.act()

    site.on_loop(tell)


def _knocks(server: socket.socket) -> int:
    count = 0
    while True:
        try:
            server.accept()[0].close()
        except BlockingIOError:
            return count
        count += 1


def test_searching_dials_nobody_whatever_records_say(
    node: Make, dialled: list[str], victim: socket.socket
):
    a = node("a")
    b = node("b", works("painter", "paints walls"), join=a)
    meet(a, b)
    until(lambda: the(b, "painter") in found(a, "paints"))
    port = victim.getsockname()[1]
    for number in range(20):
        made_up = MadeUp(address=("127.0.0.1", port))
        odd = [("http", "127.0.0.1", port), ("http", "127.0.0.1", 22), ("ftp", "localhost", 21)]
        _tell(a, made_up, [made_up.node(*odd), made_up.agent(f"odd{number}", "paints nothing")])
    for site in (a, b):  # who is said to be there is looked for by the gossip, not by a search
        site.on_loop(lambda site=site: setattr(site.rooms.network._started(), "_closed", True))
    before = len(dialled)
    for query in ("paints", "nothing at all", "name:odd3", "tag:odd", "live:yes paints"):
        found(a, query)
        found(b, query)
    assert any(row["name"].startswith("odd") for row in found(a, "paints nothing").values())
    assert dialled[before:] == []


def test_link_local_and_metadata_addresses_are_never_dialled(node: Make, dialled: list[str]):
    a = node("a")
    for scope in Scope:
        for start in range(0, len(NEVER), 4):
            other = MadeUp(scope=scope)
            endpoints = [("http", host, 80) for host in NEVER[start : start + 4]]
            _tell(a, other, [other.node(*endpoints), other.agent("trap")])
            with pytest.raises(Unreachable):
                a.call("chat.send", agent=f"trap@{other.id}", text="x")
    assert dialled == []


def test_an_address_of_this_machine_told_from_further_away_is_not_used(
    node: Make, dialled: list[str], victim: socket.socket
):
    a = node("a")
    port = victim.getsockname()[1]
    liar = MadeUp(scope=Scope.LOOPBACK, address=("127.0.0.1", port))
    records = [liar.node(("http", "127.0.0.1", port)), liar.agent("trap")]

    async def pulled() -> None:
        """What a page over a link to a node elsewhere would bring."""
        spreading = a.rooms.network._started()
        link = _Far([liar.presence()], records)
        spreading._links.scope = lambda _: Scope.GLOBAL
        await spreading._pages(link)

    a.node.run(pulled)
    assert a.rooms.network.member(liar.id) is None
    assert a.on_loop(lambda: a.rooms.network.whereabouts.places(liar.id)) == {}
    with pytest.raises(RpcError):
        a.call("chat.send", agent=f"trap@{liar.id}", text="x")
    assert dialled == []
    assert _knocks(victim) == 0


def test_many_records_that_name_one_victim_make_no_flood(
    node: Make, dialled: list[str], victim: socket.socket
):
    a = node("a")
    url = f"http://127.0.0.1:{victim.getsockname()[1]}"
    victim.close()
    liars = [MadeUp().id for _ in range(50)]
    now = 0.0
    a.rooms.links._told = lambda _: {url: Scope.LOOPBACK}
    dialling = Dialling(a.rooms.links, lambda _: {url: Scope.LOOPBACK}, lambda: now)

    async def all_at_once() -> None:
        for liar in liars:
            dialling.dial(liar, doubted=True)
            await asyncio.gather(*dialling._under_way)

    per_s, at_once = PORT_HELLOS[Scope.LOOPBACK]
    for turn in range(5):
        now = turn * 20.0
        a.node.run(all_at_once)
        assert len(dialled) <= at_once + per_s * now
    assert set(dialled) == {url}


class _Far:
    """A link to a node far away."""

    node_id = "z" * 32

    def __init__(self, presences: Sequence[Presence], records: Sequence[Signed]) -> None:
        self._page = {
            "presences": [one.to_bytes() for one in presences],
            "records": [one.to_bytes() for one in records],
            "after": None,
        }

    async def call(self, _method: str, _params: Any) -> Any:
        return self._page
