"""Who a node is: one Ed25519 key, the id made from it, and what that key signs.

Every signature covers a tag that names its purpose, so that bytes signed for one can never pass
for another.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from functools import lru_cache
from pathlib import Path
from typing import Annotated, Any

import msgspec
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import (
    Ed25519PrivateKey,
    Ed25519PublicKey,
)

from aios_nb.errors import HomeError, Impostor, UsageError
from aios_nb.private import create_private, read_private

TAG_RECORD = b"aios-record-1\0"
TAG_PEER = b"aios-peer-1\0"
TAG_HELLO = b"aios-hello-1\0"
TAG_ALIVE = b"aios-alive-1\0"
_TAGS = frozenset({TAG_RECORD, TAG_PEER, TAG_HELLO, TAG_ALIVE})

PUBLIC_KEY_BYTES = 32
SIGNATURE_BYTES = 64
NONCE_BYTES = 32
_ID_BYTES = 20
_KEY_FILE_LIMIT_BYTES = 4096
_PORT_MAX = 0xFFFF
_SIGN_BIT = 0x80
_SMALL_ORDER = frozenset(
    bytes.fromhex(point)
    for point in (
        "0000000000000000000000000000000000000000000000000000000000000000",
        "0100000000000000000000000000000000000000000000000000000000000000",
        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
        "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
    )
)
"""The points of order 1, 2, 4 and 8 in every spelling, without the bit that is their sign."""
_BASE64URL = re.compile(r"[A-Za-z0-9_-]*")
_JWS_INPUT = re.compile(rb"[A-Za-z0-9_-]+\.[A-Za-z0-9_-]+")


class Identity:
    """A node's key. It signs only under a known tag, and never shows itself."""

    __slots__ = ("_key", "node_id", "public_key")

    def __init__(self, key: Ed25519PrivateKey) -> None:
        self._key = key
        self.public_key: bytes = key.public_key().public_bytes_raw()
        self.node_id: str = node_id_of(self.public_key)

    @classmethod
    def generate(cls) -> Identity:
        """A new identity that is on no disk."""
        return cls(Ed25519PrivateKey.generate())

    @classmethod
    def from_seed(cls, seed: bytes) -> Identity:
        """The identity of a 32-byte seed (RFC 8032); for test vectors."""
        return cls(Ed25519PrivateKey.from_private_bytes(seed))

    @classmethod
    def load_or_create(cls, path: Path) -> Identity:
        """The identity in this file, made at the first call.

        A file that is there is used or refused. It is never replaced: a new key would be
        another node, to which nobody's trust, records or conversations belong.
        """
        try:
            return cls.load(path)
        except FileNotFoundError:
            create_private(path, _pem(Ed25519PrivateKey.generate()))
        # Read back what is on the disk: it may be the key of another starter who was faster.
        try:
            return cls.load(path)
        except FileNotFoundError as error:
            raise HomeError(f"the key file {path} vanished", hint="start again") from error

    @classmethod
    def load(cls, path: Path) -> Identity:
        """The identity in this file. ``FileNotFoundError`` if there is none."""
        pem = read_private(path, limit_bytes=_KEY_FILE_LIMIT_BYTES)
        try:
            key = serialization.load_pem_private_key(pem, password=None)
        except (ValueError, TypeError, UnsupportedAlgorithm) as error:
            raise _damaged(path) from error
        if not isinstance(key, Ed25519PrivateKey):
            raise _damaged(path)
        return cls(key)

    def sign(self, tag: bytes, message: bytes) -> bytes:
        """The signature (64 bytes) over tag and message."""
        return self._key.sign(_tagged(tag, message))

    def sign_jws(self, signing_input: bytes) -> bytes:
        """The signature (64 bytes) of a JWS, over its header and payload in base64url.

        It has no tag. Nor can it pass for anything that has: no tag is base64url.
        """
        if not _JWS_INPUT.fullmatch(signing_input):
            raise ValueError("not the input of a JWS")
        return self._key.sign(signing_input)

    def __repr__(self) -> str:
        return f"Identity({self.node_id})"


def verify(public_key: bytes, tag: bytes, message: bytes, signature: bytes) -> bool:
    """Whether the holder of this key signed this message for this purpose."""
    signed = _tagged(tag, message)
    if len(public_key) != PUBLIC_KEY_BYTES or len(signature) != SIGNATURE_BYTES:
        return False
    if is_weak_key(public_key):
        return False
    try:
        Ed25519PublicKey.from_public_bytes(public_key).verify(signature, signed)
    except (InvalidSignature, ValueError):
        return False
    return True


