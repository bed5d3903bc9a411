"""What can go wrong between a bot and Telegram, on demand."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from tests.telegram.botapi.record import CEILING_S

EVERY = "*"
PAGE = "<html><head><title>502 Bad Gateway</title></head></html>"


@dataclass
class Answer:
    """A status and a body instead of the real answer; a text body is sent as it is."""

    status: int
    body: Any


class Hold:
    """A place where calls stop until released: the moment in which a test kills a process."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._arrived = threading.Event()
        self._open = asyncio.Event()

    def wait(self, timeout: float = CEILING_S) -> None:
        """Return once a call has stopped here."""
        if not self._arrived.wait(timeout):
            raise TimeoutError("no call came")

    def release(self) -> None:
        self._loop.call_soon_threadsafe(self._open.set)

    async def stop_here(self) -> None:
        self._arrived.set()
        await self._open.wait()


@dataclass(eq=False)
class Fault:
    """One thing that goes wrong, for which calls, and how often."""

    methods: frozenset[str]
    chat_id: int | None
    left: int | None
    """How many calls are still to suffer; None is all of them."""
    after: bool
    """Whether the call takes effect before it goes wrong."""
    delay_s: float = 0.0
    answer: Answer | None = None
    cut: bool = False
    hold: Hold | None = None
    hits: int = field(default=0)

    def fits(self, method: str, chat_id: int | None) -> bool:
        named = EVERY in self.methods or method.lower() in self.methods
        return named and (self.chat_id is None or self.chat_id == chat_id) and self.left != 0


class Faults:
    """What is to go wrong; the first that fits a call applies to it."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._planned: list[Fault] = []

    def answer(
        self, methods: str | Iterable[str], status: int, body: Any = None, **where: Any
    ) -> Fault:
        """This answer instead of an effect: ``answer("setMyCommands", 404)``, or any 5xx."""
        if body is None:
            body = PAGE if status >= 500 else {"ok": False, "error_code": status}
            if status == 404:
                body["description"] = "Not Found"
        return self._plan(methods, answer=Answer(status, body), **where)

    def delay(self, methods: str | Iterable[str], seconds: float, **where: Any) -> Fault:
        """The call takes that much longer; with ``after=True``, after its effect."""
        return self._plan(methods, delay_s=seconds, **where)

    def cut(self, methods: str | Iterable[str], **where: Any) -> Fault:
        """The line is reset; with ``after=True`` the call has taken effect nevertheless."""
        return self._plan(methods, cut=True, **where)

    def hold(self, methods: str | Iterable[str], **where: Any) -> Hold:
        """Calls stop before their effect, or after it, until the hold is released."""
        hold = Hold(self._loop)
        self._plan(methods, hold=hold, **where)
        return hold

    def clear(self) -> None:
        for fault in self._planned:
            if fault.hold:
                fault.hold.release()
        self._planned = []

    def take(self, method: str, chat_id: int | None, *, after: bool) -> Fault | None:
        """The fault that this call suffers now."""
        for fault in self._planned:
            if fault.after == after and fault.fits(method, chat_id):
                fault.hits += 1
                if fault.left is not None:
                    fault.left -= 1
                return fault
        return None

    def _plan(
        self,
        methods: str | Iterable[str],
        *,
        chat: int | None = None,
        times: int | None = 1,
        after: bool = False,
        **what: Any,
    ) -> Fault:
        """``times=None`` is for ever."""
        names = [methods] if isinstance(methods, str) else methods
        fault = Fault(frozenset(name.lower() for name in names), chat, times, after, **what)
        self._planned.append(fault)
        return fault
