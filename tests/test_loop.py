"""A loop in a thread of its own: errors reach the caller, an interrupt cancels, nothing is left."""

from __future__ import annotations

import asyncio
import gc
import signal
import socket
import sys
import threading
import time
import warnings
from collections.abc import Iterator
from typing import Any

import pytest

from aios_nb.current import program
from aios_nb.errors import UsageError
from aios_nb.loop import LoopThread, beside


@pytest.fixture
def loop() -> Iterator[LoopThread]:
    thread = LoopThread("test-loop")
    thread.start()
    yield thread
    thread.stop()


def test_work_runs_over_there_and_its_result_comes_back(loop: LoopThread) -> None:
    async def where() -> str:
        return threading.current_thread().name

    assert loop.sync(where) == "test-loop"


def test_an_error_over_there_is_raised_here(loop: LoopThread) -> None:
    async def fail() -> None:
        raise ValueError("no")

    with pytest.raises(ValueError, match="no"):
        loop.sync(fail)


def test_a_connection_that_nobody_reads_is_closed_with_the_loop() -> None:
    thread = LoopThread("test-loop")
    thread.start()
    with socket.create_server(("127.0.0.1", 0)) as silent:

        async def write() -> socket.socket:
            where = silent.getsockname()
            transport, _ = await asyncio.get_running_loop().create_connection(
                asyncio.Protocol, *where
            )
            transport.write(bytes(64 << 20))
            transport.close()
            found: socket.socket = transport.get_extra_info("socket")
            return found

        ours = thread.sync(write)
        assert ours.fileno() >= 0  # something is left to send
        thread.stop()
        assert ours.fileno() == -1


def test_what_runs_beside_the_loop_is_over_when_its_cancel_is() -> None:
    begun, go, said = threading.Event(), threading.Event(), []

    def work(word: str) -> str:
        begun.set()
        go.wait(30)
        said.append(word)
        return word

    async def cancelled() -> None:
        task = asyncio.create_task(beside(work, "late"))
        await asyncio.to_thread(begun.wait, 30)
        task.cancel()
        asyncio.get_running_loop().call_later(0.01, go.set)
        with pytest.raises(asyncio.CancelledError):
            await task
        assert said == ["late"]
        assert await beside(work, "now") == "now"

    asyncio.run(cancelled())


def test_who_has_little_time_serves_nobody_meanwhile(
    loop: LoopThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(program, "attend", lambda future: future.result())
    with pytest.raises(TimeoutError):
        loop.sync(asyncio.Event().wait, 0.01)


def test_an_interrupt_cancels_the_wait_and_the_work(loop: LoopThread) -> None:
    started, cancelled = threading.Event(), threading.Event()

    async def work() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    def interrupt() -> None:
        started.wait()
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    threading.Thread(target=interrupt).start()
    with pytest.raises(KeyboardInterrupt):
        loop.sync(work)
    assert cancelled.wait(10)


def test_an_interrupt_in_the_moment_of_handing_over_cancels_the_work_too(
    loop: LoopThread, monkeypatch: pytest.MonkeyPatch
) -> None:
    started, cancelled = threading.Event(), threading.Event()
    hand_over = asyncio.run_coroutine_threadsafe

    async def work() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            cancelled.set()
            raise

    def interrupted(coroutine: Any, to: asyncio.AbstractEventLoop) -> None:
        hand_over(coroutine, to)
        assert started.wait(10)
        raise KeyboardInterrupt

    monkeypatch.setattr(asyncio, "run_coroutine_threadsafe", interrupted)
    with pytest.raises(KeyboardInterrupt):
        loop.sync(work)
    assert cancelled.wait(10)


def test_waiting_inside_the_loop_is_refused_instead_of_hanging(loop: LoopThread) -> None:
    async def nothing() -> None: ...

    async def wait_for_itself() -> None:
        loop.sync(nothing)

    with pytest.raises(UsageError, match="inside the node"):
        loop.sync(wait_for_itself)


def test_another_loop_can_await_it_and_stays_free(loop: LoopThread) -> None:
    async def slow() -> str:
        await release.wait()
        return "done"

    async def make_release() -> asyncio.Event:
        return asyncio.Event()

    release = loop.sync(make_release)

    async def main() -> str:
        waiting = asyncio.create_task(loop.bridge(slow))
        await asyncio.sleep(0)  # this loop turns while that one works
        loop.loop.call_soon_threadsafe(release.set)
        return await waiting

    assert asyncio.run(main()) == "done"


def test_work_for_a_loop_that_does_not_turn_is_refused_and_nothing_is_left_undone() -> None:
    async def nothing() -> None: ...

    stopped = LoopThread("test-stopped")
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        with pytest.raises(UsageError, match="not running"):
            asyncio.run(stopped.bridge(nothing))
        with pytest.raises(UsageError, match="not running"):
            stopped.submit(nothing())
        gc.collect()
    assert [str(one.message) for one in warned] == []


def test_stop_cancels_what_is_left_and_ends_the_thread() -> None:
    thread = LoopThread("test-left")
    thread.start()
    ended = threading.Event()

    async def forever() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    future = thread.submit(forever())
    while not asyncio.run_coroutine_threadsafe(_count_tasks(), thread.loop).result() > 1:
        time.sleep(0.001)
    thread.stop()
    assert ended.is_set()
    assert future.cancelled()
    assert "test-left" not in {one.name for one in threading.enumerate()}
    with pytest.raises(UsageError, match="not running"):
        thread.sync(forever)


async def _count_tasks() -> int:
    return len(asyncio.all_tasks())


def test_the_switch_interval_is_lowered_while_a_node_runs_and_put_back() -> None:
    before = sys.getswitchinterval()
    first, second = LoopThread("one"), LoopThread("two")
    first.start()
    second.start()
    assert sys.getswitchinterval() < before
    first.stop()
    assert sys.getswitchinterval() < before
    second.stop()
    assert sys.getswitchinterval() == before