def is_weak_key(public_key: bytes) -> bool:
    """Whether anyone can sign for this key: it is a point of small order, and has no secret.

    The library takes such keys, and for some of them one signature passes for every message.
    """
    return public_key[:-1] + bytes((public_key[-1] & ~_SIGN_BIT,)) in _SMALL_ORDER


@lru_cache(maxsize=2048)
def node_id_of(public_key: bytes) -> str:
    """The node id of a public key: base32 of the first 20 bytes of its SHA-256, 32 characters."""
    if len(public_key) != PUBLIC_KEY_BYTES:
        raise ValueError(f"a public key has {PUBLIC_KEY_BYTES} bytes, not {len(public_key)}")
    return base64.b32encode(hashlib.sha256(public_key).digest()[:_ID_BYTES]).decode().lower()


def _tagged(tag: bytes, message: bytes) -> bytes:
    if tag not in _TAGS:
        raise ValueError(f"unknown tag {tag!r}")
    return tag + message


def _pem(key: Ed25519PrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.PKCS8,
        serialization.NoEncryption(),
    )


def _damaged(path: Path) -> HomeError:
    return HomeError(
        f"the key file {path} is damaged",
        hint="put back a copy of it, or move it away to start as a new node",
    )


# Bytes in JSON ---------------------------------------------------------------------------


def to_base64url(content: bytes) -> str:
    """The bytes as base64url (RFC 4648, section 5) without padding."""
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def from_base64url(text: str) -> bytes:
    """The bytes of an unpadded base64url text; ``ValueError`` for any other spelling of them."""
    if not _BASE64URL.fullmatch(text):
        raise ValueError("not base64url")
    try:
        content = base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))
    except binascii.Error as error:
        raise ValueError("not base64url") from error
    if to_base64url(content) != text:  # spare bits that are not zero
        raise ValueError("not base64url")
    return content


# Hello: the server proves itself before it is shown a token ---------------------------------


class Hello(msgspec.Struct, frozen=True):
    """The server's answer to a nonce; ``public_key`` and ``sig`` are base64url."""

    node_id: str
    port: Annotated[int, msgspec.Meta(ge=1, le=_PORT_MAX)]
    public_key: str
    sig: str


def read_nonce(text: str) -> bytes:
    """The 32 bytes that a client sent as base64url."""
    try:
        nonce = from_base64url(text)
    except ValueError:
        nonce = b""
    if len(nonce) != NONCE_BYTES:
        raise UsageError(f"a nonce is {NONCE_BYTES} bytes as base64url")
    return nonce


def sign_hello(identity: Identity, nonce: bytes, port: int) -> bytes:
    """The signature over the client's nonce and the port this node is bound to."""
    return identity.sign(TAG_HELLO, _hello_message(nonce, port))


def answer_hello(identity: Identity, nonce: bytes, port: int) -> Hello:
    """What the server sends back for a nonce."""
    return Hello(
        node_id=identity.node_id,
        port=port,
        public_key=to_base64url(identity.public_key),
        sig=to_base64url(sign_hello(identity, nonce, port)),
    )


def check_hello(reply: Any, *, node_id: str, nonce: bytes, port: int) -> None:
    """Return if ``reply`` (a ``Hello`` or its JSON object) proves that node; else ``Impostor``.

    ``port`` is the one the client dialled. It is signed because a program that took over the port
    of a dead node could otherwise pass the nonce on to the node where it lives now.
    """
    message = _hello_message(nonce, port)
    try:
        hello = msgspec.convert(reply, Hello)
        public_key, sig = from_base64url(hello.public_key), from_base64url(hello.sig)
        proven = (
            hello.node_id == node_id
            and hello.port == port
            and node_id_of(public_key) == node_id
            and verify(public_key, TAG_HELLO, message, sig)
        )
    except (msgspec.ValidationError, ValueError):
        proven = False
    if not proven:
        raise Impostor(
            f"the program on port {port} is not node {node_id}",
            hint="no token was sent; start the node again",
        )


def _hello_message(nonce: bytes, port: int) -> bytes:
    if len(nonce) != NONCE_BYTES:
        raise ValueError(f"a nonce has {NONCE_BYTES} bytes, not {len(nonce)}")
    if not 1 <= port <= _PORT_MAX:
        raise ValueError(f"{port} is not a port")
    return nonce + port.to_bytes(2, "big")
