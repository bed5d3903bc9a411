"""Who may call what across nodes: directly, and through somebody else's agent."""

from __future__ import annotations

import asyncio
import hashlib
import threading
from typing import Any

import pytest

import aios_nb as aios
from aios_nb.access import Access
from aios_nb.agents.definition import describe
from aios_nb.config import Limits
from aios_nb.errors import InvalidParams, NoSuchAgent, NotAllowed, RpcError, Unreachable
from tests.between.conftest import Make, the, until
from tests.sites import TestSite


def offers(text: str) -> str:
    return f"done {text}"


def with_access(access: str) -> Any:
    return describe(offers, name=f"for-{access}", access=access)


ALL = [with_access(access.value) for access in Access]


def reachable(a: TestSite, b: TestSite) -> set[str]:
    """Which of b's agents answer a's owner."""
    found = set()
    for access in Access:
        try:
            a.call("chat.send", agent=the(b, f"for-{access}"), text="x")
        except NoSuchAgent:
            continue
        found.add(access.value)
    return found


def test_a_stranger_reaches_what_is_for_the_network_and_nothing_else(node: Make) -> None:
    b = node("b", *ALL)
    a = node("a", join=b)
    assert reachable(a, b) == {"network", "public"}


def test_a_node_that_was_allowed_reaches_more_at_once(node: Make) -> None:
    b = node("b", *ALL)
    a = node("a", join=b)
    assert "known" not in reachable(a, b)
    b.call("nodes.allow", node=a.node.node_id)
    assert reachable(a, b) == {"known", "network", "public"}


def test_a_node_that_is_shut_out_reaches_nothing_any_more(node: Make) -> None:
    b = node("b", *ALL)
    a = node("a", join=b)
    assert reachable(a, b)
    b.call("nodes.block", node=a.node.node_id)
    until(lambda: a.call("node.peers")["peers"][0]["state"] != "alive")
    with pytest.raises(Unreachable) as caught:
        a.call("chat.send", agent=the(b, "for-public"), text="x", deadline_s=1)
    assert caught.value.data["ran"] == "no"
    [caller] = b.call("node.callers")["callers"]
    assert (caller["id"], caller["blocked"]) == (a.node.node_id, True)
    b.call("nodes.allow", node=a.node.node_id)
    assert a.call("chat.send", agent=the(b, "for-known"), text="x", deadline_s=60)


def passing_on(name: str, target: str, **card: Any) -> Any:
    async def run(text: str, ctx: Any) -> str:
        return str(await ctx.call(target, text))

    return describe(run, name=name, **card)


@pytest.mark.parametrize("access", ["private", "known"])
def test_a_stranger_cannot_get_at_an_agent_through_another_one(node: Make, access: str) -> None:
    b = node("b", *ALL, passing_on("front", f"for-{access}"))
    a = node("a", join=b)
    assert b.call("chat.send", agent="front", text="x")["text"] == "done x"  # its owner may
    with pytest.raises(RpcError, match="no such agent"):
        a.call("chat.send", agent=the(b, "front"), text="x")


def test_an_agent_may_call_what_its_owner_trusts_it_with(node: Make) -> None:
    front = passing_on("front", "for-private", may_call=["for-private"])
    b = node("b", *ALL, front)
    a = node("a", join=b)
    assert a.call("chat.send", agent=the(b, "front"), text="x")["text"] == "done x"


def test_the_weakest_node_on_the_way_decides(node: Make) -> None:
    """c knows b but not a: what a asks b to ask c is a's wish."""
    c = node("c", *ALL)
    ask_known = passing_on("front", the(c, "for-known"))
    b = node("b", ask_known, join=c)
    a = node("a", join=b)
    c.call("nodes.allow", node=b.node.node_id)
    assert b.call("chat.send", agent="front", text="x")["text"] == "done x"
    with pytest.raises(RpcError, match="no such agent"):
        a.call("chat.send", agent=the(b, "front"), text="x")
    c.call("nodes.allow", node=a.node.node_id)
    assert a.call("chat.send", agent=the(b, "front"), text="x")["text"] == "done x"
    c.call("nodes.block", node=a.node.node_id)
    with pytest.raises(RpcError, match="no such agent"):
        a.call("chat.send", agent=the(b, "front"), text="x")


