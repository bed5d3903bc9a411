"""What an agent says about itself, and the exact bytes its record refers to."""

from __future__ import annotations

import hashlib

import msgspec


class Card(msgspec.Struct, frozen=True, kw_only=True):
    """One agent's card. Fields may be added, never renamed."""

    id: str
    name: str
    title: str
    about: str
    tags: tuple[str, ...] = ()
    examples: tuple[str, ...] = ()
    version: str = "1"
    access: str = "network"
    engine: str = "thread"
    """Where it runs; a ``thread`` agent stops only at its next Python step when cancelled."""
    streams: bool = False
    idempotent: bool = False
    timeout_s: float = 300.0


def card_bytes(card: Card) -> bytes:
    """The card as canonical JSON: sorted keys, no spaces, UTF-8."""
    return msgspec.json.encode(card, order="sorted")


def card_sha256(card: Card) -> str:
    """The hash by which a signed record names this very card."""
    return hashlib.sha256(card_bytes(card)).hexdigest()
