"""Networks that are not there: models to a million nodes, and the real machines on a virtual clock.

Nothing of the node imports this; the command line and the notebooks do, when they are asked to.
"""

NODES_MAX = 1_000_000
"""Of a modelled network."""
