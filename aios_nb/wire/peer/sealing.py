"""Bytes that only the other end of a link can read, each exactly once and in order.

ChaCha20-Poly1305 with a key for each direction. The nonce is the number of the frame and is not
sent: a frame that is changed, repeated, left out, out of order or from the other direction does
not open. Every frame of a link passes here, so a call costs little more than the cipher.
"""

from __future__ import annotations

import struct

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import ChaCha20Poly1305

KEY_BYTES = 32
OVERHEAD_BYTES = 16
"""How much longer a sealed frame is than its plaintext."""

_LAST = (1 << 64) - 1
"""The count that is never used: one more would begin again at 0, under the same key."""
_nonce = struct.Struct(">4xQ").pack


class Tampered(Exception):
    """A frame that the other end did not seal as its next one. The link is to be closed."""


class Exhausted(Exception):
    """Every nonce of this key was used. A link that lives to see it is to be dialled anew."""


class Sealer:
    """Our direction of a link."""

    __slots__ = ("_count", "_encrypt")

    def __init__(self, key: bytes) -> None:
        self._encrypt = ChaCha20Poly1305(key).encrypt
        self._count = 0

    def seal(self, plaintext: bytes | bytearray | memoryview) -> bytes:
        """The next frame. What is sealed must be sent, and in this order."""
        count = self._count
        if count >= _LAST:
            raise Exhausted
        self._count = count + 1  # first: a nonce is spent even if the next line fails
        return self._encrypt(_nonce(count), plaintext, None)


class Opener:
    """The other end's direction of a link."""

    __slots__ = ("_count", "_decrypt")

    def __init__(self, key: bytes) -> None:
        self._decrypt = ChaCha20Poly1305(key).decrypt
        self._count = 0

    def open(self, ciphertext: bytes | bytearray | memoryview) -> bytes:
        """The plaintext of the next frame. After one ``Tampered`` there is no other answer."""
        count = self._count
        if count >= _LAST:
            raise Tampered
        try:
            plaintext = self._decrypt(_nonce(count), ciphertext, None)
        except InvalidTag:
            self._count = _LAST
            raise Tampered from None
        self._count = count + 1
        return plaintext
