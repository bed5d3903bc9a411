"""An agent of another node is called as if it were next door."""

from __future__ import annotations

import asyncio
import contextlib
import threading
from typing import Any

import pytest

import aios_nb as aios
from aios_nb.agents.definition import describe
from aios_nb.errors import DeadlinePassed, InvalidParams, NoSuchAgent, RpcError, Unreachable
from tests.between.conftest import Make, the, until
from tests.sites import Gate


def shout(text: str) -> str:
    return text.upper()


async def count(text: str) -> Any:
    for number in range(int(text)):
        yield f"{number} "
        await asyncio.sleep(0)


def test_a_joined_nodes_agent_is_found_by_its_bare_name(node: Make) -> None:
    b = node("b", shout)
    a = node("a", join=b)
    reply = a.call("chat.send", agent="shout", text="hello")
    assert reply["text"] == "HELLO"
    rows = a.history(reply["conversation"])
    assert [row["sender"]["id"] for row in rows] == [f"owner@{a.node.node_id}", the(b, "shout")]
    assert [row["status"] for row in rows] == ["done", "done"]


def test_the_other_node_keeps_a_side_log_and_answers_only_what_it_was_asked(node: Make) -> None:
    b = node("b", shout)
    a = node("a", join=b)
    reply = a.call("chat.send", agent=the(b, "shout"), text="hello")
    [side] = b.call("chat.list")["conversations"]
    assert side["opener"] == a.node.node_id
    assert side["conversation"] != reply["conversation"]
    assert [row["text"] for row in b.history(side["conversation"])] == ["hello", "HELLO"]


def test_a_reply_streams_across_nodes_without_gaps(node: Make) -> None:
    b = node("b", count)
    a = node("a", join=b)
    deltas, result = a.stream(agent=the(b, "count"), text="500")
    text = "".join(f"{number} " for number in range(500))
    assert "".join(delta["text"] for delta in deltas) == text == result["text"]
    offset = 0
    for delta in deltas:
        assert delta["offset"] == offset
        offset += len(delta["text"])


def test_an_agent_calls_an_agent_of_another_node_in_a_child_conversation(node: Make) -> None:
    c = node("c", shout)

    async def relay(text: str, ctx: Any) -> str:
        return "c says " + await ctx.call(the(c, "shout"), text)

    b = node("b", relay, join=c)
    a = node("a", join=b)
    assert a.call("chat.send", agent=the(b, "relay"), text="hi")["text"] == "c says HI"
    child = next(row for row in b.call("chat.list")["conversations"] if row["parent"])
    assert child["agents"] == [the(c, "shout")]


def test_agents_may_not_call_in_a_circle_across_nodes(node: Make) -> None:
    b = node("b")

    async def there(text: str, ctx: Any) -> str:
        return str(await ctx.call(the(b, "back"), text))

    a = node("a", there, join=b)

    async def back(text: str, ctx: Any) -> str:
        return str(await ctx.call(the(a, "there"), text))

    b.node.host(back)
    with pytest.raises(RpcError, match="already at work on this"):
        a.call("chat.send", agent="there", text="round")


def test_the_hops_are_counted_over_all_nodes(node: Make) -> None:
    b = node("b")
    a = node("a", join=b)

    def step(number: int, target: str) -> Any:
        async def run(text: str, ctx: Any) -> str:
            return str(await ctx.call(target, text))

        return describe(run, name=f"step{number}")

    for number in range(10):
        here, there = (a, b) if number % 2 == 0 else (b, a)
        here.node.host(step(number, the(there, f"step{number + 1}")))
    with pytest.raises(RpcError, match="one behind another"):
        a.call("chat.send", agent="step0", text="go")


def test_an_agent_sees_what_its_home_shows_it(node: Make) -> None:
    seen: list[list[str]] = []

    async def witness(text: str, ctx: Any) -> str:
        seen.append([event.text for event in ctx.messages])
        return f"saw {text}"

    b = node("b", witness)
    a = node("a", join=b)
    talk = a.call("chat.open", agents=[the(b, "witness"), "echo"])["conversation"]
    a.call("chat.send", agent=the(b, "witness"), text="one", conversation=talk)
    a.call("chat.send", agent="echo", text="two", conversation=talk)
    a.call("chat.send", agent=the(b, "witness"), text="three", conversation=talk)
    assert seen == [[], ["one", "saw one", "two", "two"]]


def test_a_message_may_be_for_agents_of_several_nodes(node: Make) -> None:
    b = node("b", shout)
    c = node("c", count)
    a = node("a", join=[b, c])
    talk = a.call("chat.open", agents=[the(b, "shout"), the(c, "count")])["conversation"]
    posted = a.call("chat.post", conversation=talk, text="@shout @count 3")
    assert {reply["agent"] for reply in posted["replies"]} == {the(b, "shout"), the(c, "count")}
    for reply in posted["replies"]:
        with contextlib.suppress(RpcError):  # "@shout @count 3" is no number
            a.stream(message_id=reply["reply_id"])
    rows = a.history(talk)
    assert [row["seq"] for row in rows] == list(range(1, len(rows) + 1))
    assert "@SHOUT @COUNT 3" in [row["text"] for row in rows]


