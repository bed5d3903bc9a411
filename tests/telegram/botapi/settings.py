"""What a test may choose about the server, with what the real one does as the default."""

from __future__ import annotations

import time
from dataclasses import dataclass

MIB = 1024 * 1024

TEXT_UNITS = 4096
CAPTION_UNITS = 1024
ENTITIES_PER_MESSAGE = 100
CALLBACK_DATA_BYTES = 64
CALLBACK_ANSWER_UNITS = 200
QUERY_LIFETIME_S = 60.0
"""How long a button press or an inline query can be answered; Telegram does not publish it."""
UPDATE_LIFETIME_S = 24 * 3600.0
DRAFT_LIFETIME_S = 30.0
DELETE_LIFETIME_S = 48 * 3600.0
FILE_LINK_LIFETIME_S = 3600.0
LONGEST_POLL_S = 50
WEBHOOK_CONNECTIONS = 40


@dataclass
class Settings:
    """Sizes and pauses of the server itself."""

    download_bytes: int = 20 * MIB
    upload_bytes: int = 50 * MIB
    photo_bytes: int = 10 * MIB
    conflict_pause_s: float = 3.0
    """After one 409 the next ones are held back, so that two pollers do not spin."""
    long_polls: bool = True
    """False: as simpler servers do, getUpdates answers at once whatever ``timeout`` says."""
    webhook_retry_s: float = 1.0
    webhook_retry_most_s: float = 60.0
    webhook_timeout_s: float = 10.0
    public_webhooks_only: bool = False
    """True: https and ports 443, 80, 88, 8443 only, as at Telegram. False: as a server run with
    ``--local``, which is how a webhook on loopback can be tested at all."""


class Times:
    """The server's clocks, which a test can move forward."""

    def __init__(self) -> None:
        self._ahead_s = 0.0
        self._monotonic, self._time = time.monotonic, time.time

    def stop(self) -> None:
        """From here on time passes only by ``skip``: for tests that read a rest of it."""
        now, unix = self._monotonic(), self._time()
        self._monotonic, self._time = lambda: now, lambda: unix

    def skip(self, seconds: float) -> None:
        """Let time pass: drafts vanish, floods end, old updates are dropped."""
        self._ahead_s += seconds

    def now(self) -> float:
        """Seconds for measuring."""
        return self._monotonic() + self._ahead_s

    def unix(self) -> float:
        """Seconds since 1970."""
        return self._time() + self._ahead_s

    def date(self) -> int:
        """The same as in messages."""
        return int(self.unix())