def test_an_agent_acts_for_its_owner_across_nodes_where_it_may(node: Make) -> None:
    c = node("c", *ALL)
    target = the(c, "for-known")
    b = node("b", passing_on("front", target, may_call=[target]), join=c)
    a = node("a", join=b)
    c.call("nodes.allow", node=b.node.node_id)
    assert a.call("chat.send", agent=the(b, "front"), text="x")["text"] == "done x"


def call(a: TestSite, b: TestSite, method: str, params: dict[str, Any]) -> Any:
    """What b answers to this call on a's link."""

    async def over_the_link() -> Any:
        link = await a.rooms.links.reach(b.node.node_id)
        return await link.call(method, params)

    return a.node.run(over_the_link)


def envelope(a: TestSite, b: TestSite, agent: str, **routing: Any) -> dict[str, Any]:
    return {
        "envelope": {
            "sender": {"id": f"owner@{a.node.node_id}", "type": "human"},
            "recipient": {"id": the(b, agent), "type": "agent"},
            "message_type": "request",
            "content": {"task": "x"},
            "routing": {"path": [a.node.node_id], **routing},
        }
    }


def test_a_node_cannot_leave_itself_out_of_the_path(node: Make) -> None:
    b = node("b", *ALL)
    a = node("a", join=b)
    for path in (
        [b.node.node_id],
        [a.node.node_id, the(b, "offers")],
        ["x"],
        [f"owner@{a.node.node_id}"],
        [a.node.node_id, a.node.node_id],
    ):
        with pytest.raises(InvalidParams, match="path"):
            call(a, b, "aios.message", envelope(a, b, "for-network", path=path))
    assert (
        call(a, b, "aios.message", envelope(a, b, "for-network"))["content"]["result"] == "done x"
    )
    assert call(a, b, "aios.message", envelope(a, b, "for-network", path=[]))


def test_a_claimed_sender_is_one_of_that_nodes_own(node: Make) -> None:
    seen: list[str] = []

    async def who(text: str, ctx: Any) -> str:
        seen.append(ctx.sender.id)
        assert ctx.caller == a.node.node_id
        return text

    b = node("b", who)
    a = node("a", join=b)
    for claimed in (f"owner@{b.node.node_id}", "tg:1:2", f"helper@{a.node.node_id}", "anything"):
        asked = envelope(a, b, "who")
        asked["envelope"]["sender"]["id"] = claimed
        call(a, b, "aios.message", asked)
    here = a.node.node_id
    assert seen == [f"owner@{here}", f"tg:1:2@{here}", f"helper@{here}", f"owner@{here}"]


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("chat.send", {"agent": "for-network", "text": "x"}),
        ("chat.open", {"agents": ["for-network"]}),
        ("chat.list", {}),
        ("chat.history", {"conversation": "c1"}),
        ("agents.withdraw", {"name": "for-network"}),
        ("nodes.allow", {"node": "a" * 32}),
        ("tokens.list", {}),
        ("chat.stream", {"agent": "for-network", "text": "x"}),
    ],
)
def test_a_link_carries_nothing_but_what_is_meant_for_it(
    node: Make, method: str, params: dict[str, Any]
) -> None:
    b = node("b", *ALL)
    a = node("a", join=b)
    b.call("nodes.allow", node=a.node.node_id)
    with pytest.raises(NotAllowed):
        call(a, b, method, params)


def test_messages_of_others_cannot_be_followed_or_stopped(node: Make) -> None:
    b = node("b", *ALL)
    a = node("a", join=b)
    other = node("other", join=b)
    own = b.call("chat.send", agent="for-private", text="secret")
    theirs = call(other, b, "aios.message", envelope(other, b, "for-network") | {})
    for message_id in (own["message_id"], own["reply_id"], theirs["message_id"]):
        for method in ("chat.stream", "chat.cancel"):
            with pytest.raises(InvalidParams, match="no such message"):
                call(a, b, method, {"message_id": message_id})


def test_a_file_is_read_only_by_who_was_sent_it(node: Make) -> None:
    async def gives(text: str) -> Any:
        return aios.File(b"a gift", name="gift.txt")

    b = node("b", gives, *ALL)
    a = node("a", join=b)
    other = node("other", join=b)
    secret = b.node.ask("for-private", "keep", files=[aios.File(b"mine alone", name="s.txt")])
    gift = hashlib.sha256(b"a gift").hexdigest()
    mine = hashlib.sha256(b"mine alone").hexdigest()
    asked = envelope(a, b, "gives")
    asked["envelope"]["message_id"] = "m1"
    call(a, b, "aios.message", asked)
    read = {"message_id": "m1", "sha256": gift, "offset": 0}
    assert call(a, b, "blobs.get", read)["size"] == len(b"a gift")
    for caller, params in (
        (other, read),
        (a, {**read, "message_id": None}),
        (a, {**read, "sha256": mine}),
        (a, {**read, "message_id": secret.message_id, "sha256": mine}),
    ):
        with pytest.raises(InvalidParams):
            call(caller, b, "blobs.get", params)


