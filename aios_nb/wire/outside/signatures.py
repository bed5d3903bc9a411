"""Whether the card of an A2A agent is signed, by whom, and whether that is true.

A signature is a JWS (RFC 7515) over the card in canonical JSON. Its key is in the ``kid`` itself
(``did:key``) or in a key set on the card's own origin (``jku``). A key proves sameness, not trust.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Awaitable, Callable, Iterator
from typing import Any, cast

import msgspec
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric import ec, padding, rsa
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.hashes import SHA256

from aios_nb.errors import AgentFailed, AiosError
from aios_nb.identity import from_base64url, is_weak_key, to_base64url
from aios_nb.wire.a2a.jws import canonical, key_of, without_empty
from aios_nb.wire.outside.cards import Card
from aios_nb.wire.places import Place

SIGNATURES_MAX = 5
KEYS_MAX = 20
HEADER_CHARS = 4096
_RSA_BITS = range(2048, 8193)
_P256_BYTES = 32
_DID = "did:key:z"

Key = Ed25519PublicKey | ec.EllipticCurvePublicKey | rsa.RSAPublicKey
GetJson = Callable[[str], Awaitable[Any]]


class Signature(msgspec.Struct, frozen=True):
    """How far a card is proven to be its signer's."""

    state: str
    """``valid``; ``none``: it has none; ``unknown``: the signer's key is nowhere to be found."""
    key: str = ""
    """Whose it is: a ``did:key``, or the thumbprint of a key that its origin publishes."""


class _Wrong(Exception):
    """This signature is not good."""


async def check(card: Card, place: Place, get_json: GetJson) -> Signature:
    """How the card that came from ``place`` is signed. Raises ``AgentFailed`` if it is not true."""
    if not card.signatures:
        return Signature("none")
    payloads = tuple(_payloads(card))
    wrong: str | None = None
    for one in card.signatures[:SIGNATURES_MAX]:
        try:
            key = await _checked(one, payloads, place, get_json)
        except _Wrong as problem:
            wrong = str(problem)
            continue
        if key is not None:
            return Signature("valid", key)
    if wrong is None:
        return Signature("unknown")
    raise AgentFailed(
        f"its card is not what was signed: {wrong}",
        hint="somebody may have changed it on the way; ask its owner",
    )


async def _checked(
    signature: Any, payloads: tuple[bytes, ...], place: Place, get_json: GetJson
) -> str | None:
    """Whose signature it is; None if the key is not known."""
    try:
        protected, signed = signature["protected"], from_base64url(signature["signature"])
        if len(protected) > HEADER_CHARS:
            raise _Wrong("its header is too long")
        header = msgspec.json.decode(from_base64url(protected), type=dict[str, Any])
    except (KeyError, TypeError, ValueError, msgspec.DecodeError, RecursionError):
        raise _Wrong("the signature cannot be read") from None
    algorithm = header.get("alg")
    if not isinstance(algorithm, str) or algorithm not in _VERIFIERS:
        raise _Wrong("its algorithm is not one that proves anything")
    if "crit" in header:
        raise _Wrong("it asks for rules that are not known here")
    expires = header.get("exp")
    if expires is not None and not (isinstance(expires, int | float) and expires > time.time()):
        raise _Wrong("it has expired")
    found = await _key_of(header, place, get_json)
    if found is None:
        return None
    key, name = found
    messages = (f"{protected}.{to_base64url(payload)}".encode() for payload in payloads)
    if not any(_VERIFIERS[algorithm](key, signed, message) for message in messages):
        raise _Wrong("the signature does not fit")
    return name


def _payloads(card: Card) -> Iterator[bytes]:
    """What may have been signed: the card as A2A 1.0 reads it, or all that came."""
    for content in (card.known, without_empty(card.raw), card.raw):
        try:
            yield canonical(content)
        except ValueError:
            continue


# Keys ------------------------------------------------------------------------------------


async def _key_of(
    header: dict[str, Any], place: Place, get_json: GetJson
) -> tuple[Key, str] | None:
    kid, jku = header.get("kid"), header.get("jku")
    if isinstance(kid, str) and kid.startswith(_DID):
        name = kid.partition("#")[0]
        try:
            return _ed25519(key_of(name)), name
        except ValueError:
            raise _Wrong("its key is none that is known here") from None
    if not isinstance(jku, str) or not isinstance(kid, str):
        return None
    try:
        there = place.beside(jku)
        if there.origin != place.origin:
            return None  # anybody can publish a key somewhere
        found = await get_json(there.url)
        keys = found["keys"][:KEYS_MAX]
        return next((_key_of_jwk(one) for one in keys if one.get("kid") == kid), None)
    except (AiosError, KeyError, TypeError, AttributeError):
        return None


def _key_of_jwk(jwk: dict[str, Any]) -> tuple[Key, str]:
    """The key of a JSON Web Key (RFC 7517), and its thumbprint (RFC 7638)."""
    key: Key
    named: tuple[str, ...]
    try:
        kind = jwk["kty"]
        if kind == "OKP" and jwk["crv"] == "Ed25519":
            key, named = _ed25519(from_base64url(jwk["x"])), ("crv", "kty", "x")
        elif kind == "EC" and jwk["crv"] == "P-256":
            x, y = (int.from_bytes(from_base64url(jwk[name])) for name in "xy")
            key = ec.EllipticCurvePublicNumbers(x, y, ec.SECP256R1()).public_key()
            named = ("crv", "kty", "x", "y")
        elif kind == "RSA":
            n, e = (int.from_bytes(from_base64url(jwk[name])) for name in "ne")
            if n.bit_length() not in _RSA_BITS:
                raise ValueError("too short or too long")  # noqa: TRY301
            key, named = rsa.RSAPublicNumbers(e, n).public_key(), ("e", "kty", "n")
        else:
            raise ValueError("another kind")  # noqa: TRY301
    except (KeyError, TypeError, ValueError):
        raise _Wrong("its key is none that is known here") from None
    thumb = hashlib.sha256(canonical({name: jwk[name] for name in named})).digest()
    return key, f"jwk:{to_base64url(thumb)}"


def _ed25519(content: bytes) -> Ed25519PublicKey:
    if is_weak_key(content):
        raise ValueError("anybody can sign for it")
    return Ed25519PublicKey.from_public_bytes(content)


# Algorithms ------------------------------------------------------------------------------


def _eddsa(key: Key, signature: bytes, message: bytes) -> bool:
    return isinstance(key, Ed25519PublicKey) and _holds(key.verify, signature, message)


def _es256(key: Key, signature: bytes, message: bytes) -> bool:
    if not isinstance(key, ec.EllipticCurvePublicKey) or len(signature) != 2 * _P256_BYTES:
        return False
    r, s = signature[:_P256_BYTES], signature[_P256_BYTES:]
    der = encode_dss_signature(int.from_bytes(r), int.from_bytes(s))
    return _holds(key.verify, der, message, ec.ECDSA(SHA256()))


def _rs256(key: Key, signature: bytes, message: bytes) -> bool:
    return isinstance(key, rsa.RSAPublicKey) and _holds(
        key.verify, signature, message, padding.PKCS1v15(), SHA256()
    )


def _holds(verify: Callable[..., None], *args: Any) -> bool:
    try:
        verify(*args)
    except (InvalidSignature, ValueError):
        return False
    return True


_VERIFIERS = cast(
    "dict[Any, Callable[[Key, bytes, bytes], bool]]",
    {"EdDSA": _eddsa, "Ed25519": _eddsa, "ES256": _es256, "RS256": _rs256},
)
"""Never ``none``, never one with a shared secret; each with keys of its own kind only."""
