"""Signed JSON: the canonical form of RFC 8785, and the JWS (EdDSA) over a card.

A key is named by its ``did:key``, which is the key: who knows a node by its id can check that both
belong together, and needs to fetch nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from decimal import Decimal
from typing import Any

from aios_nb.identity import PUBLIC_KEY_BYTES, Identity, to_base64url

ALGORITHM = "EdDSA"
DEPTH_MOST = 64
"""Cards of others are canonicalised too, and may be nested as deeply as their senders like."""
_EXACT_MOST = 1 << 53
_FIXED_DIGITS, _FIXED_ZEROS = 21, -6
"""Between these powers of ten a number is written without an exponent (ECMA-262)."""
_ED25519 = b"\xed\x01"
"""The multicodec of an Ed25519 public key."""
_BASE58 = "123456789ABCDEFGHJKLMNPQRSTUVWXYZabcdefghijkmnopqrstuvwxyz"
_DID = "did:key:z"
_DID_CHARS = 64
"""More than that no key of ours needs."""


def canonical(value: Any) -> bytes:
    """The one form of a JSON value by RFC 8785. ``ValueError`` for what has none."""
    pieces: list[str] = []
    _write(value, pieces, 1)
    return "".join(pieces).encode()  # a lone surrogate is a UnicodeEncodeError: a ValueError


def signed(card: Mapping[str, Any], identity: Identity) -> dict[str, Any]:
    """The card with our signature as its only one."""
    bare = dict(card)
    bare.pop("signatures", None)
    header = {"alg": ALGORITHM, "kid": did_key(identity.public_key), "typ": "JOSE"}
    protected = to_base64url(canonical(header))
    signing_input = f"{protected}.{to_base64url(canonical(without_empty(bare)))}"
    signature = to_base64url(identity.sign_jws(signing_input.encode()))
    return {**bare, "signatures": [{"protected": protected, "signature": signature}]}


def without_empty(value: Any) -> Any:
    """The value as it is signed: members that hold nothing are left out."""
    if isinstance(value, Mapping):
        kept = {name: without_empty(item) for name, item in value.items()}
        return {name: item for name, item in kept.items() if item not in (None, "", [], {})}
    if isinstance(value, (list, tuple)):
        return [item for item in map(without_empty, value) if item not in (None, "", [], {})]
    return value


def did_key(public_key: bytes) -> str:
    """The name of an Ed25519 key as a DID."""
    number = int.from_bytes(_ED25519 + public_key, "big")
    digits = ""
    while number:
        number, rest = divmod(number, len(_BASE58))
        digits = _BASE58[rest] + digits
    return _DID + digits


def key_of(did: str) -> bytes:
    """The Ed25519 key that a DID names. ``ValueError`` for any other DID."""
    number = 0
    for char in did.removeprefix(_DID)[:_DID_CHARS]:
        number = number * len(_BASE58) + _BASE58.index(char)
    key = (number & ((1 << 8 * PUBLIC_KEY_BYTES) - 1)).to_bytes(PUBLIC_KEY_BYTES, "big")
    if did_key(key) != did:
        raise ValueError("not the did:key of an Ed25519 key")
    return key


def _write(value: Any, pieces: list[str], depth: int) -> None:
    if depth > DEPTH_MOST:
        raise ValueError("nested too deeply")
    if isinstance(value, Mapping):
        separator = "{"
        for name in sorted(value, key=_code_units):
            pieces.append(f"{separator}{_quoted(name)}:")
            _write(value[name], pieces, depth + 1)
            separator = ","
        pieces.append("}" if value else "{}")
    elif isinstance(value, (list, tuple)):
        separator = "["
        for item in value:
            pieces.append(separator)
            _write(item, pieces, depth + 1)
            separator = ","
        pieces.append("]" if value else "[]")
    else:
        pieces.append(_scalar(value))


def _code_units(name: Any) -> bytes:
    """Members are sorted by UTF-16 code units, not by code points."""
    if not isinstance(name, str):
        raise ValueError("a member's name must be a text")  # noqa: TRY004 - one error for all
    return name.encode("utf-16-be")


def _scalar(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, int):
        if abs(value) >= _EXACT_MOST:
            raise ValueError("a number that JSON cannot hold exactly")
        return str(value)
    if isinstance(value, float):
        return _number(value)
    raise ValueError(f"{type(value).__name__} is not JSON")


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _number(value: float) -> str:
    """As ECMAScript writes it: the shortest digits that mean this very number."""
    if value != value or value in (float("inf"), float("-inf")):  # noqa: PLR0124 - NaN
        raise ValueError("not a JSON number")
    if value == 0:
        return "0"
    sign, digits, exponent = Decimal(repr(value)).normalize().as_tuple()
    figures = "".join(map(str, digits))
    point = len(figures) + int(exponent)
    minus = "-" if sign else ""
    if len(figures) <= point <= _FIXED_DIGITS:
        return f"{minus}{figures}{'0' * (point - len(figures))}"
    if 0 < point <= _FIXED_DIGITS:
        return f"{minus}{figures[:point]}.{figures[point:]}"
    if _FIXED_ZEROS < point <= 0:
        return f"{minus}0.{'0' * -point}{figures}"
    more = f".{figures[1:]}" if len(figures) > 1 else ""
    return f"{minus}{figures[0]}{more}e{'+' if point > 0 else '-'}{abs(point - 1)}"
