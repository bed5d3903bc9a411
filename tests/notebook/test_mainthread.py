"""The kernel's main thread, without a kernel: this one serves while it waits."""

from __future__ import annotations

import sys
import threading
from concurrent.futures import Future
from contextlib import suppress

import pytest

from aios_nb.notebook import mainthread
from aios_nb.notebook.mainthread import Desk, Piece, Stage

CEILING_S = 30


class Stopped:
    """A run that was stopped while it waited for the thread."""

    stopped = True
    is_async = False

    def __init__(self) -> None:
        self.over: Future[None] = Future()

    def main(self) -> None:
        raise AssertionError("it was stopped")

    def ended(self) -> None:
        self.over.set_result(None)


class Tidy:
    """A run that waits for others on the thread, and tidies up at its end."""

    is_async = False

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self.stopped = self.tidied = False
        self.waits, self.tidies, self.told = (threading.Event() for _ in range(3))
        self.over: Future[None] = Future()

    def main(self) -> None:
        try:
            self.waits.set()
            self._desk.wait(Future())
        finally:
            self.tidies.set()
            self.told.wait(CEILING_S)
            self.tidied = True

    def ended(self) -> None:
        self.over.set_result(None)


class Broken:
    """A stream that fails where it is to show what was printed."""

    def __init__(self, error: BaseException) -> None:
        self.error = error

    def flush(self) -> None:
        raise self.error


@pytest.mark.parametrize(
    "stream",
    [None, Broken(RuntimeError("no")), Broken(KeyboardInterrupt())],
    ids=["none", "failing", "interrupted"],
)
def test_a_stopped_run_ends_whatever_becomes_of_what_it_printed(
    monkeypatch: pytest.MonkeyPatch, stream: Broken | None
):
    desk, run = Desk(), Stopped()
    desk.submit(run)  # type: ignore[arg-type]
    with monkeypatch.context() as patch, suppress(KeyboardInterrupt):
        patch.setattr(sys, "stdout", stream)
        desk.attend(run.over)

    assert run.over.done()


def test_a_run_that_is_stopped_while_it_waits_is_told_once(monkeypatch: pytest.MonkeyPatch):
    """Twice, and the second time is in the middle of tidying up."""
    monkeypatch.setattr(mainthread, "_POLL_S", CEILING_S)
    desk = Desk()
    run = Tidy(desk)
    signalled = Stage.stop

    def late(stage: Stage, piece: Piece) -> None:
        run.tidies.wait(0.2)  # in vain, unless it was told already
        signalled(stage, piece)

    def stop() -> None:
        run.waits.wait(CEILING_S)
        run.stopped = True
        desk.stop(run)
        run.told.set()

    monkeypatch.setattr(Stage, "stop", late)
    stopping = threading.Thread(target=stop)
    stopping.start()
    desk.submit(run)
    desk.attend(run.over)
    stopping.join()

    assert run.tidied
