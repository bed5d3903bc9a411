"""Three nodes in three processes: one of them is killed in the middle."""

from __future__ import annotations

import json
import threading
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.hostile.conftest import Start
from tests.hostile.nodes import NodeProcess, until

FINAL = {"done", "failed", "cancelled", "interrupted"}
POSTS = 40


def address(node: NodeProcess) -> str:
    return f"{node.url}#{node.said['node_id']}"


def the(node: NodeProcess, name: str) -> str:
    return f"{name}@{node.said['node_id']}"


def history(node: NodeProcess, conversation: str) -> list[dict[str, Any]]:
    return list(node.call("chat.history", conversation=conversation, limit=5000)["messages"])


def settled(node: NodeProcess, conversation: str, asked: set[str]) -> list[dict[str, Any]]:
    """The history, when everything that was asked has ended."""

    def look() -> list[dict[str, Any]] | None:
        rows = history(node, conversation)
        ends = {row["message_id"]: row["status"] for row in rows if row["message_id"] in asked}
        return rows if set(ends) == asked and set(ends.values()) <= FINAL else None

    found: list[dict[str, Any]] = until(look, "all messages have an end")
    return found


def test_one_order_everywhere_though_a_node_is_killed_in_the_middle(
    start: Start, tmp_path: Path
) -> None:
    traces = {name: tmp_path / f"trace-{name}" for name in "bc"}
    b = start("--name", "b", home=tmp_path / "b", TRACE_FILE=str(traces["b"]))
    c = start("--name", "c", home=tmp_path / "c", TRACE_FILE=str(traces["c"]))
    joins = ["--join", address(b), "--join", address(c)]
    a = start("--name", "a", *joins, home=tmp_path / "a")
    talk = a.call("chat.open", agents=[the(b, "slow"), the(c, "counter")])["conversation"]
    posted: dict[str, dict[str, Any]] = {}

    def post(who: str) -> None:
        for number in range(POSTS):
            agent = "@slow" if number % 2 else "@counter"
            message_id = f"{who}{number}"
            text = f"{agent} {message_id}"

            def answer(text: str = text, message_id: str = message_id) -> Any:
                found = a.answer(
                    "chat.post",
                    conversation=talk,
                    text=text,
                    message_id=message_id,
                    deadline_s=120,
                )
                return found.get("result")  # busy: five wait for an agent at most

            posted[message_id] = until(answer, f"{message_id} is taken")

    people = [threading.Thread(target=post, args=(who,)) for who in ("ada", "bob")]
    for person in people:
        person.start()
    until(lambda: traces["b"].exists() and len(traces["b"].read_text().split("\n")) > 5, "b works")
    b.kill()
    b = start(
        "--name", "b", "--port", str(b.port), home=tmp_path / "b", TRACE_FILE=str(traces["b"])
    )
    for person in people:
        person.join()
    rows = settled(a, talk, set(posted))

    assert [row["seq"] for row in rows] == list(range(1, len(rows) + 1))
    asked = [row for row in rows if row["message_id"] in posted]
    assert len(asked) == len(posted) == 2 * POSTS
    ends = Counter(row["ref"] for row in rows if row["ref"] and row["status"] in FINAL)
    assert set(ends) == set(posted)
    assert max(ends.values()) == 1  # one end each: a reply, or why there is none
    cut = [row for row in asked if row["status"] != "done"]
    assert {row["status"] for row in cut} <= {"interrupted"}
    assert len(cut) <= 1  # one run at a time, so one run was cut
    for trace in traces.values():
        lines = Counter(trace.read_text().split("\n")[:-1])
        assert max(lines.values()) == 1  # nothing ran twice
    replies = [row for row in rows if row["sender"]["type"] == "agent" and row["kind"] == "message"]
    for row in replies:
        text = next(one["text"] for one in asked if one["message_id"] == row["ref"])
        assert row["text"] == f"counted {text}"
    for node in (a, b, c):
        assert node.complaints() == []


