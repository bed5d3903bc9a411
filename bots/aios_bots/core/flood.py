"""How much one person may send in, on a given clock."""

from __future__ import annotations

from collections.abc import Callable

from aios_bots.core.model import Incoming
from aios_bots.core.policy import Act, Reason, Ruling
from aios_bots.core.rates import Bucket

PER_MIN = 20
BURST = 5
TEXT_MAX_CHARS = 8192
FILE_MAX_BYTES = 20 << 20
"""An app gives no larger one to a bot."""
HELLO_S = 86_400.0
PEOPLE_MAX = 10_000
"""With more strangers in a day, the rest get no line at all."""


class Flood:
    """What people sent lately. Strangers get one line a day, and who is too fast is told once."""

    def __init__(
        self, clock: Callable[[], float], *, per_min: float = PER_MIN, burst: int = BURST
    ) -> None:
        self._clock, self._per_s, self._burst = clock, per_min / 60.0, burst
        self._sent: dict[str, Bucket] = {}
        self._told: set[str] = set()
        self._hello: dict[str, float] = {}

    def rule(self, update: Incoming, at: float | None = None) -> Ruling | None:
        """Why an update that is allowed is not taken; None: it is.

        ``at``: when it was sent, if the app says so: what piled up while we were away was not sent
        too fast. How many replies one may wait for is the node's affair.
        """
        now, person = self._clock() if at is None else at, update.person
        if len(self._sent) >= PEOPLE_MAX:
            self._sent = {who: one for who, one in self._sent.items() if not one.full(now)}
            self._told &= self._sent.keys()
        bucket = self._sent.setdefault(person, Bucket(self._per_s, self._burst))
        if bucket.wait(now) > 0:
            first = person not in self._told
            self._told.add(person)
            return Ruling(Act.REFUSE if first else Act.DROP, Reason.TOO_FAST)
        bucket.take(now)
        self._told.discard(person)
        if len(update.text) > TEXT_MAX_CHARS:
            return Ruling(Act.REFUSE, Reason.TOO_LONG)
        if any(file.size > FILE_MAX_BYTES for file in update.files):
            return Ruling(Act.REFUSE, Reason.TOO_LARGE)
        return None

    def hello(self, person: str) -> bool:
        """Whether this stranger gets the line: once a day."""
        now = self._clock()
        if self._hello.get(person, now - HELLO_S) > now - HELLO_S:
            return False
        if len(self._hello) >= PEOPLE_MAX:
            self._hello = {who: at for who, at in self._hello.items() if at > now - HELLO_S}
            if len(self._hello) >= PEOPLE_MAX:
                return False
        self._hello[person] = now
        return True

    def greeted(self, person: str, at: float) -> None:
        """That stranger got the line then, before a restart."""
        self._hello[person] = max(at, self._hello.get(person, at))
