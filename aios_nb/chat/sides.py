"""Our names for conversations whose home is another node."""

from __future__ import annotations

import hashlib

from aios_nb.store import Store

ID_CHARS = 128
"""The longest id."""
HOMES = 4096
"""Homes whose newest conversation is remembered. None is forgotten before the node stops: what a
home has in flight, the database could not tell."""


def side_id(home: str, theirs: str) -> str:
    """Our name for a conversation whose home is elsewhere.

    Homes choose their ids: two may choose the same, and one might choose one of ours. New ones of a
    home stand next to each other, as it numbers them: so do their rows in the index of ids.
    """
    ours = f"x:{home}:{theirs}"
    if len(ours) <= ID_CHARS:
        return ours
    return f"xx:{home}:{hashlib.sha256(theirs.encode()).hexdigest()}"


class Sides:
    """Knows without a look into the database that most new conversations are new.

    A node's ids rise with time. One beyond all that a home ever used here is not stored; for any
    other the database is asked.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._newest: dict[str, str] = {}

    def is_new(self, home: str, name: str) -> bool:
        """True: surely not stored. False: perhaps. To be asked before ``seen``."""
        newest = self._newest.get(home)
        if newest is None:
            if len(self._newest) >= HOMES:
                return False
            rows = self._store.read(
                "SELECT coalesce(max(id), '') FROM conversations WHERE id > ? AND id < ?",
                (f"x:{home}:", f"x:{home};"),  # all that begin with the first: ; follows :
            )
            newest = self._newest[home] = rows[0][0]
        return name > newest and name.startswith("x:")

    def seen(self, home: str, name: str) -> None:
        """This one is used here from now on."""
        if home in self._newest and self._newest[home] < name and name.startswith("x:"):
            self._newest[home] = name
