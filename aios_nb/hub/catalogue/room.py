"""Where a new record would go, and what gives way to it."""

from __future__ import annotations

import msgspec

from aios_nb.hub.catalogue.entry import Entry
from aios_nb.hub.catalogue.publisher import Publisher
from aios_nb.hub.catalogue.shelf import Shelf


class Room(msgspec.Struct, frozen=True):
    """There is a place, if that record (and whose it is) gives way."""

    gives_way: tuple[Publisher, Entry] | None = None


def room_for(shelf: Shelf, publisher: Publisher, new: Entry, most: int | None) -> Room | None:
    """The place for ``new`` if its node may have ``most`` such records; None if there is none."""
    crowd = shelf.crowd_of(new)
    if most is not None and crowd.of(publisher) >= most:
        return _among_its_own(publisher, new)
    if not crowd.is_full():
        return Room()
    other = crowd.gives_way_to(publisher)
    if other is None:
        return _among_its_own(publisher, new)
    loser = shelf.publishers[other]
    return Room((loser, weakest(loser, of_node=new.of_node)))


def weakest(publisher: Publisher, *, of_node: bool) -> Entry:
    return min(publisher.kind(of_node=of_node), key=lambda entry: entry.worth)


def _among_its_own(publisher: Publisher, new: Entry) -> Room | None:
    """Which ones of a node's records stay does not depend on the order in which they came."""
    if not any(publisher.kind(of_node=new.of_node)):
        return None
    least = weakest(publisher, of_node=new.of_node)
    return Room((publisher, least)) if new.worth > least.worth else None
