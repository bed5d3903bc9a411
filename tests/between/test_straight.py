"""One call on a link that is answered by one envelope: the straight road, without a stream."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from aios_nb.errors import (
    AgentFailed,
    Cancelled,
    ConnectionLost,
    DeadlinePassed,
    InvalidParams,
    RpcError,
)
from tests.between.conftest import Make, the, until
from tests.between.relay import Relay
from tests.sites import TestSite


class Gate:
    """An agent that waits at a gate, and counts who came."""

    def __init__(self) -> None:
        self._open = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        self.came: list[str] = []

    def open(self) -> None:
        if self._loop is None:
            self._open.set()
        else:
            self._loop.call_soon_threadsafe(self._open.set)

    async def waits(self, text: str) -> str:
        self._loop = asyncio.get_running_loop()
        self.came.append(text)
        await self._open.wait()
        return text.upper()


def asked(a: TestSite, b: TestSite, agent: str, message_id: str, text: str = "x") -> Any:
    return {
        "envelope": {
            "sender": {"id": f"owner@{a.node.node_id}", "type": "human"},
            "recipient": {"id": the(b, agent), "type": "agent"},
            "message_type": "request",
            "content": {"task": text},
            "message_id": message_id,
            "conversation_id": "talk",
            "routing": {"path": [a.node.node_id], "max_hops": 3, "deadline_ms": 60_000},
        }
    }


async def link_to(a: TestSite, b: TestSite) -> Any:
    return await a.rooms.links.reach(b.node.node_id)


def send(a: TestSite, b: TestSite, *requests: Any) -> list[Any]:
    """What b answers to these, sent at once on a's link; errors included."""

    async def all_at_once() -> list[Any]:
        link = await link_to(a, b)
        calls = (link.call("aios.message", request) for request in requests)
        return await asyncio.gather(*calls, return_exceptions=True)

    answers: list[Any] = a.node.run(all_at_once)
    return answers


@pytest.fixture
def gate() -> Gate:
    return Gate()


async def hello(text: str) -> str:
    return text


def pair(node: Make, *agents: Any) -> tuple[TestSite, TestSite]:
    """Two nodes that have spoken before: a caller's very first call takes a longer road."""
    b = node("b", hello, *agents)
    a = node("a", join=b)
    b.call("nodes.allow", node=a.node.node_id)
    request = asked(a, b, "hello", "m0")
    request["envelope"]["conversation_id"] = "earlier"
    [answer] = send(a, b, request)
    assert answer["content"]["result"] == "x"
    return a, b


def restarted(node: Make, b: TestSite, *agents: Any) -> TestSite:
    """The same node again, at the same place."""
    port = int(b.node.url.rpartition(":")[2])
    b.stop()
    return node("b", *agents, port=port)


async def echo(text: str) -> str:
    return text


def test_many_calls_at_once_are_all_answered_and_all_in_the_log(node: Make) -> None:
    a, b = pair(node, echo)
    for wave in range(3):
        requests = [asked(a, b, "echo", f"m{wave}.{n}", f"say {wave}.{n}") for n in range(40)]
        for number, request in enumerate(requests):
            request["envelope"]["conversation_id"] = f"talk{number}"
        answers = send(a, b, *requests)
        assert [answer["content"]["result"] for answer in answers] == [
            f"say {wave}.{n}" for n in range(40)
        ]
    conversations = b.call("chat.list", limit=100)["conversations"]
    assert len(conversations) == 41
    for conversation in conversations[:40]:
        rows = b.history(conversation["conversation"])
        assert [row["status"] for row in rows] == ["done"] * 6


def test_the_same_call_again_while_it_runs_joins_it(node: Make, gate: Gate) -> None:
    a, b = pair(node, gate.waits)
    request = asked(a, b, "waits", "m1")
    answers: list[Any] = []
    sending = threading.Thread(target=lambda: answers.extend(send(a, b, request, request)))
    sending.start()
    until(lambda: gate.came)
    again = threading.Thread(target=lambda: answers.extend(send(a, b, request)))
    again.start()
    gate.open()
    sending.join()
    again.join()
    assert gate.came == ["x"]
    assert [answer["content"]["result"] for answer in answers] == ["X"] * 3
    assert len({answer["message_id"] for answer in answers}) == 1


def test_the_same_call_after_its_end_or_a_restart_gets_the_same_answer(
    node: Make, gate: Gate
) -> None:
    a, b = pair(node, gate.waits)
    gate.open()
    request = asked(a, b, "waits", "m1")
    [first], [second] = send(a, b, request), send(a, b, request)
    assert (second["message_id"], second["content"]) == (first["message_id"], first["content"])
    b = restarted(node, b, gate.waits)
    [third] = send(a, b, request)
    assert (third["message_id"], third["content"]) == (first["message_id"], first["content"])
    assert gate.came == ["x"]