def test_a_killed_sender_goes_on_and_the_message_arrives_once(start: Start, tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    b = start("--name", "b", home=tmp_path / "b", TRACE_FILE=str(trace))
    join = ["--join", address(b)]
    a = start("--name", "a", *join, home=tmp_path / "a")
    agent = the(b, "counter")
    assert a.call("chat.send", agent=agent, text="warm")["text"] == "counted warm"
    b.kill()
    taken = [
        a.call("chat.send", agent=agent, text=f"n{n}", wait=False, deadline_s=120)
        for n in range(20)
    ]
    a.kill()
    b = start("--name", "b", "--port", str(b.port), home=tmp_path / "b", TRACE_FILE=str(trace))
    a = start("--name", "a", *join, home=tmp_path / "a")
    for number, call in enumerate(taken):
        rows = settled(a, call["conversation"], {call["message_id"]})
        assert [row["text"] for row in rows] == [f"n{number}", f"counted n{number}"]
    assert Counter(trace.read_text().split()) == Counter(["warm", *(f"n{n}" for n in range(20))])


def test_a_host_back_after_the_deadline_is_one_clear_failure_also_for_a_killed_sender(
    start: Start, tmp_path: Path
) -> None:
    trace = tmp_path / "trace"
    b = start("--name", "b", home=tmp_path / "b", TRACE_FILE=str(trace))
    join = ["--join", address(b)]
    a = start("--name", "a", *join, home=tmp_path / "a")
    a.call("chat.send", agent=the(b, "counter"), text="warm")
    b.kill()
    agent = the(b, "counter")
    taken = a.call("chat.send", agent=agent, text="late", wait=False, deadline_s=1)
    a.kill()
    a = start("--name", "a", *join, home=tmp_path / "a")
    rows = settled(a, taken["conversation"], {taken["message_id"]})
    b = start("--name", "b", "--port", str(b.port), home=tmp_path / "b", TRACE_FILE=str(trace))
    assert a.call("chat.send", agent=agent, text="after", deadline_s=60)["text"] == "counted after"
    assert [row["kind"] for row in rows] == ["message", "status"]
    # Whether it was brought there before the kill, a node that was killed cannot know.
    assert rows[1]["data"]["error"]["code"] == -32003
    assert rows[1]["data"]["error"]["data"]["ran"] == "unknown"
    assert history(a, taken["conversation"]) == rows
    assert trace.read_text().split() == ["warm", "after"]


@pytest.mark.parametrize("moment", ["before", "during", "after"])
def test_a_sender_killed_around_a_run_learns_its_end_once(
    start: Start, tmp_path: Path, moment: str
) -> None:
    trace = tmp_path / "trace"
    b = start("--name", "b", home=tmp_path / "b", TRACE_FILE=str(trace))
    join = ["--join", address(b)]
    a = start("--name", "a", *join, home=tmp_path / "a")
    a.call("chat.send", agent=the(b, "counter"), text="warm")
    taken = a.call("chat.send", agent=the(b, "slow"), text="x", wait=False, deadline_s=120)
    if moment != "before":
        until(lambda: "x" in trace.read_text().split(), "the agent runs")
    if moment == "after":
        until(lambda: _ended_at(b), "the run is over at its host")
    a.kill()
    a = start("--name", "a", *join, home=tmp_path / "a")
    rows = settled(a, taken["conversation"], {taken["message_id"]})
    assert [row["text"] for row in rows] == ["x", "counted x"]
    assert trace.read_text().split().count("x") == 1


def _ended_at(node: NodeProcess) -> bool:
    for row in node.call("chat.list")["conversations"]:
        messages = history(node, row["conversation"])
        if messages[0]["text"] == "x":
            return bool(messages[0]["status"] == "done")
    return False


def test_what_a_killed_agent_asked_of_another_node_is_not_asked_after_it(
    start: Start, tmp_path: Path
) -> None:
    """Nobody waits for it any more: it would only surprise."""
    traces = {name: tmp_path / f"trace-{name}" for name in "bc"}
    c = start("--name", "c", home=tmp_path / "c", TRACE_FILE=str(traces["c"]))
    join = ["--join", address(c)]
    b = start("--name", "b", *join, home=tmp_path / "b", TRACE_FILE=str(traces["b"]))
    assert b.call("chat.send", agent=the(c, "counter"), text="warm")["text"] == "counted warm"
    c.kill()
    taken = b.call(
        "chat.send", agent="passes_on", text=the(c, "counter"), wait=False, deadline_s=120
    )

    def child() -> Any:
        rows = b.call("chat.list")["conversations"]
        return next((row["conversation"] for row in rows if row["parent"]), None)

    asked = until(child, "the agent asks")
    b.kill()
    c = start(
        "--name", "c", "--port", str(c.port), home=tmp_path / "c", TRACE_FILE=str(traces["c"])
    )
    b = start("--name", "b", *join, home=tmp_path / "b", TRACE_FILE=str(traces["b"]))
    rows = settled(b, taken["conversation"], {taken["message_id"]})
    assert rows[0]["status"] == "interrupted"
    assert b.call("chat.send", agent=the(c, "counter"), text="after")["text"] == "counted after"
    assert history(b, asked)[0]["status"] == "interrupted"
    assert traces["c"].read_text().split() == ["warm", "after"]


def test_nodes_of_one_home_know_each_other(start: Start) -> None:
    b = start("--name", "b")
    a = start("--name", "a")
    reply = a.call("chat.send", agent=the(b, "counter"), text="hello")
    assert reply["text"] == "counted hello"
    [caller] = b.call("node.callers")["callers"]
    assert json.dumps(caller["id"]).strip('"') == a.said["node_id"]
