"""Faults on demand: what a call gets instead of what it asked for, and calls that hang."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterator

from aios_bots.core.adapter import Absent, CallError
from aios_bots.core.model import Op, Outgoing

Match = Callable[[Outgoing], bool]


class Held:
    """Calls that hang until they are let go."""

    def __init__(self, match: Match, *, after: bool) -> None:
        self.match, self.after = match, after
        self.reached = asyncio.Event()
        """A call is there."""
        self.gone = asyncio.Event()


class Fault:
    def __init__(self, match: Match, error: CallError, times: int, *, after: bool) -> None:
        self.match, self.error, self.times, self.after = match, error, times, after


class Faults:
    """What a test wants to go wrong."""

    def __init__(self) -> None:
        self._faults: list[Fault] = []
        self._holds: list[Held] = []

    def fail(
        self,
        error: CallError,
        *,
        chat: str | None = None,
        op: Op | None = None,
        times: int = 1,
        after: bool = False,
    ) -> None:
        """Say that to the next calls of this kind; ``after``: they have their effect all the same.

        ``times``: how many; below 0 until ``mend``.
        """
        self._faults.append(Fault(_matching(chat, op), error, times, after=after))

    def mend(self) -> None:
        """No more faults."""
        self._faults.clear()

    @contextlib.contextmanager
    def held(
        self, *, chat: str | None = None, op: Op | None = None, after: bool = False
    ) -> Iterator[Held]:
        """Calls of this kind hang until the end of the block: before their effect, or after it."""
        hold = Held(_matching(chat, op), after=after)
        self._holds.append(hold)
        try:
            yield hold
        finally:
            self._holds.remove(hold)
            hold.gone.set()

    def lacks_files(self) -> None:
        """This server takes no files."""
        self._faults.append(Fault(_has_file, Absent("no such method"), -1, after=False))

    def lacks(self, *ops: Op) -> None:
        """This server does not know these calls, as the bot finds out by making them."""
        for op in ops:
            self.fail(Absent(f"no such method: {op}"), op=op, times=-1)

    async def pass_holds(self, out: Outgoing, *, after: bool = False) -> None:
        for hold in [one for one in self._holds if one.match(out) and one.after is after]:
            hold.reached.set()
            await hold.gone.wait()

    def next_fault(self, out: Outgoing) -> Fault | None:
        fault = next((one for one in self._faults if one.match(out)), None)
        if fault is not None:
            fault.times -= 1
            if not fault.times:
                self._faults.remove(fault)
        return fault


def _has_file(out: Outgoing) -> bool:
    return bool(out.files or out.as_file)


def _matching(chat: str | None, op: Op | None) -> Callable[[Outgoing], bool]:
    return lambda out: (chat is None or out.place.chat == chat) and op in {None, out.op}
