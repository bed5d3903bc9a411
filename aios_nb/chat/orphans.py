"""Runs whose caller's node has gone: they may go on for a while, in case it comes back."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping

from aios_nb.chat.calls import Call
from aios_nb.chat.runs import Run
from aios_nb.errors import Cancelled

ORPHAN_S = 60.0
"""A run for a remote home outlives a broken link by this."""


class Orphans:
    """Gives the runs of a node that has gone their time, and then stops them."""

    def __init__(self, calls: Mapping[tuple[int, str], Call], grace_s: float = ORPHAN_S) -> None:
        self._calls = calls
        self.grace_s = grace_s
        self._loop = asyncio.get_running_loop()
        self._timers: dict[Run, asyncio.TimerHandle] = {}

    def lost(self, node_id: str) -> None:
        """There is no link to this node any more."""
        self._leave(self._runs_of(node_id))

    def shut_out(self, node_id: str) -> None:
        """Nothing more is done for this node."""
        for run in list(self._runs_of(node_id)):
            run.stop(Cancelled("the node that asked was shut out", ran="unknown"))

    def _runs_of(self, node_id: str) -> Iterator[Run]:
        for call in self._calls.values():
            for run in call.runs:
                if run.principal.id == node_id and not run.is_over and not run.conversation.parent:
                    yield run

    def lost_all(self) -> None:
        """After a restart: no node has come back yet."""
        self._leave(
            run
            for call in self._calls.values()
            for run in call.runs
            if run.principal.is_node and run.conversation.parent is None
        )

    def found(self, call: Call) -> None:
        """Whoever asked is back."""
        for run in call.runs:
            self.found_run(run)

    def found_run(self, run: Run) -> None:
        timer = self._timers.pop(run, None)
        if timer is not None:
            timer.cancel()

    def _leave(self, runs: Iterable[Run]) -> None:
        for run in runs:
            if run not in self._timers:
                self._timers[run] = self._loop.call_later(self.grace_s, self._give_up, run)

    def _give_up(self, run: Run) -> None:
        self._timers.pop(run, None)
        run.stop(Cancelled("the node that asked has gone", ran="unknown"))

    def close(self) -> None:
        for timer in self._timers.values():
            timer.cancel()
        self._timers.clear()
