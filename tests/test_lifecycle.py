"""The program's own node, started and stopped, by people who interrupt, fork and mistype."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest

import aios_nb as aios
from aios_nb import lifecycle
from aios_nb.agents import decorator
from aios_nb.config import Settings
from aios_nb.current import program
from aios_nb.errors import AiosError, UsageError
from aios_nb.node import Node

pytestmark = pytest.mark.usefixtures("aios_home")
CEILING_S = 60.0


@pytest.fixture(autouse=True)
def _nothing_is_left() -> Iterator[None]:
    yield
    aios.down()
    decorator.declared.clear()


def interrupt() -> None:
    signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)


def came_along() -> Node:
    """The node of ``%load_ext``: nobody chose it."""
    assert program.begin()
    return lifecycle.launch(chosen=False)


def test_an_interrupted_stop_goes_on_and_the_next_node_is_the_same(monkeypatch):
    before = aios.up(name="ada").node_id
    may_stop = threading.Event()
    stop = Node.stop

    def slowly(node: Node, within_s: float | None = None) -> None:
        interrupt()
        assert may_stop.wait(CEILING_S)
        stop(node, within_s)

    with monkeypatch.context() as here:
        here.setattr(Node, "stop", slowly)
        with pytest.raises(KeyboardInterrupt):
            aios.down()
    may_stop.set()
    again = aios.up(name="ada")
    assert (again.node_id, again.name) == (before, "ada")


def test_the_end_of_a_program_does_not_wait_for_a_stop_that_hangs(monkeypatch):
    aios.up(name="ada")
    may_stop = threading.Event()
    stop = Node.stop

    def slowly(node: Node, within_s: float | None = None) -> None:
        assert may_stop.wait(CEILING_S)
        stop(node, within_s)

    monkeypatch.setattr(Node, "stop", slowly)
    for _ in range(2):  # the second one finds it stopping
        with pytest.raises(TimeoutError):
            lifecycle.down(0.01)
    may_stop.set()


def test_a_stop_that_fails_lets_go_of_the_name(monkeypatch):
    node = aios.up(name="ada")
    before = node.node_id
    rooms = node._rooms
    assert rooms is not None
    close = rooms.close

    async def fails() -> None:
        await close()
        raise OSError("the disk is gone")

    monkeypatch.setattr(rooms, "close", fails)
    with pytest.raises(OSError, match="the disk is gone"):
        aios.down()
    assert not node.running
    again = aios.up(name="ada")
    assert (again.node_id, again.name) == (before, "ada")


def test_a_node_that_is_stopped_by_itself_is_no_longer_the_programs():
    states: list[str] = []
    leave = program.subscribe(lambda: states.append(program.state))
    with aios.up(name="ada") as node:
        before = node.node_id
    leave()
    assert states == ["starting", "up", "stopping", "down"]

    @aios.agent
    def greet(text: str) -> str:
        return f"hello {text}"

    again = aios.up(name="ada")
    assert (again.node_id, again.ask("greet", "Ada")) == (before, "hello Ada")
    again.stop()
    again.stop()
    with Node(Settings(name="another")) as other:
        assert aios.up().ask("greet", "Bob") == "hello Bob"
        other.stop()
        assert program.state == "up"


@pytest.mark.parametrize("state", ["starting", "stopping"])
def test_an_interrupt_while_the_change_is_told_leaves_no_half_state(state: str):
    if state == "stopping":
        aios.up(name="ada")
    once = [state]

    def told() -> None:
        if program.state in once:
            once.clear()
            raise KeyboardInterrupt

    leave = program.subscribe(told)
    change: Callable[[], Any] = aios.down if state == "stopping" else aios.up
    with pytest.raises(KeyboardInterrupt):
        change()
    leave()
    assert program.state in {"up", "failed"}
    assert aios.up().ask("echo", "still here") == "still here"


def test_two_interrupts_leave_no_start_that_nobody_ends(monkeypatch):
    start, stop = Node.start, Node.stop
    left = []

    def interrupted(node: Node) -> Node:
        left.append(start(node))
        raise KeyboardInterrupt

    def again(_: Node, within_s: float | None = None) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as here:
        here.setattr(Node, "start", interrupted)
        here.setattr(Node, "stop", again)
        with pytest.raises(KeyboardInterrupt):
            aios.up(name="ada")
    stop(left[0])
    assert program.state == "failed"
    assert aios.up(name="ada").ask("echo", "here") == "here"


def test_who_fails_when_told_of_the_node_keeps_nobody_from_it():
    def told() -> None:
        raise ValueError("a widget of old")

    leave = program.subscribe(told)
    try:
        assert aios.up().ask("echo", "on") == "on"
    finally:
        leave()


def test_a_wrong_choice_does_not_cost_the_node_that_came_along():
    @aios.agent
    def greet(text: str) -> str:
        return f"hello {text}"

    before = came_along().node_id
    with pytest.raises(AiosError, match="public"):
        aios.up(host="0.0.0.0")
    assert aios.node().node_id == before
    assert aios.node().ask("greet", "Ada") == "hello Ada"
    assert not program.chosen


def test_asked_for_without_choices_the_node_that_came_along_is_given_and_may_still_be_chosen():
    before = came_along()
    assert aios.up() is before
    assert aios.up(network="lab").settings.network == "lab"
    aios.down()
    assert aios.up().running
    with pytest.raises(UsageError, match="without that network"):
        aios.up(network="lab")


def test_an_async_agent_cannot_stop_its_own_node_and_does_not_break_it():
    @aios.agent
    async def saw(text: str) -> str:
        try:
            aios.down()
        except AiosError as error:
            return str(error)
        return "it was stopped"

    node = aios.up()
    assert "cannot be stopped by one of its own" in node.ask("saw", "x")
    assert aios.node() is node


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_is_told_that_the_node_stayed_behind():
    node = aios.up(name="ada")
    read, write = os.pipe()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python warns of forks beside threads
        child = os.fork()
    if child == 0:
        signal.alarm(int(CEILING_S))  # a child that hangs would hold the test
        said = []
        for ask in (lambda: node.ask("echo", "x"), aios.node, aios.down):
            try:
                said.append(repr(ask()))
            except BaseException as error:  # noqa: BLE001 - a child must not go on as a test
                said.append(str(error))
        os.write(write, "\n".join(said).encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as pipe:
        said = pipe.read().splitlines()
    os.waitpid(child, 0)
    assert "forked" in said[0]
    assert "no node is running" in said[1]
    assert said[2] == "None"
    assert node.ask("echo", "and the parent goes on") == "and the parent goes on"


def test_a_policy_of_the_users_own_does_not_concern_the_node():
    class OnlyMain(asyncio.DefaultEventLoopPolicy):
        def new_event_loop(self) -> asyncio.AbstractEventLoop:
            raise RuntimeError("not in this thread")

    asyncio.set_event_loop_policy(OnlyMain())
    try:
        assert aios.up().ask("echo", "on") == "on"
    finally:
        asyncio.set_event_loop_policy(None)


def test_a_program_ends_though_an_agent_holds_the_loop():
    script = """
import threading, time
import aios_nb as aios
began = threading.Event()
@aios.agent
async def block(text):
    began.set()
    while True:
        time.sleep(0.1)
node = aios.up()
threading.Thread(target=lambda: node.ask("block", "x"), daemon=True).start()
began.wait()
print("the end")
"""
    command = [sys.executable, "-c", script]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=CEILING_S, check=True)
    assert ran.stdout == "the end\n"
