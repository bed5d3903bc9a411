"""Flood control: limits per chat and over all, and penalties that grow if they are ignored."""

from __future__ import annotations

import math
from collections import Counter, defaultdict, deque
from dataclasses import dataclass

from tests.telegram.botapi.errors import flooded
from tests.telegram.botapi.settings import Times

EVERYWHERE = 0
"""The key of the limit over all chats."""


@dataclass
class Limits:
    """Telegram's published rates; exact numbers of the real server are a secret."""

    overall_per_s: int = 30
    private_per_s: float = 1.0
    private_burst: int = 5
    group_per_min: int = 20
    retry_after_s: float = 3.0
    growth: float = 2.0


@dataclass
class _Gate:
    until: float
    penalty: float
    growth: float
    told: bool = False
    """Whether the bot knows of it, and may be blamed."""


class Flood:
    """Says for each call whether it comes too soon. Without ``limits`` only closed gates do."""

    def __init__(self, times: Times) -> None:
        self.limits: Limits | None = None
        self.violations: Counter[int] = Counter()
        """Calls in spite of a ``retry_after`` that had not passed, by chat; 0 is everywhere."""
        self._times = times
        self._gates: dict[int, _Gate] = {}
        self._sent: defaultdict[int, deque[float]] = defaultdict(deque)

    def close(self, chat_id: int = EVERYWHERE, seconds: float = 2.0, growth: float = 2.0) -> None:
        """429 from now on in that chat, or everywhere; a call before the end makes it longer."""
        self._gates[chat_id] = _Gate(self._times.now() + seconds, seconds, growth)

    def open(self, chat_id: int = EVERYWHERE) -> None:
        self._gates.pop(chat_id, None)

    def check(self, chat_id: int | None, *, is_message: bool) -> None:
        """Raise a 429 if the call comes too soon."""
        for key in {EVERYWHERE, chat_id or EVERYWHERE}:
            self._check_gate(key)
        if self.limits and is_message and chat_id:
            self._count(chat_id, self.limits)

    def _check_gate(self, key: int) -> None:
        gate, now = self._gates.get(key), self._times.now()
        if gate is None:
            return
        if now >= gate.until:
            del self._gates[key]
            return
        if gate.told:
            self.violations[key] += 1
            gate.penalty *= gate.growth
            gate.until = max(gate.until, now + gate.penalty)
        gate.told = True
        left = round(gate.until - now, 6)  # (now + 20) - now may be a little more than 20
        raise flooded(max(1, math.ceil(left)))

    def _count(self, chat_id: int, limits: Limits) -> None:
        rules: list[tuple[int, float, float]] = [(EVERYWHERE, limits.overall_per_s, 1.0)]
        if chat_id > 0:
            rules.append(
                (chat_id, limits.private_burst, limits.private_burst / limits.private_per_s)
            )
        else:
            rules.append((chat_id, limits.group_per_min, 60.0))
        now = self._times.now()
        for key, most, window in rules:
            sent = self._sent[key]
            while sent and sent[0] <= now - window:
                sent.popleft()
            if len(sent) >= most:
                wait = max(limits.retry_after_s, sent[0] + window - now)
                self.close(key, wait, limits.growth)
                self._check_gate(key)
        for key, _, _ in rules:
            self._sent[key].append(now)


def counts_as_message(method: str) -> bool:
    """Whether a call is one of those that the published rates are about."""
    return method.startswith(("send", "edit", "copy", "forward")) and method not in {
        "sendChatAction",
        "sendMessageDraft",
    }
