"""What a node knows of its own agents, and what it signs."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from aios_nb.access import ANYONE, Caller, Principal, owner_of
from aios_nb.agents.definition import describe
from aios_nb.errors import NoSuchAgent, Unreachable
from aios_nb.hub import news
from aios_nb.identity import from_base64url
from aios_nb.records import AgentRecord, NodeRecord, check_time, parse
from tests.sites import TestSite


async def adder(text: str) -> str:
    """Adds the numbers in a sentence."""
    return text


async def weather(text: str) -> str:
    """Tells the weather in a city."""
    return text


async def diary(text: str) -> str:
    """Keeps my private diary."""
    return text


@pytest.fixture
def site(tmp_path: Path) -> Iterator[TestSite]:
    started = TestSite(
        tmp_path / "home",
        [
            describe(adder, tags=["math"], examples=["2 and 2"]),
            describe(weather, access="public"),
            describe(diary, access="private"),
        ],
    )
    yield started
    started.stop()


def directory(site: TestSite) -> Any:
    return site.rooms.directory


def record_of(site: TestSite, name: str) -> AgentRecord:
    text = site.call("agents.card", agent=name)["record"]
    signed = parse(from_base64url(text))
    assert isinstance(signed.record, AgentRecord)
    check_time(signed.record, int(time.time() * 1000))
    return signed.record


def test_search_puts_the_agent_for_the_job_first_and_says_why(site: TestSite) -> None:
    rows = site.call("agents.search", query="please sum up the numbers I have", limit=5)["agents"]
    assert rows[0]["name"] == "adder"
    assert rows[0]["score"] > 0
    assert "numb" in rows[0]["why"]
    assert site.call("agents.search", query="weather")["agents"][0]["name"] == "weather"
    assert site.call("agents.search", query="wether")["agents"][0]["name"] == "weather"
    assert site.call("agents.search", query="the of and")["agents"] == []


def test_the_listing_is_complete(site: TestSite) -> None:
    names = [row["name"] for row in site.call("agents.list")["agents"]]
    builtin = ["calc", "clock", "concierge", "echo", "librarian"]
    assert names == sorted([*builtin, "adder", "diary", "weather"])


def test_shared_agents_have_a_signed_record_and_private_ones_none(site: TestSite) -> None:
    record = record_of(site, "adder")
    assert record.id == f"adder@{site.node.node_id}"
    assert record.access == "network"
    assert record_of(site, "weather").access == "public"
    for name in ("diary", "echo"):
        assert site.call("agents.card", agent=name)["record"] is None


def test_a_new_version_has_a_higher_seq_in_the_same_epoch(site: TestSite) -> None:
    first = record_of(site, "adder")

    async def better(text: str) -> str:
        """Adds much better."""
        return text

    site.node.host(better, name="adder")
    second = record_of(site, "adder")
    assert second.seq > first.seq
    assert second.epoch == first.epoch
    assert second.card != first.card


def test_a_restart_is_a_new_epoch_with_the_same_id(site: TestSite, tmp_path: Path) -> None:
    first = record_of(site, "adder")
    node_id = site.node.node_id
    site.stop()
    again = TestSite(tmp_path / "home", [adder])
    try:
        second = record_of(again, "adder")
        assert again.node.node_id == node_id
        assert second.epoch > first.epoch
        assert second.seq > first.seq
    finally:
        again.stop()


def test_withdrawing_leaves_a_signed_word_that_it_is_gone(site: TestSite) -> None:
    first = record_of(site, "adder")
    site.call("agents.withdraw", name="adder")
    with pytest.raises(NoSuchAgent):
        site.call("agents.card", agent="adder")
    stored = site.on_loop(lambda: directory(site)._stored("adder"))
    assert stored.record.withdrawn
    assert stored.record.seq > first.seq


def test_making_an_agent_private_ends_its_record(site: TestSite) -> None:
    site.node.host(describe(adder, access="private"))
    assert site.call("agents.card", agent="adder")["record"] is None
    assert site.on_loop(lambda: directory(site)._stored("adder")).record.withdrawn


def test_who_may_not_call_an_agent_does_not_see_it(site: TestSite) -> None:
    seen = {
        caller: {row.name for row in site.on_loop(lambda: directory(site).rows(principal))}  # noqa: B023
        for caller, principal in {
            "owner": owner_of(site.node.node_id),
            "node": Principal(Caller.NODE, "b" * 32),
            "anyone": ANYONE,
        }.items()
    }
    assert {"adder", "weather", "diary", "echo"} <= seen["owner"]
    assert seen["node"] == {"adder", "weather"}
    assert seen["anyone"] == {"weather"}
    with pytest.raises(NoSuchAgent) as hidden:
        site.on_loop(lambda: directory(site).local("diary", ANYONE))
    with pytest.raises(NoSuchAgent) as missing:
        site.on_loop(lambda: directory(site).local("diaries", ANYONE))
    assert hidden.value.message.replace("diary", "") == missing.value.message.replace("diaries", "")
    assert hidden.value.data["near"] == []


def test_an_id_with_another_nodes_name_is_not_ours(site: TestSite) -> None:
    assert site.call("agents.card", agent=f"adder@{site.node.node_id}")["card"]["name"] == "adder"
    with pytest.raises(Unreachable):
        site.call("agents.card", agent=f"adder@{'a' * 32}")


def test_the_well_known_page_is_the_signed_place_of_the_node(site: TestSite) -> None:
    page = site.on_loop(directory(site).wellknown)
    record = parse(from_base64url(page["record"])).record
    assert isinstance(record, NodeRecord)
    assert page["node_id"] == record.node == site.node.node_id
    assert record.scope == "loopback"
    port = int(site.node.url.rsplit(":", 1)[1])
    assert [(end.kind, end.host) for end in record.endpoints] == [
        ("http", "127.0.0.1"),
        ("udp", "127.0.0.1"),
    ]
    assert record.endpoints[0].port == port


def test_a_withdrawn_stand_in_gives_the_built_in_back(site: TestSite) -> None:
    async def shouting(text: str) -> str:
        return text.upper()

    site.node.host(shouting, name="echo")
    assert site.call("chat.send", agent="echo", text="x")["text"] == "X"
    site.call("agents.withdraw", name="echo")
    assert site.call("chat.send", agent="echo", text="x")["text"] == "x"


def test_watchers_hear_who_comes_and_goes(site: TestSite) -> None:
    async def read() -> list[tuple[str, str]]:
        flow = site.flow("agents.watch")
        first = await flow.result()
        assert "adder" in {row["name"] for row in first["agents"]}
        rooms = site.rooms
        assert rooms is not None
        await rooms.host(describe(adder, name="third"))
        await rooms.host(describe(adder, name="third"))
        await rooms.withdraw("third")
        heard = []
        async for change in flow:
            heard.append((change["event"], change["agent"]["name"]))
            if len(heard) == 3:
                flow.close()
                break
        return heard

    assert site.node.run(read) == [
        ("offered", "third"), ("replaced", "third"), ("withdrawn", "third"),
    ]  # fmt: skip


def test_a_watcher_too_far_behind_is_told_the_difference(
    site: TestSite, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def read() -> list[tuple[str, str, bool]]:
        rooms = site.rooms
        assert rooms is not None
        await rooms.host(describe(adder, name="leaves"))
        await rooms.host(describe(adder, name="changes"))
        flow = site.flow("agents.watch")
        await flow.result()
        await rooms.withdraw("leaves")
        await rooms.host(describe(adder, name="changes", about="Another"))
        await rooms.host(describe(adder, name="comes"))
        for _ in range(news.NEWS_KEPT):
            await rooms.host(describe(adder, name="flickers"))
        heard = []
        for _ in range(4):
            change = await anext(flow)
            agent = change["agent"]
            heard.append((change["event"], agent["name"], agent["live"]))
        return heard

    monkeypatch.setattr(news, "NEWS_KEPT", 3)
    site.on_loop(lambda: setattr(site.rooms.directory, "news", news.News()))
    assert site.node.run(read) == [
        ("withdrawn", "leaves", False),
        ("replaced", "changes", True),
        ("offered", "comes", True),
        ("offered", "flickers", True),
    ]


def test_the_start_of_our_own_id_names_our_agents(site: TestSite) -> None:
    node_id = site.node.node_id
    for length in (4, 8, 12, 32):
        card = site.call("agents.card", agent=f"adder@{node_id[:length]}")
        assert card["card"]["id"] == f"adder@{node_id}"
    other = "a" if node_id[3] != "a" else "b"
    for wrong in (node_id[:3], node_id[:3] + other, node_id + "a"):
        with pytest.raises(NoSuchAgent):
            site.call("agents.card", agent=f"adder@{wrong}")


def test_who_finds_no_agent_is_told_how_people_list_them(site: TestSite) -> None:
    with pytest.raises(NoSuchAgent, match="aios-nb search"):
        site.call("agents.card", agent="zzzzzz")