def test_naming_the_hash_of_a_file_does_not_give_it_away(node: Make) -> None:
    """An agent that returns what it is sent must not become a way to read our files."""

    async def mirror(text: str, ctx: Any) -> Any:
        return aios.File(ctx.read(ctx.files[0]), name="back")

    b = node("b", mirror, *ALL)
    a = node("a", join=b)
    b.node.ask("for-private", "keep", files=[aios.File(b"mine alone", name="s.txt")])
    asked = envelope(a, b, "mirror")
    sha256 = hashlib.sha256(b"mine alone").hexdigest()
    ref = {"name": "s.txt", "mime": "text/plain", "size": 10, "sha256": sha256}
    asked["envelope"]["content"]["files"] = [ref]
    with pytest.raises(RpcError, match="could not be fetched"):
        call(a, b, "aios.message", asked)


def test_conversations_of_two_homes_with_one_name_stay_apart(node: Make) -> None:
    seen: list[int] = []

    async def counts(text: str, ctx: Any) -> str:
        seen.append(len(ctx.messages))
        return text

    b = node("b", counts)
    homes = [node("a", join=b), node("c", join=b)]
    own = b.call("chat.open", agents=["counts"])["conversation"]
    for home in homes:
        asked = envelope(home, b, "counts")
        asked["envelope"]["conversation_id"] = own
        answer = call(home, b, "aios.message", asked)
        assert answer["conversation_id"] == own  # each knows it by its own name
    assert b.history(own) == []
    assert len(b.call("chat.list")["conversations"]) == 3


def test_naming_a_hash_in_the_context_does_not_give_it_away_either(node: Make) -> None:
    async def looks_back(text: str, ctx: Any) -> Any:
        files = [file for event in ctx.messages for file in event.files]
        return aios.File(ctx.read(files[0]), name="back") if files else "nothing there"

    b = node("b", looks_back, *ALL)
    a = node("a", join=b)
    b.node.ask("for-private", "keep", files=[aios.File(b"mine alone", name="s.txt")])
    sha256 = hashlib.sha256(b"mine alone").hexdigest()
    said = {
        "message_id": "m0",
        "seq": 1,
        "kind": "message",
        "sender": {"id": f"owner@{a.node.node_id}", "type": "human"},
        "text": "look",
        "files": [{"name": "s.txt", "mime": "text/plain", "size": 10, "sha256": sha256}],
    }
    asked = envelope(a, b, "looks_back")
    asked["envelope"]["content"]["context"] = [said]
    assert call(a, b, "aios.message", asked)["content"]["result"] == "nothing there"


def test_what_is_under_way_for_a_node_ends_when_it_is_shut_out(node: Make) -> None:
    entered, stopped = threading.Event(), threading.Event()

    async def endless(text: str) -> str:
        entered.set()
        try:
            await asyncio.sleep(1000)
        finally:
            stopped.set()
        return text

    b = node("b", endless)
    a = node("a", join=b)
    a.call("chat.send", agent=the(b, "endless"), text="x", wait=False)
    assert entered.wait(20)
    b.call("nodes.block", node=a.node.node_id)
    assert stopped.wait(20)


def test_a_crowd_of_strangers_is_turned_away_at_the_gate_and_a_friend_is_not(node: Make) -> None:
    b = node("b", *ALL, limits=Limits(stranger_handshakes_per_s=0.001))
    first, second, friend = node("first", join=b), node("second"), node("friend")
    assert reachable(first, b) == {"network", "public"}  # the bucket is empty from here on
    with pytest.raises(Unreachable, match="HTTP 429"):  # before anything was upgraded
        dial(second, b)
    b.call("nodes.allow", node=friend.node.node_id)
    assert dial(friend, b) == b.node.node_id


def dial(a: TestSite, b: TestSite) -> str:
    async def reach() -> str:
        links = a.rooms.links
        links.join(b.node.url, b.node.node_id)
        return (await links.reach(b.node.node_id)).node_id

    return str(a.node.run(reach))