@pytest.mark.parametrize("wait", [True, False])
def test_a_node_nobody_knows_cannot_be_reached(node: Make, *, wait: bool) -> None:
    a = node("a")
    nowhere = f"shout@{'a' * 32}"
    if wait:
        with pytest.raises(Unreachable) as caught:
            a.call("chat.send", agent=nowhere, text="hello")
        assert caught.value.data["ran"] == "no"
    else:
        taken = a.call("chat.send", agent=nowhere, text="hello", wait=False, deadline_s=0.3)
        with pytest.raises(Unreachable):
            a.stream(message_id=taken["message_id"])
        assert a.history(taken["conversation"])[-1]["status"] == "failed"


def test_a_wrong_name_at_another_node_is_no_such_agent(node: Make) -> None:
    b = node("b", shout)
    a = node("a", join=b)
    with pytest.raises(NoSuchAgent):
        a.call("chat.send", agent=the(b, "nobody"), text="hello")
    with pytest.raises(NoSuchAgent):
        a.call("chat.open", agents=[the(b, "nobody")])


def test_a_failure_over_there_is_told_here(node: Make) -> None:
    def broken(text: str) -> str:
        raise ValueError(f"cannot {text}")

    b = node("b", broken)
    a = node("a", join=b)
    with pytest.raises(RpcError, match="cannot fly") as caught:
        a.call("chat.send", agent=the(b, "broken"), text="fly")
    assert caught.value.code == -32002
    conversation = caught.value.data["conversation"]
    assert a.history(conversation)[0]["status"] == "failed"


def test_a_cancel_stops_the_run_on_the_other_node(node: Make) -> None:
    gate = Gate()

    async def waits(text: str) -> str:
        await gate.pass_through(text)
        return text

    b = node("b", waits)
    a = node("a", join=b)
    taken = a.call("chat.send", agent=the(b, "waits"), text="x", wait=False)
    b.node.run(lambda: gate.arrived(1))
    assert a.call("chat.cancel", message_id=taken["message_id"])["status"] == "cancelled"
    [side] = b.call("chat.list")["conversations"]
    until(lambda: b.history(side["conversation"])[0]["status"] == "cancelled")


def test_a_file_goes_there_and_another_comes_back(node: Make) -> None:
    content = bytes(range(256)) * 8192  # 2 MB

    async def mirror(text: str, ctx: Any) -> Any:
        read = ctx.read(ctx.files[0])
        return aios.File(read[::-1], name="mirrored.bin")

    b = node("b", mirror)
    a = node("a", join=b)
    reply = a.node.ask(the(b, "mirror"), "turn it", files=[aios.File(content, name="here.bin")])
    assert reply.files[0].read() == content[::-1]
    assert reply.files[0].name == "mirrored.bin"


def test_a_question_is_asked_at_home_and_answered_there(node: Make) -> None:
    async def curious(text: str, ctx: Any) -> str:
        name = await ctx.ask_user("your name?")
        town = await ctx.ask_user("your town?")
        return f"{name} of {town}"

    b = node("b", curious)
    a = node("a", join=b)
    asked = a.call("chat.send", agent=the(b, "curious"), text="hello")
    assert (asked["status"], asked["text"]) == ("input_required", "your name?")
    again = a.call("chat.answer", message_id=asked["message_id"], text="Ada")
    assert (again["status"], again["text"]) == ("input_required", "your town?")
    done = a.call("chat.answer", message_id=asked["message_id"], text="London")
    assert (done["status"], done["text"]) == ("done", "Ada of London")
    with pytest.raises(InvalidParams):
        a.call("chat.answer", message_id=asked["message_id"], text="late")


def test_the_time_that_is_left_goes_along_and_ends_the_run_over_there(node: Make) -> None:
    left: list[float] = []
    stopped = threading.Event()

    async def waits(text: str, ctx: Any) -> str:
        left.append(ctx.deadline)
        try:
            await asyncio.sleep(1000)
        finally:
            stopped.set()
        return text

    c = node("c", waits, shout)

    async def passes(text: str, ctx: Any) -> str:
        left.append(ctx.deadline)
        return str(await ctx.call(the(c, "waits"), text))

    b = node("b", passes, shout, join=c)
    a = node("a", join=b)
    for here, there in ((b, c), (a, b)):
        here.call("chat.send", agent=the(there, "shout"), text="warm")
    with pytest.raises(DeadlinePassed) as caught:
        a.call("chat.send", agent=the(b, "passes"), text="x", deadline_s=3)
    assert caught.value.data["ran"] == "unknown"
    assert stopped.wait(20)
    assert 0 < left[1] <= left[0] <= 3


def test_both_nodes_may_join_each_other(node: Make) -> None:
    b = node("b", shout)
    a = node("a", shout, join=b)
    port = int(b.node.url.rpartition(":")[2])
    b.stop()
    b = node("b", shout, port=port, join=a)
    for here, there in ((a, b), (b, a)):
        reply = here.call("chat.send", agent=the(there, "shout"), text="x", deadline_s=60)
        assert reply["text"] == "X"
        assert len(here.call("node.peers")["peers"]) == 1


def test_a_node_calls_back_over_the_link_it_was_called_by(node: Make) -> None:
    """A notebook that nobody can dial is reached by whoever it joined."""
    b = node("b", shout)
    a = node("a", shout, join=b)
    a.call("chat.send", agent=the(b, "shout"), text="hello")
    reply = b.call("chat.send", agent=the(a, "shout"), text="back")
    assert reply["text"] == "BACK"
