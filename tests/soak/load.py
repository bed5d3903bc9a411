"""People who go on writing, at an even pace, and forget what was answered."""

from __future__ import annotations

import time

from aios_nb.bench.spec import percentile
from tests.hostile.bridge.crowd import WORD, Crowd

KEPT = 20_000
"""Latencies, the last ones."""


class Load:
    """Writes ``per_s`` messages a second, in turns."""

    def __init__(self, crowd: Crowd, per_s: float) -> None:
        self.crowd, self.per_s = crowd, per_s
        self.sent = self.answered = 0
        self._api = crowd.api
        self._waiting: dict[str, float] = {}
        self._latencies: list[float] = []
        self._read = 0

    @property
    def open(self) -> int:
        return len(self._waiting)

    def go_on(self, at: float) -> None:
        """Write what is due."""
        while self.sent < at * self.per_s:
            phone = self.crowd.phones[self.sent % len(self.crowd.phones)]
            word = f"m{self.sent % 100_000:05}"
            self._waiting[word] = self._api.clock.now()
            phone.person.says(word)
            self.sent += 1

    def tidy(self) -> None:
        """Count what was answered, and let the server forget it: its memory is not looked at."""
        self._api.run(self._tidy)

    def _tidy(self) -> None:
        record = self._api.record
        for call in record.calls:
            words = WORD.findall(str(call.params.get("text", ""))) if call.effect else ()
            if words and (since := self._waiting.pop(words[0], None)) is not None:
                self._latencies.append(call.at - since)
                self.answered += 1
        del self._latencies[:-KEPT]
        record.calls[:] = [call for call in record.calls if call.ended is None]
        record.lines.clear()
        self._api.bot.updates.confirmed.clear()
        for phone in self.crowd.phones:
            messages = self._api.world.chat_with(self._api.bot, phone.person.user).messages
            for old in list(messages)[:-10]:
                del messages[old]

    def drained(self, within_s: float) -> bool:
        """Wait until all is answered; gives whether it was."""
        until = time.monotonic() + within_s
        while self._waiting and time.monotonic() < until:
            time.sleep(0.2)
            self.tidy()
        return not self._waiting

    def late_p95(self) -> float:
        """Milliseconds from writing to the answer's call."""
        return percentile(sorted(self._latencies), 0.95) * 1e3
