"""An agent asks back across nodes: once, whatever breaks, and whoever is in between."""

from __future__ import annotations

import asyncio
import contextlib
from typing import Any

import pytest

from aios_nb.errors import RpcError
from tests.between.conftest import Make, the, until
from tests.between.relay import Relay
from tests.sites import TestSite


async def curious(text: str, ctx: Any) -> str:
    first = await ctx.ask_user("your name?")
    return f"{text}, {first}"


def questions(site: TestSite, conversation: str) -> list[str]:
    return [row["text"] for row in site.history(conversation) if row["status"] == "input_required"]


def asked(site: TestSite, agent: str) -> dict[str, Any]:
    reply = site.call("chat.send", agent=agent, text="hello", deadline_s=600)
    assert (reply["status"], reply["text"]) == ("input_required", "your name?")
    return dict(reply)


def test_a_question_survives_a_cut_link(node: Make) -> None:
    b = node("b", curious)
    with Relay(b.node.url) as relay:
        a = node("a", join=f"{relay.url}#{b.node.node_id}")
        reply = asked(a, the(b, "curious"))
        before = relay.connections
        relay.cut()
        until(lambda: relay.connections > before)
        relay.cut()
        done = a.call("chat.answer", message_id=reply["message_id"], text="Ada")
        assert done["text"] == "hello, Ada"
        rows = a.history(reply["conversation"])
    said = [(row["kind"], row["text"]) for row in rows if row["text"]]
    assert said == [
        ("message", "hello"),
        ("status", "your name?"),
        ("message", "Ada"),
        ("message", "hello, Ada"),
    ]


def test_an_answer_arrives_once_though_its_receipt_is_lost(node: Make) -> None:
    """The same answer again must not answer the next question."""

    async def twice(text: str, ctx: Any) -> str:
        return f"{await ctx.ask_user('your name?')} of {await ctx.ask_user('your town?')}"

    b = node("b", twice)
    with Relay(b.node.url) as relay:
        a = node("a", join=f"{relay.url}#{b.node.node_id}")
        b.call("nodes.allow", node=a.node.node_id)
        for point in range(1, 200, 20):
            reply = asked(a, the(b, "twice"))
            relay.cut_after(point)
            again = a.call("chat.answer", message_id=reply["message_id"], text="Ada")
            assert again["text"] == "your town?"
            done = a.call("chat.answer", message_id=reply["message_id"], text="London")
            assert done["text"] == "Ada of London"


def test_a_question_is_not_asked_again_when_its_home_restarts(node: Make) -> None:
    b = node("b", curious)
    a = node("a", join=b)
    reply = asked(a, the(b, "curious"))
    a.stop()
    a = node("a", join=b)
    until(lambda: a.history(reply["conversation"])[0]["status"] == "input_required")
    done = a.call("chat.answer", message_id=reply["message_id"], text="Ada")
    assert done["text"] == "hello, Ada"
    rows = [row for row in a.history(reply["conversation"]) if row["kind"] == "status"]
    assert [row["text"] for row in rows] == ["your name?", ""]


def test_an_answer_that_was_taken_is_delivered_after_a_restart(node: Make) -> None:
    b = node("b", curious)
    port = int(b.node.url.rpartition(":")[2])
    with Relay(b.node.url) as relay:
        a = node("a", join=f"{relay.url}#{b.node.node_id}")
        reply = asked(a, the(b, "curious"))
        relay.change = lambda data, _: b""  # nothing passes any more
        a.call("chat.answer", message_id=reply["message_id"], text="Ada", wait=False)
        a.stop()
    assert port
    a = node("a", join=b)
    _, done = a.stream(message_id=reply["message_id"])
    assert done["text"] == "hello, Ada"


def test_a_question_goes_up_the_whole_chain(node: Make) -> None:
    c = node("c", curious)

    async def between(text: str, ctx: Any) -> str:
        return "b: " + await ctx.call(the(c, "curious"), text)

    b = node("b", between, join=c)
    a = node("a", join=b)
    reply = asked(a, the(b, "between"))
    done = a.call("chat.answer", message_id=reply["message_id"], text="Ada")
    assert done["text"] == "b: hello, Ada"


def test_an_agent_that_does_not_wait_for_the_answer_goes_on(node: Make) -> None:
    enough = asyncio.Event()

    async def hasty(text: str, ctx: Any) -> str:
        asking = asyncio.create_task(ctx.ask_user("your name?"))
        await enough.wait()
        asking.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await asking
        return "never mind"

    b = node("b", hasty)
    a = node("a", join=b)
    reply = asked(a, the(b, "hasty"))
    b.on_loop(enough.set)
    until(lambda: a.history(reply["conversation"])[-1]["text"] == "never mind")
    assert a.history(reply["conversation"])[0]["status"] == "done"


def test_a_question_can_be_cancelled_from_home(node: Make) -> None:
    b = node("b", curious)
    a = node("a", join=b)
    reply = asked(a, the(b, "curious"))
    assert a.call("chat.cancel", message_id=reply["message_id"])["status"] == "cancelled"
    with pytest.raises(RpcError):
        a.call("chat.answer", message_id=reply["message_id"], text="Ada")
    [side] = b.call("chat.list")["conversations"]
    until(lambda: b.history(side["conversation"])[0]["status"] == "cancelled")
