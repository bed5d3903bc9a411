"""What happened: every call with its times, every change that a person could see, and counts."""

from __future__ import annotations

import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

CEILING_S = 30.0
"""How long a test waits for something that should happen at once."""


@dataclass(eq=False)
class Call:
    """One request of a bot, from when it was read to when it was answered."""

    number: int
    method: str
    bot_id: int
    params: dict[str, Any]
    at: float
    ended: float | None = None
    status: int | None = None
    """None while it runs, and for a line that was cut."""
    description: str = ""
    effect: bool = False
    """Whether the call did what it asks for, whatever the answer was."""
    result: Any = field(default=None, repr=False)

    @property
    def chat_id(self) -> int | None:
        chat = str(self.params.get("chat_id", ""))
        return int(chat) if chat.lstrip("-").isdigit() else None

    @property
    def ok(self) -> bool:
        return self.status == 200


@dataclass(frozen=True)
class Line:
    """One thing that a person could see."""

    at: float
    chat_id: int
    who: str
    what: str
    """``sent``, ``edited``, ``deleted``, ``action``, ``draft``, ``reaction`` or ``answer``."""
    text: str
    message_id: int = 0


class Record:
    """Grows as the server works; tests wait on it."""

    def __init__(self, now: Callable[[], float]) -> None:
        self.calls: list[Call] = []
        self.lines: list[Line] = []
        self.counts: Counter[Any] = Counter()
        """Calls by method, and by method and status: ``counts["sendMessage", 429]``."""
        self._now = now
        self._changed = threading.Condition()
        self._version = 0

    def begin(self, method: str, bot_id: int, params: dict[str, Any]) -> Call:
        call = Call(len(self.calls) + 1, method, bot_id, params, self._now())
        self.calls.append(call)
        self.counts[method] += 1
        self.changed()
        return call

    def end(self, call: Call, status: int | None, description: str = "") -> None:
        call.status, call.description, call.ended = status, description, self._now()
        self.counts[call.method, status] += 1
        self.changed()

    def see(self, chat_id: int, who: str, what: str, text: str, message_id: int = 0) -> None:
        self.lines.append(Line(self._now(), chat_id, who, what, text, message_id))
        self.changed()

    def of(self, *methods: str, chat: int | None = None) -> list[Call]:
        """Calls of these methods, of one chat if it is given."""
        return [
            call
            for call in list(self.calls)
            if call.method in methods and (chat is None or call.chat_id == chat)
        ]

    def transcript(self, chat_id: int | None = None) -> str:
        """All of it to read, one line each."""
        return "\n".join(
            f"{line.who} {line.what}: {line.text}"
            for line in list(self.lines)
            if chat_id is None or line.chat_id == chat_id
        )

    def changed(self) -> None:
        with self._changed:
            self._version += 1
            self._changed.notify_all()

    def wait(self, happened: Callable[[], Any], timeout: float = CEILING_S) -> Any:
        """What ``happened()`` gives once it is true; raises with the last calls if it never is."""
        until = time.monotonic() + timeout
        while True:
            seen = self._version
            if value := happened():  # without the lock: it may ask the server's own loop
                return value
            left = until - time.monotonic()
            if left <= 0:
                last = [f"{call.method} {call.status}" for call in self.calls[-10:]]
                raise TimeoutError(f"did not happen; last calls: {last}")
            with self._changed:
                self._changed.wait_for(partial(self._is_past, seen), min(left, 0.25))

    def _is_past(self, version: int) -> bool:
        return self._version > version
