"""Whom a node is told to link to, and who was found there before.

``URL#NODEID`` says both where and who: the handshake holds the other side to it. A bare ``URL``
is trusted on first use: whoever answers there is remembered, and a changed id is refused.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Self
from urllib.parse import urlsplit

import msgspec

from aios_nb.envelope import NAME, NODE_ID
from aios_nb.errors import UsageError
from aios_nb.store import Store, Tx

_LONGEST = 2000
_USUAL_PORT = {"http": 80, "https": 443}
_HINT = "like http://127.0.0.1:8765, with #NODEID after it to say who must answer"


class JoinAddress(msgspec.Struct, frozen=True):
    """Where a node is and, if it was said, who it must be."""

    url: str
    """``scheme://host`` and the port unless it is the usual one; written in one way only."""
    node_id: str | None = None

    @classmethod
    def parse(cls, text: str) -> Self:
        """The address in ``URL`` or ``URL#NODEID``. Raises ``UsageError``."""
        place, pinned, node_id = text.strip().partition("#")
        if pinned and not NODE_ID.fullmatch(node_id):
            raise UsageError(
                f"{node_id[:40]!r} is not a node id",
                hint="all 32 characters after the #, as `aios-nb status` shows them",
            )
        return cls(_place(place), node_id or None)

    def __str__(self) -> str:
        return f"{self.url}#{self.node_id}" if self.node_id else self.url


def _place(text: str) -> str:
    try:
        parts = urlsplit(text)
        host, port = parts.hostname, parts.port
    except ValueError:  # a port that is none, half an IPv6 address
        host, port, parts = None, None, urlsplit("")
    plain = text.isascii() and text.isprintable() and " " not in text and len(text) <= _LONGEST
    if not plain or not host or parts.scheme not in _USUAL_PORT or port == 0:
        raise UsageError(f"{text[:80]!r} is not the URL of a node", hint=_HINT)
    if parts.username is not None or parts.password is not None:
        # Not repeated in the message: it may be a password.
        raise UsageError("the URL of a node has no user or password", hint=_HINT)
    if parts.path not in {"", "/"} or parts.query:
        raise UsageError(f"{text[:80]!r} has more than scheme, host and port", hint=_HINT)
    shown = f"[{host}]" if ":" in host else host
    usual = port is None or port == _USUAL_PORT[parts.scheme]
    return f"{parts.scheme}://{shown}" if usual else f"{parts.scheme}://{shown}:{port}"


def addresses(given: str | Sequence[str]) -> tuple[str, ...]:
    """What may be given as ``join``, checked: one address or several. Raises ``UsageError``."""
    several = (given,) if isinstance(given, str) else tuple(given)
    for one in several:
        if not isinstance(one, str):
            raise UsageError(f"join must be a text or a list of texts, not {one!r:.40}")
    # Given twice, linked once.
    return tuple(dict.fromkeys(str(JoinAddress.parse(one)) for one in several))


def network_name(text: str) -> str:
    """A name that may be a network's. Raises ``UsageError``."""
    if not NAME.fullmatch(text):
        raise UsageError(
            f"{text[:60]!r} cannot be the name of a network",
            hint="lower-case letters, digits, - and _, at most 48; the usual one is main",
        )
    return text


class Pins:
    """Who answered at the URLs that were joined without saying whom to expect."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def get(self, url: str) -> str | None:
        """The id of the node that was there the first time."""
        rows = self._store.read("SELECT node FROM joined WHERE url = ?", (url,))
        return rows[0][0] if rows else None

    async def put(self, url: str, node_id: str) -> str:
        """Remember who answered first. Who is remembered: an earlier one stays."""

        def apply(tx: Tx) -> str:
            tx.execute(
                "INSERT OR IGNORE INTO joined VALUES (?, ?, ?)", (url, node_id, int(time.time()))
            )
            kept: str = tx.execute("SELECT node FROM joined WHERE url = ?", (url,)).fetchone()[0]
            return kept

        return await self._store.write(apply)
