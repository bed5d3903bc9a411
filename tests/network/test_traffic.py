"""What a node tells of its network: links, agents and bytes, as far as it knows them itself."""

from __future__ import annotations

import asyncio
from typing import Any

from aios_nb.hub import peers
from tests.network.conftest import Make, meet, say, the, until, works
from tests.network.madeup import MadeUp
from tests.sites import TestSite


def row(site: TestSite, node_id: str) -> dict[str, Any]:
    rows = site.call("node.peers")["peers"]
    return next((one for one in rows if one["node_id"] == node_id), {"link": False})


def test_a_row_tells_of_link_agents_and_bytes_and_the_sums_have_them_all(node: Make):
    a = node("a")
    b = node("b", works("painter"), works("smith"), join=a)
    c = node("c", join=a)
    meet(a, b, c)
    b_id, c_id = b.node.node_id, c.node.node_id
    until(lambda: row(a, b_id)["agents"] == 2)
    assert row(a, b_id)["link"]
    assert row(a, c_id)["agents"] == 0

    before = row(a, b_id)
    assert before["sent"] > 0 < before["received"]
    say(a, the(b, "painter"), "x" * 10_000)
    after = row(a, b_id)
    assert after["sent"] - before["sent"] > 10_000, "what was asked"
    assert after["received"] - before["received"] > 10_000, "what was answered"

    told = a.call("node.peers")
    traffic, rows = told["traffic"], told["peers"]
    for way in ("sent", "received"):
        parts = [traffic[f"{kind}_{way}"] for kind in ("link", "gossip", "dht")]
        assert all(part > 0 for part in parts[:2])
        assert sum(parts) == sum(one[way] for one in rows), "every byte is somebody's"


def test_bytes_of_a_link_that_ended_are_still_told(node: Make):
    a = node("a", gossip=False, dht=False)
    b = node("b", works("painter"), join=a, gossip=False, dht=False)
    gone = b.node.node_id
    until(lambda: row(a, gone)["link"])
    say(b, the(b, "painter"))
    before = row(a, gone)
    b.stop()
    until(lambda: row(a, gone)["state"] == "left")
    after = row(a, gone)
    assert not after["link"]
    assert after["sent"] >= before["sent"] > 0
    traffic = a.call("node.peers")["traffic"]
    assert traffic["link_sent"] == after["sent"]
    assert traffic["gossip_sent"] == traffic["dht_sent"] == 0


def test_info_counts_the_living_and_what_they_offer_for_the_owner_alone(node: Make):
    a = node("a")
    b = node("b", works("painter"), join=a)
    c = node("c", works("smith"), works("baker"), join=a)
    meet(a, b, c)
    until(lambda: a.call("node.info")["known_agents"] == 3)
    assert a.call("node.info")["peers"] == 2
    assert a.node.info().known_agents == 3
    c.stop()
    until(lambda: a.call("node.info")["peers"] == 1)
    until(lambda: a.call("node.info")["known_agents"] == 1)

    async def asked_by_a_node() -> Any:
        link = await b.rooms.links.reach(a.node.node_id)
        return await link.call("node.info", {})

    told = b.node.run(asked_by_a_node)
    assert not {"peers", "known_agents"} & told.keys()


def test_thousands_of_rows_are_made_in_portions_and_read_their_records_once(node: Make):
    a = node("a", dht=False)
    network = a.rooms.network
    a.on_loop(lambda: _imagine(a, 4 * peers.PORTION + 1))
    read: list[str] = []
    real = network.catalogue.node_record
    network.catalogue.node_record = lambda node_id: read.append(node_id) or real(node_id)

    async def asked() -> tuple[list[dict[str, Any]], int]:
        turns, over = 0, False

        async def others() -> None:
            nonlocal turns
            while not over:
                turns += 1
                await asyncio.sleep(0)

        beside = asyncio.ensure_future(others())
        rows = (await a.node.client.call("node.peers"))["peers"]
        over = True
        await beside
        return rows, turns

    rows, turns = a.node.run(asked)
    assert len(rows) == 4 * peers.PORTION + 1
    assert {one["name"] for one in rows} == {"made-up"}
    assert {one["url"] for one in rows} == {"http://127.0.0.1:9"}
    assert turns >= 4, "others had their turn meanwhile"
    assert read
    read.clear()
    again, _ = a.node.run(asked)
    assert [one["url"] for one in again] == [one["url"] for one in rows]
    assert not read


def _imagine(site: TestSite, count: int) -> None:
    """Members that are nowhere, with their records."""
    network = site.rooms.network
    gossip = network._started().gossip
    for _ in range(count):
        one = MadeUp(address=("127.0.0.1", 9))
        gossip.introduce(asyncio.get_running_loop().time(), one.presence())
        network.catalogue.offer(one.node(("http", "127.0.0.1", 9)).to_bytes())
    gossip.take()  # nobody is told
