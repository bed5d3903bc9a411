"""Write tokens: who asked about a key a moment ago may write there. Nothing is remembered."""

from __future__ import annotations

import hashlib
import hmac
import secrets
from collections.abc import Callable

from aios_nb.hub.dht.codec import TOKEN_BYTES


class WriteTokens:
    """Good for one sender and one key, for one to two periods, until this start ends."""

    def __init__(self, clock: Callable[[], float], period_s: float) -> None:
        self._clock = clock
        self._period_s = period_s
        self._secret = secrets.token_bytes(32)

    def give(self, sender: bytes, key: bytes) -> bytes:
        return self._token(sender, key, self._period())

    def holds(self, token: bytes, sender: bytes, key: bytes) -> bool:
        now = self._period()
        return any(
            hmac.compare_digest(token, self._token(sender, key, period))
            for period in (now, now - 1)
        )

    def _period(self) -> int:
        return int(self._clock() // self._period_s)

    def _token(self, sender: bytes, key: bytes, period: int) -> bytes:
        content = b"%d\0" % period + sender + key
        return hashlib.blake2b(content, key=self._secret, digest_size=TOKEN_BYTES).digest()
