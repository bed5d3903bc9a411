"""The threads themselves."""

from __future__ import annotations

import subprocess
import sys
import threading

import pytest

from aios_nb.agents.pool import Pool, Stopped

CEILING_S = 30


class Piece:
    def __init__(self, work=lambda: None) -> None:
        self.work = work
        self.stopped = False
        self.thread: threading.Thread | None = None
        self.error: BaseException | None = None
        self.done = threading.Event()

    def main(self) -> None:
        self.thread = threading.current_thread()
        try:
            self.work()
        except BaseException as error:  # noqa: BLE001
            self.error = error

    def ended(self) -> None:
        self.done.set()

    def wait(self) -> threading.Thread:
        assert self.done.wait(CEILING_S)
        return self.thread


def run(pool: Pool, piece: Piece) -> threading.Thread:
    pool.submit(piece)
    return piece.wait()


def test_a_warm_thread_is_used_again():
    pool = Pool("aios-agent-test")
    first = run(pool, Piece())
    assert run(pool, Piece()) is first
    pool.close()
    assert not first.is_alive()


def test_the_pool_grows_with_what_runs_at_once():
    pool = Pool("aios-agent-test")
    barrier = threading.Barrier(20)
    pieces = [Piece(barrier.wait) for _ in range(20)]
    for piece in pieces:
        pool.submit(piece)
    assert len({piece.wait() for piece in pieces}) == 20
    pool.close()
    assert pool.threads == 0


def test_an_idle_thread_ends_by_itself():
    pool = Pool("aios-agent-test", idle_s=0.001)
    thread = run(pool, Piece())
    thread.join(CEILING_S)
    assert not thread.is_alive()
    assert pool.threads == 0
    assert run(pool, Piece()).name != thread.name
    pool.close()


def test_work_given_while_a_thread_is_about_to_end_is_not_lost():
    pool = Pool("aios-agent-test", idle_s=0.0001)
    for _ in range(500):
        run(pool, Piece())
    pool.close()


def test_a_thread_that_was_just_given_work_may_not_end():
    pool = Pool("aios-agent-test")
    go = threading.Event()
    run(pool, Piece())
    piece = Piece(go.wait)
    worker = pool.submit(piece)
    assert pool.leave(worker) is False
    go.set()
    piece.wait()
    assert pool.leave(worker) is True
    worker.give(None)
    worker.join(CEILING_S)


def test_a_stopped_piece_that_had_not_begun_never_runs():
    pool = Pool("aios-agent-test")
    piece = Piece()
    piece.stopped = True
    pool.submit(piece)
    assert piece.wait() is None
    pool.close()


def test_a_stop_after_the_end_does_nothing():
    pool = Pool("aios-agent-test")
    piece = Piece()
    worker = pool.submit(piece)
    piece.wait()
    assert worker.stop(piece) is False
    run(pool, Piece())
    pool.close()


def test_a_stop_that_comes_with_the_end_is_not_left_for_the_next_piece():
    pool = Pool("aios-agent-test")
    for _ in range(300):
        piece = Piece()
        worker = pool.submit(piece)
        worker.stop(piece)
        piece.wait()
        after = Piece(lambda: sum(range(200)))
        run(pool, after)
        assert after.error is None
    pool.close()


def test_a_stop_raises_in_the_piece():
    pool = Pool("aios-agent-test")
    begun = threading.Event()

    def loop():
        begun.set()
        while True:
            pass

    piece = Piece(loop)
    worker = pool.submit(piece)
    begun.wait(CEILING_S)
    assert worker.stop(piece)
    piece.wait()
    assert isinstance(piece.error, Stopped)
    pool.close()


def test_a_closed_pool_takes_nothing():
    pool = Pool("aios-agent-test")
    pool.close()
    with pytest.raises(RuntimeError):
        pool.submit(Piece())


def test_a_stuck_thread_does_not_keep_the_program_from_ending():
    program = """
import threading
from aios_nb.agents.pool import Pool
class Stuck:
    stopped = False
    def main(self): started.set(); threading.Event().wait()
    def ended(self): pass
started = threading.Event()
Pool("x").submit(Stuck())
started.wait()
"""
    assert subprocess.run([sys.executable, "-c", program], timeout=60, check=False).returncode == 0
