"""What somebody on the wire can see, and what they can do."""

from __future__ import annotations

from typing import Any

import pytest

import aios_nb as aios
from aios_nb.errors import Unreachable
from tests.between.conftest import Make, the, until
from tests.between.relay import Relay
from tests.sites import TestSite

SECRET = "the-launch-code-is-0000"


async def repeats(text: str, ctx: Any) -> Any:
    for word in text.split():
        yield f"{word} "
    if ctx.files:
        yield ctx.read(ctx.files[0]).decode()


def test_nothing_that_is_said_can_be_read_on_the_wire(node: Make) -> None:
    b = node("b", repeats)
    with Relay(b.node.url) as relay:
        a = node("a", join=f"{relay.url}#{b.node.node_id}")
        file = aios.File(f"{SECRET} in a file".encode(), name=f"{SECRET}.txt")
        reply = a.node.ask(the(b, "repeats"), f"{SECRET} {SECRET}", files=[file])
        assert reply.count(SECRET) == 3
        a.stream(agent=the(b, "repeats"), text=SECRET)
        seen = bytes(relay.seen)
    assert len(seen) > 1000
    for word in (SECRET, "repeats", "aios.message", "jsonrpc", a.node.node_id):
        assert word.encode() not in seen


def test_a_man_in_the_middle_is_not_the_node_that_was_named(node: Make) -> None:
    b = node("b", repeats)
    middle = node("middle", repeats)
    a = node("a", join=f"{middle.node.url}#{b.node.node_id}")
    with pytest.raises(Unreachable) as caught:
        a.call("chat.send", agent=the(b, "repeats"), text=SECRET, deadline_s=1)
    assert caught.value.data["reason"] in {"refused", "no answer"}
    assert middle.call("node.callers")["callers"] == []
    assert all(peer["state"] != "alive" for peer in a.call("node.peers")["peers"])


def flipped(data: bytes, at: int) -> bytes:
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


@pytest.mark.parametrize("way", ["there", "back"])
def test_a_changed_byte_ends_the_link_and_the_answer_still_comes(node: Make, way: str) -> None:
    b = node("b", repeats)
    with Relay(b.node.url) as relay:
        a = node("a", join=f"{relay.url}#{b.node.node_id}")
        assert a.call("chat.send", agent=the(b, "repeats"), text="one")["text"] == "one "
        changed = 0

        def change(data: bytes, direction: str) -> bytes:
            nonlocal changed
            if direction == way and not changed and len(data) > 60:
                changed += 1
                return flipped(data, len(data) - 5)
            return data

        relay.change = change
        reply = a.call("chat.send", agent=the(b, "repeats"), text="two", deadline_s=60)
        assert reply["text"] == "two "
        assert changed == 1
        assert relay.connections > 1
    assert sum(row["opener"] == a.node.node_id for row in sides(b)) == 2


def sides(site: TestSite) -> list[dict[str, Any]]:
    return list(site.call("chat.list")["conversations"])


def test_the_first_answer_at_an_unpinned_url_is_the_only_one_that_is_taken(node: Make) -> None:
    b = node("b", repeats)
    port = int(b.node.url.rpartition(":")[2])
    a = node("a", join=b.node.url)
    assert a.call("chat.send", agent="repeats", text="hello")["text"] == "hello "
    b.stop()
    impostor = node("impostor", repeats, port=port)
    a.stop()
    a = node("a", join=impostor.node.url)
    until(lambda: a.rooms.links.waiting()[0]["problem"])
    assert impostor.node.node_id in a.rooms.links.waiting()[0]["problem"]
    assert impostor.node.node_id not in {peer["node_id"] for peer in a.call("node.peers")["peers"]}


def test_nodes_of_different_networks_do_not_talk(node: Make) -> None:
    b = node("b", repeats, network="home")
    a = node("a", join=b, network="work")
    with pytest.raises(Unreachable):
        a.call("chat.send", agent=the(b, "repeats"), text="hello", deadline_s=1)
    c = node("c", join=b, network="home")
    assert c.call("chat.send", agent="repeats", text="hello")["text"] == "hello "
