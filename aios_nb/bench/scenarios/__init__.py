"""All questions that ``aios-nb bench`` answers, in the order it asks them."""

from __future__ import annotations

from aios_nb.bench.results import Scenario
from aios_nb.bench.scenarios.beside import BUSY, STORE
from aios_nb.bench.scenarios.crowd import CROWDS
from aios_nb.bench.scenarios.dht import DHT
from aios_nb.bench.scenarios.far import FAR
from aios_nb.bench.scenarios.gossip import GOSSIP
from aios_nb.bench.scenarios.interop import INTEROP
from aios_nb.bench.scenarios.joiner import JOINER
from aios_nb.bench.scenarios.levels import LEVELS, SPAWN
from aios_nb.bench.scenarios.links import LINKS
from aios_nb.bench.scenarios.notebook import NOTEBOOK
from aios_nb.bench.scenarios.peer import PEER
from aios_nb.bench.scenarios.phone import PHONE
from aios_nb.bench.scenarios.rpc import CHAT, RPC
from aios_nb.bench.scenarios.search import SEARCH
from aios_nb.bench.scenarios.startup import STARTUP
from aios_nb.bench.scenarios.streams import STREAM
from aios_nb.bench.scenarios.village import VILLAGE

SCENARIOS: tuple[Scenario, ...] = (
    RPC, CHAT, STREAM, INTEROP, PEER, FAR, LINKS, CROWDS, DHT, GOSSIP, JOINER, VILLAGE, STORE, BUSY,
    LEVELS, SPAWN, STARTUP, SEARCH, NOTEBOOK, PHONE,
)  # fmt: skip
