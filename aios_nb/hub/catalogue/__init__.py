"""All records this node knows, its own included: what it shows, searches and passes on. No I/O.

What bounds what: ``limits.records`` agents of other nodes (withdrawals included), and as many node
records; of one node ``limits.agents_per_publisher``, unless its owner is allowed here. Our own are
never counted and never evicted. A node's records are all of its latest epoch that we know.
"""

from aios_nb.hub.catalogue.catalogue import Catalogue
from aios_nb.hub.catalogue.change import Change, Event, Offered
from aios_nb.hub.catalogue.entry import handle_of, version_of
from aios_nb.hub.catalogue.intake import take_in
from aios_nb.hub.catalogue.liveness import light_of
from aios_nb.hub.catalogue.sync import Page, page

__all__ = [
    "Catalogue",
    "Change",
    "Event",
    "Offered",
    "Page",
    "handle_of",
    "light_of",
    "page",
    "take_in",
    "version_of",
]
