"""Versions that were looked at and not kept: they need not be sent again for a while.

Two nodes that keep different records (other limits, other clocks, other friends) would otherwise
hand each other the same ones at every exchange. Only verdicts that hold for the payload whoever
signed it belong here: a forgery must not keep its original out.
"""

from __future__ import annotations

REMEMBERED_MAX = 4096


class Refusals:
    """The last ones, each for as long as it was said."""

    def __init__(self) -> None:
        self._until: dict[bytes, int] = {}

    def remember(self, version: bytes, until_ms: int) -> None:
        self._until.pop(version, None)
        self._until[version] = until_ms
        if len(self._until) > REMEMBERED_MAX:
            del self._until[next(iter(self._until))]

    def holds(self, version: bytes, now_ms: int) -> bool:
        return self._until.get(version, now_ms) > now_ms
