"""The kernel's main thread, without a kernel: this one serves while it waits."""

from __future__ import annotations

import sys
from concurrent.futures import Future
from contextlib import suppress

import pytest

from aios_nb.notebook.mainthread import Desk


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
