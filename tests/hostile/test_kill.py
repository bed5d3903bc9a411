"""kill -9 at any moment: nothing acknowledged is lost, nothing runs twice, none forgets itself."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from tests.hostile.nodes import NodeProcess

CALLS = 1000
SOCKETS = 4
ROOMS = 20
"""Conversations where five messages stand in line for one slow agent."""
MOMENTS = (1, CALLS // 2, CALLS - CALLS // 20)
"""The node is killed when it has answered so many."""
INTERRUPTED = -32002
ONCE = ("counter", "threaded", "slow")
SHARES = (("counter", 45), ("threaded", 15), ("slow", 15), ("again", 15))
"""Agent, and how many of a hundred calls are for it; the rest go into the rooms."""


def plan(node: NodeProcess, round_: int) -> list[dict[str, Any]]:
    """The calls of one round, each under an id of its own, which is its text too."""
    rooms = [node.call("chat.open", agents=["slow"])["conversation"] for _ in range(ROOMS)]
    calls = []
    for number in range(CALLS):
        message_id = f"r{round_}-{number}"
        place = number % 100
        for agent, share in SHARES:
            place -= share
            if place < 0:
                calls.append({"agent": agent, "text": message_id, "message_id": message_id})
                break
        else:
            room = rooms[(number // 100 * 10 + number % 10) % ROOMS]
            calls.append(
                {
                    "agent": "slow",
                    "text": message_id,
                    "message_id": message_id,
                    "conversation": room,
                }
            )
    return calls


class Load:
    """All calls at once, over sockets and plain requests, until done or until the node is dead."""

    def __init__(self, node: NodeProcess, calls: list[dict[str, Any]], kill_at: int) -> None:
        self._node = node
        self._calls = calls
        self._kill_at = kill_at
        self.answers: dict[str, dict[str, Any]] = {}

    def run(self) -> dict[str, dict[str, Any]]:
        asyncio.run(self._run())
        return self.answers

    def _take(self, message_id: str, answer: dict[str, Any]) -> None:
        assert message_id not in self.answers
        self.answers[message_id] = answer
        if len(self.answers) == self._kill_at:
            self._node.process.kill()

    async def _run(self) -> None:
        headers = {"Authorization": f"Bearer {self._node.token}"}
        half = len(self._calls) // 2
        connector = aiohttp.TCPConnector(limit=half)
        async with aiohttp.ClientSession(headers=headers, connector=connector) as session:
            done = await asyncio.gather(
                *(self._over_http(session, call) for call in self._calls[:half]),
                *(
                    self._over_socket(session, self._calls[half + one :: SOCKETS])
                    for one in range(SOCKETS)
                ),
                return_exceptions=True,
            )
        for problem in done:
            if isinstance(problem, BaseException) and not isinstance(
                problem, aiohttp.ClientError | ConnectionError
            ):
                raise problem

    async def _over_http(self, session: aiohttp.ClientSession, call: dict[str, Any]) -> None:
        request = {"jsonrpc": "2.0", "id": 1, "method": "chat.send", "params": call}
        async with session.post(f"{self._node.url}/rpc", json=request) as answer:
            self._take(call["message_id"], await answer.json())

    async def _over_socket(
        self, session: aiohttp.ClientSession, calls: list[dict[str, Any]]
    ) -> None:
        url = f"{self._node.url}/ws"
        async with session.ws_connect(url, protocols=("aios-rpc-1",)) as socket:
            for call in calls:
                request = {
                    "jsonrpc": "2.0",
                    "id": call["message_id"],
                    "method": "chat.send",
                    "params": call,
                }
                await socket.send_str(json.dumps(request))
            for _ in calls:
                frame = await socket.receive()
                if frame.type is not aiohttp.WSMsgType.TEXT:
                    return
                answer = json.loads(frame.data)
                self._take(answer["id"], answer)


def outcome_of(answer: dict[str, Any]) -> tuple[Any, ...]:
    """What an answer says of a call, without what may differ between two answers."""
    if "result" in answer:
        result = answer["result"]
        return result["status"], result["text"], result["conversation"], result["reply_id"]
    error = answer["error"]
    assert error["code"] == INTERRUPTED, error
    data = error["data"]
    assert data["ran"] == "unknown"
    return data["status"], "", data["conversation"], data["reply_id"]


def histories(node: NodeProcess) -> dict[str, list[dict[str, Any]]]:
    """Every conversation of the node, by id, with all its rows."""
    names: list[str] = []
    before: dict[str, Any] = {}
    while page := node.call("chat.list", limit=1000, **before)["conversations"]:
        names += [row["conversation"] for row in page]
        before = {"before": page[-1]["cursor"]}
    asked = [{"conversation": name, "limit": 5000} for name in names]
    return {
        answer["result"]["conversation"]: answer["result"]["messages"]
        for answer in node.calls("chat.history", asked)
    }


def check_history(
    logs: dict[str, list[dict[str, Any]]], outcomes: dict[str, tuple[Any, ...]]
) -> None:
    """Each of these calls is in the log once, in its conversation, with its one end."""
    places = Counter(
        (row["message_id"], name)
        for name, rows in logs.items()
        for row in rows
        if row["kind"] == "message"
    )
    for message_id, (status, text, conversation, reply_id) in outcomes.items():
        assert [name for (found, name) in places if found == message_id] == [conversation]
        assert places[message_id, conversation] == 1
        rows = logs[conversation]
        [asked] = [row for row in rows if row["message_id"] == message_id]
        assert (asked["text"], asked["status"]) == (message_id, status)
        replies = [
            (row["message_id"], row["text"])
            for row in rows
            if row["ref"] == message_id and row["kind"] == "message"
        ]
        assert replies == ([(reply_id, text)] if status == "done" else [])


def check_database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as database:
        assert database.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        holes = database.execute(
            "SELECT conversation FROM events WHERE conversation IS NOT NULL GROUP BY conversation"
            " HAVING min(seq) <> 1 OR max(seq) <> count(*) OR count(DISTINCT seq) <> count(*)"
        ).fetchall()
        assert holes == []


def ran(trace: Path) -> Counter[str]:
    return Counter(trace.read_text().split()) if trace.exists() else Counter()


def ids(calls: Iterable[dict[str, Any]], *agents: str) -> set[str]:
    return {call["message_id"] for call in calls if call["agent"] in agents}


@pytest.mark.timeout(300)
def test_a_node_killed_among_a_thousand_calls_loses_none_and_repeats_none(start, tmp_path):
    trace = tmp_path / "trace"
    node = start(TRACE_FILE=str(trace))
    known: dict[str, tuple[Any, ...]] = {}
    all_cut = 0
    for round_, moment in enumerate(MOMENTS):
        calls = plan(node, round_)
        answers = Load(node, calls, kill_at=moment).run()
        node.kill()
        acknowledged = {name: outcome_of(answer) for name, answer in answers.items()}
        assert moment <= len(acknowledged) < CALLS
        assert {outcome[0] for outcome in acknowledged.values()} == {"done"}

        killed, node = node, start(TRACE_FILE=str(trace))
        assert node.said["node_id"] == killed.said["node_id"]
        logs = histories(node)
        check_history(logs, known | acknowledged)
        statuses = {row["message_id"]: row["status"] for rows in logs.values() for row in rows}
        begun_at_once = {call["message_id"] for call in calls if "conversation" not in call}
        for name in begun_at_once & ids(calls, *ONCE) & statuses.keys():
            assert statuses[name] in {"done", "interrupted"}

        # Every id again: what was stored is told, what was cut stays cut, the rest runs now.
        repeated = Load(node, calls, kill_at=-1).run()
        outcomes = {name: outcome_of(answer) for name, answer in repeated.items()}
        assert outcomes.keys() == {call["message_id"] for call in calls}
        assert acknowledged.items() <= outcomes.items()
        cut = {name for name, outcome in outcomes.items() if outcome[0] == "interrupted"}
        assert cut <= ids(calls, *ONCE)
        assert {outcome[0] for outcome in outcomes.values()} <= {"done", "interrupted"}
        known |= outcomes
        all_cut += len(cut)

        counted = ran(trace)
        assert {name for name in ids(calls, *ONCE) if counted[name] > 1} == set()
        done = outcomes.keys() - cut
        assert {name for name in done if counted[name] == 0} == set()
    assert all_cut > 0
    check_history(histories(node), known)
    assert node.complaints() == []
    assert node.stop() == 0
    check_database(node.db_path)


def test_a_killed_node_that_starts_at_once_is_the_same_node(start):
    first = start("--name", "alice")
    lives = [first.said]
    for _ in range(2):
        node = first
        node.kill()
        first = start("--name", "alice")
        lives.append(first.said)
    assert {(said["node_id"], said["name"]) for said in lives} == {
        (lives[0]["node_id"], "alice"),
    }
    assert len({said["token"] for said in lives}) == 3


@pytest.mark.parametrize("by", ["name", "notebook"])
def test_two_killed_nodes_that_start_in_the_other_order_keep_who_they_are(start, by):
    def begin(who: str) -> NodeProcess:
        if by == "name":
            return start("--name", who)
        return start(JPY_SESSION_NAME=f"/notebooks/{who}.ipynb")

    before = {who: begin(who) for who in ("one", "two")}
    assert before["one"].said["node_id"] != before["two"].said["node_id"]
    asked = before["one"].call("chat.send", agent="echo", text="mine")
    for node in before.values():
        node.kill()
    after = {who: begin(who) for who in ("two", "one")}
    for who, node in after.items():
        assert node.said["node_id"] == before[who].said["node_id"]
        assert node.said["name"] == before[who].said["name"]
    rows = after["one"].call("chat.history", conversation=asked["conversation"])["messages"]
    assert [row["text"] for row in rows] == ["mine", "mine"]
    assert after["two"].call("chat.list")["conversations"] == []
