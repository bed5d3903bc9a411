"""Links between node processes that are flooded, held up, stopped and woken."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import json
import os
import signal
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.hostile.conftest import Start
from tests.hostile.nodes import NodeProcess, until
from tests.wire.peer.attacker import Attacker, HungUp, request, ws_frame

MB = 1 << 20
CROWD = 1000
WIDE_DOOR = {"refused_per_s": 1e6, "stranger_handshakes_per_s": 1e6}


@pytest.fixture
def call() -> Iterator[Callable[..., concurrent.futures.Future[Any]]]:
    """Calls of an owner that take their time."""
    with concurrent.futures.ThreadPoolExecutor() as pool:
        yield lambda node, method, **params: pool.submit(node.call, method, **params)


def linked(node: NodeProcess) -> list[str]:
    peers = node.call("node.peers")["peers"]
    return [peer["node_id"] for peer in peers if peer["state"] == "alive"]


def is_silent(node: NodeProcess, other: NodeProcess) -> bool:
    """Whether the node has said so of the other one."""
    return f"{other.said['node_id']} is silent" in node.log()


@pytest.fixture
def two(start: Start, tmp_path: Path) -> Callable[..., tuple[NodeProcess, NodeProcess]]:
    """A node that joined another one, in homes of their own."""

    def begin(**pulse: float) -> tuple[NodeProcess, NodeProcess]:
        tuned = {"TUNED_PULSE": json.dumps(pulse)}
        there = start(
            home=tmp_path / "there", limits={}, TRACE_FILE=str(tmp_path / "trace"), **tuned
        )
        here = start(
            home=tmp_path / "here",
            limits={},
            TUNED_JOIN=f"{there.url}#{there.said['node_id']}",
            **tuned,
        )
        until(lambda: there.said["node_id"] in linked(here), "the link is up")
        return here, there

    return begin


def traces(tmp_path: Path) -> list[str]:
    return (tmp_path / "trace").read_text().split()


# A crowd in the door ----------------------------------------------------------------------


@pytest.mark.parametrize("upto", ["a connection", "half an M1", "M1", "M3 and no ready"])
def test_a_thousand_that_go_no_further_keep_neither_nodes_nor_the_owner_out(
    start: Start, upto: str
) -> None:
    node = start(limits=WIDE_DOOR)
    node.call("node.info")
    before = node.memory_bytes()

    async def come(stack: contextlib.AsyncExitStack) -> None:
        if upto == "a connection":
            silent = socket.create_connection(("127.0.0.1", node.port))
            stack.callback(silent.close)
            return
        with contextlib.suppress(HungUp, OSError, asyncio.IncompleteReadError):
            attacker = await stack.enter_async_context(Attacker(node.port))
            if upto == "half an M1":
                attacker.raw(ws_frame(b"\x01\x04main" + b"x" * 64)[:40])
            elif upto == "M1":
                attacker.raw(ws_frame(b"\x01\x04main" + attacker.identity.public_key + b"x" * 32))
                await attacker.read()
            else:
                await attacker.prove()

    async def run() -> None:
        async with contextlib.AsyncExitStack() as stack:
            for _ in range(CROWD):
                await come(stack)
            async with Attacker(node.port) as good:
                await good.link()
                good.ask(1, request("node.info"))
                assert (await good.answer(1))["result"]["node_id"] == node.said["node_id"]
                assert node.call("node.info")["node_id"] == node.said["node_id"]
                half_open = CROWD if upto == "a connection" else 64 + 16
                assert node.open_files() < half_open + 100
                assert node.memory_bytes() - before < 100 * MB

    asyncio.run(run())
    assert not node.complaints()


# Held up ----------------------------------------------------------------------------------


def test_a_node_that_is_held_up_longer_than_a_ping_keeps_its_links(two, call, tmp_path):
    here, there = two(PING_AFTER_S=1.0, SILENCE_S=20.0)

    reply = here.call("chat.send", agent=f"blocker@{there.said['node_id']}", text="4")

    assert reply["status"] == "done"
    assert not is_silent(here, there)
    assert not is_silent(there, here)
    assert traces(tmp_path) == ["4"]


def test_a_node_that_is_held_up_longer_than_the_limit_accuses_nobody(two, call, tmp_path):
    here, there = two(PING_AFTER_S=1.0, SILENCE_S=3.0)

    reply = here.call("chat.send", agent=f"blocker@{there.said['node_id']}", text="8")

    assert reply["status"] == "done"
    assert is_silent(here, there)
    assert not is_silent(there, here)
    assert traces(tmp_path) == ["8"]


@pytest.mark.parametrize("who", ["the caller", "the host"])
def test_a_stopped_node_is_given_up_and_the_call_comes_to_its_end_when_it_goes_on(
    two, call, tmp_path, who
):
    here, there = two(PING_AFTER_S=1.0, SILENCE_S=3.0)
    stopped, other = (here, there) if who == "the caller" else (there, here)
    may_end = tmp_path / "may-end"
    asked = call(here, "chat.send", agent=f"held@{there.said['node_id']}", text=str(may_end))
    until((tmp_path / "trace").exists, "it runs")

    stopped.process.send_signal(signal.SIGSTOP)
    try:
        os.waitid(os.P_PID, stopped.pid, os.WSTOPPED)
        may_end.touch()
        until(lambda: is_silent(other, stopped), "the other side has noticed")
    finally:
        stopped.process.send_signal(signal.SIGCONT)

    assert asked.result()["text"] == f"counted {may_end}"
    assert not is_silent(stopped, other)
    assert traces(tmp_path) == [str(may_end)]
    until(lambda: there.said["node_id"] in linked(here), "they are linked again")
    assert not here.complaints()
    assert not there.complaints()
