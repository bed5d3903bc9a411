"""Tokens that only whoever reads the mail of an address can know.

A token is made from the address, the node that asked and a secret of this start, so none has to be
kept: an endless crowd of askers costs no memory. A restart makes all of them void.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets

from aios_nb.hub.post.datagram import TOKEN_BYTES, Source

TOKEN_S = 300.0
"""A token is good for at least this long, and at most for twice as long: an address may change
hands, and who had it before must not go on speaking for it."""
_SECRET_BYTES = 32


class Tokens:
    """Gives tokens out and knows them again."""

    __slots__ = ("_secret",)

    def __init__(self) -> None:
        self._secret = secrets.token_bytes(_SECRET_BYTES)

    def issue(self, source: Source, sender: bytes, now: float) -> bytes:
        """The token of that node at that address."""
        return self._of(source, sender, int(now // TOKEN_S))

    def valid_until(self, token: bytes, source: Source, sender: bytes, now: float) -> float:
        """When this token ends; 0 if it is none of ours, not theirs, or too old."""
        period = int(now // TOKEN_S)
        for began in (period, period - 1):
            if hmac.compare_digest(token, self._of(source, sender, began)):
                return (began + 2) * TOKEN_S
        return 0.0

    def _of(self, source: Source, sender: bytes, period: int) -> bytes:
        said = f"{source[0]}\0{source[1]}\0{period}\0".encode() + sender
        return hashlib.blake2b(said, digest_size=TOKEN_BYTES, key=self._secret).digest()