def test_the_same_call_that_names_no_conversation_gets_the_same_answer(
    node: Make, gate: Gate
) -> None:
    a, b = pair(node, gate.waits)
    gate.open()
    request = asked(a, b, "waits", "m1")
    del request["envelope"]["conversation_id"]
    [first], [second] = send(a, b, request), send(a, b, request)
    assert second["message_id"] == first["message_id"]
    assert second["conversation_id"] == first["conversation_id"]
    assert gate.came == ["x"]
    assert len(b.call("chat.list")["conversations"]) == 2


def test_an_id_that_was_used_for_something_else_is_refused(node: Make) -> None:
    a, b = pair(node, echo)
    [first] = send(a, b, asked(a, b, "echo", "m1"))
    [second] = send(a, b, asked(a, b, "echo", "m1", text="something else"))
    assert first["content"]["result"] == "x"
    assert isinstance(second, InvalidParams)


def test_a_conversation_goes_on_after_a_restart(node: Make) -> None:
    a, b = pair(node, echo)
    send(a, b, asked(a, b, "echo", "m1", "one"))
    b = restarted(node, b, echo)
    [answer] = send(a, b, asked(a, b, "echo", "m2", "two"))
    assert answer["conversation_id"] == "talk"
    conversation, _ = b.call("chat.list")["conversations"]
    rows = b.history(conversation["conversation"])
    assert [(row["seq"], row["text"]) for row in rows] == [
        (1, "one"), (2, "one"), (3, "two"), (4, "two"),
    ]  # fmt: skip


def test_a_failure_and_a_deadline_are_told_as_errors(node: Make, gate: Gate) -> None:
    async def fails(text: str) -> str:
        raise AgentFailed(f"no {text}")

    a, b = pair(node, fails, gate.waits)
    late = asked(a, b, "waits", "m2")
    late["envelope"]["routing"]["deadline_ms"] = 1
    failure, passed = send(a, b, asked(a, b, "fails", "m1"), late)
    assert isinstance(failure, AgentFailed)
    assert failure.data["message_id"] == "m1"
    assert isinstance(passed, DeadlinePassed)


def test_a_question_is_an_answer_too(node: Make) -> None:
    async def asks(text: str, ctx: Any) -> str:
        return f"{text} {await ctx.ask_user('what?')}"

    a, b = pair(node, asks)
    [answer] = send(a, b, asked(a, b, "asks", "m1"))
    assert answer["content"]["status"] == "input_required"
    assert answer["content"]["result"] == "what?"

    async def reply() -> Any:
        link = await link_to(a, b)
        return await link.call("chat.answer", {"message_id": "m1", "text": "that"})

    assert a.node.run(reply)["text"] == "x that"


def test_a_cancel_ends_the_call_that_waits(node: Make, gate: Gate) -> None:
    a, b = pair(node, gate.waits)
    answers: list[Any] = []
    sending = threading.Thread(target=lambda: answers.extend(send(a, b, asked(a, b, "waits", "1"))))
    sending.start()
    until(lambda: gate.came)

    async def cancel() -> Any:
        return await (await link_to(a, b)).call("chat.cancel", {"message_id": "1"})

    assert a.node.run(cancel)["status"] == "cancelled"
    sending.join()
    assert isinstance(answers[0], Cancelled)


def test_what_was_asked_on_a_broken_link_goes_on_and_is_found_again(node: Make, gate: Gate) -> None:
    b = node("b", gate.waits)
    with Relay(b.node.url) as relay:
        a = node("a", join=f"{relay.url}#{b.node.node_id}")
        b.call("nodes.allow", node=a.node.node_id)
        request = asked(a, b, "waits", "m1")
        answers: list[Any] = []
        sending = threading.Thread(target=lambda: answers.extend(send(a, b, request)))
        sending.start()
        until(lambda: gate.came)
        relay.cut()
        sending.join()
        assert isinstance(answers[0], ConnectionLost)
        gate.open()
        [answer] = send(a, b, request)
    assert answer["content"]["result"] == "X"
    assert gate.came == ["x"]


def test_a_node_that_stops_tells_who_waits(node: Make, gate: Gate) -> None:
    a, b = pair(node, gate.waits)
    answers: list[Any] = []
    sending = threading.Thread(target=lambda: answers.extend(send(a, b, asked(a, b, "waits", "1"))))
    sending.start()
    until(lambda: gate.came)
    b.stop()
    sending.join()
    assert isinstance(answers[0], RpcError)
