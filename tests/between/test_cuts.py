"""A cut link, a killed node, a host that is away: nothing is lost, nothing runs twice."""

from __future__ import annotations

import asyncio
import random
import threading
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from aios_nb.errors import ConnectionLost, RpcError, Unreachable
from tests.between.conftest import Make, the, until
from tests.between.relay import Relay
from tests.sites import TestSite

WORDS = "".join(f"word{number} " for number in range(2000))
CUTS = 100
RETRIES = 500


async def speaks(text: str) -> Any:
    """Streams WORDS, slowly enough that a cut comes in the middle."""
    for start in range(0, len(WORDS), 60):
        yield WORDS[start : start + 60]
        await asyncio.sleep(0)


@pytest.fixture
def b(node: Make) -> TestSite:
    return node("b", speaks)


@pytest.fixture
def relay(b: TestSite) -> Iterator[Relay]:
    with Relay(b.node.url) as relay:
        yield relay


def far(node: Make, relay: Relay, b: TestSite, **settings: Any) -> TestSite:
    """A node that knows b only through the relay, and may call it often."""
    # Without b's own word where it is, there is no way around the relay.
    b.on_loop(lambda: setattr(b.rooms.links, "_record", lambda: None))
    a = node("a", join=f"{relay.url}#{b.node.node_id}", **settings)
    b.call("nodes.allow", node=a.node.node_id)
    return a


def test_a_stream_is_whole_wherever_the_link_is_cut(node: Make, b: TestSite, relay: Relay) -> None:
    a = far(node, relay, b)
    a.stream(agent=the(b, "speaks"), text="warm up")
    before = relay.back
    a.stream(agent=the(b, "speaks"), text="warm up")
    whole = relay.back - before  # what a stream takes on the wire
    for point in random.Random(7).sample(range(1, whole), CUTS):
        relay.cut_after(point)
        deltas, result = a.stream(agent=the(b, "speaks"), text=f"cut at {point}")
        assert result["text"] == WORDS
        assert "".join(delta["text"] for delta in deltas) == WORDS
    runs = b.call("chat.list", limit=1000)["conversations"]
    assert len(runs) == CUTS + 2  # each was taken once
    assert relay.connections > CUTS * 9 // 10  # each of which is a cut, but for the first


