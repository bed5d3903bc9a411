"""The relay in its own process, between real clients and real nodes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client
from mcp.client.stdio import StdioServerParameters, stdio_client
from mcp_types import ElicitResult

from aios_nb.home import Home
from tests.cli.conftest import AGENTS, ROOT, WAIT_S, Cli, environment
from tests.cli.lines import Relayed, asking, modern, request
from tests.sites import TestSite

ASK = {"legacy": request, "modern": modern}


@pytest.fixture
def relayed() -> Iterator[Callable[..., Relayed]]:
    made: list[Relayed] = []

    def start(cli: Cli, *args: str, **env: str) -> Relayed:
        made.append(Relayed(cli.home, *args, **env))
        return made[-1]

    yield start
    for one in made:
        one.kill()


async def spare(text: str) -> str:
    """Is there to be withdrawn."""
    return text


@pytest.fixture
def start(cli: Cli) -> Iterator[Callable[..., TestSite]]:
    """Nodes of the same home in this process: what the SDK needs is loaded here once for all."""
    made: list[TestSite] = []

    def starts(name: str) -> TestSite:
        made.append(TestSite(cli.home, [spare], name=name))
        return made[-1]

    yield starts
    for one in made:
        one.stop()


def gone(number: int) -> bool:
    """Whether a process is no more."""
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return True
    status = Path(f"/proc/{number}/stat")  # it may wait for a parent who never asks
    return status.exists() and status.read_text().rpartition(") ")[2].startswith("Z")


def eventually(is_so: Callable[[], bool]) -> None:
    until = time.monotonic() + WAIT_S
    while not is_so():
        assert time.monotonic() < until
        time.sleep(0.02)


# Both eras ------------------------------------------------------------------------------


@pytest.mark.parametrize(("mode", "version"), [("legacy", "2025-11-25"), ("auto", "2026-07-28")])
def test_the_official_client_talks_through_it(site, mode, version):
    heard: list[str] = []

    async def progress(_done: float, _total: float | None, said: str | None) -> None:
        heard.append(said or "")

    async def name(_context: Any, params: Any) -> ElicitResult:
        assert "What is your name?" in params.message
        return ElicitResult(action="accept", content={"answer": "Ada"})

    async def talk() -> None:
        command = StdioServerParameters(
            command=sys.executable,
            args=["-m", "aios_nb", "stdio"],
            env={"AIOS_HOME": str(site.home), "PYTHONPATH": str(ROOT)},
        )
        async with Client(stdio_client(command), mode=mode, elicitation_callback=name) as client:
            assert client.protocol_version == version
            tools = [tool.name for tool in (await client.list_tools()).tools]
            assert "agent_send" in tools
            spelled = await client.call_tool(
                "agent_send", {"agent": "spell", "text": "ein zwei\ndré ✓"},
                progress_callback=progress,
            )  # fmt: skip
            assert spelled.structured_content["text"].split() == ["ein", "zwei", "dré", "✓"]
            asked = await client.call_tool("agent_send", {"agent": "asks", "text": "hello"})
            assert asked.structured_content["text"] == "hello Ada"
            card = await client.read_resource("node://status")
            assert "alice" in card.contents[0].text
            refused = await client.call_tool("agent_send", {"agent": "nobody", "text": "hello"})
            assert refused.is_error

    anyio.run(talk)
    assert heard


@pytest.mark.parametrize("era", ["legacy", "modern"])
def test_what_a_client_cancels_is_cancelled_at_the_node(site, relayed, era):
    through = relayed(site)
    if era == "legacy":
        through.begin()
    ask = ASK[era]
    through.send(ask(1, "tools/call", **asking("forever"), _meta={"progressToken": "p"}))
    through.notice("notifications/progress")
    cancel = {"requestId": 1, "reason": "enough"}
    through.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancel})

    def cancelled() -> bool:
        rows = site.json("history", "last")["messages"]
        return any(row["status"] == "cancelled" for row in rows)

    eventually(cancelled)
    through.send(ask(2, "tools/call", **asking("echo")))
    assert through.answer(2)["result"]["structuredContent"]["text"] == "hello"
    code, rest, _ = through.end()
    assert (code, [said for said in rest if said.get("id") == 1]) == (0, [])


def test_news_of_the_node_reach_clients_of_both_eras(cli, start, relayed):
    alice = start("alice")
    earlier, later = relayed(cli), relayed(cli)
    earlier.begin()
    earlier.send(request(1, "tools/list"))
    earlier.answer(1)
    wanted = {"notifications": {"resourcesListChanged": True}}
    later.send(modern("news", "subscriptions/listen", **wanted))
    later.notice("notifications/subscriptions/acknowledged")
    alice.node.withdraw("spare")
    for through in (earlier, later):
        through.notice("notifications/resources/list_changed")
    assert earlier.end()[0] == 0
    later.process.send_signal(signal.SIGTERM)
    assert later.process.wait(WAIT_S) == 0  # an open subscription holds nothing up


def test_what_comes_in_one_go_is_answered_before_it_ends(site, relayed):
    through = relayed(site)
    start = {"protocolVersion": "2025-06-18", "capabilities": {}}
    start["clientInfo"] = {"name": "test", "version": "1"}
    through.send(
        request("a", "initialize", **start),
        request("p", "ping"),
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        request("b", "tools/call", **asking("echo", "quick")),
        modern("c", "tools/list"),
    )
    code, said, complaint = through.end()
    answers = {one["id"]: one["result"] for one in said if "id" in one}
    assert (code, complaint) == (0, "")
    assert answers["a"]["protocolVersion"] == "2025-06-18"
    assert answers["p"] == {}
    assert answers["b"]["structuredContent"]["text"] == "quick"
    assert answers["c"]["tools"]


def test_a_line_that_is_no_message_is_told_so(site, relayed):
    through = relayed(site)
    through.send(
        b"hello", b"\xff\xfe", b"[]", b'{"jsonrpc": "2.0", "id": true, "method": "x"}', b""
    )
    codes = [through.answer(None)["error"]["code"] for _ in range(4)]
    through.send({**modern("big", "tools/list"), "rest": "x" * (5 << 20)})
    assert "4 MB" in through.answer("big")["error"]["message"]
    through.send(request(5, "tools/list"))  # without a start there is no session
    through.send(modern(6, "no/such"))
    assert codes == [-32700, -32700, -32600, -32600]
    assert "error" in through.answer(5)
    assert through.answer(6)["error"]["code"] == -32601


# A node of its own ----------------------------------------------------------------------


def test_without_a_node_it_starts_one_and_stops_it_at_the_end(cli, relayed):
    through = relayed(cli)
    through.send(modern(1, "tools/call", **asking("echo", "anybody?")))
    assert through.answer(1)["result"]["structuredContent"]["text"] == "anybody?"
    assert [run.pid for run in Home(cli.home).running()] == [through.process.pid]
    code, _, complaint = through.end()
    assert (code, Home(cli.home).running()) == (0, [])
    assert complaint.count("\n") == 1
    assert "no node was running" in complaint


def test_a_signal_ends_it_and_its_node(cli, relayed):
    through = relayed(cli)
    eventually(lambda: bool(Home(cli.home).running()))
    through.process.send_signal(signal.SIGTERM)
    assert through.process.wait(WAIT_S) == 0
    assert Home(cli.home).running() == []


def test_when_its_client_is_killed_nothing_is_left(cli):
    client = (
        "import subprocess, sys, time\n"
        "started = subprocess.Popen([sys.executable, '-m', 'aios_nb', 'stdio'],"
        " stdin=subprocess.PIPE, stdout=subprocess.PIPE)\n"
        "print(started.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", client],
        env=environment(cli.home),
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    with parent:
        assert parent.stdout is not None
        relay = int(parent.stdout.readline())
        eventually(lambda: bool(Home(cli.home).running()))
        parent.kill()
    eventually(lambda: gone(relay))
    assert Home(cli.home).running() == []


# Which node -----------------------------------------------------------------------------


def test_of_several_nodes_one_has_to_be_named(cli, start, relayed):
    start("alice")
    start("bob")
    unsaid = relayed(cli)
    code, said, complaint = unsaid.end()
    assert (code, said) == (3, [])
    assert "alice, bob" in complaint
    for through in (relayed(cli, "--node", "bob"), relayed(cli, AIOS_NODE="bob")):
        through.send(modern(1, "resources/read", uri="node://status"))
        assert "bob" in str(through.answer(1)["result"]["contents"])


# A node that restarts -------------------------------------------------------------------


def test_clients_outlive_their_node(cli, start, relayed):
    first = cli.start("--name", "alice", "--agents", str(AGENTS))
    clients = {"legacy": relayed(cli), "modern": relayed(cli)}
    clients["legacy"].begin()
    for era, through in clients.items():
        ask = ASK[era](1, "tools/call", **asking("forever"), _meta={"progressToken": 1})
        through.send(ask)
        through.notice("notifications/progress")
    first.process.kill()
    first.stop()
    for through in clients.values():
        lost = through.answer(1)["error"]
        assert lost["code"] == -32000
        assert "went away" in lost["message"]

    alice = start("alice")
    for era, through in clients.items():
        through.send(ASK[era](2, "tools/call", **asking("echo", "still there?")))
        assert through.answer(2)["result"]["structuredContent"]["text"] == "still there?"
    # The session goes on: its client was not told to begin again, only to look again.
    clients["legacy"].notice("notifications/resources/list_changed")
    alice.node.withdraw("spare")
    clients["legacy"].notice("notifications/resources/list_changed")
    for through in clients.values():
        code, rest, _ = through.end()
        assert (code, [said for said in rest if said.get("id") is not None]) == (0, [])


def test_when_the_node_stays_away_it_starts_one_itself(cli, start, relayed):
    first = start("alice")
    through = relayed(cli)
    through.begin()
    first.stop()
    through.send(request(1, "tools/call", **asking("echo", "and now?")))
    assert through.answer(1)["result"]["structuredContent"]["text"] == "and now?"
    assert [run.pid for run in Home(cli.home).running()] == [through.process.pid]
