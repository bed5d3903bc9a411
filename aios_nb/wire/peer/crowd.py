"""The links of a node as a crowd: how many may be there, what they may hold, and who goes first.

Strangers share what is for strangers. None of it is taken from known nodes.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from aios_nb.access import STRANGERS, Caller
from aios_nb.config import Limits

if TYPE_CHECKING:
    from aios_nb.wire.peer.link import PeerLink

log = logging.getLogger(__name__)


class Crowd:
    """All links, with those that were replaced and carry something to its end."""

    def __init__(self, limits: Limits, keeps: Callable[[str], bool]) -> None:
        """``keeps`` says whether a node was joined, so that its link is never too many."""
        self._limits = limits
        self._keeps = keeps
        self.links: set[PeerLink] = set()

    def has_room(self, caller: Caller) -> bool:
        """Whether one more may come in, if need be in the place of another."""
        return not self._is_full(caller) or self._idle_longest() is not None

    def make_room(self, caller: Caller) -> bool:
        """Let one more in that has proven its key: the stranger that was idle longest goes."""
        if not self._is_full(caller):
            return True
        idle = self._idle_longest()
        if idle is not None:
            idle.part("idle")
        return idle is not None

    def weigh(self) -> None:
        """Let go of the heaviest links of strangers while all of theirs hold too much."""
        held = {link: link.held_bytes for link in self._strangers()}
        total = sum(held.values())
        while total > self._limits.stranger_held_bytes:
            heaviest = max(held, key=held.__getitem__)
            total -= held.pop(heaviest)
            log.info("%s and other strangers have us hold too much", heaviest.node_id)
            heaviest.abort("broke")

    def _strangers(self) -> list[PeerLink]:
        return [link for link in self.links if not link.parted and link.principal.is_stranger]

    def _is_full(self, caller: Caller) -> bool:
        if sum(not link.parted for link in self.links) >= self._limits.links:
            return True
        return caller in STRANGERS and len(self._strangers()) >= self._limits.stranger_links

    def _idle_longest(self) -> PeerLink | None:
        idle = [link for link in self._strangers() if link.quiet and not self._keeps(link.node_id)]
        return min(idle, key=lambda link: link.asked_at, default=None)
