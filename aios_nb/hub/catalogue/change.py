"""What came of a record that was offered, and what watchers of the catalogue are told."""

from __future__ import annotations

from enum import Enum

import msgspec

from aios_nb.records import Signed


class Offered(Enum):
    """What came of a record that someone handed us."""

    NEW = "new"
    NEWER = "newer"
    """It took the place of an older one."""
    KNOWN = "known"
    OLDER = "older"
    """We have a newer one, or know of a later life of its node."""
    REFUSED = "refused"
    """``Catalogue.counts`` says why."""


class Event(Enum):
    PUT = "put"
    REPLACED = "replaced"
    DROPPED = "dropped"


class Change(msgspec.Struct, frozen=True):
    """One record came, changed or went. A withdrawal comes like any other record."""

    event: Event
    before: Signed | None
    after: Signed | None

    @property
    def signed(self) -> Signed:
        """The record as it is, or as it was before it went."""
        signed = self.after or self.before
        if signed is None:
            raise ValueError("a change without a record")
        return signed

    @property
    def key(self) -> str:
        return self.signed.key
