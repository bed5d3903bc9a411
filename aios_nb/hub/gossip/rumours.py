"""News on its way: what was sent least goes first, and after enough sends it is old.

A record goes whole over its first hops, where nobody has it yet, and later by name only: by then
most nodes would get a copy of what they have.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

import msgspec

from aios_nb.hub.gossip.packets import PACKET_LIMIT_BYTES, Have, Item, Piece
from aios_nb.records import Scope, may_be_told

RUMOURS_MAX = 1024
"""What is beyond it is left to the comparisons."""
_HEAD_BYTES = 3
_ITEM_BYTES = 21
_HAVE_BYTES = 5
_PIECES_MAX = 64
_SMALL_BYTES = 24
"""With less room than this a packet is full."""

Key = tuple[str, bytes | str]


class Rumour:
    """One piece of news. ``whole`` makes the message, or says None when it is no news any more."""

    __slots__ = ("about", "item", "knows", "sends", "whole", "whole_sends")

    def __init__(
        self,
        whole: Callable[[float], bytes | None],
        *,
        about: Scope,
        item: Item | None = None,
        whole_sends: int = 0,
        knows: str | None = None,
    ) -> None:
        self.whole = whole
        self.about = about
        self.item = item
        """By what name it goes after ``whole_sends``; None if it always goes whole."""
        self.whole_sends = whole_sends
        self.knows = {knows} if knows else set[str]()
        self.sends = 0


class Rumours:
    """The queue: one level for each number of sends, the newest last in each."""

    def __init__(self) -> None:
        self._levels: list[dict[Key, Rumour]] = [{}]
        self._of: dict[Key, Rumour] = {}

    def __len__(self) -> int:
        return len(self._of)

    def add(self, key: Key, rumour: Rumour) -> None:
        """News, in place of older news of the same thing."""
        self.drop(key)
        if len(self._of) >= RUMOURS_MAX:
            oldest = next(key for level in reversed(self._levels) for key in level)
            self.drop(oldest)
        self._of[key] = rumour
        self._levels[0][key] = rumour

    def drop(self, key: Key) -> None:
        rumour = self._of.pop(key, None)
        if rumour is not None:
            del self._levels[rumour.sends][key]

    def clear(self) -> None:
        self._levels, self._of = [{}], {}

    def knows(self, key: Key, node_id: str) -> None:
        """That node told us the same: it needs no telling."""
        rumour = self._of.get(key)
        if rumour is not None:
            rumour.knows.add(node_id)

    def pick(self, now: float, peer: str, scope: Scope, most_sends: int) -> list[Piece]:
        """What to tell that peer now, as much as a packet holds."""
        pieces: list[Piece] = []
        items: list[Item] = []
        room = PACKET_LIMIT_BYTES - _HEAD_BYTES - _HAVE_BYTES
        for key, rumour in self._candidates():
            if room < _SMALL_BYTES:
                break
            if peer in rumour.knows or not may_be_told(rumour.about, scope):
                self._sent(key, rumour, most_sends)
                continue
            if rumour.item is not None and rumour.sends >= rumour.whole_sends:
                items.append(rumour.item)
                room -= _ITEM_BYTES
            else:
                whole = rumour.whole(now)
                if whole is None:
                    self.drop(key)
                    continue
                if len(whole) > room:
                    continue
                pieces.append(msgspec.Raw(whole))
                room -= len(whole)
            self._sent(key, rumour, most_sends)
        if items:
            pieces.append(Have(tuple(items)))
        return pieces

    def _candidates(self) -> list[tuple[Key, Rumour]]:
        found: list[tuple[Key, Rumour]] = []
        for level in self._levels:
            for pair in _newest_first(level):
                found.append(pair)
                if len(found) >= _PIECES_MAX:
                    return found
        return found

    def _sent(self, key: Key, rumour: Rumour, most_sends: int) -> None:
        del self._levels[rumour.sends][key]
        rumour.sends += 1
        if rumour.sends >= most_sends:
            del self._of[key]
            return
        if rumour.sends == len(self._levels):
            self._levels.append({})
        self._levels[rumour.sends][key] = rumour


def _newest_first(level: dict[Key, Rumour]) -> Iterator[tuple[Key, Rumour]]:
    return reversed(level.items())
