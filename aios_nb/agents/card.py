"""What an agent says about itself."""

from __future__ import annotations

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
    source: str = ""
    """``mcp`` or ``a2a`` for a program of others that its node passes on."""