def test_a_counter_runs_at_most_once_per_id_whatever_is_cut(node: Make) -> None:
    ran: Counter[str] = Counter()

    async def counter(text: str) -> Any:
        ran[text] += 1
        for _ in range(3):
            yield "."
            await asyncio.sleep(0.001)

    b = node("b", counter)
    chance = random.Random(11)
    with Relay(b.node.url) as relay:
        a = far(node, relay, b)
        for number in range(RETRIES // 5):
            message = {"agent": the(b, "counter"), "text": f"n{number}", "message_id": f"m{number}"}
            relay.cut_after(chance.randrange(1, 3000))
            taken = [a.start("chat.send", **message) for _ in range(2)]
            threading.Timer(chance.random() * 0.01, relay.cut).start()
            taken += [a.start("chat.send", **message) for _ in range(2)]
            results = [future.result(60) for future in taken]
            results.append(a.call("chat.send", **message))  # and once more when all is over
            assert {result["text"] for result in results} == {"..."}
            assert len({result["reply_id"] for result in results}) == 1
    assert len(ran) == RETRIES // 5
    assert set(ran.values()) == {1}


def test_a_request_that_is_sent_again_and_again_over_cut_links_runs_once(node: Make) -> None:
    """The host's side of it: the same id comes over the link, as often as a home would try."""
    ran: Counter[str] = Counter()
    heard: Counter[bool] = Counter()

    async def counter(text: str) -> Any:
        ran[text] += 1
        for _ in range(3):
            yield "."
            await asyncio.sleep(0.001)

    b = node("b", counter)
    chance = random.Random(13)
    with Relay(b.node.url) as relay:
        a = far(node, relay, b)
        for number in range(RETRIES // 5):
            for _ in range(5):
                when = chance.choice(("before", "during", "after", "never"))
                if when == "before":
                    relay.cut()
                elif when == "during":
                    relay.cut_after(chance.randrange(1, 600))
                    threading.Timer(chance.random() * 0.005, relay.cut).start()
                heard[answered(a, b, number)] += 1
                if when == "after":
                    relay.cut()
            relay.cut_after(1 << 30)
            until(lambda number=number: answered(a, b, number))  # in the end it is heard
    assert heard.total() == RETRIES
    assert heard[False] > RETRIES // 10
    assert relay.connections > RETRIES // 4
    assert len(ran) == RETRIES // 5
    assert set(ran.values()) == {1}


def answered(a: TestSite, b: TestSite, number: int) -> bool:
    """Whether b's counter answers this time; the id is the same every time."""
    asked = {
        "sender": {"id": f"owner@{a.node.node_id}", "type": "human"},
        "recipient": {"id": the(b, "counter"), "type": "agent"},
        "message_type": "request",
        "content": {"task": f"n{number}"},
        "message_id": f"m{number}",
        "routing": {"path": [a.node.node_id]},
    }

    async def send() -> Any:
        link = await a.rooms.links.reach(b.node.node_id)
        return await link.call("aios.message", {"envelope": asked})

    try:
        answer = a.node.run(send)
    except (ConnectionLost, Unreachable):
        return False
    assert answer["content"]["result"] == "..."
    return True


def test_a_host_that_comes_back_in_time_gets_the_message_once(node: Make) -> None:
    heard: list[str] = []

    def hears(text: str) -> str:
        heard.append(text)
        return f"heard {text}"

    b = node("b", hears)
    port, agent = b.node.run_info.url.rpartition(":")[2], the(b, "hears")
    a = node("a", join=b)
    assert a.call("chat.send", agent=agent, text="one")["text"] == "heard one"
    b.stop()
    taken = a.call("chat.send", agent=agent, text="two", wait=False, deadline_s=60)
    assert taken["status"] == "accepted"
    b = node("b", hears, port=int(port))
    _, result = a.stream(message_id=taken["message_id"])
    assert result["text"] == "heard two"
    assert heard == ["one", "two"]


def test_a_host_that_stays_away_is_one_clear_failure(node: Make) -> None:
    b = node("b", speaks)
    agent = the(b, "speaks")
    a = node("a", join=b)
    a.call("chat.send", agent=agent, text="hello")
    b.stop()
    taken = a.call("chat.send", agent=agent, text="again", wait=False, deadline_s=0.5)
    with pytest.raises(Unreachable) as caught:
        a.stream(message_id=taken["message_id"])
    assert caught.value.data["ran"] == "no"
    rows = a.history(taken["conversation"])
    assert [row["kind"] for row in rows] == ["message", "status"]
    assert rows[0]["status"] == "failed"


def test_a_sender_that_was_stopped_goes_on_with_what_it_had_taken(node: Make) -> None:
    heard: list[str] = []

    def hears(text: str) -> str:
        heard.append(text)
        return f"heard {text}"

    b = node("b", hears)
    port, agent = int(b.node.url.rpartition(":")[2]), the(b, "hears")
    a = node("a", join=b)
    a.call("chat.send", agent=agent, text="one")
    b.stop()
    taken = a.call("chat.send", agent=agent, text="two", wait=False, deadline_s=60)
    a.stop()
    b = node("b", hears, port=port)
    a = node("a", join=b)
    _, result = a.stream(message_id=taken["message_id"])
    assert result["text"] == "heard two"
    assert heard == ["one", "two"]
    assert [row["kind"] for row in a.history(taken["conversation"])] == ["message", "message"]


def test_a_run_outlives_its_callers_node_for_a_while_only(node: Make) -> None:
    stopped = threading.Event()

    async def endless(text: str) -> str:
        try:
            await asyncio.sleep(1000)
        except asyncio.CancelledError:
            stopped.set()
            raise
        return text

    b = node("b", endless)
    b.on_loop(lambda: setattr(b.rooms.chat.exchange.orphans, "grace_s", 0.2))
    a = node("a", join=b)
    a.call("chat.send", agent=the(b, "endless"), text="x", wait=False, deadline_s=600)
    until(lambda: b.call("chat.list")["conversations"])
    assert not stopped.is_set()
    a.stop()
    assert stopped.wait(20)


def test_a_restarted_host_says_that_the_run_was_cut(node: Make) -> None:
    entered = threading.Event()

    async def cut(text: str) -> str:
        entered.set()
        await asyncio.sleep(1000)
        return text

    b = node("b", cut)
    port = int(b.node.url.rpartition(":")[2])
    a = node("a", join=b)
    taken = a.call("chat.send", agent=the(b, "cut"), text="x", wait=False, deadline_s=60)
    assert entered.wait(20)
    b.stop()
    b = node("b", cut, port=port)
    with pytest.raises(RpcError) as caught:
        a.stream(message_id=taken["message_id"])
    assert caught.value.data["status"] == "interrupted"
    assert caught.value.data["ran"] == "unknown"
